//! ns-2 as a child process: a part of a model goes in, numbers come out. Nothing of it is left behind: the
//! script and its input go through a pipe, and the child ends with the run or when somebody wants that to
//! end.

use std::io::{Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use congestlab_scenario::net::service::PS_PER_S;
use congestlab_scenario::net::tcp::{self, App};
use congestlab_scenario::sim::model::{GroupKind, Model};
use congestlab_scenario::sim::outcome::{Element, FlowOutcome, LinkOutcome, Outcome, Sample};
use congestlab_scenario::sim::{measure_of, starts_of};
use congestlab_scenario::units::Time;

use super::network::{ACK, Part, describe, seconds};
use crate::machine;

pub(super) const SCRIPT: &str = include_str!("network.tcl");
/// How often the child is looked after.
const PAUSE: Duration = Duration::from_millis(5);

/// Why a part has no numbers.
#[derive(Debug)]
pub(super) enum Died {
    /// Somebody wants it to end.
    Stopped,
    /// By a division by zero, as ns-2's XCP does where its window is below a packet (docs/ns2.md, 4).
    Divided,
    /// By something else, which is nobody's intention.
    Otherwise(String),
}

/// The reason why ns-2 can not be asked, if there is one.
pub(crate) fn missing() -> Option<&'static str> {
    let probe = Command::new("ns").arg("/dev/null").stdout(Stdio::null()).stderr(Stdio::null()).status();
    probe.is_err().then_some("ns-2 is not on this machine: install the package ns2")
}

/// Runs ns-2 on a part and puts what comes out where it belongs in the outcome.
pub(super) fn run(model: &Model, part: &Part, outcome: &mut Outcome, stop: &AtomicBool) -> Result<(), Died> {
    let text = describe(model, part).map_err(Died::Otherwise)?;
    let said = ask(&text, stop)?;
    put(model, part, &said, outcome).ok_or_else(|| Died::Otherwise(format!("ns-2 says {}", last_line(&said))))
}

fn last_line(text: &str) -> &str {
    text.lines().next_back().unwrap_or("nothing")
}

fn ask(text: &str, stop: &AtomicBool) -> Result<String, Died> {
    let failed = |error: std::io::Error| Died::Otherwise(format!("can not run ns: {error}"));
    let mut child = Command::new("ns")
        .arg("/dev/stdin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let all = |from: Option<&mut dyn Read>| {
        let mut bytes = Vec::new();
        // What can not be read is missed below.
        let _ = from.map(|from| from.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let Some(mut stdin) = stdin else { return };
            // A child that is gone says so itself.
            let _ = stdin.write_all(SCRIPT.as_bytes()).and_then(|()| stdin.write_all(text.as_bytes()));
        });
        let stdout = scope.spawn(move || stdout.map_or(String::new(), |mut from| all(Some(&mut from))));
        let stderr = scope.spawn(move || stderr.map_or(String::new(), |mut from| all(Some(&mut from))));
        let ended = attend(&mut child, stop);
        let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
        let status = ended.map_err(failed)?;
        if stop.load(Ordering::Relaxed) {
            return Err(Died::Stopped);
        }
        match machine::signal(status) {
            None if status.success() => Ok(stdout),
            // Of the shell's number, if a wrapper ran it; SIGFPE.
            Some(8) => Err(Died::Divided),
            _ => Err(Died::Otherwise(format!("ns: {status}: {}", stderr.trim()))),
        }
    })
}

/// Waits for the child's end, or brings it about.
fn attend(child: &mut Child, stop: &AtomicBool) -> std::io::Result<std::process::ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) {
            child.kill()?;
            return child.wait();
        }
        std::thread::sleep(PAUSE);
    }
}

/// A flow of the part, by its number there.
struct Flow<'a> {
    group: usize,
    index: usize,
    config: &'a tcp::Config,
    start: Time,
    measure: tcp::Measure,
    stop: Time,
}

fn put(model: &Model, part: &Part, said: &str, outcome: &mut Outcome) -> Option<()> {
    let mut flows = Vec::new();
    for &index in &part.groups {
        let group = &model.groups[index];
        let GroupKind::Tcp(config) = &group.kind else { continue };
        for (number, start) in starts_of(group, model.seed).into_iter().enumerate() {
            let measure = measure_of(model, group, start);
            flows.push(Flow { group: index, index: number, config, start, measure, stop: group.stop });
        }
    }
    let bin = model.sample_every.unwrap_or(0);
    let mut is_whole = false;
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<f64>().ok();
        let which = |at: usize| words.get(at)?.parse::<usize>().ok();
        match words.first().copied() {
            Some("link") => {
                let link = which(1)?;
                *outcome.links.get_mut(link)? = link_outcome(model, link, &number)?;
            }
            Some("flow") => {
                let flow = flows.get(which(1)?)?;
                *outcome.groups.get_mut(flow.group)?.get_mut(flow.index)? = flow_outcome(flow, &number)?;
            }
            Some("bin") => {
                let rate = |at: usize| Some(number(at)? * 8.0 / seconds(bin));
                let (element, values) = if words.get(2) == Some(&"link") {
                    let values = vec![("throughput_bps", rate(4)?), ("queue_packets", number(5)?)];
                    (Element::Link(which(3)? as u32), values)
                } else {
                    let flow = flows.get(which(3)?)?;
                    let values = vec![
                        ("throughput_bps", rate(5)?),
                        ("cwnd_packets", number(6)?),
                        ("goodput_bps", rate(4)?),
                    ];
                    (Element::Flow(flow.group as u32, flow.index as u32), values)
                };
                let at = which(1)? as u64 * bin;
                let samples = values.into_iter().map(|(metric, value)| Sample { at, element, metric, value });
                outcome.series.extend(samples);
            }
            Some("end") => is_whole = true,
            _ => {}
        }
    }
    is_whole.then_some(())
}

/// Reads `link I B A P D Q M E AW PW DW`.
fn link_outcome(model: &Model, link: usize, number: &dyn Fn(usize) -> Option<f64>) -> Option<LinkOutcome> {
    let span = seconds(model.duration - model.warmup);
    let bits = number(2)? * 8.0;
    let work = model.links[link].port.service.work(model.warmup, model.duration) as f64 / PS_PER_S as f64;
    let (arrived, sent, drops, longest) =
        (number(3)? as u64, number(4)? as u64, number(5)? as u64, number(7)? as u64);
    Some(LinkOutcome {
        capacity_bps: (span > 0.0).then(|| work / span),
        throughput_bps: (span > 0.0).then(|| bits / span),
        utilization: (work > 0.0).then(|| bits / work),
        arrived_packets: arrived.saturating_sub(number(9)? as u64),
        sent_packets: sent.saturating_sub(number(10)? as u64),
        drops: drops.saturating_sub(number(11)? as u64),
        queue_mean_packets: Some(number(6)?),
        queue_max_packets: longest,
        queue_end_packets: number(8)? as u64,
        arrived_packets_total: arrived,
        sent_packets_total: sent,
        drops_total: drops,
        queue_max_packets_total: longest,
        ..LinkOutcome::default()
    })
}

/// Bytes of a burst for each byte that ns-2 sends of it: there the last segment is whole.
fn whole_segments(config: &tcp::Config) -> f64 {
    let App::Bursts { size, .. } = config.app else { return 1.0 };
    let segment = u64::from(config.segment);
    size.0 as f64 / (size.0.div_ceil(segment) * segment) as f64
}

/// Reads `flow F G S D N R T C M W DW NW RW TW I IA`. The SYN is a packet of its sink's bytes.
fn flow_outcome(flow: &Flow<'_>, number: &dyn Fn(usize) -> Option<f64>) -> Option<FlowOutcome> {
    let start = flow.start.0 as f64 / 1e9;
    let done = number(8)?;
    let completion = (!matches!(flow.config.app, App::Endless) && done >= 0.0).then_some(done);
    let to = flow.measure.to.0 as f64 / 1e9;
    let span = completion.map_or(to, |done| done.min(to)) - flow.measure.from.0 as f64 / 1e9;
    let syn = if flow.measure.from == flow.start { f64::from(ACK) } else { 0.0 };
    let part = whole_segments(flow.config);
    let rate = |bytes: f64| (span > 0.0).then(|| (bytes - syn).max(0.0) * part * 8.0 / span);
    let of_data = |at: usize| Some(((number(at)? - f64::from(ACK)).max(0.0) * part) as u64);
    let but_the_syn = |at: usize| Some((number(at)? - 1.0).max(0.0) as u64);
    let (delivered, sent) = (of_data(4)?, but_the_syn(5)?);
    // Its sink counts what it delivers in order alone.
    let measured_bytes = delivered.saturating_sub(of_data(11)?);
    let (retransmits, timeouts, longest) = (number(6)? as u64, number(7)? as u64, number(10)?);
    Some(FlowOutcome {
        goodput_bps: rate(number(2)?),
        throughput_bps: rate(number(3)?),
        arrived_bytes: measured_bytes,
        delivered_bytes: measured_bytes,
        sent_packets: sent.saturating_sub(but_the_syn(12)?),
        retransmits: retransmits.saturating_sub(number(13)? as u64),
        timeouts: timeouts.saturating_sub(number(14)? as u64),
        cwnd_mean_packets: number(9).filter(|mean| *mean >= 0.0),
        cwnd_max_packets: Some(longest),
        arrived_bytes_total: delivered,
        delivered_bytes_total: delivered,
        sent_packets_total: sent,
        retransmits_total: retransmits,
        timeouts_total: timeouts,
        cwnd_max_packets_total: Some(longest),
        idle_max_s: number(15),
        idle_max_s_total: number(16),
        start_s: start,
        stop_s: (flow.stop != Time::NEVER).then_some(flow.stop.0 as f64 / 1e9),
        completion_s: completion.map(|done| done - start),
        ..FlowOutcome::default()
    })
}
