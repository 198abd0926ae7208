//! Explanations in words, for people who want to understand a packet.

use std::fmt;
use std::fmt::Write as _;

use super::{Ack, Crossing, Explanation, Feedback, Hop, Repair, Rule, Sent, WindowChange};
use congestlab_text::number::{number, rate};

/// Lines are no longer: a slide, or half a screen.
const WIDTH: usize = 92;
/// Where the source of a statement stands.
const SOURCE: usize = 62;

/// Text that fits [`WIDTH`].
#[derive(Default)]
struct Page(String);

impl Page {
    /// A line of its own, after a blank one, with a time at its end.
    fn heading(&mut self, text: &str, at: Option<f64>) {
        let at = at.map_or_else(String::new, |at| format!("{at:.6} s"));
        let gap = WIDTH.saturating_sub(text.chars().count() + at.len()).max(2);
        let line = format!("{text}{}{at}", " ".repeat(gap));
        let _ = write!(self.0, "\n{}\n\n", line.trim_end());
    }

    /// Words, wrapped, with where they come from.
    fn say(&mut self, indent: usize, text: &str, source: &str) {
        let mut text = text.to_owned();
        if !source.is_empty() {
            // It does not break.
            let _ = write!(text, " [{}]", source.replace(' ', "\u{a0}"));
        }
        let mut line = " ".repeat(indent);
        for word in text.split(' ') {
            let length = line.chars().count();
            if length > indent && length + 1 + word.chars().count() > WIDTH {
                self.line(&line);
                line = " ".repeat(indent);
            }
            if line.chars().count() > indent {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(&line);
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.0, "{}", line.replace('\u{a0}', " ").trim_end());
    }

    /// `name = value   note`.
    fn fact(&mut self, name: &str, value: &str, note: &str) {
        let mut line = format!("    {name} = {value}");
        line.push_str(&" ".repeat(32_usize.saturating_sub(line.chars().count()).max(2)));
        line.push_str(note);
        self.line(&line);
    }

    /// A question and where its answer is written.
    fn ask(&mut self, text: &str, source: &str) {
        let gap = SOURCE.saturating_sub(text.chars().count() + 2).max(2);
        let _ = write!(self.0, "\n  {text}{}{source}\n", " ".repeat(gap));
    }
}

/// A signed rate, from B/s.
fn signed(bytes_per_second: f64) -> String {
    let sign = match bytes_per_second {
        0.0 => "",
        0.0.. => "+",
        _ => "-",
    };
    format!("{sign}{}", rate(Some(bytes_per_second.abs() * 8.0)))
}

/// A rate, from B/s.
fn bits(bytes_per_second: f64) -> String {
    if bytes_per_second < 0.0 { signed(bytes_per_second) } else { rate(Some(bytes_per_second * 8.0)) }
}

fn bytes(amount: f64) -> String {
    match amount.abs() {
        1e6.. => format!("{} MB", number(Some(amount / 1e6))),
        1e3.. => format!("{} kB", number(Some(amount / 1e3))),
        _ => format!("{} B", number(Some(amount))),
    }
}

fn ms(value: f64) -> String {
    format!("{} ms", number(Some(value)))
}

/// One in so many.
fn part(share: f64, of: f64) -> String {
    if share <= 0.0 || of <= 0.0 { "nothing".into() } else { format!("1/{:.0} of it", (of / share).max(1.0)) }
}

/// `1 packet waiting`.
fn packets(count: u64) -> String {
    match count {
        0 => "no packet".into(),
        1 => "1 packet".into(),
        _ => format!("{count} packets"),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&tell(self))
    }
}

fn tell(explanation: &Explanation) -> String {
    let Explanation { flow, asked_s, at_link, packet, .. } = explanation;
    let mut page = Page::default();
    page.say(
        0,
        &format!(
            "Packet {} of {flow}: the first of the flow to leave {at_link} at {asked_s} s or later.",
            packet.segment
        ),
        "",
    );
    tell_sent(&mut page, explanation, packet);
    for hop in &explanation.hops {
        tell_hop(&mut page, explanation, hop);
    }
    if let Some(received) = explanation.received_s {
        page.heading("AT THE RECEIVER", Some(received));
        tell_return(&mut page, explanation);
    } else if let Some(repair) = &explanation.repair {
        tell_repair(&mut page, repair);
    } else if explanation.hops.iter().all(|hop| hop.lost.is_none()) {
        page.heading("AND THEN", None);
        page.say(2, "The run ends before the packet arrives.", "");
    }
    if !explanation.trouble.is_empty() {
        page.heading("DROPS, ERRORS AND MARKS OF THE FLOW IN THE LAST SECOND", None);
        for trouble in &explanation.trouble {
            page.line(&format!(
                "    {:.6} s  {}  {}  packet {}",
                trouble.at_s, trouble.link, trouble.what, trouble.segment
            ));
        }
    }
    page.0
}

fn tell_sent(page: &mut Page, explanation: &Explanation, packet: &Sent) {
    page.heading("THE SENDER", Some(packet.sent_s));
    let again = if packet.is_retransmission { ", for the second time at least" } else { "" };
    if let Some(place) = packet.place {
        let text = format!(
            "It sends {} B{again}, with the code of low load, 01, in its ECN field. It is packet {place} of its \
             chain. A link that is loaded more raises the code.",
            packet.size
        );
        return page.say(2, &text, "MPCP (CCR 39(5)) section 3");
    }
    if !packet.rules.is_empty() {
        page.say(2, &format!("It sends {} B{again}.", packet.size), "");
        return tell_rules(page, &packet.rules);
    }
    let Some(header) = &packet.header else {
        let law = match explanation.law {
            "none" => "the source sends datagrams at its own rate and listens to nobody".into(),
            law => format!("{law} has no congestion header"),
        };
        let text = format!(
            "It sends {} B{again}. It asks for nothing and no router can tell it anything: {law}.",
            packet.size
        );
        return page.say(2, &text, "");
    };
    page.say(
        2,
        &format!("It sends {} B{again}, with a congestion header:", packet.size),
        "draft-03 section 3.2",
    );
    if header.rtt_ms == 0.0 {
        page.say(
            2,
            "The header is empty, because the round trip time is not known yet. A link may cut such a packet's \
             rate, but not raise it.",
            "draft-03 section 4.1.1",
        );
        return;
    }
    let between_ms = header.x_ms / header.price;
    let (window, own) = (header.rtt_ms / between_ms, f64::from(packet.size) / between_ms * 1e3);
    let (x, formula, source) = if header.price == 1.0 {
        ("the time between two of its packets".into(), "RTT / X".into(), "draft-03 section 4.1.1")
    } else {
        let x = format!("the time between two of its packets, times its price, {}", header.price);
        (x, format!("{} RTT / X", header.price), "draft-03 section 4.1.1, K02 section 6")
    };
    page.fact("X  ", &ms(header.x_ms), &x);
    page.fact("RTT", &ms(header.rtt_ms), "its smoothed round trip time");
    page.fact(
        "Δ  ",
        &signed(f64::from(header.delta)),
        "the change of its rate that it asks this packet to bring",
    );
    let asks = if header.delta == i32::MAX {
        "It asks for the most that a header can say."
    } else {
        "What more it could use it asks for in equal parts over the packets of a round trip."
    };
    page.say(
        2,
        &format!(
            "That is a window of {formula} = {} packets and a rate of {}. {asks}",
            number(Some(window)),
            bits(own)
        ),
        source,
    );
}

fn tell_hop(page: &mut Page, explanation: &Explanation, hop: &Hop) {
    let law = if hop.law.is_some() { format!("runs {}", hop.title) } else { "no law".into() };
    page.heading(&format!("LINK {}, {law}", hop.link), Some(hop.departed_s.unwrap_or(hop.arrived_s)));
    let waited = hop.departed_s.map(|departed| (departed - hop.arrived_s) * 1e3);
    let mut text =
        format!("The packet came at {:.6} s and found {} waiting", hop.arrived_s, packets(hop.queue_packets));
    match (waited, &hop.lost) {
        (Some(0.0), _) => text.push_str(", so its transmission began at once."),
        (Some(waited), _) => {
            let _ = write!(text, "; its transmission began {} later.", ms(waited));
        }
        (None, Some(_)) => text.push('.'),
        (None, None) => text.push_str("; there it still is at the end of the run."),
    }
    if hop.is_marked {
        text.push_str(" It was marked: congestion experienced.");
    }
    page.say(2, &text, "");
    if hop.lost.is_none()
        && let Some([came, left]) = hop.codes
    {
        let text = match came == left {
            true => format!("It leaves with the code that it came with, {left:02b}."),
            false => format!("The link raises its code, from {came:02b} to {left:02b}."),
        };
        page.say(2, &text, "MPCP (CCR 39(5)) algorithm 2");
    }
    if let Some(crossed) = &hop.crossed {
        tell_crossing(page, crossed, "this link");
    }
    if let Some(x) = hop.policed_x_ms {
        let text = format!(
            "The policer of the link lets X count as {} from here on, and the header says so.",
            ms(x)
        );
        page.say(2, &text, "docs/beyond.md");
    }
    match &hop.feedback {
        Some(feedback) if hop.crossed.is_some() => {
            page.ask("And then the link's own law.", "XI III-A.4");
            tell_feedback(page, feedback);
        }
        Some(feedback) => tell_feedback(page, feedback),
        None if hop.law.is_none() && hop.lost.is_none() && explanation.packet.has_header() => {
            page.say(2, "A legacy router: the header passes as it is.", "draft-03 section 5.6");
        }
        None => tell_rules(page, &hop.rules),
    }
    if let Some(lost) = &hop.lost {
        let feedback = if explanation.law == "xcp" { " Its feedback is lost with it." } else { "" };
        page.say(2, &format!("The packet is lost here: {lost}.{feedback}"), "");
    }
}

/// The virtual router of a cloud, which comes before the law of `before`.
fn tell_crossing(page: &mut Page, crossed: &Crossing, before: &str) {
    let Crossing { upstream, state, asked, given, .. } = crossed;
    let text = format!(
        "The packet has crossed a cloud, routers without XCP-i, since {upstream}: its IP TTL is below its xcp_ttl. Its virtual          router comes before {before}."
    );
    page.say(2, &text, "XI III-A");
    match (&crossed.feedback, crossed.estimate) {
        (Some(feedback), estimate) => {
            let text = match estimate {
                Some(estimate) => {
                    format!("The last estimate of what the cloud has left: {}.", signed(estimate as f64))
                }
                None => "Reports are overdue, so a part of the own traffic counts as too much.".into(),
            };
            page.say(2, &text, "XI III-A.3");
            let began = feedback.interval_s[1].unwrap_or(0.0);
            page.say(2, &format!("Its control interval {} began at {began:.4} s.", feedback.intervals), "");
            page.fact("y", &bits(feedback.input), "traffic that came through the cloud");
            page.fact("S", &signed(feedback.spare), "what it is told to give away of the estimate");
            page.fact("Q", &bytes(feedback.persistent_queue_bytes), "the queue that it drains");
            page.fact("d", &ms(feedback.mean_rtt_ms), "mean round trip time");
            tell_aggregate(page, feedback);
            tell_pools(page, feedback);
            tell_share(page, feedback);
            page.ask("What does the header say behind the virtual router?", "draft-03 L 23-29");
            let text = if given < asked {
                format!(
                    "It asked for {}, more than that, so the virtual router lowers Δ to {given:+} B/s, {}.",
                    signed(f64::from(*asked)),
                    signed(f64::from(*given))
                )
            } else {
                format!(
                    "It asks for {}, which is no more than that: Δ stays, {given} B/s.",
                    signed(f64::from(*asked))
                )
            };
            page.say(4, &text, "");
        }
        _ => {
            let why = match *state {
                "new" => "The cloud is new here, and nothing is known of it",
                "broken" => "The upstream edge does not answer",
                _ => "The cloud has no estimate that holds",
            };
            let what = if given < asked {
                format!("Δ may not rise: it is lowered from {asked:+} to {given:+} B/s")
            } else {
                format!("Δ stays, {given:+} B/s")
            };
            page.say(2, &format!("{why} (state {state}): {what}."), "docs/protocols/xcp-i.md");
        }
    }
}

fn tell_feedback(page: &mut Page, feedback: &Feedback) {
    if feedback.intervals == 0 {
        page.say(
            2,
            "The link's first control interval has not ended: nothing is measured yet, so nothing is granted or cut.",
            "draft-03 section 4.2.1",
        );
        return tell_verdict(page, feedback);
    }
    tell_measured(page, feedback);
    tell_aggregate(page, feedback);
    tell_pools(page, feedback);
    tell_share(page, feedback);
    tell_verdict(page, feedback);
}

/// What the interval before measured.
fn tell_measured(page: &mut Page, feedback: &Feedback) {
    let [before, began, ends] = feedback.interval_s;
    let (from, to, until) = (before.unwrap_or(0.0), began.unwrap_or(0.0), ends.unwrap_or(0.0));
    page.say(
        2,
        &format!(
            "Control interval {}: what it measured from {from:.4} s to {to:.4} s ({}) decides for the packets until \
             {until:.4} s.",
            feedback.intervals,
            ms((to - from) * 1e3)
        ),
        "",
    );
    page.fact("C", &bits(feedback.capacity), "capacity");
    page.fact("y", &bits(feedback.input), "input traffic: all packets that came");
    page.fact("S", &signed(feedback.spare), "spare bandwidth, C - y");
    page.fact(
        "Q",
        &bytes(feedback.persistent_queue_bytes),
        "persistent queue: what did not drain in about half of d",
    );
    page.fact("d", &ms(feedback.mean_rtt_ms), "mean round trip time of the last headers, or the default");
}

/// The aggregate feedback.
fn tell_aggregate(page: &mut Page, feedback: &Feedback) {
    let Feedback { alpha, beta, capacity, input, spare, aggregate, .. } = feedback;
    page.ask("How much shall the traffic change in all?", "K02 eq. 1, as a rate; draft-03 L 9");
    if *input > 0.0 {
        page.line(&format!(
            "    F = α S - β Q / d = {alpha} · {} - {beta} · {} / {}",
            signed(*spare),
            bytes(feedback.persistent_queue_bytes),
            ms(feedback.mean_rtt_ms)
        ));
        let drain = feedback.beta * feedback.persistent_queue_bytes / feedback.mean_rtt_ms * 1e3;
        page.line(&format!("      = {} - {} = {}", signed(alpha * spare), bits(drain), signed(*aggregate)));
    } else {
        page.line("    F = 0: no packet came in that interval, so there is nobody to tell");
    }
    let share = aggregate / capacity.max(1.0);
    let meaning = match share {
        0.002.. => "The link is not full: the flows together get more.",
        -0.002..0.002 => "The link is as full as it should be: hardly anything changes in sum.",
        _ => "More comes than may: the flows together must slow down.",
    };
    if *input > 0.0 {
        page.say(4, meaning, "");
    }
}

/// What is to grant and to cut, and what packets before have left of it.
fn tell_pools(page: &mut Page, feedback: &Feedback) {
    let Feedback { gamma, input, aggregate, shuffled, .. } = feedback;
    page.ask("How much is taken and given anew, to make flows equal?", "K02 eq. 2; draft-03 L 10");
    page.line(&format!(
        "    h = max(0, γ y - |F|) = max(0, {gamma} · {} - {}) = {}",
        bits(*input),
        bits(aggregate.abs()),
        bits(*shuffled)
    ));
    let ([grants, grants_left], [cuts, cuts_left]) = (feedback.grants, feedback.cuts);
    let left = |left: f64, of: f64| match of {
        0.0 => String::new(),
        of => format!("; {:.0} % of it are left", (left / of * 100.0).clamp(0.0, 100.0)),
    };
    let to_grant = match feedback.scale {
        Some(scale) => format!("s (h + max(F, 0)), s = {scale:.3},"),
        None => "h + max(F, 0) ".into(),
    };
    page.line(&format!("    to grant: {to_grant} = {}{}", bits(grants), left(grants_left, grants)));
    page.line(&format!("    to cut:   h + max(-F, 0) = {}{}", bits(cuts), left(cuts_left, cuts)));

    if feedback.scale.is_some() {
        let text = "s is P-XCP's k / (1 - r): some flows are limited elsewhere, and the others get what those leave.";
        page.say(4, text, "Zhou, Yeung and Li 2004, section V");
    }
}

/// What a share says of the pool that it is of.
fn used_up(share: f64, left: f64, of: f64) -> &'static str {
    match left {
        _ if of <= 0.0 => "",
        0.0 => "; nothing is left to share",
        left if share >= left => "; all that is left",
        _ => "",
    }
}

/// The packet's share of the pools, and what that says of its flow.
fn tell_share(page: &mut Page, feedback: &Feedback) {
    let ([grants, grants_left], [cuts, cuts_left]) = (feedback.grants, feedback.cuts);
    page.ask("What is this packet's share?", "K02 eqs. 3-6; draft-03 L 20-22");
    if let Some(counted) = feedback.x_counted_ms {
        let text = format!(
            "X counts as {} here, for headers may claim no more: bound_headers, docs/protocols/xcp.md.",
            ms(counted)
        );
        page.say(4, &text, "");
    }
    page.line(&format!(
        "    grant p = (h + F⁺) X / ΣX  = {}, {}{}",
        signed(feedback.grant),
        part(feedback.grant, grants),
        used_up(feedback.grant, grants_left, grants)
    ));
    page.line(&format!(
        "    cut   n = (h + F⁻) s / Σs  = {}, {}{}",
        signed(-feedback.cut),
        part(feedback.cut, cuts),
        used_up(feedback.cut, cuts_left, cuts)
    ));
    page.line(&format!("    p - n                      = {}", signed(feedback.offer)));
    page.say(
        4,
        "Grants are equal for all flows of one price: X is long where packets are rare. Cuts are in proportion to a flow's rate: \
         s is this packet's size.",
        "",
    );
    // Of a pool that is used up a packet gets what is left, which says nothing of its flow.
    let is_whole =
        |share: f64, left: f64, of: f64| of > 0.0 && share > 0.0 && used_up(share, left, of).is_empty();
    if feedback.shuffled > 0.0
        && is_whole(feedback.grant, grants_left, grants)
        && is_whole(feedback.cut, cuts_left, cuts)
    {
        let ratio = (feedback.cut / cuts) / (feedback.grant / grants);
        let text = match ratio {
            1.05.. => format!(
                "This flow has {} times the mean flow's rate, so shuffling takes from it.",
                number(Some(ratio))
            ),
            0.95..1.05 => "This flow has about the mean flow's rate, so shuffling leaves it there.".into(),
            _ => format!(
                "This flow has {} of the mean flow's rate, so shuffling gives to it.",
                number(Some(ratio))
            ),
        };
        page.say(4, &text, "K02 section 3.5.2");
    }
}

fn tell_verdict(page: &mut Page, feedback: &Feedback) {
    let (asked, given) = (f64::from(feedback.asked), f64::from(feedback.given));
    page.ask("What does the header say now?", "draft-03 L 23-29");
    if feedback.is_lowered {
        page.say(
            4,
            &format!(
                "It asked for {}, more than that, so this link lowers Δ to {:+} B/s, {}. (A header holds whole \
                 B/s; {:.2} B/s came over from packets before.)",
                signed(asked),
                feedback.given,
                signed(given),
                feedback.carry
            ),
            "",
        );
    } else {
        let capture = if feedback.captures {
            " What the link had for it and it does not take goes to others."
        } else {
            ""
        };
        page.say(
            4,
            &format!(
                "It asks for {}, which is no more than that: Δ stays, {} B/s.{capture}",
                signed(asked),
                feedback.given
            ),
            if feedback.captures { "L 25-27" } else { "" },
        );
    }
}

fn tell_return(page: &mut Page, explanation: &Explanation) {
    if let Some(crossed) = &explanation.crossed {
        tell_crossing(page, crossed, "the receiver");
    }
    let is_xcp = explanation.law == "xcp";
    if is_xcp {
        let told = match &explanation.decided_by {
            Some(link) => {
                let link =
                    link.strip_prefix("the ").map_or_else(|| link.clone(), |rest| format!("The {rest}"));
                format!("{link} decided: no later link lowered the header further.")
            }
            None => "No link lowered the header: the demand came through as it left.".into(),
        };
        page.say(2, &told, "");
    }
    let Some(ack) = &explanation.ack else {
        let text = if explanation.law == "none" {
            "Nothing goes back: nobody would listen."
        } else {
            "The run ends before it is acknowledged."
        };
        return page.say(2, text, "");
    };
    tell_ack(page, ack, is_xcp);
    if let Some(window) = &explanation.window {
        tell_window(page, explanation, window);
    } else if ack.lost.is_none() {
        page.say(2, "The run ends before the acknowledgment arrives.", "");
    }
}

fn tell_ack(page: &mut Page, ack: &Ack, is_xcp: bool) {
    let count = ack.sum_of.len().max(1) as u64;
    if is_xcp {
        let terms = match ack.sum_of.as_slice() {
            [_] | [] => String::new(),
            [.., _] if count > 6 => format!(", the sum of {count} packets"),
            terms => {
                let terms: Vec<String> = terms.iter().map(|term| format!("{term:+}")).collect();
                format!(" = {}", terms.join(" "))
            }
        };
        page.say(
            2,
            &format!(
                "The ACK of {:.6} s answers {} and returns the sum of their feedback: Reverse_Feedback = {:+} B/s{terms}.",
                ack.sent_s,
                packets(count),
                ack.feedback
            ),
            "draft-03 section 4.1.2",
        );
    } else {
        let (more, source) = if ack.echoes_mark {
            (" and echoes the mark (ECE)", "RFC 3168 section 6.1.3")
        } else if ack.has_reply {
            (" and brings a reply of the law", "")
        } else {
            (", and no more", "")
        };
        page.say(2, &format!("The ACK of {:.6} s says that it arrived{more}.", ack.sent_s), source);
    }
    if let Some(lost) = &ack.lost {
        let feedback = if is_xcp { ", and the feedback with it: no other ACK repeats it" } else { "" };
        page.say(2, &format!("This ACK is lost ({lost}){feedback}."), "");
    }
}

fn tell_window(page: &mut Page, explanation: &Explanation, window: &WindowChange) {
    page.heading("BACK AT THE SENDER", Some(window.at_s));
    if let Some(hop) = explanation.hops.iter().rev().find_map(|hop| hop.departed_s) {
        let since = (window.at_s - explanation.packet.sent_s) * 1e3;
        page.say(
            2,
            &format!(
                "{} after the packet was sent and {} after the last link saw it; srtt is {} now.",
                ms(since),
                ms((window.at_s - hop) * 1e3),
                ms(window.srtt_ms)
            ),
            "",
        );
    }
    if let (Some(change), Some(ack)) = (window.feedback_bytes, &explanation.ack) {
        page.line(&format!(
            "    Reverse_Feedback · srtt = {:+} B/s · {} = {}{}",
            ack.feedback,
            ms(window.srtt_ms),
            if change < 0.0 { "" } else { "+" },
            bytes(change)
        ));
    }
    tell_rules(page, &window.rules);
    let in_packets = |bytes: u64| bytes as f64 / f64::from(window.segment);
    page.line(&format!(
        "    cwnd: {} B -> {} B, {:.3} -> {:.3} packets",
        window.before_bytes,
        window.after_bytes,
        in_packets(window.before_bytes),
        in_packets(window.after_bytes)
    ));
}

/// Rules as sentences.
fn tell_rules(page: &mut Page, rules: &[Rule]) {
    for rule in rules {
        let mut text = rule.text.clone();
        if let Some(first) = text.get_mut(..1).filter(|_| !text_starts_with_symbol(&rule.text)) {
            first.make_ascii_uppercase();
        }
        page.say(2, &format!("{text}."), rule.source);
    }
}

/// `W becomes ...`.
fn text_starts_with_symbol(text: &str) -> bool {
    text.starts_with(|c: char| c.is_uppercase())
}

fn tell_repair(page: &mut Page, repair: &Repair) {
    page.heading("BACK AT THE SENDER", repair.noticed_s);
    let how = if repair.is_timeout {
        "its retransmission timer expires"
    } else {
        "later acknowledgments show the gap"
    };
    match repair.repeated_s {
        Some(at) => page.say(
            2,
            &format!("It never hears of this packet: {how}, and it sends the segment again at {at:.6} s."),
            repair.source,
        ),
        None => page.say(2, "It does not send the segment again within ten seconds, or before the end.", ""),
    }
    if let Some([before, after]) = repair.window_bytes {
        page.line(&format!("    cwnd: {before} B -> {after} B"));
    }
}
