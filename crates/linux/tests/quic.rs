//! A stack of QUIC that knows nothing of SCONE (quinn) through the element of a router: its handshake and transfers pass as they were
//! sent. With packets of SCONE put before its datagrams in user space the far end reads the element's advice, and the connection works.
//!
//! The stack is in a workspace of its own, `quic-peer`, which this test alone builds: 58 crates, about a minute on one core, once. Skips
//! where they can not be had, and where the privilege or the kernel's part is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use congestlab_core::law::Protocol;
use congestlab_core::law::scone::UNKNOWN;
use congestlab_core::units::BitRate;
use congestlab_linux::Error;
use congestlab_linux::router::{self, AnyLaw, Config, Encoding, Law, Queue, Status};

#[macro_use]
#[expect(dead_code, unused_macros, reason = "other tests have hosts with laws of their own")]
mod path;
use path::Path;

const BYTES: u64 = 2_000_000;
const RATE: BitRate = BitRate(50_000_000);

/// Builds the peer, or says why it can not be had.
fn peer() -> Result<String, String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/quic-peer/Cargo.toml");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("quic-peer");
    let cargo = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(words).args(["--locked", "--manifest-path", folder]).env("CARGO_TARGET_DIR", &target);
        let output = command.output().map_err(|error| error.to_string())?;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(words) }
    };
    let last = |words: String| words.lines().last().unwrap_or_default().trim().to_owned();
    cargo(&["fetch"]).map_err(|words| format!("no crates for quinn: {}", last(words)))?;
    cargo(&["build"]).unwrap_or_else(|words| panic!("{words}"));
    Ok(target.join("debug/quic-peer").display().to_string())
}

/// An end's account of itself.
#[derive(Debug, Default)]
struct Said {
    /// Hashes of the datagrams, without what was put before them, and how many began with a long header.
    sent: BTreeSet<String>,
    came: BTreeSet<String>,
    long: usize,
    asked: u64,
    /// Codes that came, and how often.
    heard: BTreeMap<u8, u64>,
    end: String,
}

impl Said {
    fn read(text: &str) -> Self {
        let mut said = Self::default();
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["sent", first, hash] => {
                    said.long += usize::from(u8::from_str_radix(first, 16).unwrap() & 0x80 != 0);
                    said.sent.insert(hash.into());
                }
                ["came", _, hash] => drop(said.came.insert(hash.into())),
                ["asked"] => said.asked += 1,
                ["heard", code, count] => {
                    said.heard.insert(code.parse().unwrap(), count.parse().unwrap());
                }
                ["end", ..] => said.end = line.into(),
                _ => panic!("{line}"),
            }
        }
        said
    }
}

/// Both ends send and check so many bytes; what the client and the server say.
fn transfer(path: &Path, peer: &str, port: u16, every: &str) -> [Said; 2] {
    let mut server = path.command("s", &format!("{peer} listen 10.0.2.2:{port} {BYTES} {every}"), false);
    let server = server.stdout(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_millis(400));
    let client = path.run("c", &format!("{peer} connect 10.0.2.2:{port} {BYTES} {every}"), false);
    let server = server.wait_with_output().unwrap();
    assert!(server.status.success(), "{server:?}");
    let both = [client, String::from_utf8(server.stdout).unwrap()].map(|text| Said::read(&text));
    for said in &both {
        assert_eq!(said.end, format!("end {BYTES} true true"), "all bytes came, as they were sent");
        // Both ends of the handshake have long headers.
        assert!(said.long > 0 && said.sent.len() > 1000 && said.came.len() > 1000);
    }
    // Nothing that came is anything else than what was sent.
    for (sent, came) in [(&both[0], &both[1]), (&both[1], &both[0])] {
        assert_eq!(came.came.difference(&sent.sent).count(), 0);
    }
    both
}

fn attach(path: &Path, told: &[&str]) -> Result<(), Error> {
    let mut law = AnyLaw::new(Protocol::of("scone").unwrap(), RATE, None).unwrap();
    law.set(&told.iter().map(|told| (*told).to_owned()).collect::<Vec<_>>()).unwrap();
    let shape = Some(Queue::Bytes(1_000_000));
    let config = Config { rate: RATE, encoding: law.encoding(), law: Law::Any(Box::new(law)), shape };
    path.namespace("r").run(|| router::attach("s", &config)).unwrap()
}

fn detach(path: &Path) -> Status {
    let inside = path.namespace("r");
    let status = inside.run(|| router::status(Some("s"))).unwrap().unwrap().remove(0);
    inside.run(|| router::detach("s")).unwrap().unwrap();
    status
}

/// A long header without SCONE is left alone, and so is all else of a connection; one that asks is advised, four times.
#[test]
fn quic_passes_the_element_and_hears_its_advice() {
    let test = "quic_passes_the_element_and_hears_its_advice";
    let path = path!("quic_passes_the_element_and_hears_its_advice", Encoding::Quic);
    let peer = match peer() {
        Ok(peer) => peer,
        Err(why) => return eprintln!("SKIP {test}: {why}"),
    };
    match attach(&path, &[]) {
        Err(error @ Error::Missing { .. }) => return eprintln!("SKIP {test}: {error}"),
        attached => attached.unwrap(),
    }
    let both = transfer(&path, &peer, 4433, "");
    assert!(both.iter().all(|said| said.asked == 0 && said.heard.is_empty()), "{both:?}");
    let status = detach(&path);
    assert_eq!((status.sample.xcp_packets, status.sample.refused_packets), (0, 0), "{status:?}");

    // 49 Mbit/s is between the codes 53 and 54. The element is on the way to the server alone.
    attach(&path, &[]).unwrap();
    let [client, server] = transfer(&path, &peer, 4434, "4");
    let lowered: u64 = [53, 54].iter().filter_map(|code| server.heard.get(code)).sum();
    let heard: u64 = server.heard.values().sum();
    assert!(
        client.asked > 100 && heard <= client.asked && heard * 10 > client.asked * 9,
        "{:?}",
        server.heard
    );
    // Four at once, and four more if the code changed as an interval ended.
    assert!((4..=8).contains(&lowered), "{:?}", server.heard);
    assert_eq!(server.heard.get(&UNKNOWN), Some(&(heard - lowered)), "{:?}", server.heard);
    assert_eq!(client.heard.keys().collect::<Vec<_>>(), [&UNKNOWN]);
    assert!(detach(&path).sample.xcp_packets >= heard);

    attach(&path, &["updates=1000000"]).unwrap();
    let [client, server] = transfer(&path, &peer, 4435, "4");
    assert!(server.heard.keys().all(|code| matches!(code, 53 | 54)), "{:?}", server.heard);
    assert!(server.heard.values().sum::<u64>() * 10 > client.asked * 9);
    detach(&path);
}
