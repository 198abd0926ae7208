//! Linux before 6.6 has no tcx, and filters do its work.

/// Runs the test again as there, in a process of its own for the variable; false: this is that process.
pub(crate) fn again(test: &str) -> bool {
    if std::env::var_os("CONGESTLAB_CLSACT").is_some() {
        return false;
    }
    let this = std::env::current_exe().unwrap();
    let again = std::process::Command::new(this)
        .args(["--exact", test, "--nocapture"])
        .env("CONGESTLAB_CLSACT", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stderr);
    said.lines().filter(|line| line.starts_with("SKIP")).for_each(|line| eprintln!("{line}"));
    assert!(again.status.success(), "{said}");
    true
}
