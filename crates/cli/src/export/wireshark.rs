//! `congestlab export wireshark`: installs the dissector that is inside this command where Wireshark looks for it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use congestlab_scenario::disk;
use congestlab_scenario::store;
use serde_json::json;

use crate::args::{PluginFolder, WiresharkCommand};
use crate::failure::{Failure, Message};
use crate::output::{Screen, print, require_folder};

/// The dissector, as Wireshark reads it.
const DISSECTOR: &str = include_str!("xcp_cc.lua");
const FILE: &str = "xcp_cc.lua";
/// How every version of it begins; a file that does not is somebody else's.
const MARK: &str = "-- congestlab's dissector";

pub(crate) fn wireshark(command: &WiresharkCommand, screen: &Screen) -> Result<(), Failure> {
    match command {
        WiresharkCommand::Print => print(DISSECTOR),
        WiresharkCommand::Install(folder) => install(&path(folder)?, screen),
        WiresharkCommand::Uninstall(folder) => uninstall(&path(folder)?, screen),
    }
}

/// Wireshark's personal plug-in folder is below the home folder, whatever XDG_CONFIG_HOME and
/// XDG_DATA_HOME say: the XDG specification has no folder for libraries (`tshark -G folders`).
fn path(folder: &PluginFolder) -> Result<PathBuf, Failure> {
    let home = || std::env::home_dir().filter(|home| home.is_absolute());
    let folder = folder.dir.clone().or_else(|| Some(home()?.join(".local/lib/wireshark/plugins")));
    let help = "name the plug-in folder: --dir DIR (tshark -G folders shows which there are)";
    let folder = folder.ok_or_else(|| Failure::Input(Message::new("there is no home folder", help)))?;
    require_folder(&folder)?;
    Ok(folder.join(FILE))
}

/// Returns the installed dissector; `None` if there is none.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let text = format!("can not read {}: {error}", path.display());
            return Err(Failure::Run(Message::new(text, "")));
        }
    };
    if !text.starts_with(MARK) {
        let text = format!("{} is not congestlab's", path.display());
        return Err(Failure::Input(Message::new(text, "move it away, or name another folder: --dir DIR")));
    }
    Ok(Some(text))
}

fn install(path: &Path, screen: &Screen) -> Result<(), Failure> {
    let before = read(path)?;
    let is_new = before.as_deref() != Some(DISSECTOR);
    if is_new {
        let folder = path.parent().unwrap_or(path);
        fs::create_dir_all(folder)
            .and_then(|()| disk::write_atomically(path, DISSECTOR.as_bytes()))
            .map_err(|error| Failure::write(path, &error))?;
    }
    let done = match before {
        None => "installed",
        Some(_) if is_new => "replaced an older",
        Some(_) => "nothing to do: this version is there,",
    };
    tell(
        path,
        is_new,
        &format!(
            "{done} {}\nWireshark and tshark load it when they start, from 4.4 on not as root",
            path.display()
        ),
        screen,
    )
}

fn uninstall(path: &Path, screen: &Screen) -> Result<(), Failure> {
    let is_there = read(path)?.is_some();
    if is_there {
        fs::remove_file(path).map_err(|error| Failure::write(path, &error))?;
    }
    let done = if is_there { "removed" } else { "nothing to do: there is no" };
    tell(path, is_there, &format!("{done} {}", path.display()), screen)
}

/// Tells the change to people or programs.
fn tell(path: &Path, has_changed: bool, text: &str, screen: &Screen) -> Result<(), Failure> {
    if screen.json {
        return print(&store::pretty(&json!({ "path": path, "changed": has_changed })));
    }
    print(&format!("{text}\n"))
}
