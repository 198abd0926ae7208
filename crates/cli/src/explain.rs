//! `congestlab explain`: one packet, its feedback and why, for people who want to understand it.

use std::path::Path;

use congestlab_scenario::explain::{self, ExplainError, Flow, Refused};
use congestlab_scenario::folder::RunFolder;
use congestlab_scenario::{Measure, Scenario, store};

use crate::args::ExplainArguments;
use crate::failure::{Failure, Message};
use crate::output::{Screen, gauge, print};
use crate::signals;
use crate::version::VERSION;
use crate::watch;

pub(crate) fn explain(arguments: &ExplainArguments, screen: &Screen) -> Result<(), Failure> {
    let (scenario, folder) = open(&arguments.run)?;
    if folder.is_none() {
        crate::warn(scenario.warnings(), screen);
        crate::warn(&scenario.ignored(), screen);
    }
    let flow = Flow::parse(&scenario, &arguments.flow).map_err(refused)?;
    watch::require_memory(&scenario, &Measure::default())?;
    let stop = signals::stop_flag_for_good(screen)?;
    let mut progress = screen.progress();
    let at = arguments.at;
    let explanation = explain::explain(
        &scenario,
        folder.as_ref(),
        flow,
        at,
        arguments.link.as_deref(),
        &stop,
        &mut |now| {
            let (now, end) = (now as f64 / 1e12, at.0 as f64 / 1e9);
            progress.tell(|_| format!("{}  {now:.1} of {end} s", gauge(now / end)));
        },
    );
    progress.clear();
    let explanation = explanation.map_err(|error| match error {
        ExplainError::Refused(error) => refused(error),
        ExplainError::Folder(error) => Failure::folder(error),
        ExplainError::Differs { .. } => {
            let help = "its files were changed, or other code made them: run it again with --out";
            Failure::Input(Message::new(error.to_string(), help))
        }
    })?;
    let Some(explanation) = explanation else {
        return Err(Failure::Interrupted("interrupted before the packet was found".into()));
    };
    print(&if screen.json { store::pretty(&explanation) } else { explanation.to_string() })
}

/// The folder of a run, or a scenario.
fn open(path: &Path) -> Result<(Scenario, Option<RunFolder>), Failure> {
    if path.is_file() {
        return Scenario::load(path, &[], None).map(|scenario| (scenario, None)).map_err(Failure::Scenario);
    }
    let folder = RunFolder::open(path).map_err(Failure::folder)?;
    folder.require_version(VERSION).map_err(Failure::folder)?;
    if folder.is_live() {
        let text = format!("the run in {} is live: nobody saw each of its packets", path.display());
        return Err(Failure::Input(Message::new(text, "explain a simulation of the same scenario")));
    }
    Ok((folder.scenario().clone(), Some(folder)))
}

fn refused(error: Refused) -> Failure {
    Failure::Input(Message::new(error.message, error.help))
}
