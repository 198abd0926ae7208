//! The transcripts and pictures in the documents are what the command gives.
//!
//! Each `console` block runs in a folder with a copy of the repository's scenarios. Times, commits and
//! hashes of folders differ from machine to machine and from version to version; they are not
//! compared. `CONGESTLAB_DOCUMENTS=write` puts today's output into the documents instead.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use tempfile::TempDir;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_writing() -> bool {
    std::env::var_os("CONGESTLAB_DOCUMENTS").is_some_and(|value| value == "write")
}

/// What a reader has after installing: the command, the scenarios, and `make demo`.
struct Reader {
    folder: TempDir,
    _beside: Option<RwLockReadGuard<'static, ()>>,
}

/// Readers share the machine, but for one that measures real packets.
static MACHINE: RwLock<()> = RwLock::new(());

impl Reader {
    fn new() -> Self {
        Self { _beside: Some(MACHINE.read().unwrap_or_else(PoisonError::into_inner)), ..Self::alone() }
    }

    /// A reader who holds the machine already.
    fn alone() -> Self {
        let folder =
            tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target directory is writable");
        let (bin, scenarios) = (folder.path().join("bin"), folder.path().join("work/scenarios"));
        for folder in [&bin, &scenarios] {
            fs::create_dir_all(folder).expect("writable");
        }
        // `make demo` is `congestlab demo`, after the build.
        for name in ["congestlab", "make"] {
            symlink(env!("CARGO_BIN_EXE_congestlab"), bin.join(name)).expect("writable");
        }
        for part in ["", "beyond", "live", "measured", "recipes"] {
            fs::create_dir_all(scenarios.join(part)).expect("writable");
            let entries = fs::read_dir(top().join("scenarios").join(part)).expect("a folder").flatten();
            for file in entries.filter(|entry| entry.path().is_file()) {
                fs::copy(file.path(), scenarios.join(part).join(file.file_name())).expect("writable");
            }
        }
        Self { folder, _beside: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    /// What a shell shows for the command line.
    fn shell(&self, line: &str) -> String {
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.folder.path().join("bin").display());
        let output = Command::new("/bin/sh")
            .args(["-c", &format!("exec 2>&1\n{line}")])
            .current_dir(self.path(""))
            .env("PATH", path)
            .output()
            .expect("there is a shell");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// The document with the output of today.
fn run_again(text: &str, reader: &Reader) -> String {
    let mut again = String::new();
    let mut is_console = false;
    for line in text.lines() {
        match line.strip_prefix("$ ") {
            _ if line.starts_with("```") => is_console = line == "```console",
            Some(command) if is_console => {
                again.push_str(&format!("{line}\n{}", reader.shell(command)));
                continue;
            }
            None if is_console => continue,
            _ => {}
        }
        again.push_str(line);
        again.push('\n');
    }
    again
}

/// The line without what is not the same everywhere.
fn blur(line: &str) -> String {
    let cut = |line: &str, before: &str, after: &str| match line.split_once(before) {
        Some((start, rest)) => format!("{start}{before}...{}", rest.find(after).map_or("", |at| &rest[at..])),
        None => line.to_owned(),
    };
    match line {
        _ if line.contains(" s simulated in ") => cut(line, " s simulated in ", " s,"),
        _ if line.contains(" packet-hops in ") => cut(line, " packet-hops in ", " s"),
        _ if line.contains(" run in ") => cut(&cut(line, " run in ", " s,"), ", version ", "\n"),
        _ if line.contains(" at once, kept in ") => cut(line, ", ", " at once"),
        _ if line.starts_with("  data  ") => line.rsplit_once('-').map_or("", |(start, _)| start).to_owned(),
        _ => line.to_owned(),
    }
}

/// The document says what `again` says, or is made to.
fn agree(document: &str, text: &str, again: &str) {
    let kept: Vec<String> = text.lines().map(blur).collect();
    let today: Vec<String> = again.lines().map(blur).collect();
    if is_writing() && kept != today {
        fs::write(top().join(document), again).expect("writable");
    } else if let Some(line) =
        (0..kept.len().max(today.len())).find(|&line| kept.get(line) != today.get(line))
    {
        let show = |lines: &[String]| lines[line.min(lines.len())..lines.len().min(line + 6)].join("\n");
        panic!(
            "{document}:{}: the document says\n{}\nbut the command prints\n{}\n\
             (CONGESTLAB_DOCUMENTS=write corrects the document)",
            line + 1,
            show(&kept),
            show(&today)
        );
    }
}

/// The pictures in `docs` are what the transcripts drew.
fn hold_pictures(reader: &Reader, pictures: &[&str]) {
    for picture in pictures {
        let path = top().join("docs").join(picture);
        let name = path.file_name().and_then(|name| name.to_str()).expect("a picture has a name");
        let drawn = fs::read_to_string(reader.path(name)).expect("the transcript draws it");
        if is_writing() {
            fs::write(path, drawn).expect("writable");
        } else {
            assert!(
                fs::read_to_string(path).is_ok_and(|kept| kept == drawn),
                "docs/{picture} is not what the command draws (CONGESTLAB_DOCUMENTS=write corrects it)"
            );
        }
    }
}

fn hold(document: &str, pictures: &[&str]) {
    let reader = Reader::new();
    let text = fs::read_to_string(top().join(document)).expect("a document of the repository");
    assert!(text.contains("\n```console\n$ "), "{document} has no transcript");
    agree(document, &text, &run_again(&text, &reader));
    hold_pictures(&reader, pictures);
}

/// The code of a document's blocks in a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let start = format!("```{language}\n");
    let ends = text.split(&start).skip(1).filter_map(|rest| rest.split_once("```"));
    ends.map(|(block, _)| block.to_owned()).collect()
}

/// The Python with DuckDB and polars that `tools/setup` makes; see there for the versions. None where they are
/// missing, which is said for the test of that name.
fn python(name: &str) -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python").join("bin/python3");
    let output = Command::new(&python).args(["-c", "import duckdb, polars"]).output();
    if output.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    println!("SKIP documents/{name}: no DuckDB and polars in {} (make setup)", python.display());
    None
}

/// What the program prints in the reader's folder.
fn print_of(python: &Path, code: &str, reader: &Reader) -> String {
    let output = Command::new(python).args(["-c", code]).current_dir(reader.path("")).output();
    let output = output.expect("it ran just now");
    assert!(output.status.success(), "{code}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_page_on_results_shows_what_duckdb_and_polars_read() {
    let Some(python) = python("results") else { return };
    let reader = Reader::new();
    let slower = "--set links.bottleneck.rate='20 Mbit/s'";
    for set in ["", slower] {
        reader.shell(&format!("congestlab run scenarios/first.toml --out runs --quiet {set} > table"));
    }
    let text = fs::read_to_string(top().join("docs/results.md")).expect("a document of the repository");
    let run = |code: &str| print_of(&python, code, &reader);
    let (sql, polars) = (blocks(&text, "sql"), blocks(&text, "python"));
    let ([of_sweep, of_runs], [polars]) = (&sql[..], &polars[..]) else {
        panic!("docs/results.md: a query of a sweep, one of runs, and a program");
    };
    let ask =
        |query: &str| run(&format!("import duckdb\nprint(*duckdb.sql('''{query}''').fetchall(), sep='\\n')"));
    reader.shell("congestlab sweep scenarios/first.toml --quiet > table");
    let means = ask(of_sweep);
    let rates: Vec<_> =
        means.lines().filter_map(|row| row.split_once(", 0.9")).map(|(rate, _)| rate).collect();
    assert_eq!(rates, ["(20.0", "(50.0", "(200.0"], "{means}");
    let rows = ask(of_runs);
    // Each flow once for each run, with the numbers of that run.
    assert_eq!(rows.lines().count(), 22, "{rows}");
    let slower = "'links.bottleneck.rate = \"20 Mbit/s\"'";
    for flow in [
        "('', 1, 'xcp', 'ftp', 9, 4.",
        "('', 1, 'cbr', 'burst', 0, ",
        &format!("({slower}, 1, 'xcp', 'ftp', 9, 1."),
        &format!("({slower}, 1, 'cbr', 'burst', 0, "),
    ] {
        assert_eq!(rows.lines().filter(|row| row.starts_with(flow)).count(), 1, "{flow}\n{rows}");
    }
    let typed = "SELECT DISTINCT \"links.bottleneck.rate_bps\" AS rate \
                 FROM read_parquet('runs/*/links.parquet', union_by_name = true) ORDER BY rate";
    let typed = run(&format!("import duckdb\nprint(*duckdb.sql('''{typed}''').fetchall())"));
    assert_eq!(typed.trim(), "(20000000.0,) (None,)");
    let table = run(polars);
    assert!(table.contains("shape: (5, 5)") && table.contains("feedback_Bps"), "{table}");
}

#[test]
fn the_readme_shows_what_the_command_prints() {
    hold("README.md", &["demo.svg"]);
}

#[test]
fn the_page_on_papers_counts_what_ns2_has() {
    hold("docs/papers.md", &[]);
}

#[test]
fn the_page_on_reports_shows_what_the_command_prints() {
    hold("docs/report.md", &[]);
}

#[test]
fn the_page_on_varying_capacity_shows_what_the_command_prints() {
    hold("docs/lte.md", &["lte.svg"]);
}

#[test]
fn the_page_on_explanations_shows_what_the_command_prints() {
    hold("docs/explain.md", &[]);
}

#[test]
fn the_page_on_comparisons_shows_what_the_command_prints() {
    hold("docs/compare.md", &["compare.svg", "measured.svg"]);
}

#[test]
fn the_page_on_a_law_of_ones_own_shows_what_the_command_prints() {
    hold("docs/new-law.md", &[]);
}

#[test]
fn the_recipe_on_three_laws_shows_what_the_command_prints() {
    hold("docs/recipes/01-three-laws.md", &["recipes/dumbbell.svg"]);
}

#[test]
fn the_recipe_on_round_trip_times_shows_what_the_command_prints() {
    hold("docs/recipes/02-three-rtts.md", &[]);
}

#[test]
fn the_recipe_on_a_parking_lot_shows_what_the_command_prints() {
    hold("docs/recipes/03-parking-lot.md", &[]);
}

#[test]
fn the_recipe_on_a_sweep_shows_what_the_command_prints() {
    hold("docs/recipes/04-sweep.md", &["recipes/radio.svg"]);
}

#[test]
fn the_recipe_on_a_cellular_link_shows_what_the_command_prints() {
    hold("docs/recipes/05-cellular.md", &[]);
}

#[test]
fn the_recipe_on_constants_shows_what_the_command_prints() {
    hold("docs/recipes/07-constants.md", &["recipes/constants.svg"]);
}

#[test]
fn the_recipe_on_explanations_shows_what_the_command_prints() {
    hold("docs/recipes/08-explain.md", &[]);
}

/// What real packets do differs each time: their numbers are compared with the simulation's, by the command on the page.
#[test]
fn the_recipe_on_a_live_lab_runs() {
    const PAGE: &str = "docs/recipes/09-live-lab.md";
    hold(PAGE, &[]);
    let _alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    let text = fs::read_to_string(top().join(PAGE)).expect("a document of the repository");
    let [commands] = &blocks(&text, "sh")[..] else { panic!("{PAGE}: one block of commands") };
    // Whatever else runs on the machine takes time from the packets: what a run says need not be so in each.
    let tries: Vec<String> = (0..3).map_while(|_| follow(commands).err()).collect();
    assert!(tries.len() < 3, "none of three runs agrees:\n{}", tries.join("\n"));
}

/// Runs the commands of the page; says what went wrong.
fn follow(commands: &str) -> Result<(), String> {
    let reader = Reader::alone();
    for command in commands.lines() {
        let line = command.strip_prefix("sudo ").unwrap_or(command);
        let said = reader.shell(&format!("{line}\necho \"status $?\""));
        let status = said.trim_end().rsplit(' ').next().unwrap_or_default();
        if line.contains(" live run ") && status == "4" {
            println!("SKIP documents/live-lab: {}", said.lines().next().unwrap_or_default());
            return Ok(());
        }
        let may = match status {
            "0" => true,
            // What is missing is for `live run` to say.
            "4" => line.ends_with(" check machine"),
            "3" => said.contains("too busy"),
            _ => false,
        };
        if !may {
            return Err(format!("{line}\n{said}"));
        }
    }
    Ok(())
}

/// Holds a page whose programs are in Python, each with what it prints below it.
fn hold_programs(page: &str, name: &str, pictures: &[&str]) {
    let reader = Reader::new();
    let text = fs::read_to_string(top().join(page)).expect("a document of the repository");
    let mut again = run_again(&text, &reader);
    if let Some(python) = python(name) {
        let codes = blocks(&text, "python");
        assert_eq!(codes.len(), blocks(&text, "text").len(), "{page}: what each program prints");
        let mut parts = again.split("\n```text\n");
        let mut printed = parts.next().unwrap_or_default().to_owned();
        for (code, part) in codes.iter().zip(parts) {
            let (_, rest) = part.split_once("```").expect("a block ends");
            let output = print_of(&python, code, &reader);
            printed.push_str(&format!("\n```text\n{}\n```{rest}", output.trim_end()));
        }
        again = printed;
    }
    agree(page, &text, &again);
    hold_pictures(&reader, pictures);
}

#[test]
fn the_recipe_on_data_frames_shows_what_duckdb_and_polars_print() {
    hold_programs("docs/recipes/10-dataframes.md", "data-frames", &[]);
}

#[test]
fn the_page_on_stability_shows_the_map_that_duckdb_prints() {
    hold_programs("docs/stability.md", "stability", &["stability.svg"]);
}

#[test]
fn the_page_on_all_laws_shows_what_one_sweep_gives() {
    let pictures = ["dumbbell", "round-trips", "lte", "incast", "web", "satellite", "beside"];
    let pictures = pictures.map(|name| format!("laws/{name}.svg"));
    hold_programs("docs/laws.md", "laws", &pictures.each_ref().map(String::as_str));
}

#[test]
fn the_page_on_report_cards_shows_what_the_command_prints() {
    hold("docs/acceptance.md", &[]);
}

#[test]
fn the_page_past_the_papers_shows_what_the_command_and_python_print() {
    hold_programs("docs/beyond.md", "beyond", &[]);
}

#[test]
fn the_recipe_on_the_web_shows_what_polars_prints() {
    hold_programs("docs/recipes/06-web.md", "web", &["recipes/web.svg"]);
}
