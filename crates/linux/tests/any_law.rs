//! The router's program for any link law: the laws as the kernel runs them do what the native ones do, operation by
//! operation and packet by packet, and an interface that they hung at is what it was before.
//!
//! Skips with the reason where a tool, the privilege or the kernel's part is missing.

extern crate alloc;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time;

use congestlab_core::law::queue::egress::{AtEgress, Egress, UPDATES};
use congestlab_core::law::queue::{Verdict, pi2, pie, step};
use congestlab_core::law::settings::{Field, Settings as _};
use congestlab_core::law::{
    Carried, Link, LinkConfig, LinkLaw as _, On, Packet, Protocol, Send, SenderLaw as _, Series as _, Tag,
    Words,
};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Ratio, Time};
use congestlab_linux::Error;
use congestlab_linux::router::{AnyLaw, Config, Encoding, Law, Program, Refused};
use congestlab_linux::sys::command::run;
use libbpf_rs::{ObjectBuilder, ProgramInput};

#[expect(dead_code, reason = "other tests want other frames")]
mod frames;
use frames::{IPS, Ip, TAGS, TIMESTAMPS, judged, segment};
#[path = "../../core/tests/xcp/random.rs"]
mod random;
use random::Random;
mod lab;
use lab::Lab;
mod recipe;
use recipe::{Folder, build, build_with};
#[path = "../../cli/templates/law/src/law.rs"]
#[expect(unreachable_pub, reason = "it is a law of another program, of which a link runs a part")]
mod outside;

const ETHERNET: u32 = 14;
const MS: time::Duration = time::Duration::from_millis(1);

/// The laws of which the program is part of the command.
fn laws() -> impl Iterator<Item = &'static Protocol> {
    AnyLaw::names().map(|name| Protocol::of(name).unwrap())
}

/// `struct op` of `bpf/stream-law.bpf.c`, in words of 32 bits: 4 of 64 bits; size, 7 words, tag, ECN, 12 more; the deadline;
/// a report; the settings.
const OP: usize = 336;
const OPS: usize = 8;
const PADDING: usize = 16;
const COLUMNS: usize = 8;

/// A packet whose flow a router remembers: the one that the law asks for first, so that the kernel's packet can be told.
struct Known {
    carried: Carried,
    asked: Option<[u32; 3]>,
}

impl Packet for Known {
    fn size(&self) -> Bytes {
        self.carried.size
    }

    fn ecn(&self) -> u8 {
        self.carried.ecn()
    }

    fn set_ecn(&mut self, code: u8) {
        self.carried.set_ecn(code);
    }

    fn words(&self, tag: Tag) -> Option<&Words> {
        self.carried.words(tag)
    }

    fn words_mut(&mut self, tag: Tag) -> Option<&mut Words> {
        self.carried.words_mut(tag)
    }

    fn add(&mut self, tag: Tag) -> Option<&mut Words> {
        self.carried.add(tag)
    }

    fn memory(&mut self, flow: [u32; 3], now: Time, is_new: bool) -> Option<&mut [u32]> {
        if *self.asked.get_or_insert(flow) != flow {
            return None;
        }
        self.carried.memory(flow, now, is_new)
    }
}

/// A law that a test runs beside the kernel's.
struct Native {
    config: LinkConfig,
    link: Link,
    tag: u32,
    now: u64,
    random: Random,
}

/// What an operation was, and what must come of it.
#[derive(Debug)]
struct Op {
    bytes: Vec<u8>,
    words: [u32; 7],
    ecn: u32,
    deadline: u64,
    report: Vec<u64>,
}

impl Native {
    fn new(protocol: &Protocol, seed: u64) -> Self {
        let config = protocol.link.clone().unwrap();
        let link = Link::new(&config, Duration(1), Duration(1));
        Self { link, tag: tag(protocol), config, now: 0, random: Random::new(seed) }
    }

    /// A number of any size.
    fn any(&mut self) -> u64 {
        let bits = self.random.below(64);
        self.random.next() >> bits
    }

    /// Settings that a scenario might have, as words, and told to the law.
    fn settings(&mut self) -> Vec<u64> {
        let mut words = Vec::new();
        let mut config = self.config.clone();
        let random = &mut self.random;
        config.each(&mut |_, _, field| {
            let (ratio, span) = (random.below(1_000_001), 1 + random.below(1_000_000_000));
            words.push(match field {
                Field::Switch(value) => {
                    *value = ratio & 1 == 1;
                    ratio & 1
                }
                Field::Factor(value) | Field::Share(value) => {
                    *value = Ratio(ratio as u32);
                    ratio
                }
                Field::Weight(value) => {
                    *value = (ratio > 0).then_some(Ratio(ratio as u32));
                    ratio
                }
                Field::Span(value) => {
                    *value = Duration(span);
                    span
                }
                Field::Rate(value) => {
                    *value = Rate(span);
                    span
                }
                Field::Count(value) | Field::Number(value, _) => {
                    *value = 1;
                    1
                }
                Field::Word(value) => {
                    let place = ratio % value.words().len() as u64;
                    value.choose(value.words()[place as usize]);
                    place
                }
            });
        });
        self.config = config;
        words
    }

    fn op(&mut self, is_first: bool) -> Op {
        let (mut passing, mut told) = (Carried::default(), Vec::new());
        let words;
        let mut size = 0;
        let kind = if is_first { 1 } else { [2, 3, 3, 4, 4, 4, 4, 4][self.random.below(8) as usize] };
        let step = [1, 1000, 1_000_000, 300_000_000, u64::MAX / 1000][self.random.below(5) as usize];
        match kind {
            1 => {
                told = self.settings();
                let [capacity, phase, second] =
                    [1 << self.random.below(38), 1 + self.any() / 2, 1 + self.any() / 2];
                self.config.set_capacity(Rate(capacity));
                self.link = Link::new(&self.config, Duration(phase), Duration(second));
                (self.now, words) = (0, [1, capacity, phase, second]);
                size = told.len() as u64; // comes back
            }
            2 => {
                let capacity = 1 << self.random.below(38);
                self.link.set_capacity(Rate(capacity));
                words = [2, 0, capacity, 0];
            }
            _ => {
                self.now = self.now.saturating_add(self.random.below(step));
                let backlog = self.any();
                words = [kind, self.now, 0, backlog];
                if kind == 3 {
                    self.link.on_deadline(Time(self.now), Bytes(backlog));
                } else {
                    size = [40, 576, 1500, self.any()][self.random.below(4) as usize];
                    let header = std::array::from_fn(|_| self.any() as u32);
                    let tag = if self.random.below(4) == 0 { 0 } else { self.tag };
                    let ecn = self.random.below(4) as u32;
                    passing = Carried { size: Bytes(size), words: header, tag, ecn, ..Carried::default() };
                }
            }
        }
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(if kind == 1 { 0 } else { size }.to_le_bytes());
        for word in passing.words.iter().chain([&passing.tag, &passing.ecn]) {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(32 + 96 + 8 + 72, 0);
        bytes.extend(told.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(OP, 0);
        if kind == 4 {
            let mut packet = Known { carried: passing, asked: None };
            self.link.on_arrival(Time(self.now), &packet);
            self.link.on_departure(Time(self.now), &mut packet, Bytes(words[3]));
            passing = packet.carried;
            if let Some(flow) = packet.asked {
                // Bit 2 of `remembers`: the memory is that of the flow behind it.
                let known = [4, flow[0], flow[1], flow[2]].map(u32::to_le_bytes);
                bytes[76..92].copy_from_slice(known.as_flattened());
            }
        }
        let report = self.link.report();
        let mut columns = vec![report.intervals()];
        report.each(&mut |_, value, _| columns.push(value as u64));
        Op {
            bytes,
            words: passing.words,
            ecn: passing.ecn,
            deadline: self.link.next_deadline().0,
            report: columns,
        }
    }
}

/// The tag that a law's sender puts on a packet; 0: none.
fn tag(protocol: &Protocol) -> u32 {
    use congestlab_core::law::Sender;
    let Some(config) = &protocol.sender else { return 0 };
    let mut packet = Carried::default();
    let mut sender = Sender::new(config, Bytes(1500), Bytes(3000));
    sender.on_send(config, Time(1), &Send::default(), Duration(1), &mut packet);
    packet.tag
}

#[test]
fn any_law_does_in_the_kernel_what_it_does_here() {
    let test = "any_law_does_in_the_kernel_what_it_does_here";
    for protocol in laws() {
        let folder = Folder::new(&format!("any-{}", protocol.name));
        let name = format!("stream-{}", protocol.name);
        if let Err(reason) = build(&folder.0, "rust", &[&name]) {
            return eprintln!("SKIP {test}: {reason}");
        }
        let object = folder.0.join(format!("{name}.bpf.o"));
        libbpf_rs::set_print(None);
        let opened = ObjectBuilder::default().open_file(&object).unwrap();
        let object = match opened.load() {
            Ok(object) => object,
            Err(error) if error.kind() == libbpf_rs::ErrorKind::PermissionDenied => {
                return eprintln!("SKIP {test}: {error}");
            }
            Err(error) => panic!("{name}: {error}"),
        };
        let program = object.progs_mut().find(|program| program.name() == "cl_stream").unwrap();
        let mut changed = 0;
        for seed in 0..40 {
            let mut native = Native::new(protocol, seed);
            for batch in 0..40 {
                let ops: Vec<Op> = (0..OPS).map(|i| native.op(batch + i == 0)).collect();
                let mut packet = vec![0; PADDING];
                ops.iter().for_each(|op| packet.extend(&op.bytes));
                let mut out = vec![0; packet.len()];
                let input =
                    ProgramInput { data_in: Some(&packet), data_out: Some(&mut out), ..Default::default() };
                assert_eq!(program.test_run(input).unwrap().return_value, OPS as u32);
                for (op, got) in ops.iter().zip(out[PADDING..].chunks_exact(OP)) {
                    let long = |at: usize| u64::from_le_bytes(got[at..at + 8].try_into().unwrap());
                    let half = |at: usize| u32::from_le_bytes(got[at..at + 4].try_into().unwrap());
                    let words: [u32; 7] = std::array::from_fn(|word| half(40 + 4 * word));
                    let report: Vec<u64> = (0..op.report.len()).map(|i| long(136 + 8 * i)).collect();
                    let told = (long(0) == 1).then(|| long(32));
                    assert_eq!(
                        (words, half(72), long(128), &report, told.unwrap_or(0)),
                        (
                            op.words,
                            op.ecn,
                            op.deadline,
                            &op.report,
                            if told.is_some() { listed(&native) } else { 0 }
                        ),
                        "{name}, seed {seed}, batch {batch}: {op:x?}"
                    );
                    changed += usize::from(op.bytes[40..76] != got[40..76]);
                }
            }
        }
        assert!(changed > 1000, "{name} changed {changed} packets only");
        assert!(native_columns(protocol) <= COLUMNS);
    }
}

/// `struct op` of `bpf/stream-queue.bpf.c`: 8 words of 64 bits, the verdict, a report, and the settings.
const QUEUE_OP: usize = 272;

/// Puts a queue law through 320 operations of each of 40 ports with any settings; false without what that wants.
fn queue_law<Law: AtEgress>(test: &str, name: &str) -> bool {
    let folder = Folder::new(&format!("queue-{name}"));
    let stream = format!("stream-{name}");
    if let Err(reason) = build(&folder.0, "rust", &[&stream]) {
        eprintln!("SKIP {test}: {reason}");
        return false;
    }
    libbpf_rs::set_print(None);
    let opened = ObjectBuilder::default().open_file(folder.0.join(format!("{stream}.bpf.o"))).unwrap();
    let object = match opened.load() {
        Ok(object) => object,
        Err(error) if error.kind() == libbpf_rs::ErrorKind::PermissionDenied => {
            eprintln!("SKIP {test}: {error}");
            return false;
        }
        Err(error) => panic!("{stream}: {error}"),
    };
    let program = object.progs_mut().find(|program| program.name() == "cl_stream").unwrap();
    let mut verdicts = [0; 3];
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let (mut settings, mut told) = (Law::Told::default(), vec![]);
        let as_usual = seed < 5;
        settings.each(&mut |_, _, field| told.push(any_setting(field, &mut random, as_usual)));
        let rate = 1 << random.below(38);
        let mut port = Egress::<Law>::start(&settings, Rate(rate), seed);
        let mut now = 0u64;
        for batch in 0..40 {
            let (mut packet, mut expected) = (vec![0; PADDING], vec![]);
            for i in 0..OPS {
                let kind =
                    if batch + i == 0 { 1 } else { [2, 3, 3, 3, 4, 4, 4, 4][random.below(8) as usize] };
                let step = [1, 10_000, 3_000_000, 3_000_000, 40_000_000, u64::MAX / 4000];
                let most = step[random.below(6) as usize];
                now = now.saturating_add(random.below(most));
                let any = random.next() >> random.below(64);
                let backlog = [any, random.below(10_000), random.below(1_000_000)][random.below(3) as usize];
                let size = [40, 576, 1500, any][random.below(4) as usize];
                let waiting = random.below(20);
                let (ecn, segments) = (random.below(4), 1 + random.below(44));
                let (a, b) = match kind {
                    1 => (rate, seed),
                    2 => (1 << random.below(38), 0),
                    _ => (backlog, 0),
                };
                let words = [kind, now, a, b, waiting, size, ecn, segments];
                packet.extend(words.iter().flat_map(|word| word.to_le_bytes()));
                packet.resize(packet.len() + 80, 0);
                if kind == 1 {
                    packet.extend(told.iter().flat_map(|word: &u64| word.to_le_bytes()));
                }
                packet.resize(PADDING + (i + 1) * QUEUE_OP, 0);
                let verdict = match kind {
                    1 => told.len() as u64,
                    2 => {
                        port.set_rate(Rate(a));
                        0
                    }
                    3 => {
                        let packet = Carried { size: Bytes(size), ecn: ecn as u32, ..Carried::default() };
                        let verdict = match port.judge(Time(now), &packet, segments) {
                            Verdict::Pass => 0,
                            Verdict::Mark => 1,
                            Verdict::Drop(_) => 2,
                            Verdict::PushOut => panic!("nobody is pushed out of a queue of the kernel's"),
                        };
                        verdicts[verdict as usize] += 1;
                        assert!(verdict != 1 || ecn != 0, "{name} marks a packet without ECN");
                        verdict
                    }
                    _ => u64::from(port.serve(Time(now), Bytes(a), waiting)),
                };
                // Without control intervals.
                let mut report = vec![verdict, 0];
                port.report().each(&mut |_, value, _| report.push(value as u64));
                expected.push((words, report));
            }
            let mut out = vec![0; packet.len()];
            let input =
                ProgramInput { data_in: Some(&packet), data_out: Some(&mut out), ..Default::default() };
            assert_eq!(program.test_run(input).unwrap().return_value, OPS as u32);
            for ((words, expected), got) in expected.iter().zip(out[PADDING..].chunks_exact(QUEUE_OP)) {
                let long = |at: usize| u64::from_le_bytes(got[at..at + 8].try_into().unwrap());
                let found: Vec<u64> = (0..expected.len()).map(|word| long(64 + 8 * word)).collect();
                assert_eq!(found, *expected, "{name}, seed {seed}, batch {batch}: {words:x?}");
            }
        }
    }
    assert!(verdicts.iter().all(|&count| count > 100), "{name}: {verdicts:?}");
    true
}

/// A setting that a command might tell, and its word.
fn any_setting(field: Field<'_>, random: &mut Random, as_usual: bool) -> u64 {
    let (ratio, span) = (random.below(1_000_001), 1 + (random.below(1_000_000_000) >> random.below(30)));
    match field {
        Field::Switch(value) => {
            *value = ratio & 1 == 1;
            ratio & 1
        }
        Field::Factor(value) | Field::Share(value) => {
            *value = if as_usual { *value } else { Ratio((ratio << random.below(10)) as u32) };
            value.0.into()
        }
        Field::Span(value) => {
            *value = if as_usual { *value } else { Duration(span) };
            value.0
        }
        // Of step marking, 0 stands for a threshold of the other kind.
        Field::Number(value, _) => {
            *value = if as_usual { *value } else { random.below(3) as u32 };
            (*value).into()
        }
        _ => panic!("a setting of a kind that no queue law had"),
    }
}

#[test]
fn queue_laws_do_in_the_kernel_what_they_do_here() {
    let test = "queue_laws_do_in_the_kernel_what_they_do_here";
    let known: Vec<&str> = AnyLaw::queue_names().collect();
    assert_eq!(known, ["pi2", "pie", "step"], "and no other is compared here");
    let _ = queue_law::<step::Step>(test, "step")
        && queue_law::<pie::Pie>(test, "pie")
        && queue_law::<pi2::Pi2>(test, "pi2");
    let shell = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/router-queue.bpf.c"));
    assert!(shell.unwrap().contains(&format!("#define UPDATES {UPDATES} ")), "as many as the law says");
}

/// A queue of the loopback's own, where packets of a test are seen, stands before step marking: CE and no other byte but the
/// checksum of IPv4 comes of it, or the packet is dropped.
#[test]
fn a_queue_law_marks_what_can_be_marked_and_drops_what_it_shall() {
    let test = "a_queue_law_marks_what_can_be_marked_and_drops_what_it_shall";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        run("ip link set lo up").unwrap();
        run("tc qdisc add dev lo root tbf rate 1kbit burst 5kb limit 1mb").unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        for _ in 0..30 {
            socket.send_to(&[0; 972], to).unwrap();
        }
        let program = |settings: &[&str]| {
            let mut law = AnyLaw::queue("step", BitRate(8_000_000)).unwrap();
            law.set(&settings.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
            let config = Config {
                rate: BitRate(8_000_000),
                encoding: law.encoding(),
                law: Law::Any(Box::new(law)),
                shape: None,
            };
            load(test, &config)
        };
        let Some(marks) = program(&["packets=20"]) else { return };
        let mut marked = 0;
        for ip in IPS {
            for tags in TAGS {
                for code in 0..4 {
                    let mut sent = segment(tags, ip, &TIMESTAMPS, b"data");
                    set_ecn(&mut sent, ip, tags.len(), code);
                    let mut expected = segment(tags, ip, &TIMESTAMPS, b"data");
                    set_ecn(&mut expected, ip, tags.len(), if code == 0 { 0 } else { 3 });
                    assert_eq!(marks.pass(&sent, &mut [], 1).unwrap().0, expected, "{ip:?} {code}");
                    marked += usize::from(sent != expected);
                }
            }
        }
        let sample = marks.sample().unwrap();
        assert_eq!(sample.columns[..2], [marked as i64, 0]);
        assert!(sample.columns[2] > 10_000_000, "30 packets at 1 MB/s: {sample:?}");
        assert_eq!((sample.xcp_packets, sample.other_packets), (3 * marked as u64 / 2, marked as u64 / 2));

        let drops = program(&["packets=20", "drop=true"]).unwrap();
        let frame = segment(&[], Ip::V6, &TIMESTAMPS, b"data");
        let error = drops.pass(&frame, &mut [], 1).unwrap_err();
        assert!(error.to_string().contains("verdict 2"), "TC_ACT_SHOT: {error}");
        // What is not IP is no affair of the law's.
        let mut other = frame.clone();
        other[12..14].copy_from_slice(&[8, 6]);
        assert_eq!(drops.pass(&other, &mut [], 1).unwrap().0, other);
        assert_eq!(drops.sample().unwrap().columns[..2], [0, 1]);
        // A wait of what is there at the rate that is told.
        let short = program(&["sojourn=1 s"]).unwrap();
        let mut capable = frame.clone();
        set_ecn(&mut capable, Ip::V6, 0, 2);
        assert_eq!(short.pass(&capable, &mut [], 1).unwrap().0, capable);
    });
}

#[test]
fn a_queue_law_refuses_settings_that_it_has_not() {
    for (law, settings, says) in [
        ("step", &["packets=20", "sojourn=1 ms"][..], "sojourn stands beside `packets`"),
        ("step", &["sojourn=0 s"], "sojourn is zero"),
        ("step", &["packets=0"], "`0` is not a whole number from 1 to 1000000"),
        ("step", &["above=20"], "step has no such setting"),
        ("step", &["sojourn=soon"], "`soon` is not a time"),
        ("pie", &["target=0 s"], "target is zero"),
        ("pie", &["tupdate=10 ns"], "tupdate is 10 ns"),
        ("pi2", &["alpha=200"], "alpha is more than a step of the probability can be"),
        ("pi2", &["step=1 ms"], "pi2 has no such setting"),
    ] {
        let told: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let error = AnyLaw::queue(law, BitRate(8000)).unwrap().set(&told).unwrap_err();
        assert!(error.to_string().contains(says) && error.exit_code() == 2, "{error}");
        assert!(!error.help().is_empty() || says.contains("is not"), "{error}");
    }
    let error = AnyLaw::queue("codel", BitRate(8000)).unwrap_err();
    assert!(error.help().contains("pi2, pie, step"), "{error}");
}

/// A packet as `bpf/link.rs.in` has it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Passing {
    size: u64,
    words: [u32; 7],
    tag: u32,
    ecn: u32,
    remembers: u32,
    flow: [u32; 3],
    memory: [u32; 8],
}

impl Passing {
    fn bytes(&self) -> Vec<u8> {
        let words = self.words.iter().chain([&self.tag, &self.ecn, &self.remembers]);
        let words = words.chain(&self.flow).chain(&self.memory);
        let mut bytes = self.size.to_le_bytes().to_vec();
        bytes.extend(words.flat_map(|word| word.to_le_bytes()));
        bytes.resize(96, 0);
        bytes
    }
}

impl Packet for Passing {
    fn size(&self) -> Bytes {
        Bytes(self.size)
    }

    fn ecn(&self) -> u8 {
        self.ecn as u8
    }

    fn set_ecn(&mut self, code: u8) {
        self.ecn = code.into();
    }

    fn words(&self, tag: Tag) -> Option<&Words> {
        (self.tag & tag.mask == tag.name).then_some(&self.words)
    }

    fn words_mut(&mut self, tag: Tag) -> Option<&mut Words> {
        (self.tag & tag.mask == tag.name).then_some(&mut self.words)
    }

    fn add(&mut self, _: Tag) -> Option<&mut Words> {
        None
    }

    fn memory(&mut self, flow: [u32; 3], _: Time, is_new: bool) -> Option<&mut [u32]> {
        if self.remembers == 4 {
            return (self.flow == flow).then_some(&mut self.memory);
        }
        if self.remembers == 0 {
            (self.flow, self.remembers) = (flow, 1 | u32::from(is_new) << 1);
        }
        None
    }
}

/// The law that `congestlab new law` writes, which remembers flows, with the object that `congestlab build law` makes.
#[test]
fn a_law_from_outside_does_in_the_kernel_what_it_does_here() {
    let test = "a_law_from_outside_does_in_the_kernel_what_it_does_here";
    let folder = Folder::new("any-outside");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    // As `congestlab build law` writes it.
    let mut text = String::from("#![no_std]\nextern crate alloc;\nextern crate self as congestlab_core;\n");
    for (name, file) in [
        ("law", "core/src/law/mod.rs"),
        ("units", "core/src/units/mod.rs"),
        ("own", "cli/templates/law/src/law.rs"),
    ] {
        text += &format!("#[path = {:?}]\nmod {name};\n", crates.join(file).display().to_string());
    }
    let root = folder.0.join("root.rs");
    fs::write(&root, text).unwrap();
    let told = [("ROOT", root.to_str().unwrap()), ("OWN", "crate::own::Link")];
    if let Err(reason) = build_with(&folder.0, &told, &["stream-shares", "router-shares"]) {
        return eprintln!("SKIP {test}: {reason}");
    }
    libbpf_rs::set_print(None);
    for (file, name) in [("router-shares", "cl_router"), ("stream-shares", "cl_stream")] {
        let opened = ObjectBuilder::default().open_file(folder.0.join(format!("{file}.bpf.o"))).unwrap();
        let object = match opened.load() {
            Ok(object) => object,
            Err(error) if error.kind() == libbpf_rs::ErrorKind::PermissionDenied => {
                return eprintln!("SKIP {test}: {error}");
            }
            Err(error) => panic!("{file}: {error}"),
        };
        let program = object.progs_mut().find(|program| program.name() == name).unwrap();
        if file == "stream-shares" {
            shares(&program);
        }
    }
}

/// Puts both through packets of 50 flows.
fn shares(program: &libbpf_rs::ProgramMut<'_>) {
    use congestlab_core::law::Header as _;
    let mut random = Random::new(50);
    let mut sent = Carried::default();
    let mut sender = outside::Sender::start(&outside::SenderSettings, Bytes(1500), Bytes(3000));
    sender.on_send(&outside::SenderSettings, Time(1), &Send::default(), &mut sent);
    let settings = outside::LinkSettings {
        capacity: Rate(12_500_000),
        interval: Duration(10_000_000),
        used: Ratio::ppm(900_000),
    };
    let mut link = outside::Link::start(&settings, Duration(7_000_000), Duration(1));
    let mut flows: BTreeMap<u32, [u32; 8]> = BTreeMap::new();
    let (mut now, mut counted) = (0, 0);
    for batch in 0..2000 {
        let mut packet = vec![0; PADDING];
        let mut expected = vec![];
        for i in 0..OPS {
            now += random.below(500_000);
            let flow = random.below(50) as u32;
            let mut passing = Passing { size: 1500, tag: sent.tag, ..Passing::default() };
            outside::Header { flow, share: random.next() as u32 >> random.below(32) }
                .write(&mut passing.words);
            if random.below(8) > 0 {
                let memory = *flows.entry(flow).or_default();
                (passing.remembers, passing.flow, passing.memory) = (4, [flow, 0, 1], memory);
            }
            let (words, told) = match batch + i {
                0 => ([1, 12_500_000, 7_000_000, 1], [10_000_000u64, 900_000]),
                _ if link.next_deadline() <= Time(now) => ([3, now, 0, 0], [0; 2]),
                _ => ([4, now, 0, 3000], [0; 2]),
            };
            packet.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            packet.extend(passing.bytes());
            packet.resize(packet.len() + 80, 0);
            packet.extend(told.iter().flat_map(|word| word.to_le_bytes()));
            packet.resize(PADDING + (i + 1) * OP, 0);
            match words[0] {
                1 => passing.size = told.len() as u64,
                3 => link.on_deadline(Time(now), Bytes(0)),
                _ => {
                    link.on_arrival(Time(now), &passing);
                    link.on_departure(Time(now), &mut passing, Bytes(3000));
                    if passing.remembers == 4 {
                        flows.insert(flow, passing.memory);
                    } else {
                        assert_eq!((passing.remembers, passing.flow), (3, [flow, 0, 1]));
                    }
                }
            }
            let outside::Report { intervals, flows, share } = link.report();
            counted = counted.max(flows);
            let mut after = passing.bytes();
            for word in [link.next_deadline().0, intervals, u64::from(share), u64::from(flows)] {
                after.extend(word.to_le_bytes());
            }
            expected.push(after);
        }
        let mut out = vec![0; packet.len()];
        let input = ProgramInput { data_in: Some(&packet), data_out: Some(&mut out), ..Default::default() };
        assert_eq!(program.test_run(input).unwrap().return_value, OPS as u32);
        for (i, (expected, got)) in expected.iter().zip(out[PADDING..].chunks_exact(OP)).enumerate() {
            assert_eq!(got[32..][..expected.len()], expected[..], "batch {batch}, operation {i}");
        }
    }
    assert!(counted > 15, "{counted} flows in an interval");
}

fn listed(native: &Native) -> u64 {
    let mut count = 0;
    native.config.clone().each(&mut |_, _, _| count += 1);
    count
}

fn native_columns(protocol: &Protocol) -> usize {
    let mut count = 0;
    let config = protocol.link.as_ref().unwrap();
    Link::new(config, Duration(1), Duration(1)).report().each(&mut |_, _, _| count += 1);
    count
}

fn config(protocol: &Protocol, rate: BitRate) -> Config {
    let law = AnyLaw::new(protocol, rate, None).unwrap();
    Config { rate, encoding: law.encoding(), law: Law::Any(Box::new(law)), shape: None }
}

/// Loads, or says why not.
fn load(test: &str, config: &Config) -> Option<Program> {
    match Program::load(config.law.object(), config, ETHERNET, 0) {
        Ok(program) => Some(program),
        Err(Error::Missing { what, help }) => {
            eprintln!("SKIP {test}: {what}; {help}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The law's own option on a packet with these words; none of a law that has no header.
fn option(protocol: &Protocol, words: [u32; 7], tag: u32) -> Vec<u8> {
    let packet = Carried { words, tag, ..Carried::default() };
    let option = protocol.sender.as_ref().and_then(|sender| sender.option(On::Forward(&packet)));
    option.map_or(vec![], |bytes| bytes[..usize::from(bytes[1])].to_vec())
}

/// The ECN field of a frame, and the place of its byte. Tags are known to the test.
fn ecn(frame: &[u8], ip: Ip, tags: usize) -> u8 {
    let at = 14 + 4 * tags;
    if matches!(ip, Ip::V4 | Ip::V4WithOptions) { frame[at + 1] & 3 } else { frame[at + 1] >> 4 & 3 }
}

fn set_ecn(frame: &mut [u8], ip: Ip, tags: usize, code: u8) {
    let at = 14 + 4 * tags;
    if matches!(ip, Ip::V6 | Ip::V6WithExtensions) {
        frame[at + 1] |= code << 4;
        return;
    }
    frame[at + 1] |= code;
    let length = usize::from(frame[at] & 15) * 4;
    let mut header = etherparse::Ipv4Header::from_slice(&frame[at..]).unwrap().0;
    header.header_checksum = header.calc_header_checksum();
    frame[at..at + length].copy_from_slice(&header.to_bytes());
}

/// Packets with the law's option in all places, and without: the words and the ECN field leave as the native law says when
/// it is given the time and the backlog that the program saw, every checksum is right, and nothing else changes.
#[test]
fn any_law_is_asked_about_the_packet_that_is_there() {
    let test = "any_law_is_asked_about_the_packet_that_is_there";
    let rate = BitRate(2_000_000);
    for protocol in laws() {
        let told = config(protocol, rate);
        if told.encoding == Encoding::Quic {
            continue; // tests/scone.rs
        }
        let Some(program) = load(test, &told) else { return };
        let mut settings = protocol.link.clone().unwrap();
        settings.set_capacity(rate.bytes());
        let [phase, second] = program.phases().map(Duration);
        let mut link = Link::new(&settings, phase, second);
        let tag = tag(protocol);
        let mut random = Random::new(18);
        let (mut changed, mut packets) = (0, 0);
        let layouts: [&[u8]; 3] = [&[], &TIMESTAMPS, &[1, 1]];
        for round in 0..40 {
            sleep(MS);
            for ip in IPS {
                for tags in TAGS {
                    let before = layouts[random.below(3) as usize];
                    let words = std::array::from_fn(|_| random.next() as u32 >> random.below(32));
                    let own = if random.below(8) == 0 { vec![] } else { option(protocol, words, tag) };
                    let options = [before, &own].concat();
                    let payload = vec![0xab; random.below(1200) as usize];
                    let mut sent = segment(tags, ip, &options, &payload);
                    let code = random.below(4) as u8;
                    set_ecn(&mut sent, ip, tags.len(), code);
                    let (got, _) = program.pass(&sent, &mut [], 1).unwrap();

                    let sample = program.sample().unwrap();
                    let [now, backlog] = sample.last;
                    let size = Bytes((sent.len() - ETHERNET as usize - 4 * tags.len()) as u64);
                    let tag = if own.is_empty() { 0 } else { tag };
                    // Words that the option has not are zeros.
                    let mut packet = Carried { size, tag, ecn: code.into(), ..Carried::default() };
                    if !own.is_empty() {
                        packet.words = carried(protocol, words, tag);
                    }
                    if link.next_deadline() <= Time(now) {
                        link.on_deadline(Time(now), Bytes(backlog));
                    }
                    link.on_arrival(Time(now), &packet);
                    link.on_departure(Time(now), &mut packet, Bytes(backlog));
                    let expected = [before, &option(protocol, packet.words, tag)].concat();
                    assert_eq!(
                        judged(&got)[..expected.len()],
                        expected,
                        "{}, {ip:?}, round {round}",
                        protocol.name
                    );
                    assert_eq!(u32::from(ecn(&got, ip, tags.len())), packet.ecn, "{}, {ip:?}", protocol.name);
                    let mut columns = Vec::new();
                    link.report().each(&mut |_, value, _| columns.push(value));
                    if link.next_deadline() == Time::NEVER || round == 39 {
                        assert_eq!(sample.columns[..columns.len()], columns, "{}", protocol.name);
                    }
                    changed += usize::from(sent != got);
                    packets += 1;
                }
            }
        }
        let sample = program.sample().unwrap();
        assert_eq!((sample.packets, sample.refused), (packets, Refused::default()), "{}", protocol.name);
        assert!(changed > 30, "{} changed {changed} of {packets}", protocol.name);
    }
}

/// The words that come out of a law's option: those that the option has.
fn carried(protocol: &Protocol, words: [u32; 7], tag: u32) -> [u32; 7] {
    let full = option(protocol, words, tag);
    std::array::from_fn(|word| {
        let mut without = words;
        without[word] = !words[word];
        if option(protocol, without, tag) == full { 0 } else { words[word] }
    })
}

#[test]
fn any_law_refuses_a_wrong_option_and_leaves_the_others_alone() {
    let test = "any_law_refuses_a_wrong_option_and_leaves_the_others_alone";
    let protocol = Protocol::of("rcp").unwrap();
    let Some(program) = load(test, &config(protocol, BitRate(8000))) else { return };
    let right = option(protocol, [0, 1, u32::MAX, 0, 0, 0, 0], Tag::header("rcp").name);
    let untouched = |options: &[u8]| {
        let sent = segment(&[], Ip::V4, options, b"data");
        assert_eq!(program.pass(&sent, &mut [], 1).unwrap().0, sent, "{options:?}");
    };
    untouched(&[&[1], &right[..]].concat());
    untouched(&[&[253, 11], &right[2..]].concat());
    untouched(&right[..8]);
    untouched(&[8, 0, 1, 1]);
    // An ACK's, XCP's, and none.
    untouched(&[&[253, 8], &right[2..8]].concat());
    untouched(&[253, 12, 0x58, 0x43, 255, 255, 255, 255, 0, 0, 0, 1]);
    untouched(&TIMESTAMPS);
    let sample = program.sample().unwrap();
    let refused =
        Refused { odd_offset: 1, wrong_length: 1, truncated: 1, malformed: 1, ..Refused::default() };
    assert_eq!((sample.refused, sample.other_packets), (refused, 3));
    // It is not that nothing is ever changed.
    let sent = segment(&[], Ip::V4, &right, b"data");
    assert_ne!(program.pass(&sent, &mut [], 1).unwrap().0, sent);
    assert_eq!(program.sample().unwrap().xcp_packets, 1);
}

#[test]
fn a_program_of_another_version_of_the_law_is_refused() {
    let test = "a_program_of_another_version_of_the_law_is_refused";
    let law = |name, object| AnyLaw::new(Protocol::of(name).unwrap(), BitRate(1_000_000), object).unwrap();
    let other = law("abc", None);
    let object = Law::Any(Box::new(other)).object().to_vec();
    let config = Config {
        law: Law::Any(Box::new(law("rcp", Some(object)))),
        ..config(Protocol::of("rcp").unwrap(), BitRate(1))
    };
    match Program::load(config.law.object(), &config, ETHERNET, 0) {
        Err(Error::Missing { what, help }) => eprintln!("SKIP {test}: {what}; {help}"),
        Err(error) => assert!(error.to_string().contains("another version"), "{error}"),
        Ok(_) => panic!("it was taken"),
    }
}
