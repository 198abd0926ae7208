//! `iperf3 -J`, of the client or the server: bytes in each interval, and, of senders on Linux, window, round-trip time and
//! retransmissions, as `TCP_INFO` has them at the interval's end.

use super::json::Node;
use super::{MeasuredFlow, Read, Span, Wrong};

/// A stream as one end saw it.
struct Stream {
    socket: f64,
    /// Ports of this end and the other, by which the ends find each other.
    ports: (f64, f64),
    /// True if this end sent, as its intervals say.
    is_sender: bool,
    flow: MeasuredFlow,
}

pub(super) fn read(top: &Node<'_>) -> Result<Read, Wrong> {
    let mut notes = Vec::new();
    let error = top.maybe("error").map(|error| error.text().map(str::to_owned)).transpose()?;
    let (mut streams, is_omitted) = streams(top, None)?;
    if streams.iter().all(|stream| stream.flow.bytes.is_empty()) && error.is_none() && !streams.is_empty() {
        let help = "record with an interval, such as `iperf3 -i 0.5 -J`, and not with -i 0";
        return Err(Wrong::new(", intervals", "iperf3 recorded no interval", help));
    }
    match error {
        Some(error) if streams.iter().all(|stream| stream.flow.bytes.is_empty()) => {
            return Err(Wrong::new("", format!("iperf3 measured nothing: {error}"), "record it again"));
        }
        Some(error) => notes.push(format!("iperf3 says: {error}")),
        None => {}
    }
    if is_omitted {
        notes.push("the intervals that iperf3 was told to omit are left out".into());
    }
    // Both ends begin together, and the server's clock may be another.
    let began = streams.first().map(|stream| stream.flow.began_s);
    let of_server =
        top.maybe("server_output_json").map(|server| self::streams(&server, began)).transpose()?;
    for other in of_server.into_iter().flat_map(|(streams, _)| streams) {
        let is_same = |own: &&mut Stream| own.ports == (other.ports.1, other.ports.0);
        if let Some(own) = streams.iter_mut().find(is_same)
            && own.is_sender != other.is_sender
        {
            join(own, other);
        }
    }
    // What a receiver has is what arrived.
    if streams.iter().any(|stream| stream.is_sender) {
        notes.push(
            "goodput is what the sender gave to its socket, not what arrived: record with --get-server-output and \
             `iperf3 -s -J`"
                .into(),
        );
    }
    let flows: Vec<_> =
        streams.into_iter().map(|stream| stream.flow).filter(|flow| !flow.bytes.is_empty()).collect();
    if flows.iter().any(|flow| flow.bytes.len() == 1) {
        notes.push(
            "one interval is all that is recorded, so the start of a flow counts: record with -i 0.5".into(),
        );
    }
    Ok((flows, notes))
}

/// Gives a stream what the other end saw: bytes are the receiver's, all else is the sender's.
fn join(own: &mut Stream, other: Stream) {
    if own.is_sender {
        own.flow.bytes = other.flow.bytes;
        own.is_sender = false;
    } else {
        let flow = &mut own.flow;
        (flow.retransmits, flow.retransmits_total) = (other.flow.retransmits, other.flow.retransmits_total);
        (flow.rtt_ms, flow.cwnd_packets) = (other.flow.rtt_ms, other.flow.cwnd_packets);
    }
}

/// Returns true if the end that wrote this sends, as its role says; versions before 3.7 do not say so in each interval.
fn is_sender(start: &Node<'_>, test: Option<&Node<'_>>) -> Result<bool, Wrong> {
    let is_reverse = match test.and_then(|test| test.maybe("reverse")) {
        Some(reverse) => reverse.number()? > 0.0,
        None => false,
    };
    // Without a word on its role it may be the sender, so that its bytes are not taken for those that arrived.
    Ok(start.has("accepted_connection") == is_reverse)
}

/// Returns the streams of one end, and true if intervals were omitted. `began`: the time of its start on another clock.
fn streams(top: &Node<'_>, began: Option<f64>) -> Result<(Vec<Stream>, bool), Wrong> {
    let start = top.get("start")?;
    let test = start.maybe("test_start");
    if let Some(protocol) = test.as_ref().and_then(|test| test.maybe("protocol"))
        && protocol.text()? != "TCP"
    {
        return Err(protocol.wrong("\"TCP\""));
    }
    let omit = match test.as_ref().and_then(|test| test.maybe("omit")) {
        Some(omit) => omit.number()?,
        None => 0.0,
    };
    let is_sender = is_sender(&start, test.as_ref())?;
    // Whole seconds, but in what newer versions add.
    let stamp = start.maybe("timestamp");
    let stamp_of = |key: &str| stamp.as_ref().and_then(|stamp| stamp.maybe(key));
    let began_s = match (began, stamp_of("timemillisecs"), stamp_of("timesecs")) {
        (Some(began), ..) => began,
        (None, Some(millis), _) => millis.number()? / 1e3,
        (None, None, Some(seconds)) => seconds.time()?,
        (None, None, None) => 0.0,
    };
    // The clock of the intervals begins again after what was omitted.
    let from_s = began_s + omit;
    let mut mss = None;
    for key in ["tcp_mss", "tcp_mss_default"] {
        if let Some(bytes) = start.maybe(key) {
            mss = mss.or(Some(bytes.number()?).filter(|bytes| *bytes > 0.0));
        }
    }
    let mut streams = Vec::new();
    for connected in start.get("connected")?.list()? {
        let port = |key: &str| connected.get(key)?.number();
        let ports = (port("local_port")?, port("remote_port")?);
        let name = format!("{}:{}", connected.get("local_host")?.text()?, ports.0);
        streams.push(Stream {
            socket: connected.get("socket")?.number()?,
            ports,
            is_sender,
            flow: MeasuredFlow { name, began_s, from_s, ..MeasuredFlow::default() },
        });
    }
    let mut is_omitted = omit > 0.0;
    for interval in top.get("intervals")?.list()? {
        for one in interval.get("streams")?.list()? {
            let socket = one.get("socket")?;
            let number = socket.number()?;
            let stream = streams.iter_mut().find(|stream| stream.socket == number);
            let stream = stream.ok_or_else(|| socket.wrong("a socket of start.connected"))?;
            if one.maybe("omitted").is_some_and(|omitted| omitted.flag().unwrap_or(false)) {
                is_omitted = true;
                continue;
            }
            let flow = &mut stream.flow;
            // Of the first interval after omitted ones iperf3 3.12 gives the start on the clock of before.
            let is_first = omit > 0.0 && flow.bytes.is_empty();
            let (from, to) = (one.get("start")?.time()?, one.get("end")?);
            let from = if is_first { 0.0 } else { from };
            let to_s = to.time()?;
            if to_s < from {
                return Err(to.wrong(&format!("a time that is not before the interval's start, {from}")));
            }
            let (from_s, to_s) = (from_s + from, from_s + to_s);
            flow.bytes.push(Span { from_s, to_s, amount: one.get("bytes")?.number()? });
            if let Some(sender) = one.maybe("sender") {
                stream.is_sender = sender.flag()?;
            } else if one.has("retransmits") {
                stream.is_sender = true;
            }
            if let Some(retransmits) = one.maybe("retransmits") {
                let amount = retransmits.number()?;
                flow.retransmits.get_or_insert_default().push(Span { from_s, to_s, amount });
                *flow.retransmits_total.get_or_insert(0.0) += amount;
            }
            // Receivers of some versions have them as zeros.
            if let Some(rtt) = one.maybe("rtt")
                && rtt.number()? > 0.0
            {
                flow.rtt_ms.push((to_s, rtt.number()? / 1e3));
            }
            if let (Some(cwnd), Some(mss)) = (one.maybe("snd_cwnd"), mss)
                && cwnd.number()? > 0.0
            {
                flow.cwnd_packets.push((to_s, cwnd.number()? / mss));
            }
        }
    }
    Ok((streams, is_omitted))
}
