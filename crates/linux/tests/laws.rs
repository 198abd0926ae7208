//! The laws as the kernel runs them: built for BPF by the recipe in `bpf/`, accepted by the
//! verifier, and doing the same as the native build, operation by operation.
//!
//! So is the C twin of the link law, which was written from the draft a second time.
//!
//! Skips with the reason where a tool, the privilege or the kernel's part is missing.

use congestlab_core::law::police::{Arrival, Bucket, Counts, Police, WAYS};
use congestlab_core::law::xcp::{
    Echo, Feedback, Header, Link, LinkConfig, LossPolicy, Part, Profile, RateSource, RequestPolicy, Sender,
    SenderConfig, reply,
};
use congestlab_core::law::{Ack, LinkLaw as _, Send, SenderLaw as _, xcp_r};
use congestlab_core::units::{BitRate, Bytes, Duration, Rate, Ratio, SECOND, Time};
use std::fs;
use std::path::Path;
use std::process::Command;

use congestlab_linux::Error;
use congestlab_linux::router::{self, Config, Encoding, OBJECT, Program};
use libbpf_rs::{ObjectBuilder, ProgramInput, ProgramMut};

#[path = "../../core/tests/xcp/random.rs"]
mod random;
use random::Random;

mod recipe;
use recipe::{Folder, build, rustc_for_bpf, text};

const MS: u64 = SECOND / 1000;

/// As `stream.bpf.c` reads them: an op is 128 bytes, 26 of them follow 16 bytes of padding.
const OP: usize = 128;
const OPS: usize = 26;
const PADDING: usize = 16;

/// The build refuses laws with a reachable panic, signed division or wide multiplication.
#[test]
fn the_laws_build_for_bpf_and_cannot_panic() {
    let folder = Folder::new("build");
    if let Err(reason) = build(&folder.0, "rust", &["stream"]) {
        eprintln!("SKIP the_laws_build_for_bpf_and_cannot_panic: {reason}");
        return;
    }
    let assembly = fs::read_to_string(folder.0.join("laws.s")).unwrap();
    for function in
        ["law_link_on_departure:", "law_link_on_deadline:", "law_sender_on_ack:", "law_echo_on_ack:"]
    {
        assert!(assembly.contains(function), "{function} is missing");
    }
    assert!(!assembly.contains("panicking"));
    assert!(fs::metadata(folder.0.join("stream.bpf.o")).unwrap().len() > 0);
}

/// The headers that C reads are committed, and compared with what Rust's compiler made of the laws before anything is linked.
#[test]
fn a_structure_that_c_sees_otherwise_is_refused() {
    let folder = Folder::new("mirror");
    if let Err(reason) = build(&folder.0.join("out"), "rust", &["stream"]) {
        eprintln!("SKIP a_structure_that_c_sees_otherwise_is_refused: {reason}");
        return;
    }
    // The recipe on the same laws, beside another header.
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let bpf = folder.0.join("crates/linux/bpf");
    fs::create_dir_all(&bpf).unwrap();
    std::os::unix::fs::symlink(crates.join("core"), folder.0.join("crates/core")).unwrap();
    for file in fs::read_dir(crates.join("linux/bpf")).unwrap().flatten().filter(|file| file.path().is_file())
    {
        fs::copy(file.path(), bpf.join(file.file_name())).unwrap();
    }
    let header = fs::read_to_string(bpf.join("law.h")).unwrap();
    let says = "law.h is not what the laws have: make bpf";
    for (ours, other) in [
        ("__u64 acked;\n\t__u64 flight;", "__u64 flight;\n\t__u64 acked;"),
        ("__u64 state[19]", "__u64 state[15]"),
        ("__u64 law_sender_window(", "__u32 law_sender_window("),
    ] {
        let changed = header.replace(ours, other);
        assert_ne!(changed, header);
        fs::write(bpf.join("law.h"), changed).unwrap();
        let mut command = Command::new("sh");
        let built =
            command.arg(bpf.join("build.sh")).arg(folder.0.join("out")).arg("stream").output().unwrap();
        assert!(!built.status.success() && text(&built).contains(says), "{}", text(&built));
    }
    // The recipe writes what it finds, which then is ours again.
    let mut command = Command::new("sh");
    command.arg(bpf.join("build.sh")).arg(folder.0.join("out")).arg("stream").env("HEADERS", "write");
    let built = command.output().unwrap();
    assert!(built.status.success(), "{}", text(&built));
    assert_eq!(fs::read_to_string(bpf.join("law.h")).unwrap(), header);
}

/// Beyond what the objects ship: every law of the list, compiled as they are (`bpf/build.sh`).
#[test]
fn every_law_of_the_list_compiles_for_bpf_and_cannot_panic() {
    let rustc = match rustc_for_bpf() {
        Ok(rustc) => rustc,
        Err(reason) => {
            return eprintln!("SKIP every_law_of_the_list_compiles_for_bpf_and_cannot_panic: {reason}");
        }
    };
    let folder = Folder::new("all");
    let assembly = folder.0.join("all.s");
    let output = Command::new(rustc)
        .args("--edition 2024 --target bpfel-unknown-none --crate-type lib --crate-name laws".split(' '))
        .args("-C target-cpu=v3 -C opt-level=3 -C panic=abort -C codegen-units=1".split(' '))
        .args("-C overflow-checks=no -C symbol-mangling-version=v0 -Z function-sections=no".split(' '))
        .args("-A dead_code -A unused_imports --emit".split(' '))
        .arg(format!("asm={}", assembly.display()))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bpf/all.rs"))
        .env("RUSTC_BOOTSTRAP", "1")
        .current_dir(&folder.0)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let assembly = fs::read_to_string(assembly).unwrap();
    for function in [
        "link_on_departure:",
        "link_on_deadline:",
        "link_close_told:",
        "sender_on_send:",
        "sender_on_ack:",
        "sender_on_delivery:",
        "sender_probe:",
        "sender_on_probe_ack:",
        "sender_slow_start:",
        "echo_on_data:",
        "extension_on_packet:",
        "entry_on_deadline:",
    ] {
        assert!(assembly.contains(function), "{function} is missing");
    }
    let panics: Vec<&str> = assembly.lines().filter(|line| line.contains("panicking")).collect();
    assert!(panics.is_empty(), "{panics:?}");
}

/// One operation, written as `struct op`.
struct Op {
    words: [u64; 4],
    payload: Vec<u8>,
    header: Header,
}

impl Op {
    fn new(kind: u64, now: u64, a: u64, b: u64) -> Self {
        Self { words: [kind, now, a, b], payload: vec![], header: Header::default() }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(&self.payload);
        bytes.resize(96, 0);
        let Header { x, rtt, delta, reverse } = self.header;
        bytes.extend([x, rtt, delta as u32, reverse as u32].iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(OP, 0);
        bytes
    }
}

/// What must come back: header, returned value, state afterwards, and a report.
#[derive(Debug, PartialEq)]
struct Answer {
    header: Header,
    returned: u64,
    after: u64,
    report: Option<[u64; 6]>,
}

impl Answer {
    fn read(bytes: &[u8], has_report: bool) -> Self {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (delta, reverse) = (half(104) as i32, half(108) as i32);
        let header = Header { x: half(96), rtt: half(100), delta, reverse };
        let report = has_report.then(|| [32, 40, 48, 56, 64, 72].map(word));
        Self { header, returned: word(112), after: word(120), report }
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn link_config_bytes(config: &LinkConfig) -> Vec<u8> {
    let mut bytes = words(&[config.capacity.0]);
    for ratio in [config.alpha, config.beta, config.gamma, Ratio(0)] {
        bytes.extend(ratio.0.to_le_bytes());
    }
    let spans = [config.min_interval, config.max_interval, config.initial_interval, config.allowed_queue];
    bytes.extend(words(&spans.map(|span| span.0)));
    bytes.extend(
        [
            config.capture,
            config.thesis,
            config.overdraw,
            config.bound_headers,
            config.spread,
            config.average_queue,
            config.remember_grants,
        ]
        .map(u8::from),
    );
    bytes
}

fn sender_config_bytes(config: &SenderConfig) -> Vec<u8> {
    let mut bytes = words(&[config.desired_rate.0]);
    let loss = match config.loss {
        LossPolicy::Tcp => 0,
        LossPolicy::Maintain => 1,
        LossPolicy::Fallback => 2,
    };
    let request = u32::from(config.request == RequestPolicy::Unlimited);
    let source = match config.rate_source {
        RateSource::Window => 0,
        RateSource::Measured => 1,
        RateSource::Used => 2,
    };
    for word in [request, loss, source, config.aging.map_or(0, |weight| weight.0), config.price.0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(
        [config.clamp, config.pacing, config.profile == Profile::Ns2, config.safety_net].map(u8::from),
    );
    bytes
}

/// The native laws, and the operations that they were put through.
struct Stream {
    random: Random,
    now: u64,
    link: Link,
    sender: Sender,
    sender_config: SenderConfig,
    echo: Echo,
    only_link: bool,
    ops: Vec<Op>,
    answers: Vec<Answer>,
}

/// The twin has no `spread`, `average_queue` and `remember_grants`, which are newer than it.
fn link_config(random: &mut Random, only_link: bool) -> LinkConfig {
    LinkConfig {
        capacity: Rate(8000 << random.below(24)),
        capture: random.below(2) == 0,
        bound_headers: random.below(2) == 0,
        spread: !only_link && random.below(2) == 0,
        average_queue: !only_link && random.below(2) == 0,
        remember_grants: !only_link && random.below(2) == 0,
        ..LinkConfig::DEFAULT
    }
}

fn sender_config(random: &mut Random) -> SenderConfig {
    SenderConfig {
        request: [RequestPolicy::Demand, RequestPolicy::Unlimited][random.below(2) as usize],
        loss: [LossPolicy::Tcp, LossPolicy::Maintain, LossPolicy::Fallback][random.below(3) as usize],
        safety_net: random.below(2) == 0,
        clamp: random.below(2) == 0,
        aging: [None, Some(Ratio::ppm(500_000)), Some(Ratio::ppm(10_000))][random.below(3) as usize],
        pacing: random.below(2) == 0,
        feedback: Feedback::Rate,
        verify: true,
        rate_source: [RateSource::Window, RateSource::Measured, RateSource::Used][random.below(3) as usize],
        price: Ratio([1_000_000, 2_500_000][random.below(2) as usize]),
        desired_rate: Rate(1_000_000 << random.below(14)),
        profile: if random.below(3) == 0 { Profile::Ns2 } else { Profile::Standard },
    }
}

impl Stream {
    fn new(seed: u64, only_link: bool) -> Self {
        let mut random = Random::new(seed);
        let (link_config, sender_config) = (link_config(&mut random, only_link), sender_config(&mut random));
        let mut stream = Self {
            now: 0,
            link: Link::new(link_config, Duration(20 * MS), Duration(10 * MS)),
            sender: Sender::new(Bytes(1500), Bytes(3000)),
            sender_config,
            echo: Echo::default(),
            only_link,
            ops: vec![],
            answers: vec![],
            random,
        };
        let init = Op { payload: link_config_bytes(&link_config), ..Op::new(0, 0, 20 * MS, 10 * MS) };
        stream.record(init, 0, Header::default());
        if !only_link {
            let payload = sender_config_bytes(&stream.sender_config);
            stream.record(Op { payload, ..Op::new(6, 0, 1500, 3000) }, 0, Header::default());
        }
        stream
    }

    fn record(&mut self, op: Op, returned: u64, header: Header) {
        let kind = op.words[0];
        let after = if kind < 6 { self.link.next_deadline().0 } else { self.sender.window().0 };
        let report = (kind == 5).then(|| {
            let report = self.link.report();
            let feedback = report.feedback as u64;
            let queue = report.persistent_queue.0;
            [report.intervals, report.input.0, feedback, report.interval.0, queue, report.bounded]
        });
        self.answers.push(Answer { header, returned, after, report });
        self.ops.push(op);
    }

    /// Small more often than large, the extremes now and then.
    fn number(&mut self, bits: u64) -> u64 {
        match self.random.below(40) {
            0 => 0,
            1 => u64::MAX,
            _ => self.random.next() >> (64 - bits + self.random.below(bits)),
        }
    }

    /// One in ten is hostile.
    fn header(&mut self) -> Header {
        if self.random.below(10) == 0 {
            let mut word = || [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX][self.random.below(5) as usize];
            return Header { x: word(), rtt: word(), delta: word() as i32, reverse: word() as i32 };
        }
        let (x, rtt) = (self.number(24) as u32, self.number(28) as u32);
        let delta = if self.random.below(2) == 0 { i32::MAX } else { self.number(32) as i32 };
        Header { x, rtt, delta, reverse: self.number(32) as i32 }
    }

    fn srtt(&mut self) -> u64 {
        if self.random.below(20) == 0 { 0 } else { MS + self.random.below(200 * MS) }
    }

    fn step(&mut self) {
        self.now += self.random.below(10 * MS);
        if self.random.below(60) == 0 {
            self.now += self.random.below(4 * SECOND);
        }
        let now = self.now;
        let kinds = if self.only_link { 11 } else { 28 };
        let kind =
            [1, 2, 2, 2, 3, 3, 3, 3, 4, 5, 5, 7, 7, 7, 7, 8, 9, 10, 11, 11, 11, 11, 12, 13, 13, 14, 15, 15]
                [self.random.below(kinds) as usize];
        match kind {
            1 => {
                let capacity = 8000 << self.random.below(30);
                self.link.set_capacity(Rate(capacity));
                self.record(Op::new(1, now, capacity, 0), 0, Header::default());
            }
            2 | 3 => {
                let (header, size, backlog) = (self.header(), self.number(14), self.number(20));
                let mut out = header;
                if kind == 2 {
                    self.link.on_arrival(Time(now), &out, Bytes(size));
                } else {
                    self.link.on_departure(Time(now), &mut out, Bytes(size), Bytes(backlog));
                }
                self.record(Op { header, ..Op::new(kind, now, size, backlog) }, 0, out);
            }
            4 => {
                let backlog = self.number(20);
                self.link.on_other_departure(Time(now), Bytes(backlog));
                self.record(Op::new(4, now, backlog, 0), 0, Header::default());
            }
            5 => {
                let backlog = self.number(20);
                self.now = now.max(self.link.next_deadline().0.min(now + SECOND));
                self.link.on_deadline(Time(self.now), Bytes(backlog));
                self.record(Op::new(5, self.now, backlog, 0), 0, Header::default());
            }
            7 => {
                let ack = Ack {
                    acked: Bytes(1500),
                    flight: Bytes(self.number(20)),
                    awnd: Bytes(if self.random.below(2) == 0 { u64::MAX } else { self.number(20) }),
                    rtt: Duration(20 * MS),
                    srtt: Duration(self.srtt()),
                    reply: reply(self.number(24) as i32 >> self.random.below(8)),
                    is_duplicate: self.random.below(4) == 0,
                    in_recovery: self.random.below(4) == 0,
                    is_window_limited: self.random.below(2) == 0,
                    ..Ack::default()
                };
                let mut payload = words(&[ack.acked.0, ack.flight.0, ack.awnd.0, ack.rtt.0, ack.srtt.0]);
                payload.extend(ack.reply.word.to_le_bytes());
                payload.extend([ack.reply.byte, 0, 0, 0]);
                payload.extend([ack.is_duplicate, ack.in_recovery, ack.is_window_limited].map(u8::from));
                self.sender.on_ack(&self.sender_config, Time(now), &ack);
                self.record(Op { payload, ..Op::new(7, now, 0, 0) }, 0, Header::default());
            }
            8..=10 => {
                let (a, b) = (self.number(20), self.random.below(2));
                match kind {
                    8 => self.sender.on_loss(&self.sender_config, Time(now), Bytes(a)),
                    9 => self.sender.on_timeout(&self.sender_config, Time(now), Bytes(a), b != 0),
                    _ => self.sender.on_restart(&self.sender_config, Time(now), Bytes(a)),
                }
                self.record(Op::new(kind, now, a, b), 0, Header::default());
            }
            11 => {
                let send = Send {
                    size: Bytes(1500),
                    srtt: Duration(self.srtt()),
                    awnd: Bytes(if self.random.below(2) == 0 { u64::MAX } else { self.number(20) }),
                    backlog: Bytes(if self.random.below(2) == 0 { u64::MAX } else { self.number(20) }),
                    inflation: Bytes(self.number(14)),
                    is_window_limited: self.random.below(3) == 0,
                };
                let fields = [send.size.0, send.srtt.0, send.awnd.0, send.backlog.0, send.inflation.0];
                let mut payload = words(&fields);
                payload.push(send.is_window_limited.into());
                let header = self.sender.header(&self.sender_config, Time(now), &send);
                self.record(Op { payload, ..Op::new(11, now, 0, 0) }, 0, header);
            }
            12 => {
                let srtt = self.srtt();
                let rate = self.sender.pacing_rate(&self.sender_config, Duration(srtt));
                self.record(Op::new(12, now, srtt, 0), rate.map_or(0, |rate| rate.0), Header::default());
            }
            13 => {
                let header = self.header();
                self.echo.on_data(&header);
                self.record(Op { header, ..Op::new(13, now, 0, 0) }, 0, header);
            }
            15 => {
                let lost = self.number(20);
                self.sender.note_losses(&self.sender_config, Bytes(lost));
                self.record(Op::new(15, now, lost, 0), 0, Header::default());
            }
            _ => {
                let feedback = self.echo.on_ack();
                self.record(Op::new(14, now, 0, 0), i64::from(feedback) as u64, Header::default());
            }
        }
    }
}

/// A stream's program, built on a law and loaded; `None`: the test says why it is skipped.
fn loaded(test: &str, law: &str, program: &str) -> Option<libbpf_rs::Object> {
    let folder = Folder::new(test);
    if let Err(reason) = build(&folder.0, law, &[program]) {
        eprintln!("SKIP {test}: {reason}");
        return None;
    }
    libbpf_rs::set_print(None);
    let object = ObjectBuilder::default().open_file(folder.0.join(format!("{program}.bpf.o")));
    match object.and_then(|object| object.load()) {
        Err(error) if error.kind() == libbpf_rs::ErrorKind::PermissionDenied => {
            eprintln!("SKIP {test}: may not load BPF programs (run as root)");
            None
        }
        other => Some(other.unwrap()),
    }
}

/// Puts 10^5 operations through the object and the native laws.
fn compare(test: &str, law: &str) {
    let Some(object) = loaded(test, law, "stream") else { return };
    let program = object.progs_mut().next().unwrap();

    // Some runs of the laws with different configurations, one after the other.
    let (mut count, mut differences) = (0, 0);
    for seed in 0..40 {
        let mut stream = Stream::new(100 + seed, law == "twin");
        while stream.ops.len() < 97 * OPS {
            stream.step();
        }
        // The receiver's state goes on from run to run: empty it.
        while !stream.ops.len().is_multiple_of(OPS) || stream.echo != Echo::default() {
            if stream.only_link {
                stream.step();
                continue;
            }
            let feedback = stream.echo.on_ack();
            stream.record(Op::new(14, stream.now, 0, 0), i64::from(feedback) as u64, Header::default());
        }
        count += stream.ops.len();
        for (ops, answers) in stream.ops.chunks(OPS).zip(stream.answers.chunks(OPS)) {
            let mut bytes = vec![0; PADDING];
            ops.iter().for_each(|op| bytes.extend(op.bytes()));
            let mut out = vec![0; bytes.len()];
            let input =
                ProgramInput { data_in: Some(&bytes), data_out: Some(&mut out), ..Default::default() };
            assert_eq!(program.test_run(input).unwrap().return_value, OPS as u32);
            for ((op, answer), found) in ops.iter().zip(answers).zip(out[PADDING..].chunks(OP)) {
                let found = Answer::read(found, answer.report.is_some());
                if found != *answer {
                    differences += 1;
                    eprintln!("seed {seed}, kind {}: {found:?} instead of {answer:?}", op.words[0]);
                    assert!(differences < 10, "and more");
                }
            }
        }
    }
    assert_eq!(differences, 0);
    assert!(count >= 100_000);
    println!("{count} operations, no difference");
}

#[test]
fn the_kernel_computes_what_the_native_build_computes() {
    compare("the_kernel_computes_what_the_native_build_computes", "rust");
}

#[test]
fn the_twin_computes_what_the_rust_law_computes() {
    compare("the_twin_computes_what_the_rust_law_computes", "twin");
}

/// XCP-r's sender and receiver, and what `stream-xcpr.bpf.c` is to do as they do. An op is as long as in `stream.bpf.c`.
struct Window {
    random: Random,
    now: u64,
    config: xcp_r::Config,
    sender: xcp_r::Sender,
    echo: xcp_r::Echo,
}

impl Window {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let xcp = sender_config(&mut random);
        let own = if random.below(2) == 0 { xcp_r::Own::Difference } else { xcp_r::Own::Reset };
        // XCP-r has no safety net: its place says what data state.
        let xcp = SenderConfig { safety_net: false, ..xcp };
        let config = xcp_r::Config { xcp, epochs: true, own };
        let sender = xcp_r::Sender::new(&config, Bytes(1500), Bytes(1500));
        Self { now: 0, sender, echo: xcp_r::Echo::new(Bytes(1500)), config, random }
    }

    /// The first two ops of a law begin anew, but for the epochs, which go on from what was there.
    fn first(&mut self, epoch: u8) -> [(Vec<u8>, Vec<u64>); 2] {
        while self.sender.epoch().0 != epoch {
            self.sender.resume(&self.config, Bytes(1500), Bytes(1500));
        }
        self.sender.resume(&self.config, Bytes(1500), Bytes(3000));
        let is_reset = self.config.own == xcp_r::Own::Reset;
        let stated = SenderConfig { safety_net: is_reset, ..self.config.xcp };
        let config = sender_config_bytes(&stated);
        let init = self.op([0, 0, 1500, 3000], config, Header::default(), 0);
        self.echo = xcp_r::Echo::new(Bytes(1500));
        [init, self.op([7, 0, 1500, 0], vec![], Header::default(), 0)]
    }

    /// The bytes of an op, and the words that must be at its end: header, returned, window and epoch.
    fn op(&self, what: [u64; 4], payload: Vec<u8>, header: Header, returned: u64) -> (Vec<u8>, Vec<u64>) {
        let mut bytes = words(&what);
        bytes.extend(payload);
        bytes.resize(OP, 0);
        let Header { x, rtt, delta, reverse } = header;
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let header = [pair(x, rtt), pair(delta as u32, reverse as u32)];
        let after = [returned, self.sender.window().0, self.sender.epoch().0.into()];
        (bytes, [&header[..], &after].concat())
    }

    /// Small more often than large, the extremes now and then.
    fn number(&mut self, bits: u64) -> u64 {
        match self.random.below(40) {
            0 => 0,
            1 => u64::MAX,
            _ => self.random.next() >> (64 - bits + self.random.below(bits)),
        }
    }

    fn step(&mut self) -> (Vec<u8>, Vec<u64>) {
        self.now += self.random.below(10 * MS);
        let now = Time(self.now);
        let kind = [1, 2, 2, 2, 2, 3, 4, 5, 5, 5, 5, 6, 8, 8, 8, 9, 9][self.random.below(17) as usize];
        let srtt = Duration(if self.random.below(20) == 0 { 0 } else { MS + self.random.below(200 * MS) });
        let mut what = [kind, self.now, self.number(20), self.random.below(2)];
        let (mut payload, mut header, mut returned) = (vec![], Header::default(), 0);
        let size = Bytes(self.number(14));
        let awnd = Bytes(if self.random.below(2) == 0 { u64::MAX } else { self.number(20) });
        match kind {
            1 => {
                what[2] = 1 + self.random.below(9000);
                self.sender.restate(Bytes(what[2]), Bytes(what[3]));
            }
            2 => {
                // Mostly what the receiver says, of this epoch or another.
                let told = if self.random.below(4) == 0 {
                    self.number(32) as u32
                } else {
                    self.echo.reply().to_word()
                };
                what[2] = u64::from(told);
                let mut ack = Ack {
                    acked: size,
                    flight: Bytes(self.number(20)),
                    awnd,
                    rtt: Duration(20 * MS),
                    srtt,
                    is_duplicate: self.random.below(4) == 0,
                    in_recovery: self.random.below(4) == 0,
                    is_window_limited: self.random.below(2) == 0,
                    is_late: self.random.below(6) == 0,
                    ..Ack::default()
                };
                payload = words(&[ack.acked.0, ack.flight.0, ack.awnd.0, ack.rtt.0, ack.srtt.0, 0]);
                let switches = [ack.is_duplicate, ack.in_recovery, ack.is_window_limited, ack.is_late];
                payload.extend(switches.map(u8::from));
                ack.reply = xcp_r::Reply::from_word(told).into();
                let (before, epoch) = (self.sender.heard().0, self.sender.epoch().0);
                self.sender.on_ack(&self.config, now, &ack);
                if self.sender.epoch().0 == epoch {
                    returned = self.sender.heard().0.wrapping_sub(before);
                }
            }
            3 => self.sender.on_loss(&self.config, now, Bytes(what[2])),
            4 => self.sender.on_timeout(&self.config, now, Bytes(what[2]), what[3] != 0),
            5 => {
                let backlog = Bytes(if self.random.below(2) == 0 { u64::MAX } else { self.number(20) });
                let is_window_limited = self.random.below(3) == 0;
                let send = Send { size, srtt, awnd, backlog, is_window_limited, ..Send::default() };
                payload = words(&[size.0, srtt.0, awnd.0, backlog.0, 0]);
                payload.push(is_window_limited.into());
                header = self.sender.header(&self.config, now, &send);
                returned = self.sender.window_header(&self.config).to_word().into();
            }
            6 => {
                what[2] = srtt.0;
                returned = self.sender.pacing_rate(&self.config, srtt).map_or(0, |rate| rate.0);
            }
            8 => {
                let (rtt, delta) = (self.number(28) as u32, self.number(32) as i32 >> self.random.below(20));
                let (told, packets) =
                    (self.sender.window_header(&self.config).to_word(), 1 + self.random.below(50) as u32);
                for word in [rtt, delta as u32, told, packets] {
                    payload.extend(word.to_le_bytes());
                }
                payload.extend(words(&[1500, awnd.0]));
                let header = Header { rtt, delta, ..Header::default() };
                let window = xcp_r::Header::from_word(told);
                let data = xcp_r::Data { header, window, mss: Bytes(1500), awnd };
                self.echo.take_all(&self.config, &data, packets);
            }
            _ => returned = self.echo.reply().to_word().into(),
        }
        self.op(what, payload, header, returned)
    }
}

/// Runs operations, and returns the words that each has in it afterwards, from a byte on.
fn answers(program: &ProgramMut<'_>, ops: &[(Vec<u8>, Vec<u64>)], from: usize) -> Vec<Vec<u64>> {
    let mut packet = vec![0; PADDING];
    ops.iter().for_each(|(bytes, _)| packet.extend(bytes));
    let mut out = vec![0; packet.len()];
    let input = ProgramInput { data_in: Some(&packet), data_out: Some(&mut out), ..Default::default() };
    assert_eq!(program.test_run(input).unwrap().return_value, OPS as u32);
    let words =
        |op: &[u8]| op[from..].chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    out[PADDING..].chunks(OP).map(words).collect()
}

#[test]
fn a_window_at_the_receiver_is_the_same_in_the_kernel() {
    let test = "a_window_at_the_receiver_is_the_same_in_the_kernel";
    let Some(object) = loaded(test, "rust", "stream-xcpr") else { return };
    let program = object.progs_mut().next().unwrap();
    let (mut epoch, mut epochs, mut changed) = (0, 0, 0);
    for seed in 0..40 {
        let mut window = Window::new(seed);
        let mut ops = window.first(epoch).to_vec();
        while ops.len() < 50 * OPS {
            ops.push(window.step());
        }
        for ops in ops.chunks(OPS) {
            for ((given, expected), found) in ops.iter().zip(answers(&program, ops, 88)) {
                assert_eq!(found, *expected, "seed {seed}, kind {}", given[0]);
                changed += usize::from(given[0] == 2 && expected[2] != 0);
            }
        }
        epochs += usize::from(window.sender.epoch().0.wrapping_sub(epoch));
        epoch = window.sender.epoch().0;
    }
    assert!(epochs > 1000 && changed > 1000, "{epochs} epochs, {changed} changes");
}

/// Packets of flows in buckets of a policer's table, and what `stream-police.bpf.c` is to do with them as the law does.
struct Policing {
    random: Random,
    now: u64,
    capacity: u64,
    police: Police,
    buckets: [Bucket; Self::BUCKETS],
}

impl Policing {
    const BUCKETS: usize = 4;

    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        // 15 ms a packet of 1500 B, so that windows and periods end, and faster links.
        let capacity = 100_000 << random.below(4);
        Self { random, now: 0, capacity, police: Police::new(), buckets: [Bucket::default(); Self::BUCKETS] }
    }

    /// The bytes of an op, and the words that must be at its end: header, passes, place, counts, share and record.
    fn step(&mut self, is_first: bool) -> (Vec<u8>, Vec<u64>) {
        // One flow sends half of all, some most of the rest, and many come once.
        let many = [1, 1, 6, 1000][self.random.below(4) as usize];
        let flow = 1 + self.random.below(many);
        let packets = if self.random.below(4) == 0 { 1 + self.random.below(40) } else { 1 };
        let size = packets * (40 + self.random.below(1461));
        // Half as much again as the link has.
        self.now += self.random.below(1000 * packets * SECOND / self.capacity);
        if self.random.below(500) == 0 {
            self.now += self.random.below(15 * SECOND);
        }
        let bits = |random: &mut Random, most: u64| random.next() >> (64 - most + random.below(most));
        let header = match flow % 2 {
            1 => Header::default(),
            _ => Header {
                x: bits(&mut self.random, 32) as u32,
                rtt: bits(&mut self.random, 28) as u32,
                delta: bits(&mut self.random, 32) as i32 >> self.random.below(8),
                reverse: bits(&mut self.random, 32) as i32,
            },
        };
        let granted = bits(&mut self.random, 32) as i32 >> self.random.below(31);
        let kind = if is_first { 0 } else { 1 + u64::from(self.random.below(8) == 0) };
        let at = flow as usize % Self::BUCKETS;

        let mut op = words(&[kind, self.now, self.capacity, size, flow]);
        let Header { x, rtt, delta, reverse } = header;
        for word in [at as u32, packets as u32, granted as u32, 0, x, rtt, delta as u32, reverse as u32] {
            op.extend(word.to_le_bytes());
        }
        op.resize(OP, 0);

        let (now, size, bucket) = (Time(self.now), Bytes(size), &mut self.buckets[at]);
        let known = bucket.find(flow);
        let mut left = header;
        let (mut passes, mut place) = (0, known);
        match kind {
            1 => {
                place = known.or_else(|| bucket.begin(WAYS, flow, now, size));
                let arrival = Arrival { now, capacity: Rate(self.capacity), size, packets: packets as u32 };
                let record = known.map(|at| &mut bucket.records[at]);
                passes = self.police.judge(&arrival, record, &mut left).into();
                if let (1, Some(at)) = (passes, place) {
                    bucket.records[at].note_grant(granted);
                }
            }
            2 => known.into_iter().for_each(|at| bucket.records[at].note_drop()),
            _ => return (op, vec![]),
        }
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let Counts { clamped, dropped, offenders } = self.police.counts();
        let record = place.map_or(0, |at| {
            let record = bucket.records[at];
            record.seen().0 << 1 | u64::from(record.is_held())
        });
        let mut answer = vec![pair(left.x, left.rtt), pair(left.delta as u32, left.reverse as u32), passes];
        answer.extend([place.is_none().into(), clamped, dropped, offenders, self.police.share().0, record]);
        (op, answer)
    }
}

#[test]
fn a_policer_is_the_same_in_the_kernel() {
    let test = "a_policer_is_the_same_in_the_kernel";
    let folder = Folder::new(test);
    if let Err(reason) = build(&folder.0, "rust", &["stream-police"]) {
        return eprintln!("SKIP {test}: {reason}");
    }
    libbpf_rs::set_print(None);
    let (mut count, mut all, mut unknown) = (0, Counts::default(), 0);
    for seed in 0..40 {
        let mut builder = ObjectBuilder::default();
        let mut object = builder.open_file(folder.0.join("stream-police.bpf.o")).unwrap();
        let mut table = object.maps_mut().find(|map| map.name() == "policed").unwrap();
        table.set_max_entries(Policing::BUCKETS as u32).unwrap();
        let object = match object.load() {
            Err(error) if error.kind() == libbpf_rs::ErrorKind::PermissionDenied => {
                return eprintln!("SKIP {test}: may not load BPF programs (run as root)");
            }
            other => other.unwrap(),
        };
        let program = object.progs_mut().next().unwrap();
        let mut policing = Policing::new(seed);
        let ops: Vec<_> = (0..97 * OPS).map(|at| policing.step(at == 0)).collect();
        for ops in ops.chunks(OPS) {
            for ((given, expected), found) in ops.iter().zip(answers(&program, ops, 56)) {
                assert!(
                    expected.is_empty() || found == *expected,
                    "seed {seed}, {given:?}: {found:?}, {expected:?}"
                );
                unknown += usize::from(expected.get(3) == Some(&1));
            }
        }
        count += ops.len();
        let Counts { clamped, dropped, offenders } = policing.police.counts();
        all = Counts {
            clamped: all.clamped + clamped,
            dropped: all.dropped + dropped,
            offenders: all.offenders + offenders,
        };
    }
    assert!(
        count >= 100_000 && all.clamped > 1000 && all.dropped > 1000 && all.offenders > 10,
        "{count}, {all:?}"
    );
    assert!(unknown > 100, "{unknown} packets of flows that found no record");
    println!("{count} operations, no difference: {all:?}");
}

/// XCP's link law in parts, and what `stream-percpu.bpf.c` is to do with packets that pass at one of them as the law does.
struct Divided {
    random: Random,
    now: u64,
    config: LinkConfig,
    whole: Link,
    parts: [Part; Self::PARTS],
    /// Packets before which the whole had to lend.
    lent: usize,
}

impl Divided {
    const PARTS: usize = 4;

    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let config = LinkConfig {
            capacity: Rate(8000 << random.below(24)),
            capture: random.below(2) == 0,
            bound_headers: random.below(2) == 0,
            average_queue: random.below(2) == 0,
            remember_grants: random.below(2) == 0,
            ..LinkConfig::DEFAULT
        };
        let whole = Link::new(config, Duration(20 * MS), Duration(10 * MS));
        Self { random, now: 0, config, whole, parts: std::array::from_fn(|_| Part::new()), lent: 0 }
    }

    /// The bytes of an op, and the words that must be at its end: a report or nothing, header, whether the whole has lent, and
    /// its deadline.
    fn step(&mut self, is_first: bool) -> (Vec<u8>, Vec<u64>) {
        self.now += self.random.below(MS);
        let kind =
            if is_first { 0 } else { [1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4][self.random.below(11) as usize] };
        let bits = |random: &mut Random, most: u64| random.next() >> (64 - most + random.below(most));
        let (mut at, size) = (self.random.below(Self::PARTS as u64), bits(&mut self.random, 14));
        let mut header = Header::default();
        let (mut payload, mut report, mut returned) = (vec![], vec![], 0);
        match kind {
            0 => payload = link_config_bytes(&self.config),
            1 => {
                at = 8000 << self.random.below(30);
                self.whole.set_capacity(Rate(at));
            }
            2 => {
                let delta =
                    if self.random.below(2) == 0 { i32::MAX } else { bits(&mut self.random, 32) as i32 };
                let (x, rtt) = (bits(&mut self.random, 24) as u32, bits(&mut self.random, 28) as u32);
                header = Header { x, rtt, delta, reverse: bits(&mut self.random, 32) as i32 };
            }
            4 => {
                at = bits(&mut self.random, 20);
                if self.random.below(3) == 0 {
                    self.now = self.now.max(self.whole.next_deadline().0.min(self.now + SECOND));
                }
            }
            _ => {}
        }
        let second = if is_first { 10 * MS } else { size };
        let mut op = words(&[kind, self.now, if is_first { 20 * MS } else { at }, second]);
        op.extend(payload);
        op.resize(96, 0);
        for word in [header.x, header.rtt, header.delta as u32, header.reverse as u32] {
            op.extend(word.to_le_bytes());
        }
        op.resize(OP, 0);

        let size = Bytes(size);
        match kind {
            2 => {
                let part = &mut self.parts[at as usize];
                if part.wants(self.whole.interval_number(), &header, size) {
                    self.whole.lend(part, &header, size, Self::PARTS as u64);
                    assert!(!part.wants(self.whole.interval_number(), &header, size), "{header:?}");
                    (returned, self.lent) = (1, self.lent + 1);
                }
                part.on_arrival(&header, size);
                part.on_departure(&mut header, size);
            }
            3 => self.parts[at as usize].on_other_arrival(size),
            4 => {
                self.parts.iter_mut().for_each(|part| self.whole.take_in(part));
                self.whole.on_other_departure(Time(self.now), Bytes(at));
                self.whole.on_deadline(Time(self.now), Bytes(at));
                let told = self.whole.report();
                report = vec![told.intervals, told.input.0, told.feedback as u64, told.interval.0];
                report.extend([told.persistent_queue.0, told.bounded]);
            }
            _ => {}
        }
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        report.extend([pair(header.x, header.rtt), pair(header.delta as u32, header.reverse as u32)]);
        report.extend([returned, self.whole.next_deadline().0]);
        (op, report)
    }
}

#[test]
fn a_law_in_parts_is_the_same_in_the_kernel() {
    let test = "a_law_in_parts_is_the_same_in_the_kernel";
    let Some(object) = loaded(test, "rust", "stream-percpu") else { return };
    let program = object.progs_mut().next().unwrap();
    let (mut count, mut lent, mut intervals) = (0, 0, 0);
    for seed in 0..40 {
        let mut divided = Divided::new(seed);
        let ops: Vec<_> = (0..97 * OPS).map(|at| divided.step(at == 0)).collect();
        for ops in ops.chunks(OPS) {
            for ((given, expected), found) in ops.iter().zip(answers(&program, ops, 32)) {
                let (report, rest) = found.split_at(8);
                let report = if expected.len() > 4 { &report[..6] } else { &[] };
                assert_eq!([report, rest].concat(), *expected, "seed {seed}, {given:?}");
            }
        }
        count += ops.len();
        lent += divided.lent;
        intervals += divided.whole.report().intervals;
    }
    assert!(
        count >= 100_000 && lent > 1000 && intervals > 1000,
        "{count}, {lent} lent, {intervals} intervals"
    );
    println!("{count} operations, no difference: {lent} lent in {intervals} intervals");
}

/// The router on the twin says so, and the kernel takes it.
#[test]
fn a_router_builds_on_the_twin() {
    let test = "a_router_builds_on_the_twin";
    let folder = Folder::new(test);
    if let Err(reason) = build(&folder.0, "twin", &["router"]) {
        return eprintln!("SKIP {test}: {reason}");
    }
    let object = fs::read(folder.0.join("router.bpf.o")).unwrap();
    assert!(router::law_name_in(&object).starts_with("C twin"));
    assert!(router::law_name().starts_with("Rust"), "the committed object is the Rust law");
    let rate = BitRate(1_000_000_000);
    let config = Config { rate, law: router::law(rate), encoding: Encoding::Option, shape: None };
    match Program::load(&object, &config, 14, 0) {
        Err(error @ Error::Missing { .. }) => eprintln!("SKIP {test}: {error}"),
        other => drop(other.unwrap()),
    }
}

/// What the command carries is what the sources say: the same bytes where the tools are the same.
#[test]
fn the_committed_objects_are_built_from_these_sources() {
    let test = "the_committed_objects_are_built_from_these_sources";
    let folder = Folder::new(test);
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/objects");
    let names = fs::read_dir(&committed)
        .unwrap()
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".bpf.o")?.to_owned()));
    let names: Vec<String> = names.collect();
    assert!(names.contains(&"router".to_owned()));
    let programs: Vec<&str> = names.iter().map(String::as_str).collect();
    if let Err(reason) = build(&folder.0, "rust", &programs) {
        return eprintln!("SKIP {test}: {reason}");
    }
    let read = |folder: &Path, name: &str| fs::read(folder.join(name)).unwrap();
    if read(&folder.0, "tools.txt") != read(&committed, "tools.txt") {
        // The differential tests above hold behaviour.
        return eprintln!("SKIP {test}: other versions of the tools than objects/tools.txt says");
    }
    for name in names {
        let object = format!("{name}.bpf.o");
        assert!(
            read(&folder.0, &object) == read(&committed, &object),
            "{object} is not what its sources say: make bpf"
        );
    }
}

/// Symbols of functions that nobody but the Rust law has.
#[test]
fn the_router_carries_the_functions_of_the_core() {
    let has = |name: &str| {
        OBJECT.windows(name.len() + 2).any(|bytes| bytes == [b"\0", name.as_bytes(), b"\0"].concat())
    };
    for name in ["law_link_on_departure", "close_interval", "estimate_queue", "quotient"] {
        assert!(has(name), "{name}");
    }
}
