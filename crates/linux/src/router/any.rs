//! Link laws that run in the router's program for any law (`bpf/router-law.bpf.c`), and queue laws in the one for those that judge
//! before a queue (`bpf/router-queue.bpf.c`): what of a law the program is told.
//!
//! A law is asked for it by its own functions, here in user space: its settings by [`Settings::each`], the place of its
//! header's words in its TCP option by [`SenderLaw::option`](congestlab_core::law::SenderLaw::option). Nothing is said twice.

use std::borrow::Cow;
use std::cell::Cell;
use std::str::FromStr;

use congestlab_core::law::queue::Marker;
use congestlab_core::law::settings::{Field, Finding, Settings};
use congestlab_core::law::{
    Link, LinkConfig, On, OptionBytes, Packet, Protocol, Remembers, Reply, SenderConfig, Series, Tag, Words,
};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Ratio, Time};

use super::object::place_in;
use crate::encoding::Encoding;
use crate::error::{Error, Result};

/// Objects of the laws of the list, by name.
const OBJECTS: &[(&str, &[u8])] = include!("../../bpf/objects/routers.rs");

/// Objects of the queue laws that judge before a queue.
const QUEUES: &[(&str, &[u8])] = include!("../../bpf/objects/queues.rs");

/// Sizes of `struct Told`, `struct Report` in `bpf/told.rs` and of a record in `bpf/link.rs.in`.
const SETTINGS: usize = 16;
/// The most columns of a report.
pub(super) const COLUMNS: usize = 8;
const MEMORY: u32 = 8;
/// The most bytes of TCP options, and what the program takes for a byte that no word has.
const OPTION: usize = 40;
const FIXED: u8 = 0xff;

/// The option of a law that says no bytes of its own: kind for experiments (RFC 4727), the identifier "CL", the header's tag,
/// zeros up to a multiple of four, and five words, as many as a packet with timestamps has room for.
const KIND: u8 = 253;
const ID: [u8; 2] = *b"CL";
const OWN_WORDS: usize = 5;

/// A law with its constants.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Link(LinkConfig),
    /// A queue law, at that rate.
    Queue(Marker, Rate),
}

impl Settings for Kind {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        match self {
            Self::Link(config) => config.each(tell),
            Self::Queue(told, _) => told.each(tell),
        }
    }

    fn settle(&mut self, is_written: &dyn Fn(&str) -> bool) {
        match self {
            Self::Link(config) => config.settle(is_written),
            Self::Queue(told, _) => told.settle(is_written),
        }
    }

    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        match self {
            Self::Link(config) => config.check(tell),
            Self::Queue(told, _) => told.check(tell),
        }
    }
}

impl Kind {
    fn capacity(&self) -> Rate {
        match self {
            Self::Link(config) => config.capacity(),
            Self::Queue(_, rate) => *rate,
        }
    }

    fn remembers(&self) -> Option<Remembers> {
        match self {
            Self::Link(config) => config.remembers(),
            Self::Queue(..) => None,
        }
    }
}

/// A link law, its constants, and the place of its header in packets; or a queue law, which judges packets before their queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnyLaw {
    pub(super) name: &'static str,
    config: Kind,
    form: Form,
    in_quic: bool,
    object: Cow<'static, [u8]>,
}

impl AnyLaw {
    /// Returns the names of the link laws whose objects are part of this program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        OBJECTS.iter().map(|(name, _)| *name)
    }

    /// Returns the names of the queue laws whose objects are part of this program.
    pub fn queue_names() -> impl Iterator<Item = &'static str> {
        QUEUES.iter().map(|(name, _)| *name)
    }

    /// Returns the program of a law that is part of this program.
    pub(super) fn object_of(name: &str) -> Option<&'static [u8]> {
        OBJECTS.iter().chain(QUEUES).find(|(of, _)| *of == name).map(|(_, object)| *object)
    }

    /// Returns the queue law of that name with its defaults, before a queue that leaves at this rate.
    ///
    /// # Errors
    /// If there is no such law.
    pub fn queue(name: &str, rate: BitRate) -> Result<Self> {
        let (Some(told), Some(object)) = (Marker::of(name), Self::object_of(name)) else {
            let known: Vec<&str> = Self::queue_names().collect();
            let what = format!("there is no program of the queue law {name} for the kernel");
            return Err(Error::input(what, format!("allowed: {}", known.join(", "))));
        };
        let (name, config) = (told.name(), Kind::Queue(told, rate.bytes()));
        Ok(Self { name, config, form: Form::NONE, in_quic: false, object: Cow::Borrowed(object) })
    }

    /// Returns a protocol's link law with its defaults for a link of this rate. `object` is its program; `None`: the one that is part
    /// of this program.
    ///
    /// # Errors
    /// If the protocol has no law for links, there is no object, or the law's header is not one that the program can find in packets.
    pub fn new(protocol: &Protocol, rate: BitRate, object: Option<Vec<u8>>) -> Result<Self> {
        let Some(mut config) = protocol.link.clone() else {
            return Err(Error::input(format!("{} has no law for links", protocol.name), ""));
        };
        let name = config.name();
        config.set_capacity(rate.bytes());
        // A kernel does not know the round trips of its flows.
        config.set_round_trip(Duration(0), &|_| false);
        let own = Self::object_of(name);
        let object = match (object, own) {
            (Some(object), _) => object.into(),
            (None, Some(object)) => Cow::Borrowed(object),
            (None, None) => {
                let known: Vec<&str> = Self::names().collect();
                return Err(Error::input(
                    format!("there is no program of the law {name} for the kernel"),
                    format!(
                        "xcp, pxcp, vcp, dpcp, {} have one; of a law of your own: congestlab build law {name}",
                        known.join(", ")
                    ),
                ));
            }
        };
        let mut settings = 0;
        config.each(&mut |_, _, _| settings += 1);
        if settings > SETTINGS {
            return Err(Error::input(format!("{name} has {settings} settings; the kernel's {SETTINGS}"), ""));
        }
        let mut form = Form::of(name, &config, protocol.sender.as_ref())?;
        let in_quic = place_in(&object) == "quic";
        if in_quic {
            // The program knows its bytes.
            form = Form { tag: form.tag, ..Form::NONE };
        }
        Ok(Self { name, config: Kind::Link(config), form, in_quic, object })
    }

    /// Gives a factor or a share of that name another value; false if the law has none.
    pub(super) fn tell(&mut self, name: &str, told: Ratio) -> bool {
        let mut is_told = false;
        self.config.each(&mut |key, _, field| {
            if key.replace('_', "-") == name
                && let Field::Factor(value) | Field::Share(value) = field
            {
                *value = told;
                is_told = true;
            }
        });
        is_told
    }

    /// Changes settings, each told as `key=value` in the words of a scenario.
    ///
    /// # Errors
    /// If a key is none of the law's, a value is not of its type, or the law refuses what comes of it.
    pub fn set(&mut self, told: &[String]) -> Result<()> {
        let mut written = Vec::new();
        for text in told {
            let refuse =
                |what: String, help: String| Err(Error::input(format!("--set {text}: {what}"), help));
            let Some((key, value)) = text.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
            else {
                return refuse("no value".into(), "--set KEY=VALUE, such as --set interval=\"20 ms\"".into());
            };
            let (mut keys, mut is_taken) = (Vec::new(), None);
            self.config.each(&mut |known, _, field| {
                keys.push(known);
                if known == key {
                    is_taken = Some(take(field, value.trim_matches('"')));
                }
            });
            match is_taken {
                Some(Ok(())) => written.push(key.to_owned()),
                Some(Err(allowed)) => return refuse(format!("`{value}` is not {allowed}"), String::new()),
                None => {
                    let keys = if keys.is_empty() { "it has none".into() } else { keys.join(", ") };
                    return refuse(format!("{} has no such setting", self.name), format!("allowed: {keys}"));
                }
            }
        }
        self.config.settle(&|key| written.iter().any(|written| written == key));
        let mut wrong = None;
        self.config.check(&mut |finding| {
            if finding.is_error {
                wrong.get_or_insert(finding);
            }
        });
        match wrong {
            Some(Finding { key, text, help, .. }) => {
                Err(Error::input(format!("{}: {key} {text}", self.name), help))
            }
            None => Ok(()),
        }
    }

    /// Returns where the law's header is: in a packet of QUIC, in a TCP option, or the law has none and reads the ECN field at most.
    pub fn encoding(&self) -> Encoding {
        match self.form.tag {
            _ if self.in_quic => Encoding::Quic,
            0 => Encoding::Ecn,
            _ => Encoding::Option,
        }
    }

    /// Returns true for a queue law, which marks or drops packets before their queue.
    pub fn is_queue(&self) -> bool {
        matches!(self.config, Kind::Queue(..))
    }

    /// Returns the time in which a port begins at random; a queue law draws all that it draws by it.
    pub(super) fn first_interval(&self) -> Duration {
        match &self.config {
            Kind::Link(config) => config.first_interval(),
            Kind::Queue(..) => Duration(u64::MAX),
        }
    }

    pub(super) fn object(&self) -> &[u8] {
        &self.object
    }

    /// Returns what the router shall remember of flows, and for how many.
    pub(super) fn flows(&self) -> Option<u32> {
        self.config.remembers().map(|of| of.flows)
    }

    /// Returns the settings that the program must have found.
    pub(super) fn settings(&self) -> Vec<u64> {
        let mut words = Vec::new();
        self.config.clone().each(&mut |_, _, field| words.push(word(field)));
        words
    }

    /// Returns the numerators of the series of a port that begins in these phases.
    pub(super) fn first_report(&self, phases: [u64; 2]) -> [i64; COLUMNS] {
        let [phase, second] = phases.map(Duration);
        let mut columns = [0; COLUMNS];
        let mut next = columns.iter_mut();
        let mut note = |_: &str, value, _: u32| {
            if let Some(column) = next.next() {
                *column = value;
            }
        };
        match &self.config {
            Kind::Link(config) => {
                Link::new(config, phase, second).report().each(&mut |a, b, c| note(a, b, c))
            }
            Kind::Queue(told, _) => told.first_report(&mut |a, b, c| note(a, b, c)),
        }
        columns
    }

    /// `struct config` of the program, but for the words in its end.
    pub(super) fn constants(&self, phases: [u64; 2]) -> Vec<u8> {
        let mut words = self.settings();
        words.resize(SETTINGS, 0);
        words.insert(0, self.config.capacity().0);
        words.extend(phases);
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
        let idle = self.config.remembers().map_or(0, |of| of.idle.0.div_ceil(1_000_000).max(1));
        let Form { tag, name, sizes, fixed, from } = &self.form;
        for word in [*tag, *name, *sizes, idle.min(u64::from(u32::MAX)) as u32] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(fixed);
        bytes.extend(from);
        let mut law = [0; NAME];
        law.iter_mut().zip(self.name.bytes()).for_each(|(to, byte)| *to = byte);
        bytes.extend(law);
        bytes
    }
}

/// Room for the name of a law, which is as long as `congestlab new law` allows.
pub(super) const NAME: usize = 40;

/// Returns the numerators of a law's series as numbers with their names, those of a law that is not on the list by their places.
pub(super) fn series(law: &str, columns: &[i64; COLUMNS]) -> Vec<(String, f64)> {
    let mut named = Vec::new();
    let mut note = |name: &str, unit: u32| {
        if let Some(value) = columns.get(named.len()) {
            named.push((name.to_owned(), *value as f64 / f64::from(unit)));
        }
    };
    if let Some(told) = Marker::of(law) {
        told.first_report(&mut |name, _, unit| note(name, unit));
        return named;
    }
    let Some(config) = Protocol::of(law).and_then(|protocol| protocol.link.as_ref()) else {
        let named = columns.iter().enumerate();
        return named.map(|(place, value)| (format!("column_{}", place + 1), *value as f64)).collect();
    };
    Link::new(config, Duration(1), Duration(1)).report().each(&mut |name, _, unit| note(name, unit));
    named
}

/// A setting as a word: `set` of `bpf/told.rs` reads it.
fn word(field: Field<'_>) -> u64 {
    match field {
        Field::Switch(value) => (*value).into(),
        Field::Factor(value) | Field::Share(value) => value.0.into(),
        Field::Weight(value) => value.map_or(0, |weight| weight.0).into(),
        Field::Span(value) => value.0,
        Field::Rate(value) => value.0,
        Field::Count(value) | Field::Number(value, _) => (*value).into(),
        Field::Word(value) => value.words().iter().position(|word| *word == value.word()).unwrap_or(0) as u64,
    }
}

/// Reads a setting; else says what is allowed.
fn take(field: Field<'_>, text: &str) -> std::result::Result<(), String> {
    fn read<T: FromStr>(text: &str, place: &mut T, allowed: &str) -> std::result::Result<(), String> {
        *place = text.parse().map_err(|_| allowed.to_owned())?;
        Ok(())
    }
    let ratio = |text: &str, most: f64| match text.parse::<f64>() {
        Ok(value) if (0.0..=most).contains(&value) => Ok(Ratio::ppm((value * 1e6).round() as u32)),
        _ => Err(format!("a number from 0 to {most}")),
    };
    match field {
        Field::Switch(value) => read(text, value, "true or false"),
        Field::Factor(value) => ratio(text, 1000.0).map(|ratio| *value = ratio),
        Field::Share(value) => ratio(text, 1.0).map(|ratio| *value = ratio),
        Field::Weight(value) => {
            *value = match text {
                "false" => None,
                "true" => Some(Ratio::ppm(500_000)),
                _ => Some(ratio(text, 1.0)?).filter(|weight| weight.0 > 0),
            };
            Ok(())
        }
        Field::Span(value) => read(text, value, "a time, such as \"20 ms\""),
        Field::Rate(value) => {
            let rate: BitRate = text.parse().map_err(|_| "a rate, such as \"10 Mbit/s\"".to_owned())?;
            *value = rate.bytes();
            Ok(())
        }
        Field::Count(value) => read(text, value, "a whole number"),
        Field::Number(value, most) => {
            let allowed = || format!("a whole number from 1 to {most}");
            let number = text.parse().map_err(|_| allowed())?;
            if !(1..=most).contains(&number) {
                return Err(allowed());
            }
            *value = number;
            Ok(())
        }
        Field::Word(value) => {
            if !value.words().contains(&text) {
                return Err(format!("one of {}", value.words().join(", ")));
            }
            value.choose(text);
            Ok(())
        }
    }
}

/// The TCP option in which a law's header rides, as `struct form` of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Form {
    /// Tag of the header; 0: the law has none.
    tag: u32,
    /// Kind and identifier.
    name: u32,
    /// Bytes on data and on ACKs.
    sizes: u32,
    /// Bytes that are always so.
    fixed: [u8; OPTION],
    /// For each byte, which byte of the header's words stands there, or [`FIXED`].
    from: [u8; OPTION],
}

/// A packet that has every header, and notes which is asked for.
struct Probe {
    words: Words,
    asked: Cell<Option<Tag>>,
    is_second: Cell<bool>,
}

impl Probe {
    fn new(words: Words) -> Self {
        Self { words, asked: Cell::new(None), is_second: Cell::new(false) }
    }

    fn note(&self, tag: Tag) {
        let other = self.asked.replace(Some(tag)).is_some_and(|before| before != tag);
        self.is_second.set(self.is_second.get() || other);
    }
}

impl Packet for Probe {
    fn size(&self) -> Bytes {
        Bytes(1500)
    }

    fn ecn(&self) -> u8 {
        1
    }

    fn set_ecn(&mut self, _code: u8) {}

    fn words(&self, tag: Tag) -> Option<&Words> {
        self.note(tag);
        Some(&self.words)
    }

    fn words_mut(&mut self, tag: Tag) -> Option<&mut Words> {
        self.note(tag);
        Some(&mut self.words)
    }

    fn add(&mut self, _tag: Tag) -> Option<&mut Words> {
        None
    }

    fn memory(&mut self, _flow: [u32; 3], _now: Time, _is_new: bool) -> Option<&mut [u32]> {
        None
    }
}

impl Form {
    /// The form of a law without a header in TCP's options.
    const NONE: Self = Self { tag: 0, name: 0, sizes: 0, fixed: [0; OPTION], from: [FIXED; OPTION] };

    /// Finds out what a law's header is on the wire.
    fn of(name: &str, config: &LinkConfig, sender: Option<&SenderConfig>) -> Result<Self> {
        let refuse = |what: String| {
            Error::input(
                format!("the kernel can not run {name}: {what}"),
                "see docs/new-law.md, \"On real packets\"",
            )
        };
        if let Some(Remembers { words, .. }) = config.remembers()
            && words > MEMORY
        {
            return Err(refuse(format!("it remembers {words} words of a flow; {MEMORY} are the most")));
        }
        let mut probe = Probe::new([0; 7]);
        let mut link = Link::new(config, Duration(1), Duration(1));
        link.on_arrival(Time(1), &probe);
        link.on_departure(Time(1), &mut probe, Bytes(0));
        let Some(tag) = probe.asked.get() else {
            return Ok(Self::NONE);
        };
        if probe.is_second.get() || !tag.is_added {
            return Err(refuse("it reads more of a packet than one header of its own".into()));
        }
        let own = |words| sender.and_then(|sender| sender.option(On::Forward(&Probe::new(words))));
        let Some(bytes) = own([0; 7]) else { return Ok(Self::generic(tag)) };
        let length = usize::from(bytes[1]);
        if !(4..=OPTION).contains(&length) || !length.is_multiple_of(2) {
            return Err(refuse(format!("its option has {length} bytes; an even number up to 40 is allowed")));
        }
        let back = sender.and_then(|sender| sender.option(On::Back(Reply { word: 1, byte: 1 })));
        let back = back.map_or(0, |back| u32::from(back[1]));
        let mut form = Self::named(tag, &bytes, length as u32, back);
        for at in 0..28 {
            let changed = own(image(|byte| if byte == at { 0xff } else { 0 }));
            let places =
                changed.map(|changed| (0..length).filter(|&i| changed[i] != bytes[i]).collect::<Vec<_>>());
            match places.as_deref() {
                Some([]) => {}
                Some(&[place]) if place >= 4 => form.from[place] = at as u8,
                _ => return Err(refuse(NO_BYTES.into())),
            }
        }
        let is_so = (0..=u8::MAX).all(|seed| {
            let byte = |at: usize| (at as u8).wrapping_mul(37).wrapping_add(seed).wrapping_mul(seed | 1);
            let expected = form.bytes(byte);
            own(image(byte)).is_some_and(|bytes| bytes[..length] == expected[..length])
        });
        if is_so { Ok(form) } else { Err(refuse(NO_BYTES.into())) }
    }

    /// The option of a law that says none.
    fn generic(tag: Tag) -> Self {
        let length = 8 + 4 * OWN_WORDS;
        let mut bytes = [0; OPTION];
        let [high, low] = (tag.name as u16).to_be_bytes();
        bytes[..6].copy_from_slice(&[KIND, length as u8, ID[0], ID[1], high, low]);
        let mut form = Self::named(tag, &bytes, length as u32, 0);
        for word in 0..OWN_WORDS {
            for byte in 0..4 {
                form.from[8 + 4 * word + byte] = (4 * word + 3 - byte) as u8;
            }
        }
        form
    }

    fn named(tag: Tag, bytes: &OptionBytes, length: u32, back: u32) -> Self {
        let [kind, _, id @ ..] = *bytes;
        let id = u32::from(u16::from_be_bytes([id[0], id[1]]));
        Self {
            tag: tag.name,
            name: u32::from(kind) << 16 | id,
            sizes: length << 8 | back,
            fixed: *bytes,
            from: [FIXED; OPTION],
        }
    }

    /// Returns the option with these bytes of words.
    fn bytes(&self, byte: impl Fn(usize) -> u8) -> OptionBytes {
        std::array::from_fn(|i| match self.from[i] {
            FIXED => self.fixed[i],
            from => byte(from.into()),
        })
    }
}

const NO_BYTES: &str = "its option does not consist of whole bytes of its header's words";

/// Words with these bytes, the lowest of each first.
fn image(byte: impl Fn(usize) -> u8) -> Words {
    std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|at| byte(4 * word + at))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the objects are made of has one, under its own name, and can be told.
    #[test]
    fn every_object_is_that_of_a_law_of_the_list() {
        assert!(OBJECTS.len() > 1);
        for name in AnyLaw::names() {
            let protocol = Protocol::of(name).unwrap_or_else(|| panic!("no protocol {name}"));
            let law = AnyLaw::new(protocol, BitRate(1_000_000), None).unwrap();
            assert_eq!(law.name, name);
            assert_eq!(law.constants([1, 2]).len() + 16, 304, "sizeof(struct config)");
        }
        for name in AnyLaw::queue_names() {
            let law = AnyLaw::queue(name, BitRate(8000)).unwrap();
            assert_eq!((law.name, law.encoding(), law.constants([1, 2]).len()), (name, Encoding::Ecn, 288));
            assert!(Protocol::of(name).is_none(), "{name} is the name of two");
        }
    }

    /// The bytes of its captures are those that the program looks for: rate, then round trip time.
    #[test]
    fn a_header_is_found_where_its_own_law_puts_it() {
        let rcp = AnyLaw::new(Protocol::of("rcp").unwrap(), BitRate(1_000_000), None).unwrap();
        let Form { tag, name, sizes, from, .. } = rcp.form;
        assert_eq!(tag, Tag::header("rcp").name);
        assert_eq!((name, sizes), (253 << 16 | u32::from(u16::from_be_bytes(*b"RC")), 12 << 8 | 8));
        assert_eq!(from[..13], [FIXED, FIXED, FIXED, FIXED, 11, 10, 9, 8, 7, 6, 5, 4, FIXED]);
        let abc = AnyLaw::new(Protocol::of("abc").unwrap(), BitRate(1_000_000), None).unwrap();
        assert_eq!((abc.encoding(), rcp.encoding()), (Encoding::Ecn, Encoding::Option));
    }

    /// A law that reads more of a packet, and one that is no law of links.
    #[test]
    fn what_the_program_can_not_carry_is_refused_by_name() {
        for (law, says) in
            [("cubic", "cubic has no law for links"), ("dpcp", "there is no program of the law")]
        {
            let error = AnyLaw::new(Protocol::of(law).unwrap(), BitRate(1_000_000), None).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
        let dpcp = Protocol::of("dpcp").unwrap();
        let error = AnyLaw::new(dpcp, BitRate(1_000_000), Some(vec![])).unwrap_err();
        assert!(error.to_string().contains("the kernel can not run"), "{error}");
    }
}
