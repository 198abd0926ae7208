//! The crates as packages, which others can depend on: cargo makes one of each, and those that are libraries build from
//! what is in them alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// In the order of their dependencies.
const CRATES: [&str; 6] = [
    "congestlab-core",
    "congestlab-net",
    "congestlab-sim",
    "congestlab-scenario",
    "congestlab-linux",
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
        for key in ["description", "license", "readme", "repository", "rust_version"] {
            let value = package[key].as_str().unwrap_or_default();
            assert!(value.len() > 2, "{name} has no {key}");
        }
    }
    for room in ["core", "net", "sim", "scenario"] {
        let library =
            std::fs::read_to_string(top.join("crates").join(room).join("src/lib.rs")).expect("a library");
        let example = library.lines().filter(|line| line.trim_end() == "//! ```").count();
        assert!(example >= 2, "{room} has no example that is compiled");
    }
}
