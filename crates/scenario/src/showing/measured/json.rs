//! Values of JSON that know their place, so that what is wrong with them can be told.

use serde_json::Value;

use super::{NUMBER_MAX, Wrong};

/// Most characters of a value in a message.
const SHOWN_MAX: usize = 60;

pub(super) fn read(text: &str) -> Result<Value, Wrong> {
    serde_json::from_str(text).map_err(|error| {
        // Its words end with the place, which stands before them here.
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or_default().to_owned();
        let place = format!(", line {}, column {}", error.line(), error.column());
        let help =
            "JSON has numbers that end, no NaN and no Infinity; a recording that was cut off is incomplete";
        Wrong::new(place, format!("it is no JSON: {words}"), help)
    })
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
        Some(Self { value, place: format!("{}{dot}{}", self.place, shown(key)) })
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
            (key.as_str(), Self { value, place: format!("{place}[\"{}\"]", shown(key)) })
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
            format!("{} stands where {wanted} belongs", shown(&self.value.to_string())),
            format!("allowed: {wanted}"),
        )
    }
}

fn shown(text: &str) -> String {
    if text.chars().count() <= SHOWN_MAX {
        return text.into();
    }
    text.chars().take(SHOWN_MAX).chain("...".chars()).collect()
}
