//! `congestlab export`: a run on disk in the formats of other tools.

use congestlab_scenario::{export as formats, store};
use serde_json::json;

use crate::args::{ExportArguments, ExportFormat};
use crate::failure::Failure;
use crate::folder;
use crate::output::{Screen, print, require_file, write_file};

pub(crate) fn export(arguments: &ExportArguments, screen: &Screen) -> Result<(), Failure> {
    if let Some(path) = &arguments.out {
        require_file(path)?;
    }
    let run = folder::open_run(&arguments.run, screen)?;
    let text = match arguments.format {
        ExportFormat::Qlog => store::pretty(&formats::qlog(&run).map_err(Failure::folder)?),
        ExportFormat::Openmetrics => formats::open_metrics(&run),
    };
    let Some(path) = &arguments.out else { return print(&text) };
    write_file(path, |out| out.write_all(text.as_bytes()))?;
    let name = path.display().to_string();
    print(&if screen.json { store::pretty(&json!({ "file": name })) } else { name + "\n" })
}
