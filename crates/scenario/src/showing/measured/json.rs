//! Values of JSON that know their place, so that what is wrong with them can be told.

use serde_json::{Deserializer, Value};

use super::{KNOWN, NUMBER_MAX, TIME_MAX, Wrong, shown};

/// Most characters of a value in a message.
const VALUE_MAX: usize = 60;

/// Reads a text that is one value.
pub(super) fn read(text: &str) -> Result<Value, Wrong> {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => return Err(no_json(text, &error)),
        None => return Err(Wrong::new("", "it is empty", KNOWN)),
    };
    let (good, rest) = text.split_at_checked(values.byte_offset()).unwrap_or((text, ""));
    let rest = rest.trim_start();
    if rest.is_empty() {
        return Ok(value);
    }
    if value.get("event").is_some() {
        return Err(stream(text));
    }
    let (what, help) = match rest.starts_with('{') {
        true => (
            "begins a second recording",
            "give each recording a file of its own, and add those of the same run by --with",
        ),
        false => ("stands behind the JSON", "remove what stands behind the last `}`"),
    };
    let blank = text[good.len()..text.len() - rest.len()].matches('\n').count();
    let line = 1 + good.matches('\n').count() + blank;
    Err(Wrong::in_line(line, format!("`{}` {what}", shown(rest)), help))
}

/// Refuses what `iperf3 --json-stream` prints.
pub(super) fn stream(text: &str) -> Wrong {
    let problem =
        format!("`{}` is a stream of iperf3's events", shown(text.lines().next().unwrap_or_default()));
    Wrong::new("", problem, "record with `iperf3 -J`, which prints one object, and not with --json-stream")
}

fn no_json(text: &str, error: &serde_json::Error) -> Wrong {
    // Its words end with the place, which stands before them here.
    let words = error.to_string();
    let words = words.split(" at line ").next().unwrap_or_default();
    let place = format!(", line {}, column {}", error.line(), error.column());
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let mut at = error.column().saturating_sub(1).min(line.len());
    while !line.is_char_boundary(at) {
        at -= 1;
    }
    let rest = match shown(&line[at..]) {
        rest if rest.is_empty() => rest,
        rest => format!(" in `{rest}`"),
    };
    let help =
        "JSON has numbers that end, no NaN and no Infinity; a recording that was cut off is incomplete";
    Wrong::new(place, format!("it is no JSON: {words}{rest}"), help)
}

/// A value and its place.
#[derive(Clone)]
pub(super) struct Node<'a> {
    value: &'a Value,
    place: String,
}

impl<'a> Node<'a> {
    pub(super) fn top(value: &'a Value) -> Self {
        Self { value, place: String::new() }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.value.get(key).is_some()
    }

    /// The value of a key, if it is there and not null.
    pub(super) fn maybe(&self, key: &str) -> Option<Self> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        let dot = if self.place.is_empty() { "" } else { "." };
        Some(Self { value, place: format!("{}{dot}{}", self.place, short(key)) })
    }

    pub(super) fn get(&self, key: &str) -> Result<Self, Wrong> {
        self.maybe(key).ok_or_else(|| {
            let inside = if self.place.is_empty() { String::new() } else { format!(", {}", self.place) };
            Wrong::new(inside, format!("`{key}` is missing"), "")
        })
    }

    pub(super) fn list(&self) -> Result<impl Iterator<Item = Self>, Wrong> {
        let list = self.value.as_array().ok_or_else(|| self.wrong("a list"))?;
        let place = self.place.clone();
        Ok(list
            .iter()
            .enumerate()
            .map(move |(index, value)| Self { value, place: format!("{place}[{index}]") }))
    }

    /// Keys and values of an object.
    pub(super) fn members(&self) -> Result<impl Iterator<Item = (&'a str, Self)>, Wrong> {
        let object = self.value.as_object().ok_or_else(|| self.wrong("an object"))?;
        let place = self.place.clone();
        Ok(object.iter().map(move |(key, value)| {
            (key.as_str(), Self { value, place: format!("{place}[\"{}\"]", short(key)) })
        }))
    }

    pub(super) fn text(&self) -> Result<&'a str, Wrong> {
        self.value.as_str().ok_or_else(|| self.wrong("a text"))
    }

    /// A number of at least 0.
    pub(super) fn number(&self) -> Result<f64, Wrong> {
        let number = self.value.as_f64().filter(|number| (0.0..=NUMBER_MAX).contains(number));
        number.ok_or_else(|| self.wrong("a number from 0 to 1e15"))
    }

    /// A time in seconds, of a clock or since 1970.
    pub(super) fn time(&self) -> Result<f64, Wrong> {
        let time = self.value.as_f64().filter(|time| (0.0..=TIME_MAX).contains(time));
        time.ok_or_else(|| self.wrong("a time in seconds"))
    }

    /// A number of at least 0, which some programs write as a text.
    pub(super) fn number_or_text(&self) -> Result<f64, Wrong> {
        let Some(text) = self.value.as_str() else { return self.number() };
        let number = text.trim().parse().ok().filter(|number| (0.0..=NUMBER_MAX).contains(number));
        number.ok_or_else(|| self.wrong("a number from 0 to 1e15"))
    }

    pub(super) fn flag(&self) -> Result<bool, Wrong> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    pub(super) fn wrong(&self, wanted: &str) -> Wrong {
        let place = if self.place.is_empty() { String::new() } else { format!(", {}", self.place) };
        Wrong::new(
            place,
            format!("{} stands where {wanted} belongs", short(&self.value.to_string())),
            format!("allowed: {wanted}"),
        )
    }
}

fn short(text: &str) -> String {
    if text.chars().count() <= VALUE_MAX {
        return text.into();
    }
    text.chars().take(VALUE_MAX).chain("...".chars()).collect()
}
