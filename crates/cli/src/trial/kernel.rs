//! A law built for BPF, as kernels would run it: no call leaves it, least of all one to a panic.
//!
//! A law of the list is built with the list. One from outside is built by itself: the file of its type, under the same path
//! as in its program, on `congestlab-core` without anything that kernels do without.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use congestlab_scenario::laws::Protocol;
use congestlab_scenario::trial::Answer;

use crate::new::SOURCES;

/// How C would call a law.
const LINK: &str = include_str!("link.rs.in");
const SENDER: &str = include_str!("sender.rs.in");

/// What there is to say before an answer is known: why there is none, or what is broken.
pub(crate) enum Stopped {
    Missing(String),
    Broken(String),
}

type Built<T> = Result<T, Stopped>;

fn missing<T>(why: impl Into<String>) -> Built<T> {
    Err(Stopped::Missing(why.into()))
}

/// Builds the protocol's laws for BPF.
pub(super) fn build(protocol: &Protocol) -> Answer {
    let built = Bench::new().and_then(|bench| bench.assembly(protocol));
    match built.and_then(|assembly| leaves_nothing_open(&assembly)) {
        Ok(text) => Answer::Yes(text),
        Err(Stopped::Missing(why)) => Answer::NotAsked(why),
        Err(Stopped::Broken(how)) => Answer::No(how),
    }
}

/// A compiler for BPF and a folder to work in, which goes away with its owner.
pub(crate) struct Bench {
    rustc: String,
    folder: PathBuf,
}

impl Bench {
    /// Finds the compiler, and makes a folder that nobody had before.
    pub(crate) fn new() -> Built<Self> {
        let rustc = compiler()?;
        let id = std::process::id();
        for number in 0.. {
            let folder = std::env::temp_dir().join(format!("congestlab-law-{id}-{number}"));
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(Self { rustc, folder }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return missing(format!("{}: {error}", folder.display())),
            }
        }
        missing("every folder is taken")
    }

    /// Returns the folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a crate with a link law from outside, and with congestlab's laws as modules, which are then local to its program.
    /// Returns its file and the path of the law's type; `None`: the law is one of the list.
    pub(crate) fn root(&self, protocol: &Protocol) -> Built<Option<(PathBuf, String)>> {
        let [Some(path), _] = types(protocol) else { return Ok(None) };
        let (file, rest) = part(path)?;
        let mut text =
            String::from("#![no_std]\nextern crate alloc;\nextern crate self as congestlab_core;\n");
        for module in ["law", "units"] {
            let file = own(&format!("core/src/{module}/mod.rs"))?;
            text.push_str(&format!("#[path = {:?}]\nmod {module};\n", file.display().to_string()));
        }
        text.push_str(&format!("#[path = {:?}]\nmod own;\n", file.display().to_string()));
        let root = self.folder.join("root.rs");
        fs::write(&root, text).map_err(|error| Stopped::Missing(error.to_string()))?;
        Ok(Some((root, format!("crate::own::{rest}"))))
    }

    /// Compiles one file for BPF.
    fn compile(&self, source: &Path, arguments: &[&str]) -> Built<()> {
        let output = Command::new(&self.rustc)
            .args("--edition 2024 --target bpfel-unknown-none --crate-type lib -A warnings".split(' '))
            .args("-C target-cpu=v3 -C opt-level=3 -C panic=abort -C codegen-units=1".split(' '))
            .args("-C overflow-checks=no -C symbol-mangling-version=v0 -Z function-sections=no".split(' '))
            // What one crate calls of another lies in the one that calls.
            .args(["-Z", "cross-crate-inline-threshold=always", "-L", "."])
            .args(arguments)
            .arg(source)
            .env("RUSTC_BOOTSTRAP", "1")
            .current_dir(&self.folder)
            .output()
            .map_err(|error| Stopped::Missing(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        // The compiler itself finds the calls that it would have to make up.
        if let Some((_, name)) = text.split_once("built-in function '") {
            return Err(no_kernel_has(name.split('\'').next().unwrap_or_default()));
        }
        let first: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(12).collect();
        Err(Stopped::Broken(format!("it does not compile for BPF: {}", first.join("\n      "))))
    }

    /// Returns the assembly of the laws.
    fn assembly(&self, protocol: &Protocol) -> Built<String> {
        let out = self.folder.join("laws.s");
        let emit = format!("asm={}", out.display());
        let [link, sender] = types(protocol);
        if link.is_none() && sender.is_none() {
            self.compile(&own("linux/tests/bpf/all.rs")?, &["--crate-name", "laws", "--emit", &emit])?;
        } else {
            let words = ["--cfg", "feature=\"words\"", "--crate-name", "congestlab_core"];
            self.compile(&own("core/src/lib.rs")?, &words)?;
            let root = self.folder.join("laws.rs");
            let source = source(link, sender)?;
            fs::write(&root, source).map_err(|error| Stopped::Missing(error.to_string()))?;
            self.compile(&root, &["--crate-name", "laws", "--extern", "congestlab_core", "--emit", &emit])?;
        }
        fs::read_to_string(&out).map_err(|error| Stopped::Missing(error.to_string()))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Debian's compiler: rustup's has no core library for this target.
fn compiler() -> Built<String> {
    let rustc = std::env::var("RUSTC_BPF").unwrap_or("/usr/bin/rustc".into());
    let library =
        Command::new(&rustc).args(["--print", "target-libdir", "--target", "bpfel-unknown-none"]).output();
    match library {
        Err(error) => missing(format!("{rustc}: {error} (Debian: rustc-web)")),
        Ok(output) if Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir() => Ok(rustc),
        Ok(_) => missing(format!("{rustc} has no core library for BPF (Debian: libstd-rust-web-dev-bpf)")),
    }
}

/// Returns a file of congestlab's sources.
pub(crate) fn own(file: &str) -> Built<PathBuf> {
    let file = Path::new(SOURCES).join("crates").join(file);
    if file.is_file() {
        Ok(file)
    } else {
        missing("the sources of congestlab are not where this command was built")
    }
}

#[cfg(feature = "outside")]
fn types(protocol: &Protocol) -> [Option<&'static str>; 2] {
    congestlab_core::law::outside::types(protocol)
}

#[cfg(not(feature = "outside"))]
fn types(_: &Protocol) -> [Option<&'static str>; 2] {
    [None, None]
}

/// Returns a crate that has the types' files at their places, and functions that C could call.
fn source(link: Option<&str>, sender: Option<&str>) -> Built<String> {
    let mut text = String::from("#![no_std]\nextern crate alloc;\n");
    let mut modules: Vec<&str> = Vec::new();
    for (path, calls) in [(link, LINK), (sender, SENDER)] {
        let Some(path) = path else { continue };
        let (file, _) = part(path)?;
        let parts: Vec<&str> = path.split("::").collect();
        let module = parts[1];
        if !modules.contains(&module) {
            modules.push(module);
            text.push_str(&format!("#[path = {:?}]\npub mod {module};\n", file.display().to_string()));
        }
        let own = format!("crate::{}", parts[1..].join("::"));
        text.push_str(&calls.replace("OWN", &own));
    }
    Ok(text)
}

/// Returns the file of the module that a type is in, and the type's path below it.
fn part(path: &str) -> Built<(PathBuf, &str)> {
    // The name of the crate; the modules; the type.
    let mut parts = path.splitn(3, "::");
    let (Some(_), Some(module), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return missing(format!(
            "{path} stands in the crate's own file; give it one of its own, as src/law.rs"
        ));
    };
    if path.contains('<') {
        return missing(format!("{path} is generic"));
    }
    Ok((file(module)?, rest))
}

/// Returns the file of a module of the program: where somebody stands, or where cargo runs it.
fn file(module: &str) -> Built<PathBuf> {
    let of_cargo = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    for folder in [Some(PathBuf::from(".")), of_cargo].into_iter().flatten() {
        for file in [format!("src/{module}.rs"), format!("src/{module}/mod.rs")] {
            if let Ok(file) = folder.join(file).canonicalize() {
                return Ok(file);
            }
        }
    }
    missing(format!("src/{module}.rs is not here: it is asked in the folder of the law's program"))
}

/// What asks for a function that is not there, in words of the source.
fn no_kernel_has(name: &str) -> Stopped {
    let why = match name {
        "__multi3" => {
            "`saturating_mul` and `checked_mul` of two 64-bit numbers that are no constants do that, and 128 bits; \
             mul_div(a, b, 1) saturates, or a bound comes before the product"
        }
        _ => "floats, 128 bits and allocation do that",
    };
    Stopped::Broken(format!("it calls {name}, which no kernel has: {why}"))
}

/// Kernels have no library: whatever is called is in the assembly.
fn leaves_nothing_open(assembly: &str) -> Built<String> {
    let called = || {
        let words = assembly.lines().filter_map(|line| line.trim().strip_prefix("call"));
        words.map(str::trim).filter(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '_'))
    };
    if let Some(panic) = called().find(|name| name.contains("panic")) {
        return Err(Stopped::Broken(format!(
            "it can panic: it calls {panic}; indices, division by what may be 0, unwrap and expect do that"
        )));
    }
    let is_here = |name: &str| assembly.lines().any(|line| line.strip_suffix(':') == Some(name));
    if let Some(name) = called().find(|name| !is_here(name)) {
        return Err(no_kernel_has(name));
    }
    let functions = assembly.matches("@function").count();
    Ok(format!("{functions} functions, no panic, no call that leaves them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a law may not do, in the words of who wrote it.
    #[test]
    fn a_call_that_no_kernel_has_is_told_by_what_makes_it() {
        let bench = match Bench::new() {
            Ok(bench) => bench,
            Err(Stopped::Missing(why) | Stopped::Broken(why)) => {
                println!("SKIP a_call_that_no_kernel_has_is_told_by_what_makes_it: {why}");
                return;
            }
        };
        for (body, says) in [
            ("a.wrapping_mul(b)", ""),
            ("a.saturating_mul(b)", "mul_div(a, b, 1) saturates"),
            ("(a as f64 * 0.5) as u64 + b", "floats, 128 bits and allocation do that"),
            ("a / b", "it can panic"),
        ] {
            let source = bench.folder.join("law.rs");
            let text = format!(
                "#![no_std]\n#[unsafe(no_mangle)]\npub extern \"C\" fn law(a: u64, b: u64) -> u64 {{ {body} }}\n"
            );
            fs::write(&source, text).expect("writable");
            let out = bench.folder.join("law.s");
            let emit = format!("asm={}", out.display());
            let built = bench
                .compile(&source, &["--crate-name", "law", "--emit", &emit])
                .and_then(|()| leaves_nothing_open(&fs::read_to_string(&out).expect("assembly")));
            match built {
                Ok(_) => assert_eq!(says, "", "{body}"),
                Err(Stopped::Broken(how)) => assert!(!says.is_empty() && how.contains(says), "{body}: {how}"),
                Err(Stopped::Missing(why)) => panic!("{body}: {why}"),
            }
        }
    }
}
