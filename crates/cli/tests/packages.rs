//! The crates as packages, which others can depend on: cargo makes one of each, and those that are libraries build from
//! what is in them alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// In the order of their dependencies.
const CRATES: [&str; 8] = [
    "congestlab-core",
    "congestlab-net",
    "congestlab-sim",
    "congestlab-text",
    "congestlab-scenario",
    "congestlab-linux",
    "congestlab-lab",
    "congestlab",
];

fn cargo(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("cargo runs this test")
}

/// A home of cargo with what was downloaded, and nothing unpacked. What a home has unpacked of a package, cargo takes for
/// all packages of that name and version that came from that folder, also after their sources changed.
fn empty_home() -> tempfile::TempDir {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target directory is writable");
    let own = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let own = own.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").expect("a home")).join(".cargo"));
    std::fs::create_dir(home.path().join("registry")).expect("writable");
    for name in ["config.toml", "registry/index", "registry/cache"] {
        if own.join(name).exists() {
            std::os::unix::fs::symlink(own.join(name), home.path().join(name)).expect("writable");
        }
    }
    home
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).args(["--offline", "--color", "never"]);
    // What the runner of this test told its own build is not for another.
    command.current_dir(folder).env("CARGO_TARGET_DIR", target()).env_remove("RUSTFLAGS");
    command
}

fn target() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("packages")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// All are packed in one go, because none of them is in a registry: cargo finds each in the others' packages.
#[test]
fn every_crate_is_a_package_and_libraries_build_from_theirs() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let all: Vec<&str> = CRATES.iter().flat_map(|name| ["--package", name]).collect();
    let packed = cargo(&top, &[&["package", "--no-verify", "--allow-dirty"], &all[..]].concat());
    assert!(packed.status.success(), "{}", text(&packed));
    for name in CRATES {
        let package = target().join(format!("package/{name}-{}.crate", env!("CARGO_PKG_VERSION")));
        let listed = Command::new("tar").arg("tzf").arg(&package).output().expect("tar");
        let files = text(&listed);
        for file in ["Cargo.toml", "README.md", "src/lib.rs"] {
            assert!(
                files.lines().any(|line| line.ends_with(&format!("/{file}"))),
                "{name} lacks {file}: {files}"
            );
        }
        assert!(!files.contains("/target/"), "{name}: {files}");
    }
    let libraries = &all[..6];
    let home = empty_home();
    let mut command = command(&top, &[&["package", "--allow-dirty"], libraries].concat());
    let built = command.env("CARGO_HOME", home.path()).output().expect("cargo runs this test");
    assert!(built.status.success(), "{}", text(&built));
}

/// What a registry shows of a crate, and what its users read first.
#[test]
fn every_crate_says_what_it_is_and_libraries_begin_with_an_example() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = cargo(&top, &["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert_eq!(packages.len(), CRATES.len());
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        assert!(CRATES.contains(&name), "{name} is a crate, and no test packs it");
        for key in ["description", "license", "readme", "documentation", "rust_version"] {
            let value = package[key].as_str().unwrap_or_default();
            assert!(value.len() > 2, "{name} has no {key}");
        }
    }
    for room in ["core", "net", "sim", "text", "scenario", "linux", "lab"] {
        let library =
            std::fs::read_to_string(top.join("crates").join(room).join("src/lib.rs")).expect("a library");
        let example = library.lines().filter(|line| line.starts_with("//! ```")).count();
        assert!(example >= 2, "{room} has no example that is compiled");
    }
}

/// Command, man pages, completions, units and the example of a file, whose words the command knows; nothing is started.
#[test]
fn a_package_for_debian_has_all_that_a_router_wants_for_years() {
    let test = "a_package_for_debian_has_all_that_a_router_wants_for_years";
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target directory is writable");
    let run = |command: &mut Command| command.output().expect("the command runs");
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if let Some(tool) = ["dpkg-deb", "dpkg", "objdump", "gzip"].into_iter().find(|tool| !has(tool)) {
        return println!("SKIP {test}: there is no {tool}");
    }
    let made = run(Command::new(top.join("tools/deb"))
        .arg(folder.path())
        .env("CONGESTLAB", env!("CARGO_BIN_EXE_congestlab"))
        .env("DPKG_DEB_COMPRESSOR_TYPE", "none"));
    assert!(made.status.success(), "{}", text(&made));
    let package = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let tree = folder.path().join("tree");
    let unpacked = run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&tree));
    assert!(unpacked.status.success(), "{}", text(&unpacked));
    for file in [
        "usr/share/man/man1/congestlab.1.gz",
        "usr/share/man/man1/congestlab-router-attach.1.gz",
        "usr/share/bash-completion/completions/congestlab",
        "usr/share/zsh/vendor-completions/_congestlab",
        "usr/share/fish/vendor_completions.d/congestlab.fish",
        "usr/share/doc/congestlab/copyright",
    ] {
        assert!(std::fs::metadata(tree.join(file)).is_ok_and(|file| file.len() > 100), "{file}");
    }
    let field = |name: &str| text(&run(Command::new("dpkg-deb").args(["-f", &package, name])));
    assert!(field("Depends").contains("libc6 (>= "), "{}", field("Depends"));
    assert_eq!(field("Version").trim(), env!("CARGO_PKG_VERSION"));
    // What units call is what there is, with options that the command knows: with another file, which it only judges.
    let command = tree.join("usr/bin/congestlab");
    let example = tree.join("usr/share/doc/congestlab/examples/apply.toml");
    let mut calls = 0;
    for unit in ["apply", "watch"] {
        let unit = tree.join(format!("usr/lib/systemd/system/congestlab-{unit}.service"));
        let unit = std::fs::read_to_string(unit).expect("a unit");
        for line in unit.lines().filter_map(|line| line.strip_prefix("Exec")?.split_once('=')) {
            let words: Vec<&str> = line.1.split_whitespace().collect();
            assert_eq!((words[0], words[1]), ("/usr/bin/congestlab", "apply"), "{}", line.1);
            assert!(words.contains(&"/etc/congestlab/apply.toml"), "{}", line.1);
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let help = text(&run(Command::new(&command).args(["apply", "--help"])));
                assert!(help.contains(option) || !cfg!(feature = "linux"), "{option} in {help}");
            }
            let checked = run(Command::new(&command).args(["apply", "--check"]).arg(&example));
            assert!(checked.status.success() || !cfg!(feature = "linux"), "{}", text(&checked));
            calls += 1;
        }
    }
    assert_eq!(calls, 4);
}

/// Every crate that is compiled into the command or builds it, no other, each with licence and, from a registry, hash; the
/// same bytes each time.
#[test]
fn the_bill_of_materials_has_all_that_the_command_is_made_of() {
    let test = "the_bill_of_materials_has_all_that_the_command_is_made_of";
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let run = || Command::new(top.join("tools/sbom")).arg("--no-default-features").output();
    if !Command::new("python3").args(["-c", "import tomllib"]).output().is_ok_and(|out| out.status.success())
    {
        return println!("SKIP {test}: there is no python3 of 3.11 or newer");
    }
    let made = run().expect("python3 runs");
    assert!(made.status.success(), "{}", text(&made));
    assert_eq!(made.stdout, run().expect("python3 runs").stdout);
    let bill: serde_json::Value = serde_json::from_slice(&made.stdout).expect("JSON");
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    let word =
        |component: &serde_json::Value, key: &str| component[key].as_str().unwrap_or_default().to_owned();
    let components = bill["components"].as_array().expect("components");
    let mut listed: Vec<String> =
        components.iter().map(|each| format!("{} v{}", word(each, "name"), word(each, "version"))).collect();
    listed.push(format!("congestlab v{}", env!("CARGO_PKG_VERSION")));
    listed.sort();
    let arguments = ["tree", "--package", "congestlab", "--no-default-features", "--edges", "normal,build"];
    let tree = cargo(&top, &[&arguments[..], &["--prefix", "none", "--locked"]].concat());
    assert!(tree.status.success(), "{}", text(&tree));
    let tree = String::from_utf8_lossy(&tree.stdout).into_owned();
    let words = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let mut expected: Vec<String> = tree.lines().filter(|line| !line.is_empty()).map(words).collect();
    expected.sort();
    expected.dedup();
    assert!(expected.len() > 50, "{expected:?}");
    assert_eq!(listed, expected);
    for component in components {
        assert!(component["licenses"][0]["expression"].is_string(), "{component}");
        let hash = component["hashes"][0]["content"].as_str();
        assert!(
            CRATES.contains(&&*word(component, "name")) || hash.is_some_and(|hash| hash.len() == 64),
            "{component}"
        );
    }
    // Each is named once in the graph, and nothing is needed that is not named.
    let graph = bill["dependencies"].as_array().expect("a graph");
    let names: Vec<_> = graph.iter().map(|each| word(each, "ref")).collect();
    assert_eq!(names.len(), listed.len());
    for need in graph.iter().filter_map(|each| each["dependsOn"].as_array()).flatten() {
        assert!(names.iter().any(|name| name == need), "{need}");
    }
}

/// Systems other than Linux on which the command, without real packets, must compile.
const OTHER_SYSTEMS: [&str; 3] = ["x86_64-pc-windows-gnu", "aarch64-apple-darwin", "x86_64-apple-darwin"];

/// The compiler's word, no run: nothing here starts programs of another system.
#[test]
fn the_simulator_compiles_for_windows_and_macos() {
    let test = "the_simulator_compiles_for_windows_and_macos";
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let root = Command::new(rustc).args(["--print", "sysroot"]).current_dir(&top).output().expect("rustc");
    let libraries = PathBuf::from(String::from_utf8_lossy(&root.stdout).trim()).join("lib/rustlib");
    let (there, missing): (Vec<_>, Vec<_>) =
        OTHER_SYSTEMS.into_iter().partition(|system| libraries.join(system).join("lib").is_dir());
    if !missing.is_empty() {
        let missing = missing.join(" ");
        println!("SKIP {test}: no standard library for {missing} (rustup target add {missing})");
    }
    for system in there {
        let arguments =
            ["check", "--locked", "--package", "congestlab", "--no-default-features", "--target", system];
        let checked = cargo(&top, &arguments);
        let said = text(&checked);
        // Crates for that system alone are in no cache of who builds for this one.
        if ["unable to update registry", "failed to download", "attempting to make an HTTP request"]
            .iter()
            .any(|reason| said.contains(reason))
        {
            println!(
                "SKIP {test} ({system}): not all crates for it are here (cargo fetch --target {system})"
            );
            continue;
        }
        assert!(checked.status.success(), "{system}: {said}");
        assert!(!said.contains("warning:"), "{system}: {said}");
    }
}

/// A container's file is checked by what is made of it: each step is in the script of its stage, which a shell understands.
#[test]
fn every_step_of_the_container_is_in_a_script() {
    let test = "every_step_of_the_container_is_in_a_script";
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file =
        std::fs::read_to_string(top.join("packaging/Containerfile")).expect("a file of the repository");
    let tool = |argument: &str| Command::new(top.join("tools/containerfile")).arg(argument).output();
    if !Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return println!("SKIP {test}: there is no python3");
    }
    let printed = |argument: &str| {
        let output = tool(argument).expect("python3 runs");
        assert!(output.status.success(), "{}", text(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let release = printed("release").trim().to_owned();
    let from: Vec<&str> = file.lines().filter(|line| line.starts_with("FROM ")).collect();
    assert!(from.iter().all(|line| line.contains(&format!("debian:{release}-slim"))), "{from:?}");
    let stages: Vec<String> = printed("stages").lines().map(str::to_owned).collect();
    assert_eq!(stages.len(), from.len());
    let scripts: Vec<String> = stages.iter().map(|stage| printed(stage)).collect();
    for script in &scripts {
        let parsed = Command::new("sh").args(["-n", "-c", script]).status().expect("a shell");
        assert!(parsed.success(), "{script}");
    }
    let steps = file.lines().filter(|line| line.starts_with("RUN ")).count();
    let made: usize = scripts.iter().map(|script| script.matches("sh -euc ").count()).sum();
    assert_eq!(made, steps);
    // The compiler is the oldest that the workspace says it builds with, and the last stage ends with what the first made.
    let oldest = env!("CARGO_PKG_RUST_VERSION");
    assert!(scripts[0].contains(&format!("rustup toolchain install {oldest}")), "{oldest}: {}", scripts[0]);
    let (built, last) = (&scripts[0], scripts.last().expect("a stage"));
    assert!(
        built.contains("/out/usr/bin/congestlab") && last.contains("\"$STAGES\"/build/out/usr/."),
        "{last}"
    );
    assert!(
        last.trim_end().ends_with("/usr/bin/congestlab \"$@\"") && last.contains("--reuid=congestlab"),
        "{last}"
    );
    assert!(!tool("none").expect("python3 runs").status.success());
}

/// Units of services that need root for as long as they run: what they do not use they give up.
#[test]
fn units_give_up_the_rights_that_they_do_not_use() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let analyze = |unit: &Path| {
        let arguments = ["security", "--offline=true", "--no-pager", "--threshold=40"];
        Command::new("systemd-analyze").args(arguments).arg(unit).output()
    };
    for (name, users) in [("apply", ""), ("watch", " CAP_SETUID CAP_SETGID CAP_KILL")] {
        let unit = top.join(format!("congestlab-{name}.service"));
        let text = std::fs::read_to_string(&unit).expect("a file of the repository");
        let capabilities = format!("CAP_NET_ADMIN CAP_SYS_ADMIN CAP_BPF CAP_PERFMON{users}");
        for line in [
            &*format!("CapabilityBoundingSet={capabilities}"),
            "NoNewPrivileges=yes",
            "ProtectSystem=strict",
            "RestrictAddressFamilies=AF_NETLINK AF_UNIX AF_INET AF_INET6",
            "SystemCallFilter=@system-service bpf",
            "MemoryDenyWriteExecute=yes",
        ] {
            assert!(text.lines().any(|one| one == line), "{name}: no {line}");
        }
        // Its exposure is below 4 of 10, "OK".
        match analyze(&unit) {
            Ok(output) => assert!(output.status.success(), "{}", self::text(&output)),
            Err(error) => {
                println!("SKIP units_give_up_the_rights_that_they_do_not_use: no systemd-analyze, {error}")
            }
        }
    }
}
