//! Captures of the packets on links, as pcapng files that Wireshark opens: one file for each link direction.
//!
//! A packet is in the file of a link from the moment at which its transmission begins, as a capture on the
//! router's interface would have it: behind the queue, with the header that the law gave it. Packets that
//! the queue dropped are not there; those that break on the wire are, with a comment.
//!
//! Packets go to disk as they come, so a run of any length needs the same memory. The files get their names
//! when all of them are complete; before that, and after an error, there are none.

mod headers;
mod pcapng;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use congestlab_net::packet::{PS_PER_NS, Packet, Picos};
use congestlab_sim::Tap;
use headers::Headers;

use crate::language::scenario::Scenario;
use congestlab_text::disk::{file_name, part_folder};

/// Bytes that all links together keep in memory before they write.
const BUFFERS: usize = 64 << 20;
/// Bounds of what one link keeps: appending costs a few system calls, more than this gains nothing.
const BUFFER_MIN: usize = 4 << 10;
const BUFFER_MAX: usize = 256 << 10;

/// Why no mutex is poisoned.
const CALM: &str = "no thread panics while it writes";

/// An error in writing a capture file.
#[derive(Debug)]
pub struct CaptureError {
    /// Path of the file.
    pub path: PathBuf,
    /// The system's error.
    pub error: io::Error,
}

/// Capture files that are being written; see [`Capture::finish`].
pub struct Capture<'a> {
    headers: Headers,
    links: Vec<Mutex<Link>>,
    snaplen: usize,
    /// The first thing that went wrong.
    error: Mutex<Option<CaptureError>>,
    /// Raised when something goes wrong: the run has no use then.
    stop: &'a AtomicBool,
    /// Folders that were made for the files, inmost first.
    made: Vec<PathBuf>,
    /// Folder of the files until they get their names, held for as long.
    hidden: PathBuf,
    _held: File,
}

/// One file.
struct Link {
    path: PathBuf,
    spill: Spill,
    /// The packet at hand, kept for its allocation.
    frame: Vec<u8>,
}

/// Collects what is written and appends it to a file when it is much. The file is open only then: a
/// run may have more links than a process may have files.
struct Spill {
    path: PathBuf,
    buffer: Vec<u8>,
    capacity: usize,
}

impl Spill {
    /// Makes the file, which begins with what `append` gives.
    fn create(path: PathBuf, capacity: usize, append: impl FnOnce(&mut Vec<u8>)) -> io::Result<Self> {
        File::create(&path)?;
        let mut spill = Self { path, buffer: Vec::new(), capacity };
        spill.put(append)?;
        Ok(spill)
    }

    /// Lets a block be appended.
    fn put(&mut self, append: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        append(&mut self.buffer);
        if self.buffer.len() > self.capacity { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        OpenOptions::new().append(true).open(&self.path)?.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl<'a> Capture<'a> {
    /// Prepares `folder/<link>.pcapng` for every link of the scenario, and makes the folder. Of each packet the
    /// headers are kept, and payload (zeros) as far as `snaplen` bytes reach. The files name `version`; `stop`
    /// is raised as soon as one can not be written.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn create(
        folder: &Path,
        scenario: &Scenario,
        version: &str,
        snaplen: u16,
        stop: &'a AtomicBool,
    ) -> Result<Self, CaptureError> {
        let model = scenario.base_model();
        let routers = scenario.routers();
        let made: Vec<_> = folder.ancestors().take_while(|path| !path.exists()).map(Path::to_owned).collect();
        let fail = |path: &Path, error| CaptureError { path: path.into(), error };
        fs::create_dir_all(folder).map_err(|error| fail(folder, error))?;
        let (hidden, held) = part_folder(&folder.join("pcap")).map_err(|error| fail(folder, error))?;
        let mut capture = Self {
            headers: Headers::new(model, &routers),
            links: Vec::new(),
            snaplen: snaplen.into(),
            error: Mutex::default(),
            stop,
            made,
            hidden,
            _held: held,
        };
        let capacity = (BUFFERS / model.links.len().max(1)).clamp(BUFFER_MIN, BUFFER_MAX);
        let names = file_names(model.links.iter().map(|link| link.name.as_str()));
        for (index, name) in names.iter().enumerate() {
            let path = folder.join(format!("{name}.pcapng"));
            let (link, router) = (&model.links[index], &routers[index]);
            let speed = link.port.service.mean_rate(0, model.duration);
            let application = format!("congestlab {version}");
            let comment = format!("simulated: scenario {}, seed {}", scenario.name(), scenario.seed());
            let spill = Spill::create(capture.hidden.join(format!("{name}.pcapng")), capacity, |file| {
                pcapng::section(file, &application, &comment);
                pcapng::interface(file, &link.name, &format!("output port of {router}"), speed.0);
            });
            let spill = spill.map_err(|error| fail(&path, error))?;
            capture.links.push(Mutex::new(Link { path, spill, frame: Vec::new() }));
        }
        Ok(capture)
    }

    /// Returns the paths that the files will have, in the order of links.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.links.iter().map(|link| link.lock().expect(CALM).path.clone()).collect()
    }

    /// Completes the files and gives them their names; none is kept if the run is not complete.
    ///
    /// # Errors
    /// Returns the first error of writing, be it long ago. No file is left then.
    pub fn finish(mut self, is_complete: bool) -> Result<(), CaptureError> {
        if let Some(error) = self.error.get_mut().expect(CALM).take() {
            return Err(error);
        }
        if !is_complete {
            return Ok(());
        }
        for link in &mut self.links {
            let link = link.get_mut().expect(CALM);
            link.sync().map_err(|error| CaptureError { path: link.path.clone(), error })?;
        }
        let mut named: Vec<PathBuf> = Vec::new();
        for link in &mut self.links {
            let Link { path, spill, .. } = link.get_mut().expect(CALM);
            if let Err(error) = fs::rename(&spill.path, &*path) {
                // All or none.
                named.iter().for_each(|path| drop(fs::remove_file(path)));
                return Err(CaptureError { path: path.clone(), error });
            }
            named.push(path.clone());
        }
        self.made.clear();
        Ok(())
    }
}

/// Takes back what was not finished.
impl Drop for Capture<'_> {
    fn drop(&mut self) {
        // What is not there any more can not be removed.
        let _ = fs::remove_dir_all(&self.hidden);
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}

impl Tap for Capture<'_> {
    fn sent(&self, link: u32, at: Picos, packet: &Packet, is_lost: bool) {
        let mut file = self.links[link as usize].lock().expect(CALM);
        let length = self.headers.write(link, packet, self.snaplen, &mut file.frame);
        if let Err(error) = file.put(at, length, is_lost) {
            // The first is the one to tell; the buffer that could not be written is given up.
            file.spill.buffer.clear();
            let mut first = self.error.lock().expect(CALM);
            first.get_or_insert_with(|| CaptureError { path: file.path.clone(), error });
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl Link {
    /// Writes the packet at hand, whose length on the wire is `length`.
    fn put(&mut self, at: Picos, length: usize, is_lost: bool) -> io::Result<()> {
        let (frame, comment) = (&self.frame, is_lost.then_some(LOST));
        self.spill.put(|file| pcapng::packet(file, at / PS_PER_NS, length as u32, frame, comment))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.spill.flush()?;
        File::open(&self.spill.path)?.sync_all()
    }
}

/// On a packet that errors or `ack_loss` took: it used the wire, and nobody receives it.
const LOST: &str = "lost on the wire: reaches the far end broken";

/// A name for each, that every file system takes and tells from the others, whatever it thinks of
/// case. Names that need no change keep theirs.
fn file_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names: Vec<(&str, String)> = names.map(|name| (name, file_name(name))).collect();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut chosen: Vec<Option<String>> = names
        .iter()
        .map(|(name, clean)| (name == clean && taken.insert(clean.to_lowercase())).then(|| clean.clone()))
        .collect();
    for ((_, clean), chosen) in names.iter().zip(&mut chosen).filter(|(_, chosen)| chosen.is_none()) {
        let numbered = (2..).map(|number| format!("{clean}-{number}"));
        *chosen =
            std::iter::once(clean.clone()).chain(numbered).find(|name| taken.insert(name.to_lowercase()));
    }
    chosen.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_with_names_that_a_file_system_confuses_get_files_of_their_own() {
        let names = ["a b", "a-b", "A-b", "a/b", "a-b-2", "..", "é", "a b.reverse"];
        let chosen = file_names(names.into_iter());
        assert_eq!(chosen, ["a-b-3", "a-b", "A-b-4", "a-b-5", "a-b-2", "scenario", "é", "a-b.reverse"]);
        let long = ["x".repeat(300), "x".repeat(301), "𠀀".repeat(80)];
        let chosen = file_names(long.iter().map(String::as_str));
        assert!(chosen.iter().all(|name| name.len() <= 200), "{chosen:?}");
        assert_eq!(chosen.iter().collect::<BTreeSet<_>>().len(), 3);
    }

    #[test]
    fn what_can_not_be_written_stops_the_run_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = "[run]\nduration = \"1 s\"\n[links.a]\nrate = \"1 Mbit/s\"\n[flows.f]\nlaw = \"cubic\"\npath = [\"a\"]\n";
        let scenario = Scenario::parse("x.toml", text, Path::new(""), &[], None).expect("valid");
        let stop = AtomicBool::new(false);
        let inner = folder.path().join("new/traces");
        let capture = Capture::create(&inner, &scenario, "test", 0, &stop).expect("writable");
        // A full disk, as far as a test can have one: the file goes away, and can not be opened.
        fs::remove_file(capture.hidden.join("a.pcapng")).expect("it was made");
        let packet = Packet { seq: 1, size: 1000, ..Packet::default() };
        for at in 0..10_000 {
            capture.sent(0, at * 1_000_000, &packet, false);
        }
        assert!(stop.load(Ordering::Relaxed));
        let error = capture.finish(false).expect_err("it was not written");
        assert!(
            error.path.ends_with("a.pcapng") && error.error.kind() == io::ErrorKind::NotFound,
            "{error:?}"
        );
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "something is left");
    }
}
