//! The rooms of the house and what may depend on what (ARCHITECTURE.md): held against
//! `cargo metadata` and the sources, because nobody remembers it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Room, and the rooms and libraries that it may call. A list of libraries short enough to read aloud.
const ROOMS: [(&str, &[&str]); 8] = [
    ("congestlab-core", &[]),
    // libm: exponential gaps, the same on every platform.
    ("congestlab-net", &["congestlab-core", "libm"]),
    ("congestlab-sim", &["congestlab-core", "congestlab-net", "serde"]),
    (
        "congestlab-text",
        &["congestlab-core", "miette", "schemars", "serde_json", "strsim", "toml", "toml_writer"],
    ),
    (
        "congestlab-scenario",
        &[
            "congestlab-core",
            "congestlab-net",
            "congestlab-sim",
            "congestlab-text",
            // Numbers in report.html.
            "base64",
            // Headers and checksums of packet traces.
            "etherparse",
            // The records of a sweep's points.
            "flate2",
            "miette",
            // Results on disk, in a format that everything reads; without the rest of Arrow.
            "parquet",
            "rayon",
            "schemars",
            "serde",
            "serde_json",
            // Pages of Parquet, unpacked to no more than they have: parquet unpacks with it, too.
            "snap",
            "strsim",
            "thiserror",
            "toml",
        ],
    ),
    (
        "congestlab-linux",
        &[
            "congestlab-core",
            "congestlab-net",
            // Loads BPF programs, struct_ops too, which no other library does.
            "libbpf-rs",
            "libbpf-sys",
            "libc",
            "rustix",
            "serde",
            "serde_json",
            "thiserror",
        ],
    ),
    (
        "congestlab-lab",
        &["congestlab-core", "congestlab-linux", "congestlab-scenario", "rustix", "serde", "serde_json"],
    ),
    (
        "congestlab",
        &[
            // For laws from outside, with its feature.
            "congestlab-core",
            "congestlab-lab",
            "congestlab-linux",
            "congestlab-scenario",
            "clap",
            "clap_complete",
            "clap_mangen",
            "epaint_default_fonts",
            "humantime",
            "miette",
            // Pages of pictures, and their pixels.
            "pdf-writer",
            "png",
            "rustix",
            // The tables of papers: what they are, what came of their claims.
            "serde",
            "serde_json",
            "signal-hook",
            // Letters of pictures as outlines.
            "skrifa",
            "tiny-skia",
            "toml",
        ],
    ),
];

/// Longer files can not be known by heart.
const LINES_MAX: usize = 1200;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn cargo(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(top())
        .args(arguments)
        .output()
        .expect("cargo runs this test, so it can be run");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// The rooms, as cargo knows them.
fn rooms() -> Value {
    let rooms = cargo(&["metadata", "--format-version", "1", "--locked", "--offline", "--no-deps"]);
    serde_json::from_str(&rooms.expect("the rooms need nothing from elsewhere")).expect("cargo prints JSON")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} is no text in {value}"))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{key} is no list"))
}

#[test]
fn no_room_calls_what_it_may_not() {
    let metadata = rooms();
    let mut rooms: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in list(&metadata, "packages") {
        let wanted = list(package, "dependencies").iter().filter(|dependency| dependency["kind"] != "dev");
        rooms.insert(text(package, "name"), wanted.map(|dependency| text(dependency, "name")).collect());
    }
    let names: BTreeSet<&str> = ROOMS.iter().map(|(name, _)| *name).collect();
    assert_eq!(rooms.keys().copied().collect::<BTreeSet<_>>(), names, "rooms that this test does not know");
    for (name, allowed) in ROOMS {
        let more: Vec<_> = rooms[name].iter().filter(|dependency| !allowed.contains(dependency)).collect();
        assert!(more.is_empty(), "{name} depends on {more:?}: add it to this list only with a reason");
    }
}

#[test]
fn nothing_depends_on_the_command() {
    let metadata = rooms();
    for package in list(&metadata, "packages") {
        let dependencies = list(package, "dependencies");
        assert!(
            dependencies.iter().all(|other| text(other, "name") != "congestlab"),
            "{}",
            text(package, "name")
        );
    }
}

/// As `cargo deny check licenses`, which not every machine has. In CI those of every platform, elsewhere of
/// this one: cargo fetches no others to build.
#[test]
fn every_licence_is_one_that_deny_toml_allows() {
    let deny: toml::Table =
        fs::read_to_string(top().join("deny.toml")).expect("deny.toml").parse().expect("TOML");
    let allowed = deny["licenses"]["allow"].as_array().expect("licenses.allow");
    let allowed: BTreeSet<&str> = allowed.iter().filter_map(toml::Value::as_str).collect();
    let version = cargo(&["--version", "--verbose"]).expect("cargo knows its version");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("and what it builds for");
    let mut arguments = vec!["metadata", "--format-version", "1", "--locked"];
    if std::env::var_os("CI").is_none() {
        arguments.extend(["--filter-platform", host]);
    }
    let metadata = match cargo(&arguments) {
        Ok(text) => serde_json::from_str(&text).expect("cargo prints JSON"),
        Err(words) => {
            let reason = words.trim().lines().next_back().unwrap_or_default().trim();
            return println!(
                "SKIP every_licence_is_one_that_deny_toml_allows: not all crates are here: {reason}"
            );
        }
    };
    for package in list(&metadata, "packages") {
        let licence = text(package, "license").replace('/', " OR ").replace(['(', ')'], "");
        let is_allowed =
            licence.split(" AND ").all(|part| part.split(" OR ").any(|one| allowed.contains(one.trim())));
        assert!(is_allowed, "{}: {licence}", text(package, "name"));
    }
}

/// Known holes, by `cargo deny` or else `cargo audit`, where one of them and the database of advisories can be had.
#[test]
fn no_dependency_has_a_known_hole() {
    let test = "no_dependency_has_a_known_hole";
    let tools = [["deny", "check", "advisories"].as_slice(), &["audit"]];
    let found = tools.iter().find(|words| cargo(&[words[0], "--version"]).is_ok());
    let Some(words) = found else {
        return println!("SKIP {test}: neither cargo-deny nor cargo-audit is here");
    };
    if let Err(said) = cargo(words) {
        let could_not =
            ["failed to fetch advisory database", "couldn't fetch advisory database", "git operation failed"];
        let is_without = could_not.iter().any(|reason| said.contains(reason));
        assert!(is_without, "cargo {}: {said}", words.join(" "));
        println!("SKIP {test}: the database of advisories can not be had");
    }
}

/// Files that people write and read.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", "corpus", "new", "artifacts", "node_modules"].contains(&name.as_str())
                && !name.starts_with('.')
            {
                sources(&path, found);
            }
        } else if [".rs", ".c", ".h", ".py", ".sh", ".tcl"].iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

fn sources_of(part: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    sources(&top().join(part), &mut found);
    assert!(!found.is_empty(), "{part} is empty");
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("a text"))).collect()
}

/// Code without comments, texts and the unit tests at the end.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]").unwrap_or(text.len());
    let lines = text[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| line.split(" // ").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn core_has_no_float_and_neither_core_nor_net_has_std() {
    // Sentences show numbers with a point, and kernels have none of them.
    let is_words = |path: &Path| path.file_name().is_some_and(|name| name == "words.rs");
    for (path, text) in sources_of("crates/core/src").into_iter().filter(|(path, _)| !is_words(path)) {
        let code = code(&text);
        let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        let floats: Vec<_> = words.filter(|word| ["f32", "f64"].contains(word)).collect();
        assert!(floats.is_empty(), "{} computes with {floats:?}", path.display());
    }
    for room in ["crates/core/src", "crates/net/src"] {
        let library = fs::read_to_string(top().join(room).join("lib.rs")).expect("a library");
        assert!(library.contains("#![no_std]"), "{room}");
        for (path, text) in sources_of(room) {
            // For laws that are no part of it and sentences about laws, which kernels do without.
            let code = code(&text)
                .replace("#[cfg(any(feature = \"alloc\", feature = \"words\"))]\nextern crate alloc;", "")
                .replace("#[cfg(any(test, feature = \"outside\"))]\nextern crate std;", "");
            assert!(!code.contains("extern crate std"), "{} uses std", path.display());
            assert!(
                !room.contains("core") || !code.contains("extern crate alloc"),
                "{} allocates",
                path.display()
            );
        }
    }
}

#[test]
fn only_the_command_asks_what_time_it_is() {
    for room in ["core", "net", "sim", "scenario"] {
        for (path, text) in sources_of(&format!("crates/{room}/src")) {
            let code = code(&text);
            for clock in ["Instant", "SystemTime", "thread_rng", "HashMap", "HashSet"] {
                let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
                assert!(words.all(|word| word != clock), "{} uses {clock}", path.display());
            }
        }
    }
}

/// Nowhere but in one module of the engine, and where the kernel is called.
#[test]
fn there_is_no_unsafe_code() {
    let workspace = fs::read_to_string(top().join("Cargo.toml")).expect("the workspace");
    assert!(workspace.contains("unsafe_code = \"forbid\""));
    let lints = workspace.split("[workspace.lints").skip(1).map(|table| {
        let body = table.split_once("]\n").expect("a table").1;
        body.split("\n[").next().unwrap_or_default().trim().replace("forbid", "deny")
    });
    let lints: Vec<String> = lints.collect();
    for package in list(&rooms(), "packages") {
        let manifest = fs::read_to_string(text(package, "manifest_path")).expect("a manifest");
        let name = text(package, "name");
        let is_own = ["congestlab-sim", "congestlab-linux"].contains(&name)
            && lints.iter().all(|table| manifest.contains(table.as_str()));
        assert!(is_own || manifest.contains("[lints]\nworkspace = true"), "{name} has lints of its own");
    }
    for (path, text) in ["crates/sim/src", "crates/linux/src"].into_iter().flat_map(sources_of) {
        let may = path.ends_with("prefetch.rs") || path.to_string_lossy().contains("linux/src/sys/");
        let words = code(&text).replace("unsafe_code", "");
        assert!(may || !words.contains("unsafe"), "{} has unsafe code", path.display());
    }
}

/// The simulator builds wherever Rust does: only `linux`, the room and its commands, and one folder of the
/// command know what system they are on.
#[test]
fn nothing_that_simulates_knows_its_system() {
    let rooms = ["core", "net", "sim", "text", "scenario", "cli"];
    let rooms = rooms.into_iter().flat_map(|room| sources_of(&format!("crates/{room}/src")));
    let mut seen = 0;
    for (path, text) in rooms {
        if path.to_string_lossy().contains("cli/src/linux/") || path.ends_with("machine/unix.rs") {
            seen += 1;
            continue;
        }
        let code = code(&text);
        for name in ["std::os::", "core::ffi", "rustix", "signal_hook", "libc", "target_os", "target_family"]
        {
            assert!(!code.contains(name), "{} names {name}", path.display());
        }
        let may = path.ends_with("cli/src/machine.rs");
        assert!(may || !code.contains("unix"), "{} asks for Unix", path.display());
    }
    assert!(seen > 2, "the two places have moved");
    let manifest = fs::read_to_string(top().join("crates/cli/Cargo.toml")).expect("the command's");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    for room in ["congestlab-linux", "congestlab-lab"] {
        assert_eq!(manifest["dependencies"][room]["optional"].as_bool(), Some(true));
    }
    for system in ["rustix", "signal-hook"] {
        assert!(manifest["dependencies"].get(system).is_none(), "{system} is wanted on every system");
    }
}

/// The rooms of `scenario`: each calls those before it.
const OF_SCENARIO: [&str; 4] = ["judging", "language", "results", "showing"];

/// Modules that code names behind `crate::<room>::`, also in braces.
fn named(code: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let word = |text: &str| text.chars().take_while(|c| is_word(*c)).collect::<String>();
    let mut names = BTreeSet::new();
    for (at, path) in code.match_indices("crate::") {
        let Some((room, rest)) = code[at + path.len()..].split_once("::") else { continue };
        if OF_SCENARIO.contains(&room) {
            let end = rest.find(['}', ';']).unwrap_or(rest.len());
            let inner = rest.strip_prefix('{').map(|inner| &inner[..end - 1]);
            let modules: Vec<&str> = inner.map_or(vec![rest], |inner| inner.split(',').collect());
            names.extend(modules.iter().map(|module| format!("{room}/{}", word(module.trim()))));
        }
    }
    names
}

/// A file is understood with those that it calls, and these without it: so there is an order in which to read them.
#[test]
fn no_circle_goes_through_the_files_of_scenario() {
    let mut calls: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in sources_of("crates/scenario/src") {
        let path = path.with_extension("").display().to_string();
        let below = path.split("crates/scenario/src/").nth(1).expect("a file of the room");
        let Some((room, module)) = below.split_once('/').filter(|(_, module)| !module.ends_with("tests"))
        else {
            continue;
        };
        // What is below a module is a part of it.
        let module = format!("{room}/{}", module.split('/').next().unwrap_or_default());
        calls.entry(module).or_default().extend(named(&code(&text)));
    }
    assert!(calls.len() > 40, "the files have moved");
    let place = |module: &str| OF_SCENARIO.iter().position(|room| module.split('/').next() == Some(room));
    for (module, called) in &mut calls {
        called.remove(module);
        let above: Vec<_> = called.iter().filter(|other| place(other) > place(module)).collect();
        assert!(above.is_empty(), "{module} calls {above:?}, which are in a room behind its own");
    }
    // What calls nothing that is left can be read; what can never be read is in a circle, or above one.
    while let Some(next) =
        calls.iter().find(|(_, called)| called.iter().all(|other| !calls.contains_key(other)))
    {
        let next = next.0.clone();
        calls.remove(&next);
    }
    assert!(calls.is_empty(), "a circle: {calls:#?}");
}

#[test]
fn no_file_is_too_long_to_know() {
    for part in ["crates", "fuzz", "tests", "tools"] {
        let mut found = Vec::new();
        sources(&top().join(part), &mut found);
        for path in found {
            let lines = fs::read_to_string(&path).expect("a text").lines().count();
            assert!(lines <= LINES_MAX, "{} has {lines} lines", path.display());
        }
    }
}
