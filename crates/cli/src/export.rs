//! `congestlab export`: a run on disk in the formats of other tools.

use congestlab_scenario::folder::RunFolder;
use congestlab_scenario::qlog::{self, Schema};
use congestlab_scenario::{Measure, export as formats, store};
use serde_json::json;

use crate::args::{ExportArguments, ExportFormat, QlogSchema};
use crate::failure::{Failure, Message};
use crate::folder;
use crate::output::{Screen, print, require_file, write_file};
use crate::signals;
use crate::version::VERSION;
use crate::watch;

pub(crate) fn export(arguments: &ExportArguments, screen: &Screen) -> Result<(), Failure> {
    if let Some(path) = &arguments.out {
        require_file(path)?;
    }
    let run = folder::open_run(&arguments.run, screen)?;
    let text = match (arguments.format, arguments.schema) {
        (ExportFormat::Qlog, schema) => of_flows(&run, schema, screen)?,
        (ExportFormat::Openmetrics, None) => formats::open_metrics(&run),
        (ExportFormat::Openmetrics, Some(_)) => {
            let text = "--schema is a version of qlog, and OpenMetrics has one version here";
            return Err(Failure::Input(Message::new(text, "leave --schema out, or export qlog")));
        }
    };
    let Some(path) = &arguments.out else { return print(&text) };
    write_file(path, |out| out.write_all(text.as_bytes()))?;
    let name = path.display().to_string();
    print(&if screen.json { store::pretty(&json!({ "file": name })) } else { name + "\n" })
}

/// Returns the flows of a run as qlog.
fn of_flows(run: &RunFolder, schema: Option<QlogSchema>, screen: &Screen) -> Result<String, Failure> {
    let schema = match schema {
        None | Some(QlogSchema::V03) => Schema::V03,
        Some(QlogSchema::Draft14) => Schema::Draft14,
    };
    if qlog::has_packets(run, VERSION) {
        watch::require_memory(run.scenario(), &Measure::default())?;
    } else {
        let kind = if run.is_live() { "the packets were real" } else { "another version made the run" };
        screen
            .note(&format!("no packet is in the traces, because {kind}: they have what the folder recorded"));
    }
    let stop = signals::stop_flag_for_good(screen)?;
    let text = qlog::qlog(run, schema, VERSION, &stop).map_err(Failure::folder)?;
    text.ok_or_else(|| Failure::Interrupted("interrupted before all packets were seen".into()))
}
