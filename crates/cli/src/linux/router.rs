//! `congestlab router`: XCP or VCP at the interfaces of a router.

use std::sync::atomic::Ordering;

use congestlab_linux::router::{self, Config, Encoding, Load, Queue, Status};
use congestlab_linux::sys::command::{self, Mode};
use congestlab_scenario::store;
use congestlab_scenario::units::BitRate;
use serde_json::json;

use super::args::{AttachArguments, EncodingShown, RouterCommand, RouterLaw};
use crate::failure::{Failure, Message};
use crate::machine;
use crate::output::{Screen, print};

pub(crate) fn router(command: &RouterCommand, screen: &Screen) -> Result<(), Failure> {
    if screen.verbose {
        command::set_mode(Mode::Tell);
    }
    match command {
        RouterCommand::Attach(arguments) => attach(arguments, screen),
        RouterCommand::Detach { interface, dry_run } => {
            if *dry_run {
                command::set_mode(Mode::DryRun);
            }
            Ok(router::detach(interface)?)
        }
        RouterCommand::Status { interface } => {
            let all = router::status(interface.as_deref())?;
            if screen.json {
                return print(&store::pretty(&json!({ "interfaces": all })));
            }
            if all.is_empty() {
                return print("no interface has a router's law\n");
            }
            print(&all.iter().map(table).collect::<Vec<_>>().join("\n"))
        }
    }
}

fn attach(arguments: &AttachArguments, screen: &Screen) -> Result<(), Failure> {
    if arguments.dry_run {
        command::set_mode(Mode::DryRun);
    }
    let rate = match arguments.rate {
        Some(rate) => rate,
        None => router::shaped_rate(&arguments.interface)?,
    };
    let is_vcp = arguments.law == RouterLaw::Vcp;
    let config = Config {
        rate,
        law: law(arguments, rate)?,
        encoding: match (is_vcp, arguments.encoding) {
            (true, None) => Encoding::Ecn,
            (_, None | Some(EncodingShown::Option)) => Encoding::Option,
            (_, Some(EncodingShown::Shim)) => Encoding::Shim,
        },
        shape: (!arguments.no_shape).then(|| arguments.queue.unwrap_or(Queue::default_for(rate))),
    };
    // Ctrl-C must not leave half of it behind: it waits for the end, and then all is undone.
    let stop = machine::stop_flag()?;
    router::attach(&arguments.interface, &config)?;
    if stop.load(Ordering::Relaxed) {
        router::detach(&arguments.interface)?;
        return Err(Failure::Interrupted("interrupted; nothing is attached".into()));
    }
    if !arguments.dry_run {
        let interface = &arguments.interface;
        screen.note(&format!(
            "{interface} runs {} at {rate}; see `congestlab router status {interface}`, undo with \
             `congestlab router detach {interface}`",
            arguments.law.title()
        ));
    }
    Ok(())
}

/// The law with the constants that were told.
fn law(arguments: &AttachArguments, rate: BitRate) -> Result<router::Law, Failure> {
    let AttachArguments { alpha, beta, gamma, k, r_max, .. } = arguments;
    let mut law = arguments.law.at(rate);
    let told = [("--alpha", alpha), ("--beta", beta), ("--gamma", gamma), ("--k", k), ("--r-max", r_max)];
    for (name, value) in told {
        let Some(value) = *value else { continue };
        if !law.tell(&name[2..], value) {
            let text = format!("the law has no {name}, or not that value");
            let help = "--alpha, --beta and --gamma are XCP's and P-XCP's, --k and --r-max (below 1) P-XCP's";
            return Err(Failure::Input(Message::new(text, help)));
        }
    }
    Ok(law)
}

/// One interface for people.
fn table(status: &Status) -> String {
    let Status { interface, law, encoding, hook, shaped, shaper_gone, qdisc, sample, queue } = status;
    let bits = |bytes: u64| BitRate(bytes.saturating_mul(8));
    let head = format!(
        "{interface}: {law}, {}, {}, {}",
        match encoding {
            Encoding::Ecn => "load in the ECN field".into(),
            Encoding::Option | Encoding::Shim =>
                format!("header as {}", format!("{encoding:?}").to_lowercase()),
        },
        format!("{hook:?}").to_lowercase(),
        match (shaped, shaper_gone) {
            (true, _) => format!("shaped here ({qdisc})"),
            (_, true) => format!("no longer shaped here: somebody has removed the shaper ({qdisc})"),
            _ => format!("shaped elsewhere ({qdisc})"),
        }
    );
    if let Some(Load { load_factor, load_code }) = sample.load {
        let word = ["", "low", "high", "over"][usize::from(load_code.min(3))];
        let lines = [
            head,
            format!("  capacity            {}", BitRate(sample.capacity_bps)),
            format!("  load factor         {load_factor:.3}, {word}"),
            format!("  queue now           {} B, {} packets", queue.queue_bytes, queue.queue_packets),
            format!("  drops               {}", queue.drops),
            format!("  packets seen        {}, {} of them with a code", sample.packets, sample.xcp_packets),
        ];
        return lines.join("\n") + "\n";
    }
    let sign = if sample.feedback_Bps < 0 { "-" } else { "" };
    let mut lines = vec![
        head,
        format!("  capacity            {}", BitRate(sample.capacity_bps)),
        format!("  input rate          {}", bits(sample.input_Bps)),
        format!("  control interval    {:.3} ms", sample.interval_ms),
        format!("  aggregate feedback  {sign}{}", bits(sample.feedback_Bps.unsigned_abs())),
        format!("  persistent queue    {} B", sample.persistent_queue_bytes),
        format!("  queue now           {} B, {} packets", queue.queue_bytes, queue.queue_packets),
        format!("  drops               {}", queue.drops),
        format!("  packets seen        {}, {} of them XCP", sample.packets, sample.xcp_packets),
        format!("  packets bounded     {}", sample.bounded_packets),
        format!("  packets refused     {}", sample.refused_packets),
    ];
    let refused = sample.refused;
    let reasons = [
        (refused.odd_offset, "option at an odd offset"),
        (refused.wrong_length, "wrong length"),
        (refused.truncated, "truncated"),
        (refused.malformed, "unreadable options"),
        (refused.version, "unknown version"),
        (refused.unwritable, "no memory to change them"),
        (refused.fragments, "fragments"),
    ];
    for (count, reason) in reasons.into_iter().filter(|(count, _)| *count > 0) {
        lines.push(format!("    {count:<10} {reason}"));
    }
    lines.join("\n") + "\n"
}
