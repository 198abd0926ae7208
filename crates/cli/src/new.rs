//! `congestlab new law`: a program with a control law of its own, which works as it is written.

use std::fs;
use std::path::{Path, PathBuf};

use congestlab_scenario::laws::Protocol;
use congestlab_scenario::store;
use serde_json::json;

use crate::args::NewLawArguments;
use crate::failure::{Failure, Message};
use crate::output::{Screen, print};

/// Name of the law in the files below.
const OWN: &str = "shares";
/// The files of the program; the first says where congestlab is.
const FILES: [(&str, &str); 8] = [
    ("Cargo.toml", include_str!("../templates/law/manifest.toml")),
    ("README.md", include_str!("../templates/law/page.md")),
    (".gitignore", include_str!("../templates/law/gitignore")),
    ("scenario.toml", include_str!("../templates/law/scenario.toml")),
    ("src/lib.rs", include_str!("../templates/law/src/lib.rs")),
    ("src/law.rs", include_str!("../templates/law/src/law.rs")),
    ("src/main.rs", include_str!("../templates/law/src/main.rs")),
    ("tests/law.rs", include_str!("../templates/law/tests/law.rs")),
];
/// The sources of congestlab that this command was built from. A release is the same in whatever folder it was built, so it
/// knows none (`tools/release`).
pub(crate) const SOURCES: &str = match option_env!("CONGESTLAB_SOURCES") {
    Some(named) => named,
    None => concat!(env!("CARGO_MANIFEST_DIR"), "/../.."),
};

pub(crate) fn law(arguments: &NewLawArguments, screen: &Screen) -> Result<(), Failure> {
    let name = arguments.name.as_str();
    let refuse = |text: String, help: &str| Err(Failure::Input(Message::new(text, help)));
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_letter) || name.len() > 40
    {
        let help = "a name is a to z first, then a to z, 0 to 9 and -, at most 40 letters";
        return refuse(format!("{name:?} is no name of a law"), help);
    }
    if Protocol::of(name).is_some() || ["none", "cbr", "onoff"].contains(&name) {
        return refuse(format!("there is a law {name} already"), "choose another name");
    }
    let sources = sources(arguments.congestlab.as_deref())?;
    let folder = Path::new(name);
    // Whole or not at all, and over nothing that is there.
    if folder.symlink_metadata().is_ok() {
        return refuse(format!("{name} is there already"), "move it away, or choose another name");
    }
    let part = PathBuf::from(format!(".{name}.part"));
    fs::create_dir(&part).map_err(|error| Failure::write(&part, &error))?;
    let written = write(&part, name, &sources).and_then(|()| fs::rename(&part, folder));
    if let Err(error) = written {
        let _ = fs::remove_dir_all(&part);
        return Err(Failure::write(folder, &error));
    }
    let files: Vec<String> = FILES.iter().map(|(file, _)| format!("{name}/{file}")).collect();
    if screen.json {
        return print(&store::pretty(&json!({ "name": name, "files": files, "congestlab": sources })));
    }
    print(&format!(
        "{}\n\ncd {name}\ncargo run -- check law {name}      # what every law must satisfy\n\
         cargo run -- run scenario.toml\n",
        files.join("\n")
    ))
}

/// Returns the folder of congestlab's sources.
fn sources(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = named.unwrap_or(Path::new(SOURCES));
    let found = path.canonicalize().ok().filter(|path| {
        ["crates/core/Cargo.toml", "crates/cli/Cargo.toml", "Cargo.lock"]
            .iter()
            .all(|file| path.join(file).is_file())
    });
    found.ok_or_else(|| {
        let text = format!("{} has no sources of congestlab", path.display());
        Failure::Input(Message::new(text, "name a clone of them: --congestlab DIR"))
    })
}

fn write(folder: &Path, name: &str, sources: &Path) -> std::io::Result<()> {
    // A TOML string, whatever is in the path.
    let quoted = |part: &str| toml::Value::from(sources.join(part).display().to_string()).to_string();
    for (file, text) in FILES {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        let mut text = text.replace(OWN, name);
        if file == FILES[0].0 {
            for (key, part) in [("path = CLI", "crates/cli"), ("path = CORE", "crates/core")] {
                text = text.replace(key, &format!("path = {}", quoted(part)));
            }
        }
        fs::write(path, text)?;
    }
    // The versions that congestlab is tested with; cargo adds the program itself.
    fs::copy(sources.join("Cargo.lock"), folder.join("Cargo.lock")).map(|_| ())
}
