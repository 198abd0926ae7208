//! The folders of runs and sweeps that commands read. A folder of another version is read with a warning: its schema
//! number alone decides whether this program can.

use std::path::Path;

use congestlab_scenario::folder::RunFolder;
use congestlab_scenario::table::Table;

use crate::failure::{self, Failure, Message};
use crate::output::Screen;
use crate::version::VERSION;

/// Opens the folder of a run, and warns if another version made the run.
pub(crate) fn open_run(path: &Path, screen: &Screen) -> Result<RunFolder, Failure> {
    let run = RunFolder::open(path).map_err(Failure::folder)?;
    warn(path, run.version(), screen);
    Ok(run)
}

/// Opens the folder of a complete sweep, and warns if another version made the sweep.
pub(crate) fn open_sweep(path: &Path, screen: &Screen) -> Result<Table, Failure> {
    let refused = |error: congestlab_scenario::table::TableError| {
        Failure::Input(Message::new(error.to_string(), "sweep it again, with the same --out"))
    };
    let table = Table::open(path).map_err(refused)?;
    warn(path, table.version(), screen);
    Ok(table)
}

fn warn(path: &Path, version: &str, screen: &Screen) {
    if let Some(text) = of_another_version(path, version) {
        failure::warn("folder::version", &text, screen);
    }
}

/// Returns the warning that another version made the results in a folder; `None` if this version did.
pub(crate) fn of_another_version(path: &Path, version: &str) -> Option<String> {
    let is_other = version != VERSION;
    is_other
        .then(|| format!("version {version} made the results in {}, and this is {VERSION}", path.display()))
}
