//! Sources of a capacity at real interfaces: the law decides by what they said last, and by the fixed rate when they are stale.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{scope, sleep};
use std::time::Duration;

use congestlab_core::units::BitRate;
use congestlab_linux::Error;
use congestlab_linux::router::{self, Config, Encoding, Feeder, Queue, Reader, Source, SourceState};
use congestlab_linux::sys::command::run;

mod lab;
use lab::Lab;

/// XCP with this rate; false: said why not.
fn attach(test: &str, rate: BitRate, shape: Option<Queue>) -> bool {
    let config = Config { rate, law: router::law(rate), encoding: Encoding::Option, shape };
    match router::attach("v0", &config) {
        Err(error @ Error::Missing { .. }) => {
            eprintln!("SKIP {test}: {error}");
            false
        }
        done => {
            done.unwrap();
            true
        }
    }
}

fn feed(source: &Source, fixed: BitRate) -> (Feeder, Receiver<String>) {
    let (tell, told) = channel();
    let feeder = Feeder::start("v0", source, fixed, move |line| drop(tell.send(line.to_owned())));
    (feeder.unwrap(), told)
}

/// Waits until the capacity is within a tenth of this, Mbit/s, and returns it, in bit/s, with the state of the source.
#[track_caller]
fn becomes(mbits: f64) -> (u64, SourceState) {
    let mut seen = vec![];
    for _ in 0..120 {
        let status = router::status(Some("v0")).unwrap().remove(0);
        let capacity = status.sample.capacity_bps;
        if let Some(fed) = status.source
            && (capacity as f64 / (mbits * 1e6) - 1.0).abs() < 0.1
        {
            return (capacity, fed.state);
        }
        seen.push(capacity);
        sleep(Duration::from_millis(50));
    }
    panic!("never {mbits} Mbit/s: {seen:?}");
}

fn tc(words: &str) {
    run(&format!("tc qdisc {words}")).unwrap();
}

#[test]
fn the_first_decision_after_a_source_has_spoken_is_by_what_it_said() {
    let test = "the_first_decision_after_a_source_has_spoken_is_by_what_it_said";
    let Some(lab) = Lab::new(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    // The command runs as nobody.
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let file = folder.path().join("rate");
    let say = |rate: &str| std::fs::write(&file, format!("{rate}\n")).unwrap();
    say("50 Mbit/s");
    lab.inside(|| {
        if !attach(test, BitRate(10_000_000), Some(Queue::Packets(50))) {
            return;
        }
        let line = format!("while cat {}; do sleep 0.05; done", file.display());
        let (feeder, _told) = feed(&Source::Command { line, user: "nobody".into() }, BitRate(10_000_000));
        let reader = Reader::open("v0").unwrap();
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let mut step = || {
            // The program has no timer: packets end intervals.
            socket.send_to(&[0; 100], "10.77.0.2:9").unwrap();
            sleep(Duration::from_millis(2));
            reader.sample().unwrap().0
        };
        for rate in [25u64, 400, 4, 50] {
            say(&format!("{rate} Mbit/s"));
            let told = std::iter::repeat_with(&mut step)
                .take(2000)
                .find(|sample| sample.capacity_bps == rate * 1_000_000)
                .expect("the law was told");
            let decided = std::iter::repeat_with(&mut step)
                .take(2000)
                .find(|sample| sample.intervals > told.intervals)
                .expect("an interval has ended");
            // Nothing but the capacity and the input decide: alpha (C - y).
            let expected = 0.4 * (rate as f64 * 125_000.0 - decided.input_Bps as f64);
            let found = decided.feedback_Bps as f64;
            assert!((found / expected - 1.0).abs() < 0.01, "{found} for {expected} at {rate} Mbit/s");
        }
        drop(feeder);
        assert_eq!(router::status(Some("v0")).unwrap()[0].sample.capacity_bps, 10_000_000);
        router::detach("v0").unwrap();
    });
}

#[test]
fn drain_is_what_leaves_a_full_queue_and_an_empty_one_falls_back() {
    let test = "drain_is_what_leaves_a_full_queue_and_an_empty_one_falls_back";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        // Rates of IP: without the header of Ethernet.
        let shaper = |verb: &str, rate: &str| {
            tc(&format!("{verb} dev v0 root handle 7: tbf rate {rate} burst 5kb limit 60kb"));
        };
        shaper("add", "8mbit");
        if !attach(test, BitRate(20_000_000), None) {
            return;
        }
        let (feeder, told) = feed(&Source::Drain, BitRate(20_000_000));
        let stop = AtomicBool::new(false);
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        scope(|scope| {
            let flood = || {
                while !stop.load(Ordering::Relaxed) {
                    // A full queue is no error of this test.
                    let _ = socket.send_to(&[0; 1400], "10.77.0.2:9");
                    sleep(Duration::from_micros(300));
                }
            };
            scope.spawn(flood);
            for (rate, verb) in [(8.0, None), (4.0, Some("4mbit")), (16.0, Some("16mbit"))] {
                if let Some(rate) = verb {
                    shaper("change", rate);
                }
                let (capacity, state) = becomes(rate * 1428.0 / 1442.0);
                assert_eq!(state, SourceState::Fresh, "{capacity} at {rate} Mbit/s");
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(becomes(20.0), (20_000_000, SourceState::Stale));
        assert!(feeder.is_stale());
        let line = told.recv_timeout(Duration::from_secs(1)).unwrap();
        assert!(
            line.contains("drain, is stale: no queue has drained for 3 s") && line.contains("20 Mbit/s"),
            "{line}"
        );

        // A queue that is full and stands still: the counter does not move.
        tc("change dev v0 root handle 7: tbf rate 8bit burst 5kb limit 60kb");
        for _ in 0..100 {
            let _ = socket.send_to(&[0; 1400], "10.77.0.2:9");
        }
        sleep(Duration::from_millis(300));
        assert_eq!(becomes(20.0), (20_000_000, SourceState::Stale));
        drop(feeder);
        router::detach("v0").unwrap();
    });
}

#[test]
fn the_rate_that_a_shaper_states_is_followed_and_without_one_the_fixed_one_holds() {
    let test = "the_rate_that_a_shaper_states_is_followed_and_without_one_the_fixed_one_holds";
    let Some(lab) = Lab::new(test) else { return };
    lab.inside(|| {
        tc("add dev v0 root handle 7: tbf rate 30mbit burst 5kb limit 60kb");
        if !attach(test, BitRate(10_000_000), None) {
            return;
        }
        let (feeder, told) = feed(&Source::Qdisc, BitRate(10_000_000));
        assert_eq!(becomes(30.0), (30_000_000, SourceState::Fresh));
        tc("change dev v0 root handle 7: tbf rate 12mbit burst 5kb limit 60kb");
        assert_eq!(becomes(12.0), (12_000_000, SourceState::Fresh));
        tc("del dev v0 root");
        assert_eq!(becomes(10.0), (10_000_000, SourceState::Stale));
        let line = told.recv_timeout(Duration::from_secs(1)).unwrap();
        assert!(line.contains("qdisc, is stale") && line.contains("it is 10 Mbit/s now"), "{line}");
        tc("add dev v0 root handle 8: htb default 1");
        run("tc class add dev v0 parent 8: classid 8:1 htb rate 40mbit").unwrap();
        assert_eq!(becomes(40.0), (40_000_000, SourceState::Fresh));
        drop(feeder);
        assert!(router::status(Some("v0")).unwrap()[0].source.is_none());
        router::detach("v0").unwrap();
    });
}
