//! A program with a law of its own, as `congestlab new law` writes it, built and used from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("there is room for files")
}

fn congestlab(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_congestlab"));
    command.args(arguments).current_dir(folder).output().expect("it was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Cargo in the folder of a program. It shares the work of this workspace's build.
fn cargo(folder: &Path, line: &str) -> Output {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("..");
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_NET_OFFLINE", "true");
    // What the runner of this test was told is of another program.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_")) {
        command.env_remove(name);
    }
    command.env_remove("CARGO_MANIFEST_DIR");
    command.output().expect("there is a shell")
}

/// The lines that a document lets its reader type in a shell.
fn typed(document: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document);
    let text = fs::read_to_string(path).expect("a document");
    let blocks = text.split("```sh\n").skip(1).filter_map(|block| block.split_once("```"));
    let lines = blocks.flat_map(|(block, _)| block.lines());
    lines
        .map(|line| line.split('#').next().unwrap_or("").trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

/// A reader of docs/new-law.md who does what stands there, from an empty folder, gets a law that has every command,
/// passes its tests and its trial, and holds its claims.
#[test]
fn a_law_from_outside_is_written_built_tested_and_run_as_the_document_says() {
    let folder = folder();
    let lines = typed("new-law.md");
    let [new, cd, rest @ ..] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((new.as_str(), cd.as_str()), ("congestlab new law fair", "cd fair"));
    let written = congestlab(folder.path(), &new.split(' ').skip(1).collect::<Vec<_>>());
    assert!(written.status.success(), "{}", text(&written.stderr));
    let program = folder.path().join("fair");
    // What other platforms want is on no machine that was only built on.
    let fetched = cargo(&program, "cargo fetch --target \"$(rustc -vV | sed -n 's/^host: //p')\"");
    if !fetched.status.success() {
        let why = text(&fetched.stderr);
        assert!(why.contains("offline"), "{why}");
        println!(
            "SKIP a_law_from_outside_is_written_built_tested_and_run_as_the_document_says: a dependency is not on this machine: {}",
            why.lines()
                .find(|line| line.contains("error") || line.contains("no matching"))
                .unwrap_or_default()
        );
        return;
    }
    let mut printed = String::new();
    for line in rest {
        let output = cargo(&program, line);
        printed.push_str(&text(&output.stdout));
        assert!(output.status.success(), "{line}: {}{}", text(&output.stdout), text(&output.stderr));
    }
    for command in [
        "check law fair",
        "run scenario.toml",
        "sweep",
        "export figure",
        "explain",
        "check scenario.toml",
        "report",
        "compare",
    ] {
        assert!(rest.iter().any(|line| line.contains(command)), "nobody types {command}");
    }
    // Its own sentences, series and settings.
    for says in ["flows were counted in the last interval", "the path has", "of flow 0x", "counted_flows"] {
        assert!(printed.contains(says), "{says}: {printed}");
    }
    let trace = fs::read(program.join("traces/bottleneck.pcapng")).expect("a trace was asked for");
    assert!(
        trace.windows(4).filter(|bytes| *bytes == [253, 12, b'S', b'H']).count() > 1000,
        "no option in the trace"
    );
    let own = |arguments: &[&str]| {
        let binary = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../debug/law-fair");
        Command::new(binary).args(arguments).current_dir(&program).output().expect("it was tested")
    };
    assert!(text(&own(&["export", "schema"]).stdout).contains("How often flows are counted"));
    let refused = own(&["check", "scenario.toml", "--set", "links.bottleneck.law.fair.interval=0 s"]);
    assert!(text(&refused.stderr).contains("is zero"), "{}", text(&refused.stderr));
    assert_eq!(refused.status.code(), Some(2));
    let card = own(&["acceptance", "fair", "--only", "fairness", "--beside", "xcp", "--json"]);
    let card: serde_json::Value = serde_json::from_slice(&card.stdout).expect("JSON");
    assert_eq!(card["law"], "fair", "{card}");
    assert_eq!(card["not_applicable"], 0, "{card}");
    // The program for routers, where the tools are.
    let built = own(&["build", "law", "fair", "-o", "fair.o"]);
    match built.status.code() {
        Some(0) => assert!(fs::metadata(program.join("fair.o")).expect("it was built").len() > 10_000),
        Some(4) => println!(
            "SKIP a_law_from_outside_is_written_built_tested_and_run_as_the_document_says, its program for routers: {}",
            text(&built.stderr)
        ),
        _ => panic!("{}", text(&built.stderr)),
    }
    // A law that can panic builds for this machine, and for no kernel.
    let law = program.join("src/law.rs");
    let sound = fs::read_to_string(&law).expect("it was written");
    let broken = sound.replace("self.flows.max(1)", "self.flows");
    assert_ne!(broken, sound);
    fs::write(&law, broken).expect("writable");
    let trial = own(&["check", "law", "fair", "--json"]);
    let answers: serde_json::Value = serde_json::from_slice(&trial.stdout).expect("JSON");
    let of_kernels = answers["answers"].as_array().and_then(|answers| answers.last()).expect("answers");
    match of_kernels["answer"].as_str() {
        Some("skip") => println!(
            "SKIP a_law_from_outside_is_written_built_tested_and_run_as_the_document_says, its part for kernels: {}",
            of_kernels["details"]
        ),
        _ => {
            assert_eq!(trial.status.code(), Some(3), "{answers}");
            assert!(
                of_kernels["details"].as_str().is_some_and(|text| text.contains("it can panic")),
                "{answers}"
            );
        }
    }
}

#[test]
fn a_program_is_written_whole_and_over_nothing() {
    let folder = folder();
    let refused = |arguments: &[&str], says: &str| {
        let output = congestlab(folder.path(), &[&["new", "law"], arguments].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(says), "{arguments:?}: {stderr}");
    };
    refused(&["Fair"], "is no name of a law");
    refused(&["../fair"], "is no name of a law");
    refused(&["7up"], "is no name of a law");
    refused(&[""], "is no name of a law");
    refused(&["xcp"], "there is a law xcp already");
    refused(&["none"], "there is a law none already");
    refused(&["fair", "--congestlab", "."], "has no sources of congestlab");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is half-written");
    fs::write(folder.path().join("fair"), "mine").expect("writable");
    refused(&["fair"], "fair is there already");
    assert_eq!(fs::read_to_string(folder.path().join("fair")).expect("it is there"), "mine");
    // Whoever writes the same now, or was killed while writing, keeps what is there.
    let part = folder.path().join(".even.part");
    fs::create_dir(&part).expect("writable");
    fs::write(part.join("law.rs"), "mine").expect("writable");
    let output = congestlab(folder.path(), &["new", "law", "even"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(".even.part"), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(part.join("law.rs")).expect("it is there"), "mine");
    // Where nobody can write.
    #[cfg(target_os = "linux")]
    {
        let output = congestlab(Path::new("/proc"), &["new", "law", "fair"]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(".fair.part"), "{}", text(&output.stderr));
    }
    // A word of Rust is a name like others, and so are forty letters.
    for name in ["impl", "a-", &"a".repeat(40)] {
        let output = congestlab(folder.path(), &["new", "law", name]);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        let manifest = fs::read_to_string(folder.path().join(name).join("Cargo.toml")).expect("written");
        assert!(manifest.contains(&format!("name = \"law-{name}\"")), "{manifest}");
    }
    let output = congestlab(folder.path(), &["new", "law", &"a".repeat(41)]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn a_trial_names_its_law() {
    let folder = folder();
    let output = congestlab(folder.path(), &["check", "law", "xpc"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("xcp"), "{}", text(&output.stderr));
    let output = congestlab(folder.path(), &["check", "law", "vcp", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["holds"], true);
    // A file of that name is still a file.
    let output = congestlab(folder.path(), &["check", "./law"]);
    assert_eq!(output.status.code(), Some(2));
    let output = congestlab(folder.path(), &["check"]);
    assert_eq!(output.status.code(), Some(2));
}
