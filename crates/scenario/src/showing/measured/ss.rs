//! What `ss -tin` printed again and again, each time below a line of `date +%s.%N`; on one line for a connection (`-O`) or
//! two. Addresses and ports tell connections apart.

use std::collections::BTreeMap;

use super::{KNOWN, MeasuredFlow, NUMBER_MAX, Read, Span, TIME_MAX, Wrong, shown, total};

/// States that `ss` prints.
const STATES: [&str; 12] = [
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
    "UNKNOWN",
];
/// Share of the bytes of the largest flow below which a connection only controls the others.
const CONTROL_SHARE: f64 = 1e-3;
/// Lines that are allowed.
const LINES: &str = "allowed: lines of `date +%s.%N`, and what `ss -tin` prints, with or without -O";

/// A connection over time.
#[derive(Default)]
struct Connection {
    name: String,
    /// Time of the output before the first that has it: it did not exist then.
    absent_s: Option<f64>,
    seen: Vec<Seen>,
}

/// A connection at one time.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    at: f64,
    acked: Option<f64>,
    received: Option<f64>,
    retransmits: Option<f64>,
    rtt_ms: Option<f64>,
    cwnd: Option<f64>,
}

pub(super) fn read(text: &str) -> Result<Read, Wrong> {
    let mut connections: Vec<Connection> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let (mut at, mut before): (Option<f64>, Option<f64>) = (None, None);
    // What a line that begins with a blank goes on with.
    let mut open: Option<usize> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let words = || line.split_ascii_whitespace();
        let Some(first) = words().next() else { continue };
        if line.starts_with([' ', '\t']) && !first.chars().all(|c| c.is_ascii_digit()) {
            if let Some(seen) = open.and_then(|place| connections[place].seen.last_mut()) {
                details(seen, words(), number)?;
            }
            continue;
        }
        open = None;
        if let Some(time) = time(line.trim(), number)? {
            if at.is_some_and(|at| time < at) {
                let problem = format!("{} is before the time above it", shown(line));
                return Err(Wrong::in_line(number, problem, "times go on"));
            }
            (before, at) = (at, Some(time));
            continue;
        }
        if ["State", "Netid", "Recv-Q"].contains(&first) {
            continue;
        }
        let Some(name) = addresses(words()) else {
            let problem = format!("`{}` is neither a time nor a connection", shown(line));
            // Nothing before it says that it is of ss.
            return Err(Wrong::in_line(number, problem, if at.is_none() { KNOWN } else { LINES }));
        };
        let Some(at) = at else {
            let problem = "a connection stands before the first time";
            return Err(Wrong::in_line(number, problem, "write `date +%s.%N` before each output of ss"));
        };
        if words().any(|word| word == "LISTEN" || word == "TIME-WAIT") {
            continue;
        }
        let mut seen = Seen { at, ..Seen::default() };
        details(&mut seen, words(), number)?;
        let place = *places.entry(name).or_insert_with_key(|name| {
            connections.push(Connection { name: name.clone(), absent_s: before, seen: Vec::new() });
            connections.len() - 1
        });
        connections[place].seen.push(seen);
        open = Some(place);
    }
    Ok(flows(&connections.into_iter().flat_map(lives).collect::<Vec<_>>()))
}

/// Connections of the same addresses, one after the other: bytes that become fewer are those of another.
fn lives(Connection { name, mut absent_s, seen }: Connection) -> Vec<Connection> {
    let is_one = |one: &Seen, next: &Seen| {
        let grows =
            |one: Option<f64>, next: Option<f64>| next.is_none_or(|next| one.is_none_or(|one| one <= next));
        grows(one.acked, next.acked) && grows(one.received, next.received)
    };
    let live = |seen: &[Seen]| {
        let last = seen.last().map(|last| last.at);
        let live = Connection { name: name.clone(), absent_s, seen: seen.to_vec() };
        absent_s = last;
        live
    };
    seen.chunk_by(is_one).map(live).collect()
}

/// The time that a line is; `None`: it is none.
fn time(line: &str, number: usize) -> Result<Option<f64>, Wrong> {
    let is_time = line.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_time {
        return Ok(None);
    }
    match line.parse::<f64>() {
        Ok(time) if time <= TIME_MAX => Ok(Some(time)),
        Ok(_) => Err(Wrong::in_line(
            number,
            format!("`{}` is no time in seconds", shown(line)),
            "allowed: seconds, as `date +%s.%N` prints them, and not thousandths",
        )),
        Err(_) => Err(Wrong::in_line(
            number,
            format!("`{}` is no time", shown(line)),
            "allowed: seconds, as `date +%s.%N` prints them",
        )),
    }
}

/// `local > peer`: the first two words that are addresses with ports, behind the state and the lengths of the queues.
fn addresses<'a>(words: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut words = words.skip_while(|word| *word == "tcp").peekable();
    // Filters by one state leave the state out.
    if STATES.contains(words.peek()?) {
        words.next();
    }
    for _ in 0..2 {
        words.next()?.parse::<u64>().ok()?;
    }
    let mut address = || {
        let word = words.next()?;
        let (host, port) = word.rsplit_once(':')?;
        let is_port = port == "*" || port.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (!host.is_empty() && !port.is_empty() && is_port).then_some(word)
    };
    Some(format!("{} > {}", address()?, address()?))
}

/// Takes what is known of these words.
fn details<'a>(seen: &mut Seen, words: impl Iterator<Item = &'a str>, line: usize) -> Result<(), Wrong> {
    for word in words {
        let Some((key, value)) = word.split_once(':') else { continue };
        let number = |text: &str| {
            let number = text.parse::<f64>().ok().filter(|number| (0.0..=NUMBER_MAX).contains(number));
            let problem = || format!("`{}` has no number from 0 to 1e15", shown(word));
            number.ok_or_else(|| Wrong::in_line(line, problem(), "allowed: what `ss -tin` prints"))
        };
        match key {
            "bytes_acked" => seen.acked = Some(number(value)?),
            "bytes_received" => seen.received = Some(number(value)?),
            "cwnd" => seen.cwnd = Some(number(value)?),
            "rtt" => seen.rtt_ms = Some(number(value.split('/').next().unwrap_or_default())?),
            // Those on their way, and all.
            "retrans" => seen.retransmits = Some(number(value.rsplit('/').next().unwrap_or_default())?),
            _ => {}
        }
    }
    Ok(())
}

fn flows(connections: &[Connection]) -> Read {
    let mut flows: Vec<MeasuredFlow> = connections.iter().filter_map(flow).collect();
    let bytes = |flow: &MeasuredFlow| total(flow.bytes.iter().map(|span| span.amount));
    let most = flows.iter().map(bytes).fold(0.0, f64::max);
    let all = flows.len();
    flows.retain(|flow| bytes(flow) > most * CONTROL_SHARE);
    let mut notes = Vec::new();
    if flows.len() < all {
        let less = all - flows.len();
        let what = if less == 1 { "connection that carries" } else { "connections that carry" };
        notes.push(format!("left out: {less} {what} less than a thousandth of the largest"));
    }
    (flows, notes)
}

fn flow(connection: &Connection) -> Option<MeasuredFlow> {
    let (first, last) = (connection.seen.first()?, connection.seen.last()?);
    let gone = |of: fn(&Seen) -> Option<f64>| of(last).unwrap_or(0.0) - of(first).unwrap_or(0.0);
    let is_sender = gone(|seen| seen.acked) >= gone(|seen| seen.received);
    let bytes: fn(&Seen) -> Option<f64> = if is_sender { |seen| seen.acked } else { |seen| seen.received };
    let from_s = connection.absent_s.unwrap_or(first.at);
    let mut flow =
        MeasuredFlow { name: connection.name.clone(), began_s: from_s, from_s, ..MeasuredFlow::default() };
    let spans = |of: fn(&Seen) -> Option<f64>| {
        // `ss` leaves out what is 0. Nobody knows when what was there at first came, unless the connection is new.
        let known = connection.absent_s.is_none().then(|| of(first)).flatten();
        let (mut since, mut so_far) = (from_s, known.unwrap_or(0.0));
        let mut spans = Vec::new();
        for seen in &connection.seen {
            // Clocks of whole seconds give several outputs one time: what came between them counts in the next span.
            if seen.at > since {
                let now = of(seen).unwrap_or(so_far).max(so_far);
                spans.push(Span { from_s: since, to_s: seen.at, amount: now - so_far });
                (since, so_far) = (seen.at, now);
            }
        }
        spans
    };
    flow.bytes = spans(bytes);
    if is_sender {
        let retransmits = spans(|seen| seen.retransmits);
        flow.retransmits_total = Some(total(retransmits.iter().map(|span| span.amount)));
        flow.retransmits = Some(retransmits);
        flow.rtt_ms =
            connection.seen.iter().filter_map(|seen| seen.rtt_ms.map(|value| (seen.at, value))).collect();
        flow.cwnd_packets =
            connection.seen.iter().filter_map(|seen| seen.cwnd.map(|value| (seen.at, value))).collect();
    }
    flow.bytes.iter().any(|span| span.amount > 0.0).then_some(flow)
}
