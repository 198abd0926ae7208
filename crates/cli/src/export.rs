//! `congestlab export`: what is on disk as figures and in the formats of other tools, and this command for editors, shells and
//! Wireshark.

mod figure;
mod wireshark;

use std::fs;

use congestlab_scenario::folder::RunFolder;
use congestlab_scenario::qlog::{self, Schema};
use congestlab_scenario::{Measure, export as formats, schema, store};
use serde_json::json;

use crate::args::{self, ExportArguments, ExportCommand, ManArguments, QlogSchema};
use crate::failure::Failure;
use crate::folder;
use crate::output::{Screen, print, require_file, write_file};
use crate::signals;
use crate::version::VERSION;
use crate::watch;

pub(crate) fn export(command: &ExportCommand, screen: &Screen) -> Result<(), Failure> {
    match command {
        ExportCommand::Figure(arguments) => figure::figure(arguments, screen),
        ExportCommand::Qlog { run, schema } => write(run, screen, |run| of_flows(run, *schema, screen)),
        ExportCommand::Openmetrics(run) => write(run, screen, |run| Ok(formats::open_metrics(run))),
        ExportCommand::Schema => print(&store::pretty(&schema::schema())),
        ExportCommand::Wireshark(command) => wireshark::wireshark(command, screen),
        ExportCommand::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut args::command(), "congestlab", &mut text);
            print(&String::from_utf8_lossy(&text))
        }
        ExportCommand::Man(arguments) => man(arguments),
    }
}

/// Writes or prints a run in some format.
fn write(
    arguments: &ExportArguments,
    screen: &Screen,
    format: impl FnOnce(&RunFolder) -> Result<String, Failure>,
) -> Result<(), Failure> {
    if let Some(path) = &arguments.out {
        require_file(path)?;
    }
    let text = format(&folder::open_run(&arguments.run, screen)?)?;
    let Some(path) = &arguments.out else { return print(&text) };
    write_file(path, |out| out.write_all(text.as_bytes()))?;
    let name = path.display().to_string();
    print(&if screen.json { store::pretty(&json!({ "file": name })) } else { name + "\n" })
}

/// Prints the man page, or writes a page for each command into a folder.
fn man(arguments: &ManArguments) -> Result<(), Failure> {
    let Some(folder) = &arguments.out else {
        let mut text = Vec::new();
        let page = clap_mangen::Man::new(args::command()).render(&mut text);
        page.map_err(|error| Failure::write("the man page".as_ref(), &error))?;
        return print(&String::from_utf8_lossy(&text));
    };
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(args::command(), folder));
    written.map_err(|error| Failure::write(folder, &error))
}

/// Returns the flows of a run as qlog.
fn of_flows(run: &RunFolder, schema: QlogSchema, screen: &Screen) -> Result<String, Failure> {
    let schema = match schema {
        QlogSchema::V03 => Schema::V03,
        QlogSchema::Draft14 => Schema::Draft14,
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
