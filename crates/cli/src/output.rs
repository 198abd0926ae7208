//! Output of commands: data to stdout, files, and the progress of many runs; nothing panics when an output is closed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use congestlab_scenario::disk;
use congestlab_scenario::{printable, store, sweep};

use crate::failure::{Failure, Message};
pub(crate) use crate::screen::{Progress, Screen, say};

/// Data on stdout, whole.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(printable::lines(text).as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::ReaderGone),
        Err(error) => Err(Failure::write(Path::new("the standard output"), &error)),
    }
}

fn refuse(path: &Path, reason: &str) -> Result<(), Failure> {
    Err(Failure::Input(Message::new(format!("can not write {}: {reason}", path.display()), "")))
}

/// The folder that an entry is in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses files that could not be written, before anything is run for them, and of which one would
/// replace another or the scenario.
pub(crate) fn require_files<'a>(
    scenario: &'a Path,
    files: impl Iterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let mut taken = vec![(scenario, same(scenario))];
    for path in files {
        require_file(path)?;
        let same = same(path);
        // What is written to a device or pipe replaces nothing.
        if let Some((other, _)) = taken.iter().find(|(_, other)| same.is_some() && *other == same) {
            return refuse(path, &format!("it is the same file as {}", other.display()));
        }
        taken.push((path, same));
    }
    Ok(())
}

/// A value that is equal for two names of one file, also before it exists; `None` for a device or pipe.
fn same(path: &Path) -> Option<PathBuf> {
    match path.canonicalize() {
        Ok(path) => path.metadata().ok()?.is_file().then_some(path),
        Err(_) => Some(parent(path).canonicalize().ok()?.join(path.file_name()?)),
    }
}

/// Refuses a file that could not be written, before anything is done for it.
pub(crate) fn require_file(path: &Path) -> Result<(), Failure> {
    if path.is_dir() || path.file_name().is_none() {
        return refuse(path, "it is a folder");
    }
    // Through links: what a rename replaces is the file itself.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if real.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Ok(());
    }
    let folder = parent(&real);
    if !folder.is_dir() {
        return refuse(path, &format!("there is no folder {}", folder.display()));
    }
    require_room(path, folder)
}

/// Refuses a folder that could not be made or written to, before anything is run for it.
pub(crate) fn require_folder(path: &Path) -> Result<(), Failure> {
    // Those above that are missing are made.
    let existing = path.ancestors().find(|path| path.exists());
    match existing.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")) {
        folder if folder.is_dir() => require_room(path, folder),
        file => refuse(path, &format!("{} is no folder", file.display())),
    }
}

/// Refuses the exact name of a run's folder if something else is there, before anything is run for it.
pub(crate) fn require_run_folder(path: &Path) -> Result<(), Failure> {
    if store::may_hold_run(path) { Ok(()) } else { refuse(path, store::NOT_A_RUN) }
}

/// Refuses `path` if nothing can be made in the `folder`. Tried, because no permission tells of a
/// file system that is read-only, full or of another kind.
fn require_room(path: &Path, folder: &Path) -> Result<(), Failure> {
    disk::try_folder(folder).or_else(|error| refuse(path, &format!("{}: {error}", folder.display())))
}

/// Writes a file whole or not at all; a device or pipe, which no rename may replace, directly.
pub(crate) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    // Through links: what a rename replaces is the file itself.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_special = path.metadata().is_ok_and(|metadata| !metadata.is_file());
    let written = if is_special {
        std::fs::OpenOptions::new().write(true).open(path).and_then(|file| {
            let mut out = io::BufWriter::new(file);
            write(&mut out)?;
            out.flush()
        })
    } else {
        disk::write_with(path, |out| write(out))
    };
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::write(path, &error),
    })
}

/// A progress line over the runs of many sweeps, which several threads tell of.
#[derive(Debug)]
pub(crate) struct Runs {
    line: Mutex<Progress>,
    done: AtomicUsize,
    all: usize,
}

impl Runs {
    pub(crate) fn new(screen: &Screen, all: usize) -> Self {
        Self { line: Mutex::new(screen.progress()), done: AtomicUsize::new(0), all }
    }

    /// Shows, of the sweep of that name, that one more run is complete.
    pub(crate) fn tell(&self, name: &str, progress: sweep::Progress<'_>) {
        if matches!(progress, sweep::Progress::Begun(_) | sweep::Progress::Started(_)) {
            return;
        }
        let (done, all) = (1 + self.done.fetch_add(1, Ordering::Relaxed), self.all);
        let Ok(mut line) = self.line.lock() else { return };
        line.tell(|elapsed| {
            format!("{}  {name}: {done} of {all} runs, {elapsed:.0} s", gauge(done as f64 / all as f64))
        });
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        if let Ok(mut line) = self.line.lock() {
            line.clear();
        }
    }
}

/// `[=====>    ]`, `done` of 1.
pub(crate) fn gauge(done: f64) -> String {
    const WIDTH: usize = 30;
    let filled = (done.clamp(0.0, 1.0) * WIDTH as f64) as usize;
    format!("{}{}", "━".repeat(filled), "─".repeat(WIDTH - filled))
}
