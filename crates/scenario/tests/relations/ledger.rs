//! Conservation of packets, of bytes, and of the time for which packets wait.

use congestlab_scenario::sim::outcome::{Element, LinkOutcome, Outcome};

use crate::draw;
use crate::each;
use crate::net::{Net, Value};

/// Packets in service on a link at the end: 0 or 1. Those that came have left, were dropped, wait or are in service.
fn in_service(link: &LinkOutcome, net: &Net) -> u64 {
    let gone = link.sent_packets_total + link.drops_total + link.queue_end_packets;
    let in_service = link.arrived_packets_total.checked_sub(gone).filter(|&count| count <= 1);
    in_service.unwrap_or_else(|| panic!("packets of a link are lost or made: {link:?}\n{}", net.text()))
}

/// Packets that came to the far end of a link.
fn delivered(link: &LinkOutcome, net: &Net) -> u64 {
    let on_wire = link.in_flight_end - link.queue_end_packets - in_service(link, net);
    let delivered = link.sent_packets_total.checked_sub(link.errors_total + on_wire);
    delivered.unwrap_or_else(|| panic!("more was lost than was sent: {link:?}\n{}", net.text()))
}

#[test]
fn packets_are_sent_delivered_dropped_or_in_flight() {
    each("packets", |draw, mut net| {
        draw::trouble(draw, &mut net);
        let got = net.run();
        for link in &got.links {
            delivered(link, &net);
            assert_eq!(link.drops_by_reason_total.values().sum::<u64>(), link.drops_total, "{}", net.text());
            assert_eq!(link.drops_by_reason.values().sum::<u64>(), link.drops, "{}", net.text());
        }
        for flow in got.groups.iter().flat_map(|group| group.iter()) {
            assert!(flow.received_packets_total <= flow.sent_packets_total, "{flow:?}\n{}", net.text());
            assert!(flow.retransmits_total <= flow.sent_packets_total, "{flow:?}\n{}", net.text());
            assert!(flow.spurious_retransmits_total <= flow.retransmits_total, "{flow:?}\n{}", net.text());
        }
    });
}

/// One group from end to end: what one link delivers comes to the next one, and the last one's come to the receivers.
#[test]
fn packets_of_a_path_come_from_one_link_to_the_next() {
    each("paths", |draw, mut net| {
        net.flows.truncate(1);
        let names = net.links.iter().map(|link| Value::Plain(format!("{:?}", link.name))).collect();
        net.flows[0].set("path", Value::List(names));
        for key in ["access", "exit"] {
            net.flows[0].remove(key);
        }
        draw::trouble(draw, &mut net);
        let got = net.run();
        let forward: Vec<&LinkOutcome> = got.links.iter().step_by(2).collect();
        for pair in forward.windows(2) {
            assert_eq!(delivered(pair[0], &net), pair[1].arrived_packets_total, "{}", net.text());
        }
        let flows = || got.groups.iter().flat_map(|group| group.iter());
        let sent: u64 = flows().map(|flow| flow.sent_packets_total).sum();
        let received: u64 = flows().map(|flow| flow.received_packets_total).sum();
        let timeouts: u64 = flows().map(|flow| flow.timeouts_total).sum();
        // Beside data there are the segments that begin and end a connection, and probes of a window that was closed.
        let others = |packets: u64, data: u64| packets.checked_sub(data);
        let most = 4 * flows().count() as u64 + timeouts;
        let (first, last) = (forward[0].arrived_packets_total, delivered(forward[forward.len() - 1], &net));
        for (packets, data) in [(first, sent), (last, received)] {
            let others = others(packets, data);
            assert!(others.is_some_and(|others| others <= most), "{packets}, {data} of data\n{}", net.text());
        }
        let lost: u64 =
            forward.iter().map(|link| link.drops_total + link.errors_total + link.in_flight_end).sum();
        assert_eq!(first, last + lost, "sent = received + lost + in flight\n{}", net.text());
    });
}

/// Little's law, by what it follows from: the integral of the queue over time is the sum of what packets waited.
#[test]
fn the_queue_over_time_is_what_packets_waited() {
    let (mut exact, mut waited) = (0, 0);
    each("waits", |draw, mut net| {
        draw::trouble(draw, &mut net);
        net.warmup = 0;
        let got = net.run();
        for link in &got.links {
            let Some(mean) = link.queue_mean_packets else { continue };
            let started = link.sent_packets_total + in_service(link, &net);
            let integral = mean * net.duration as f64 / 1e6;
            let waits = link.queue_delay_mean_ms.unwrap_or(0.0) * started as f64;
            // Those that still wait have waited, and so had some of those that were dropped.
            let others = link.queue_end_packets + link.drops_total;
            let most = others as f64 * net.duration as f64 / 1e6;
            let rounding = 1e-9 * integral.max(waits) + 1e-6 * started as f64 + 1e-6;
            assert!(
                -rounding <= integral - waits && integral - waits <= most + rounding,
                "{integral} packet-ms of queue, {waits} ms of waits: {link:?}\n{}",
                net.text()
            );
            exact += usize::from(others == 0);
            waited += usize::from(others == 0 && waits > 0.0);
        }
    });
    assert!(exact > 20 && waited > 10, "{exact} links exactly, {waited} of them with a queue");
}

/// Bins of the series add up to the whole.
#[test]
fn bins_add_up_to_the_whole() {
    let mut bytes = 0.0;
    each("bins", |draw, mut net| {
        draw::trouble(draw, &mut net);
        // Whole bins.
        (net.warmup, net.duration) = (0, net.duration / net.every * net.every);
        let got = net.run_with_series();
        let seconds = net.every as f64 / 1e9;
        for (index, link) in (0..).zip(&got.links) {
            let sum = |metric| sum(&got, Element::Link(index), metric);
            let (sent, whole) = (
                sum("throughput_bps") * seconds,
                link.throughput_bps.unwrap_or(0.0) * net.duration as f64 / 1e9,
            );
            bytes += sent / 8.0;
            assert!(
                (sent - whole).abs() <= 1e-9 * whole + 1e-3,
                "{sent} of {whole} bits: {link:?}\n{}",
                net.text()
            );
            let longest = got
                .series
                .iter()
                .filter(|it| it.element == Element::Link(index) && it.metric == "queue_max_packets");
            let longest = longest.map(|sample| sample.value).fold(0.0, f64::max);
            assert_eq!(longest, link.queue_max_packets_total as f64, "{link:?}\n{}", net.text());
        }
    });
    assert!(bytes > 1e6, "{bytes} bytes");
}

fn sum(outcome: &Outcome, element: Element, metric: &str) -> f64 {
    let of_it = outcome.series.iter().filter(|sample| sample.element == element && sample.metric == metric);
    of_it.map(|sample| sample.value).sum()
}

/// Receivers behind a link get no more in any time than the link can carry in it, and a packet.
#[test]
fn no_window_delivers_more_than_the_link_can_carry() {
    each("windows", |draw, mut net| {
        draw::trouble(draw, &mut net);
        for flow in &mut net.flows {
            flow.set("path", Value::List(vec![Value::Plain("\"l0\"".to_owned())]));
            flow.remove("exit");
        }
        net.warmup = draw.below(net.duration);
        // Late packets come between other packets.
        net.links[0].remove("reorder");
        let Some(&Value::Rate(rate)) = net.links[0].get("rate") else { return };
        let got = net.run();
        let flows = || got.groups.iter().flat_map(|group| group.iter());
        let delivered: u64 = flows().map(|flow| flow.arrived_bytes).sum();
        let seconds = (net.duration - net.warmup) as f64 / 1e9;
        let most = rate as f64 / 8.0 * seconds + 3000.0;
        assert!(delivered as f64 <= most, "{delivered} of {most} bytes in {seconds} s\n{}", net.text());
        let sent = got.links[0].throughput_bps.unwrap_or(0.0) * seconds / 8.0;
        assert!(sent <= most, "{sent} of {most} bytes in {seconds} s\n{}", net.text());
        for (use_of_it, link) in got.links.iter().filter_map(|link| Some((link.utilization?, link))) {
            assert!(
                use_of_it <= 1.0 + 24_000.0 / link.capacity_bps.unwrap_or(1.0) / seconds,
                "{link:?}\n{}",
                net.text()
            );
        }
    });
}
