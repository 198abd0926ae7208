//! Sources: exact spacing, spans of sending and silence, stop.

use congestlab_core::units::{BitRate, Duration, Time};
use congestlab_net::packet::{Kind, Packet};
use congestlab_net::random::Stream;
use congestlab_net::source::{Pattern, Source, SourceConfig};
use congestlab_net::tcp::Measure;

const SECOND: u64 = 1_000_000_000;

fn run(config: &SourceConfig, start: Time, stop: Time, end: Time) -> (Vec<Packet>, Source) {
    let measure = Measure { from: Time(end.0 / 2), to: end };
    let mut source = Source::new(config, 7, start, stop, Stream::named(1, "flows.x/0.on-off"), measure);
    let mut packets = Vec::new();
    while source.next_deadline() < end {
        let now = source.next_deadline();
        source.handle_deadline(config, now);
        let before = packets.len();
        while let Some(packet) = source.poll_transmit(config, now) {
            packets.push(packet);
        }
        assert!(packets.len() > before, "a deadline without a packet at {now:?}");
        assert!(source.next_deadline() > now);
    }
    (packets, source)
}

#[test]
fn a_constant_rate_is_exact_over_any_time() {
    // 1000 B at 3 Mbit/s: 2 666 666 2/3 ns.
    let config = SourceConfig { segment: 1000, rate: BitRate(3_000_000), pattern: Pattern::Constant };
    let (packets, source) = run(&config, Time(5), Time::NEVER, Time(9000 * SECOND));
    for (n, packet) in (0u64..).zip(&packets) {
        assert_eq!(packet.stamp_ns, 5 + (n * 8_000_000).div_ceil(3), "packet {n}");
        assert_eq!((packet.seq, packet.flow, packet.size), (n as u32, 7, 1000));
        assert_eq!(packet.kind, Kind::Datagram);
    }
    let stats = source.stats();
    assert_eq!(stats.sent_packets, 9000 * 375);
    assert_eq!(
        (stats.sent_bytes, stats.measured_bytes),
        (stats.sent_packets * 1000, stats.sent_packets * 500)
    );
    assert_eq!(stats.idle_max, Some(Duration(2_666_667)));
    assert_eq!(source.draws(), 0);
}

#[test]
fn nothing_goes_from_the_stop_on() {
    let config = SourceConfig { segment: 1000, rate: BitRate(8_000_000), pattern: Pattern::Constant };
    let (packets, source) = run(&config, Time(0), Time(10_000_000), Time(SECOND));
    assert_eq!(packets.len(), 10);
    assert_eq!(source.next_deadline(), Time::NEVER);
    let (packets, _) = run(&config, Time(10), Time(10), Time(SECOND));
    assert_eq!(packets, [], "a source that stops as it starts");
}

#[test]
fn a_periodic_source_sends_for_on_and_rests_for_off() {
    let pattern = Pattern::OnOff { on: Duration(2 * SECOND), off: Duration(3 * SECOND), is_random: false };
    // 30 packets in 2 s do not divide: the last begins at 58/30 s, and the next span begins afresh.
    let config = SourceConfig { segment: 1000, rate: BitRate(120_000), pattern };
    let (packets, source) = run(&config, Time(SECOND), Time::NEVER, Time(21 * SECOND));
    assert_eq!(packets.len(), 4 * 30);
    for (n, packet) in (0u64..).zip(&packets) {
        let span = SECOND + n / 30 * 5 * SECOND;
        assert_eq!(packet.stamp_ns, span + (n % 30 * 8 * SECOND).div_ceil(120), "packet {n}");
    }
    assert_eq!(source.draws(), 0);
    let gap = packets[30].stamp_ns - packets[29].stamp_ns;
    assert_eq!(source.stats().idle_max, Some(Duration(gap)));
}

/// When the packets of a periodic source go: packet n has n T of sending before it, T the time of a packet.
fn times(config: &SourceConfig, on: u64, off: u64, end: u64) -> Vec<u64> {
    let after = |n: u64| (n * u64::from(config.segment) * 8 * SECOND).div_ceil(config.rate.0);
    let at = |sending: u64| sending / on * (on + off) + sending % on;
    (0..).map(|n| at(after(n))).take_while(|&at| at < end).collect()
}

#[test]
fn periodic_spans_have_the_rate_together() {
    let second = Time(SECOND);
    // At 8 Mbit/s 1.9 ms had two packets of a millisecond, which is 8.4 Mbit/s.
    for on in [
        30_000_000, 2_500_000, 1_900_000, 1_000_001, 1_000_000, 999_999, 333_333, 100_000, 99_999, 1_000, 7,
        1,
    ] {
        for off in [0, 1, 50_000, 1_000_000, 70_000_000] {
            // 8 Mbit/s: a packet a millisecond; 3 Mbit/s: 2 666 666 2/3 ns.
            for rate in [100_000, 3_000_000, 8_000_000, 1_000_000_000] {
                let pattern = Pattern::OnOff { on: Duration(on), off: Duration(off), is_random: false };
                let config = SourceConfig { segment: 1000, rate: BitRate(rate), pattern };
                let (packets, source) = run(&config, Time(0), Time::NEVER, second);
                let found: Vec<u64> = packets.iter().map(|packet| packet.stamp_ns).collect();
                assert_eq!(found, times(&config, on, off, SECOND), "on {on} ns, off {off} ns, {rate} bit/s");
                let sending = u128::from(SECOND / (on + off) * on + (SECOND % (on + off)).min(on));
                let most = sending * u128::from(rate) / u128::from(SECOND) + 8000;
                assert!(
                    found.len() as u128 * 8000 <= most,
                    "on {on} ns, off {off} ns: more than {rate} bit/s"
                );
                let said = config.packets_in(Duration(SECOND));
                let sent = source.stats().sent_packets;
                assert!(said >= sent, "on {on} ns, off {off} ns, {rate} bit/s: {said} said, {sent} sent");
                assert!(
                    said <= 2 * sent + 2,
                    "on {on} ns, off {off} ns, {rate} bit/s: {said} said, {sent} sent"
                );
            }
        }
    }
}

/// 1000 B at 8 Mbit/s: a millisecond each, in spans of a hundredth to three times that.
#[test]
fn random_spans_have_the_rate_together() {
    let spans =
        [(10_000, 10_000), (10_000, 90_000), (500_000, 0), (500_000, 1_500_000), (1_270_000, 1_270_000)];
    for (on, off) in spans.into_iter().chain([(3_000_000, 0), (3_000_000, 1_000_000)]) {
        let pattern = Pattern::OnOff { on: Duration(on), off: Duration(off), is_random: true };
        let config = SourceConfig { segment: 1000, rate: BitRate(8_000_000), pattern };
        let (packets, _) = run(&config, Time(0), Time::NEVER, Time(100 * SECOND));
        // At least 25,000 packets in 50,000 spans: sending and silence are known within 1 %.
        let expected = 100_000.0 * on as f64 / (on + off) as f64;
        let share = packets.len() as f64 / expected;
        assert!((share - 1.0).abs() < 0.02, "on {on} ns, off {off} ns: {share} of the rate");
        assert!(packets.len() as u64 <= config.packets_in(Duration(100 * SECOND)));
    }
}

#[test]
fn random_spans_have_the_means_that_were_asked_for() {
    let pattern = Pattern::OnOff { on: Duration(SECOND / 10), off: Duration(SECOND / 5), is_random: true };
    let config = SourceConfig { segment: 100, rate: BitRate(800_000), pattern };
    let (packets, source) = run(&config, Time(0), Time::NEVER, Time(20_000 * SECOND));
    // On for a third of the time at 1000 packets/s. About 66,667 spans, so the mean is known within 0.5 %.
    let expected = 20_000.0 / 0.3 * 100.0;
    let share = packets.len() as f64 / expected;
    assert!((share - 1.0).abs() < 0.015, "{} packets, {expected} expected", packets.len());
    // Silences longer than a mean are e^-1 of all.
    let gaps: Vec<u64> = packets.windows(2).map(|w| w[1].stamp_ns - w[0].stamp_ns).collect();
    let silences = gaps.iter().filter(|&&gap| gap > SECOND / 100).count() as f64;
    let long = gaps.iter().filter(|&&gap| gap > SECOND / 5).count() as f64;
    let expected = 0.386_741; // e^-0.95
    assert!((long / silences - expected).abs() < 0.01, "{long} of {silences} silences are long");
    assert!(source.draws() > 0);
}
