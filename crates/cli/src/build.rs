//! `congestlab build law`: a link law from outside as the program that `router attach` puts at an interface.
//!
//! The recipe is that of the laws of the list (`crates/linux/bpf/build.sh`), from the sources that this command was built from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use congestlab_scenario::diagnostic::choices;
use congestlab_scenario::laws::Protocol;
use congestlab_scenario::{disk, store};
use serde_json::json;

use crate::failure::{Failure, Message};
use crate::output::{Screen, print};
use crate::trial::kernel::{Bench, Stopped, own};

/// Returns the file that the program of a law is in, beside this command; `None`: nobody knows where this is.
pub(crate) fn place(law: &str) -> Option<PathBuf> {
    let command = std::env::current_exe().ok()?.canonicalize().ok()?;
    Some(command.parent()?.join(format!("router-{law}.bpf.o")))
}

pub(crate) fn law(name: &str, output: Option<&Path>, screen: &Screen) -> Result<(), Failure> {
    let refuse = |text: String, help: String| Err(Failure::Input(Message::new(text, help)));
    let Some(protocol) = Protocol::of(name) else {
        let known = choices(name, Protocol::all().map(|protocol| protocol.name));
        return refuse(format!("there is no law `{name}`"), known.into());
    };
    let Some(link) = &protocol.link else {
        return refuse(format!("{name} has no law for links"), "routers run link laws".into());
    };
    // Several protocols may be presets of one law.
    let law = link.name();
    let path = match output {
        Some(path) => path.to_owned(),
        None => match place(law) {
            Some(path) => path,
            None => return refuse("this command does not know its own place".into(), "-o FILE".into()),
        },
    };
    let program = match made(protocol, law) {
        Ok(program) => program,
        Err(Stopped::Missing(why)) => {
            let help = "Debian: apt-get install rustc-web libstd-rust-web-dev-bpf clang-19 llvm-19 bpftool libbpf-dev";
            return Err(Failure::Missing(Message::new(format!("no program of {name}: {why}"), help)));
        }
        Err(Stopped::Broken(how)) => {
            let help = "see docs/new-law.md, \"On real packets\"";
            return Err(Failure::Input(Message::new(format!("no program of {name}: {how}"), help)));
        }
    };
    disk::write_atomically(&path, &program).map_err(|error| Failure::write(&path, &error))?;
    if screen.json {
        return print(&store::pretty(&json!({ "law": law, "file": path, "bytes": program.len() })));
    }
    print(&format!("{}\n", path.display()))
}

/// Runs the recipe.
fn made(protocol: &Protocol, law: &str) -> Result<Vec<u8>, Stopped> {
    let bench = Bench::new()?;
    let recipe = own("linux/bpf/build.sh")?;
    let Some((root, own)) = bench.root(protocol)? else {
        return Err(Stopped::Broken(
            "it is a law of congestlab's own, whose program is part of the command or is not".into(),
        ));
    };
    let mut command = Command::new("sh");
    command.arg(&recipe).arg(bench.folder()).arg(format!("router-{law}"));
    let output = command
        .env("ROOT", root)
        .env("OWN", own)
        .output()
        .map_err(|error| Stopped::Missing(format!("sh: {error}")))?;
    if !output.status.success() {
        let text =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        for tool in ["clang-19", "llvm-strip-19", "bpftool"] {
            if text.contains(&format!("{tool}: not found")) {
                return Err(Stopped::Missing(format!("{tool} is not there")));
            }
        }
        let first: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(12).collect();
        return Err(Stopped::Broken(first.join("\n      ")));
    }
    let file = bench.folder().join(format!("router-{law}.bpf.o"));
    fs::read(&file).map_err(|error| Stopped::Missing(format!("{}: {error}", file.display())))
}
