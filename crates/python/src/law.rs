//! Laws in Python: classes whose methods the reference engine calls, packet by packet.
//!
//! They stand where the laws of links and senders stand, by `law::outside`. What a method changes is read when it returns:
//! attributes of the law, the header and the code of its packet. An exception ends the run, and is raised again where it was
//! started. Every call takes the GIL.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use congestlab_core::law::settings::{Field, Settings};
use congestlab_core::law::words::{LinkWords, SenderWords};
use congestlab_core::law::{
    self, EchoLaw, Heard, Hue, LinkLaw, Look, Needs, Protocol, Receiving, Reply, SenderLaw, Series, Shape,
    Steered, Tag, outside,
};
use congestlab_scenario::net::port::LawConfig;
use congestlab_scenario::sim::model::{GroupKind, Model};
use congestlab_scenario::units::{Bytes, Duration, Rate, Time};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple, PyType};

use crate::refused;

/// What went wrong in a law, and the flag that ends its run.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    stop: AtomicBool,
    error: Mutex<Option<PyErr>>,
    /// The thread that calls laws, as Python numbers it; 0: not known.
    caller: AtomicU64,
    /// Number of the last call of a law, and its method while it lasts.
    call: Mutex<(u64, Option<&'static str>)>,
}

impl Trouble {
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Laws are called by the thread that calls this.
    pub(crate) fn enter(&self, py: Python<'_>) {
        let ident =
            py.import("threading").and_then(|threading| threading.call_method0("get_ident")?.extract());
        // Without it a law that never returns can not be ended, and nothing else is lost.
        self.caller.store(ident.unwrap_or(0), Ordering::Relaxed);
    }

    /// Raises `KeyboardInterrupt` in the thread that calls laws.
    pub(crate) fn interrupt(&self, py: Python<'_>) {
        let raise = |caller: u64| {
            let ctypes = py.import("ctypes")?;
            let caller = ctypes.call_method1("c_ulong", (caller,))?;
            let error = ctypes.call_method1("py_object", (py.get_type::<PyKeyboardInterrupt>(),))?;
            ctypes.getattr("pythonapi")?.call_method1("PyThreadState_SetAsyncExc", (caller, error)).map(drop)
        };
        if let caller @ 1.. = self.caller.load(Ordering::Relaxed) {
            // A Python without ctypes waits for the law.
            let _: PyResult<()> = raise(caller);
        }
    }

    /// Notes that a method of a law is called.
    fn begin_call(&self, method: &'static str) {
        let mut call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        *call = (call.0 + 1, Some(method));
    }

    /// Notes that it has returned.
    fn end_call(&self) {
        self.call.lock().unwrap_or_else(PoisonError::into_inner).1 = None;
    }

    /// Returns the number of the last call of a law, and its method if it has not returned.
    pub(crate) fn last_call(&self) -> (u64, Option<&'static str>) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the run, which then raises this.
    pub(crate) fn tell(&self, error: PyErr) {
        self.stop.store(true, Ordering::Relaxed);
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Raises what a law has raised.
    pub(crate) fn raise(&self) -> PyResult<()> {
        self.take().map_or(Ok(()), Err)
    }

    /// Takes what a law has raised: other objects of it may go on.
    pub(crate) fn take(&self) -> Option<PyErr> {
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        if error.is_some() {
            self.stop.store(false, Ordering::Relaxed);
        }
        error
    }
}

/// An acknowledgment.
#[pyclass(frozen, get_all, module = "congestlab")]
pub(crate) struct Ack {
    acked: u64,
    flight: u64,
    rtt_ns: u64,
    srtt_ns: u64,
    reply: u32,
    ecn: u8,
    is_duplicate: bool,
    in_recovery: bool,
    is_window_limited: bool,
    is_late: bool,
}

/// A packet that is about to be sent.
#[pyclass(frozen, get_all, module = "congestlab")]
pub(crate) struct Send {
    size: u64,
    srtt_ns: u64,
    backlog: u64,
    is_window_limited: bool,
}

/// The ECN field of IP has two bits.
const ECN_MAX: u8 = 3;

/// A packet as a law sees it, for as long as its call lasts.
#[pyclass(module = "congestlab")]
pub(crate) struct Packet {
    #[pyo3(get)]
    size: u64,
    #[pyo3(get)]
    ecn: u8,
    header: Option<law::Words>,
}

#[pymethods]
impl Packet {
    #[setter]
    fn set_ecn(&mut self, code: &Bound<'_, PyAny>) -> PyResult<()> {
        self.ecn = code.extract().ok().filter(|&code: &u8| code <= ECN_MAX).ok_or_else(|| {
            let shown = code.repr().map_or_else(|_| String::new(), |text| text.to_string());
            PyValueError::new_err(format!(
                "ecn is {shown}; allowed: 0 (not ECN-capable), 1 (ECT(1)), 2 (ECT(0)), 3 (Congestion Experienced)"
            ))
        })?;
        Ok(())
    }

    /// The words of the law's header; `None`: the packet has none.
    #[getter]
    fn header(&self) -> Option<Vec<u32>> {
        self.header.map(|words| words.to_vec())
    }

    #[setter]
    fn set_header(&mut self, words: Vec<u32>) -> PyResult<()> {
        let mut header = law::Words::default();
        if words.len() > header.len() {
            let text = format!("a header has up to {} words of 32 bits, not {}", header.len(), words.len());
            return Err(PyValueError::new_err(text));
        }
        header[..words.len()].copy_from_slice(&words);
        self.header = Some(header);
        Ok(())
    }
}

impl Packet {
    fn of(packet: &impl law::Packet, tag: Tag) -> Self {
        Self { size: packet.size().0, ecn: packet.ecn(), header: packet.words(tag).copied() }
    }
}

/// A law in Python, for links or for senders.
#[derive(Debug)]
struct Class {
    /// A class, or an object that every port or flow gets a copy of.
    law: Py<PyAny>,
    tag: Tag,
    is_of_links: bool,
    needs: Needs,
    /// Whether the law has these, which most have not.
    sends: bool,
    arrives: bool,
    lowers: bool,
}

/// Which links and groups have laws in Python.
#[derive(Debug, Default)]
pub(crate) struct Laws {
    links: Vec<(usize, Arc<Class>)>,
    groups: Vec<(usize, Arc<Class>)>,
}

impl Class {
    fn new(law: &Bound<'_, PyAny>) -> PyResult<Self> {
        let has = |name: &str| law.hasattr(name);
        let is_of_senders = has("on_ack")?;
        let is_of_links = has("on_departure")? || has("on_interval")? || has("on_arrival")?;
        if is_of_senders == is_of_links {
            let text = format!(
                "{} is no law: allowed: a class or object with on_ack (senders), or with on_arrival, on_departure or \
                 on_interval (links)",
                law.repr()?
            );
            return Err(PyTypeError::new_err(text));
        }
        let optional = |name: &str| law.getattr_opt(name).map(|value| value.filter(|value| !value.is_none()));
        let header = match optional("header_name")? {
            Some(name) => name.extract::<String>()?,
            None => "python".to_owned(),
        };
        let needs = Needs {
            initial_window: optional("initial_window")?.map(|packets| packets.extract()).transpose()?,
            owns_ecn: optional("owns_ecn")?.is_some_and(|owns| owns.is_truthy().unwrap_or(false)),
            header_bytes: optional("header_bytes")?.map_or(Ok(0), |bytes| bytes.extract())?,
            ..Needs::NONE
        };
        let (sends, arrives, lowers) = (has("on_send")?, has("on_arrival")?, has("only_lowers")?);
        let tag = Tag::header(&header);
        Ok(Self { law: law.clone().unbind(), tag, is_of_links, needs, sends, arrives, lowers })
    }

    /// The law of one port or flow.
    fn begin<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let law = self.law.bind(py);
        if law.is_instance_of::<PyType>() { law.call0() } else { copy(law) }
    }
}

fn copy<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    object
        .py()
        .import(intern!(object.py(), "copy"))?
        .call_method1(intern!(object.py(), "deepcopy"), (object,))
}

impl Laws {
    /// Finds the elements that laws are for: `links.NAME`, `flows.NAME`, or a name that is not both.
    pub(crate) fn new(py: Python<'_>, model: &Model, laws: Vec<(String, Py<PyAny>)>) -> PyResult<Self> {
        let mut found = Self::default();
        for (name, law) in laws {
            let class = Arc::new(Class::new(law.bind(py))?);
            let prefix = if class.is_of_links { "links." } else { "flows." };
            let name = name.strip_prefix(prefix).unwrap_or(&name);
            let names: Vec<&str> = if class.is_of_links {
                model.links.iter().map(|link| link.name.as_str()).collect()
            } else {
                model.groups.iter().map(|group| group.name.as_str()).collect()
            };
            let places: Vec<usize> = match name {
                "*" => (0..names.len()).collect(),
                _ => names.iter().position(|other| *other == name).into_iter().collect(),
            };
            if places.is_empty() {
                let what = if class.is_of_links { "link" } else { "group of flows" };
                let text = format!("there is no {what} `{name}` for the law");
                return Err(refused(text, format!("allowed: {}, *", names.join(", "))));
            }
            for place in places {
                if class.is_of_links {
                    found.links.push((place, Arc::clone(&class)));
                    continue;
                }
                if matches!(model.groups[place].kind, GroupKind::Source(_)) {
                    let text =
                        format!("`{}` sends datagrams, which no law of senders decides on", names[place]);
                    return Err(refused(text, "a group whose law is one of TCP's, such as \"sack\""));
                }
                found.groups.push((place, Arc::clone(&class)));
            }
        }
        Ok(found)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty() && self.groups.is_empty()
    }

    /// What is done without Python refuses laws in it.
    pub(crate) fn require_none(&self, what: &str) -> PyResult<()> {
        if self.is_empty() {
            return Ok(());
        }
        let help = "run it point by point, or write the law in Rust";
        Err(refused(format!("{what} names its laws, and one in Python has no name there"), help))
    }

    /// Puts the laws where they belong, for one run.
    pub(crate) fn put(&self, model: &mut Model, trouble: &Arc<Trouble>) {
        let of = |class: &Arc<Class>| Config {
            class: Arc::clone(class),
            trouble: Arc::clone(trouble),
            capacity: Rate(0),
        };
        for (place, class) in &self.links {
            let config = outside::link::<Link>(of(class));
            model.links[*place].port.law = Some(LawConfig { config, follows_service: true });
        }
        for (place, class) in &self.groups {
            if let GroupKind::Tcp(tcp) = &mut model.groups[*place].kind {
                tcp.law = outside::sender::<Sender>(of(class));
                tcp.initial_window = class.needs.initial_window.unwrap_or(tcp.initial_window);
            }
        }
    }
}

/// A law in Python, in one run.
#[derive(Clone)]
struct Config {
    class: Arc<Class>,
    trouble: Arc<Trouble>,
    /// Of a link.
    capacity: Rate,
}

impl fmt::Debug for Config {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.class.fmt(out)
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.class, &other.class) && self.capacity == other.capacity
    }
}

impl Settings for Config {
    fn each(&mut self, _tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {}
}

/// An object at work; `None` once it has raised.
struct Object {
    law: Option<Py<PyAny>>,
    trouble: Arc<Trouble>,
}

impl fmt::Debug for Object {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.law.fmt(out)
    }
}

impl Clone for Object {
    fn clone(&self) -> Self {
        let law = self.law.as_ref().and_then(|law| {
            let copied = Python::attach(|py| copy(law.bind(py)).map(Bound::unbind));
            copied.map_err(|error| self.trouble.tell(error)).ok()
        });
        Self { law, trouble: Arc::clone(&self.trouble) }
    }
}

impl Object {
    fn begin(config: &Config, first: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) -> Self {
        let mut object = Self { law: None, trouble: Arc::clone(&config.trouble) };
        object.trouble.begin_call("start");
        let begun = Python::attach(|py| {
            let law = config.class.begin(py)?;
            first(&law)?;
            Ok(law.unbind())
        });
        object.trouble.end_call();
        match begun {
            Ok(law) => object.law = Some(law),
            Err(error) => object.trouble.tell(error),
        }
        object
    }

    /// Asks the law, unless one has raised, or the run is to end.
    fn ask<T>(
        &self,
        method: &'static str,
        ask: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let law = self.law.as_ref().filter(|_| !self.trouble.stop.load(Ordering::Relaxed))?;
        self.trouble.begin_call(method);
        let answer = Python::attach(|py| ask(law.bind(py)));
        self.trouble.end_call();
        answer.map_err(|error| self.trouble.tell(error)).ok()
    }

    /// Calls the law, which is never called again once it has raised.
    fn call<T>(
        &mut self,
        method: &'static str,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let done = self.ask(method, call);
        if done.is_none() {
            self.law = None;
        }
        done
    }
}

/// Bytes, or bytes a second. Sums of Python never overflow; what has no room in 64 bits counts as the most that has, as in Rust.
fn amount(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    value.extract().or_else(|error| match saturated(value, [0, u64::MAX]) {
        Some(most @ 1..) => Ok(most),
        _ => Err(error),
    })
}

/// The least or the greatest, of an int that is beyond it.
fn saturated<T>(value: &Bound<'_, PyAny>, [least, greatest]: [T; 2]) -> Option<T> {
    let is_int = value.is_instance_of::<PyInt>();
    is_int.then(|| value.gt(0)).and_then(Result::ok).map(|is_large| if is_large { greatest } else { least })
}

/// Calls a method that a law may lack.
fn call_if<'py>(
    law: &Bound<'py, PyAny>,
    name: &Bound<'py, pyo3::types::PyString>,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<()> {
    if let Some(method) = law.getattr_opt(name)? {
        method.call1(arguments)?;
    }
    Ok(())
}

/// The laws as a protocol that is on no list, for [`crate::trial`]; with what the protocol's link law can be asked.
pub(crate) fn protocol(laws: &[Bound<'_, PyAny>], trouble: &Arc<Trouble>) -> PyResult<(Protocol, bool)> {
    let mut protocol = Protocol {
        name: "a law in Python",
        about: "",
        page: "",
        look: Look::new(Hue::Ink, Shape::Ring, 0),
        link_series: &[],
        flow_series: &[],
        link: None,
        sender: None,
    };
    let mut lowers = false;
    for law in laws {
        let class = Arc::new(Class::new(law)?);
        let (is_of_links, says) = (class.is_of_links, class.lowers);
        let config = Config { class, trouble: Arc::clone(trouble), capacity: Rate(0) };
        let (of, is_second) = if is_of_links {
            lowers = says;
            ("links", protocol.link.replace(outside::link::<Link>(config)).is_some())
        } else {
            ("senders", protocol.sender.replace(outside::sender::<Sender>(config)).is_some())
        };
        if is_second {
            return Err(refused(
                format!("two laws of {of}"),
                "allowed: one of senders, one of links, or both",
            ));
        }
    }
    if protocol.link.is_none() && protocol.sender.is_none() {
        return Err(refused("no law", "allowed: one of senders, one of links, or both"));
    }
    Ok((protocol, lowers))
}

// Senders.

/// A sender law in Python.
#[derive(Clone, Debug)]
struct Sender {
    object: Object,
    mss: Bytes,
    window: Bytes,
    pacing: Option<Rate>,
}

/// The first word of the header of the packet that came last, and its code, are what ACKs return.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Echo(Reply);

impl EchoLaw<Config> for Echo {
    fn start(_config: &Config, _mss: Bytes) -> Self {
        Self::default()
    }

    fn on_data(&mut self, config: &Config, packet: &impl law::Packet, _receiver: impl Receiving) -> Heard {
        let word = packet.words(config.class.tag).map_or(self.0.word, |words| words[0]);
        self.0 = Reply { word, byte: packet.ecn() };
        Heard::Taken
    }

    fn on_ack(&mut self, _config: &Config, _receiver: impl Receiving) -> Reply {
        self.0
    }
}

impl Sender {
    /// Calls the law, and reads what it has decided.
    fn decide(&mut self, method: &'static str, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        let decided = self.object.call(method, |law| {
            call(law)?;
            Self::read(law)
        });
        if let Some((window, pacing)) = decided {
            (self.window, self.pacing) = (window.max(self.mss), pacing);
        }
    }

    fn read(law: &Bound<'_, PyAny>) -> PyResult<(Bytes, Option<Rate>)> {
        let py = law.py();
        let window = law.getattr(intern!(py, "window"))?;
        let window = amount(&window).map_err(|_| {
            let shown = window.repr().map_or_else(|_| String::new(), |text| text.to_string());
            PyValueError::new_err(format!("window is {shown}; allowed: bytes, an int from 0 on"))
        })?;
        let pacing = match law.getattr_opt(intern!(py, "pacing_Bps"))? {
            Some(rate) if !rate.is_none() => Some(Rate(amount(&rate)?)),
            _ => None,
        };
        Ok((Bytes(window), pacing))
    }
}

impl SenderWords for Sender {}

impl SenderLaw for Sender {
    type Config = Config;
    type Echo = Echo;

    fn name(_config: &Config) -> &'static str {
        "python"
    }

    fn needs(config: &Config) -> Needs {
        config.class.needs
    }

    fn start(config: &Config, mss: Bytes, initial_window: Bytes) -> Self {
        let mut decided = (initial_window, None);
        let object = Object::begin(config, |law| {
            let py = law.py();
            call_if(law, intern!(py, "start"), (mss.0, initial_window.0))?;
            decided = Self::read(law)?;
            Ok(())
        });
        Self { object, mss, window: decided.0.max(mss), pacing: decided.1 }
    }

    fn on_ack(&mut self, _config: &Config, now: Time, ack: &law::Ack) {
        let seen = Ack {
            acked: ack.acked.0,
            flight: ack.flight.0,
            rtt_ns: ack.rtt.0,
            srtt_ns: ack.srtt.0,
            reply: ack.reply.word,
            ecn: ack.reply.byte,
            is_duplicate: ack.is_duplicate,
            in_recovery: ack.in_recovery,
            is_window_limited: ack.is_window_limited,
            is_late: ack.is_late,
        };
        self.decide("on_ack", |law| law.call_method1(intern!(law.py(), "on_ack"), (now.0, seen)).map(drop));
    }

    fn on_loss(&mut self, _config: &Config, now: Time, flight: Bytes) {
        self.decide("on_loss", |law| call_if(law, intern!(law.py(), "on_loss"), (now.0, flight.0)));
    }

    fn on_mark(&mut self, config: &Config, now: Time, flight: Bytes) {
        let mut has = false;
        self.decide("on_mark", |law| {
            let method = law.getattr_opt(intern!(law.py(), "on_mark"))?;
            has = method.is_some();
            method.map_or(Ok(()), |method| method.call1((now.0, flight.0)).map(drop))
        });
        if !has {
            self.on_loss(config, now, flight);
        }
    }

    fn on_timeout(&mut self, _config: &Config, now: Time, flight: Bytes, is_first: bool) {
        self.decide("on_timeout", |law| call_if(law, intern!(law.py(), "on_timeout"), (now.0, flight.0, is_first)));
    }

    fn on_restart(&mut self, _config: &Config, now: Time, initial_window: Bytes) {
        self.decide("on_restart", |law| call_if(law, intern!(law.py(), "on_restart"), (now.0, initial_window.0)));
    }

    fn on_send(&mut self, config: &Config, now: Time, send: &law::Send, packet: &mut impl law::Packet) {
        if !config.class.sends {
            return;
        }
        let seen = Send {
            size: send.size.0,
            srtt_ns: send.srtt.0,
            backlog: send.backlog.0,
            is_window_limited: send.is_window_limited,
        };
        let carried = Packet::of(packet, config.class.tag);
        let mut left = None;
        self.decide("on_send", |law| {
            let carried = Bound::new(law.py(), carried)?;
            law.call_method1(
                intern!(law.py(), "on_send"),
                PyTuple::new(
                    law.py(),
                    [
                        now.0.into_pyobject(law.py())?.into_any(),
                        Bound::new(law.py(), seen)?.into_any(),
                        carried.clone().into_any(),
                    ],
                )?,
            )?;
            let carried = carried.borrow();
            left = Some((carried.header, carried.ecn));
            Ok(())
        });
        let Some((header, ecn)) = left else { return };
        if let Some(header) = header
            && let Some(words) = packet.add(config.class.tag)
        {
            *words = header;
        }
        if config.class.needs.owns_ecn && ecn != packet.ecn() {
            packet.set_ecn(ecn);
        }
    }

    fn window(&self) -> Bytes {
        self.window
    }

    fn pacing_rate(&self, _config: &Config, _srtt: Duration) -> Option<Rate> {
        self.pacing
    }
}

// Links.

/// A link law in Python.
#[derive(Clone, Debug)]
struct Link {
    object: Object,
    class: Arc<Class>,
    deadline: Time,
    report: Report,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Report {
    intervals: u64,
    decision: i64,
}

impl Series for Report {
    fn intervals(&self) -> u64 {
        self.intervals
    }

    fn decision(&self) -> i64 {
        self.decision
    }

    fn each(&self, _tell: &mut impl FnMut(&'static str, i64, u32)) {}
}

impl Steered for Link {}
impl LinkWords for Link {}

/// The interval of a law that says none.
const INTERVAL: Duration = Duration(10_000_000);

/// How long the law's control interval is.
fn interval(law: &Bound<'_, PyAny>) -> PyResult<Duration> {
    match law.getattr_opt(intern!(law.py(), "interval_ns"))? {
        None => Ok(INTERVAL),
        Some(value) => match value.extract::<u64>() {
            Ok(length) if length > 0 => Ok(Duration(length)),
            _ => Err(PyValueError::new_err(format!(
                "interval_ns is {}; allowed: ns, an int from 1 on",
                value.repr()?
            ))),
        },
    }
}

impl Config {
    fn interval(&self) -> Duration {
        Python::attach(|py| interval(self.class.law.bind(py))).unwrap_or_else(|error| {
            self.trouble.tell(error);
            INTERVAL
        })
    }
}

impl LinkLaw for Link {
    type Config = Config;
    type Report = Report;
    type View = ();

    fn name(_config: &Config) -> &'static str {
        "python"
    }

    fn start(config: &Config, phase: Duration, _second_phase: Duration) -> Self {
        let object =
            Object::begin(config, |law| call_if(law, intern!(law.py(), "start"), (config.capacity.0,)));
        let report = Report { intervals: 0, decision: 0 };
        Self { object, class: Arc::clone(&config.class), deadline: Time::ZERO + phase, report }
    }

    fn first_interval(config: &Config) -> Duration {
        config.interval()
    }

    fn shortest_interval(config: &Config, _round_trip: Duration) -> Duration {
        config.interval()
    }

    fn capacity(config: &Config) -> Rate {
        config.capacity
    }

    fn configure_capacity(config: &mut Config, capacity: Rate) {
        config.capacity = capacity;
    }

    fn set_capacity(&mut self, capacity: Rate) {
        self.object.call("on_capacity", |law| call_if(law, intern!(law.py(), "on_capacity"), (capacity.0,)));
    }

    fn on_arrival(&mut self, now: Time, packet: &impl law::Packet) {
        if self.class.arrives {
            let seen = Packet::of(packet, self.class.tag);
            self.object
                .call("on_arrival", |law| law.call_method1(intern!(law.py(), "on_arrival"), (now.0, seen)).map(drop));
        }
    }

    fn on_departure(&mut self, now: Time, packet: &mut impl law::Packet, backlog: Bytes) {
        let came = Packet::of(packet, self.class.tag);
        let had = came.header;
        let left = self.object.call("on_departure", |law| {
            let Some(method) = law.getattr_opt(intern!(law.py(), "on_departure"))? else { return Ok(None) };
            let seen = Bound::new(law.py(), came)?;
            method.call1((now.0, &seen, backlog.0))?;
            let seen = seen.borrow();
            if had.is_none() && seen.header.is_some() {
                return Err(PyValueError::new_err(
                    "a link changes the header of a packet that has one, and adds none",
                ));
            }
            Ok(Some((seen.header, seen.ecn)))
        });
        let Some((header, ecn)) = left.flatten() else { return };
        if let Some((header, words)) = header.zip(packet.words_mut(self.class.tag)) {
            *words = header;
        }
        if ecn != packet.ecn() {
            packet.set_ecn(ecn);
        }
    }

    fn only_lowers(&self, came: &impl law::Packet, left: &impl law::Packet) -> bool {
        // A law that does not say what lower means is asked nothing that hangs on it.
        if !self.class.lowers {
            return true;
        }
        let [came, left] = [Packet::of(came, self.class.tag), Packet::of(left, self.class.tag)];
        let asked = self
            .object
            .ask("only_lowers", |law| law.call_method1(intern!(law.py(), "only_lowers"), (came, left))?.is_truthy());
        asked.unwrap_or(true)
    }

    fn next_deadline(&self) -> Time {
        self.deadline
    }

    fn on_deadline(&mut self, now: Time, backlog: Bytes) {
        let decided = self.object.call("on_interval", |law| {
            call_if(law, intern!(law.py(), "on_interval"), (now.0, backlog.0))?;
            let decision = law.getattr_opt(intern!(law.py(), "decision"))?;
            let decision = decision.map_or(Ok(0), |decision| {
                decision.extract().or_else(|error| saturated(&decision, [i64::MIN, i64::MAX]).ok_or(error))
            });
            Ok((interval(law)?, decision?))
        });
        self.report.intervals += 1;
        let (next, decision) = decided.unwrap_or((INTERVAL, 0));
        self.report.decision = decision;
        self.deadline = now + next;
    }

    fn report(&self) -> Report {
        self.report
    }
}
