//! What a sweep has finished, and who is at work on what: any number of processes share one folder.
//!
//! Each process appends to a file of its own, so nobody ever writes into what another has written, and thousands of points are
//! few files. A record is a frame: a line that names the run and says how long what follows is and by which hash it is known,
//! then that, compressed JSON. Half a frame at the end of a file is what a kill left; it is nobody's record, and the run is
//! made again.
//!
//! Who runs a point holds the lock of a file that is named after it. The lock ends with its process, however that ends.
//! The file goes once the record is on disk, and is looked for again after the lock was had: so no run is made twice.
//! File systems that have no locks may make one twice, which costs time and changes no result.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde_json::Value as Json;

use crate::results::folder::SUMMARY_MAX;
use congestlab_text::disk;

/// How the name of a file of records ends.
const LOG: &str = "log";
/// How the name of a file ends whose lock is held by who runs the point.
const CLAIM: &str = "claim";
/// A first line is no longer: two hashes, a length, and what parts them.
const HEAD_MAX: u64 = 64;

/// The records of a folder, as far as they have been looked at.
#[derive(Debug)]
pub(crate) struct Records {
    folder: PathBuf,
    logs: Vec<Log>,
    /// By the hash of the run; the last, which may say more than those before.
    places: BTreeMap<u64, Place>,
    own: Option<Own>,
}

#[derive(Debug)]
struct Log {
    path: Arc<Path>,
    /// Whole records end here.
    end: u64,
}

/// Where a record is.
#[derive(Clone, Copy, Debug)]
struct Place {
    log: usize,
    at: u64,
    length: u64,
    check: u64,
}

/// The file that this process appends to.
#[derive(Debug)]
struct Own {
    log: usize,
    file: File,
}

/// A record on disk.
#[derive(Debug)]
pub(crate) struct Found {
    path: Arc<Path>,
    place: Place,
}

impl Found {
    /// The record; `None` if it is there no more.
    pub(crate) fn read(&self) -> Option<Json> {
        let Place { at, length, check, .. } = self.place;
        let mut file = disk::regular(&self.path).ok()?;
        file.seek(SeekFrom::Start(at)).ok()?;
        let mut body = Vec::new();
        file.take(length).read_to_end(&mut body).ok()?;
        if body.len() as u64 != length || disk::hash64(&body) != check {
            return None;
        }
        unpack(&body)
    }
}

/// What [`pack`] packed.
pub(crate) fn unpack(body: &[u8]) -> Option<Json> {
    let mut text = Vec::new();
    DeflateDecoder::new(body).take(SUMMARY_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A record as [`Records::append`] takes it.
pub(crate) fn pack(record: &Json) -> io::Result<Vec<u8>> {
    let mut body = DeflateEncoder::new(Vec::new(), Compression::default());
    body.write_all(record.to_string().as_bytes())?;
    body.finish()
}

/// Nobody else runs the point as long as this is there. Its file goes with it: who opens it still, or anew, finds the record, or
/// runs the point once more.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    _held: File,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The hash of a run as a number.
pub(crate) fn key(hash: &str) -> u64 {
    u64::from_str_radix(hash, 16).unwrap_or_default()
}

impl Records {
    /// Reads which records there are. The folder need not be there.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let mut records =
            Self { folder: folder.to_owned(), logs: Vec::new(), places: BTreeMap::new(), own: None };
        records.refresh()?;
        Ok(records)
    }

    /// Looks for what others have added.
    pub(crate) fn refresh(&mut self) -> io::Result<()> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == LOG) {
                paths.push(path);
            }
        }
        paths.sort_by_key(|path| (number(path), path.clone()));
        for path in paths {
            let log = self.logs.iter().position(|log| *log.path == path).unwrap_or_else(|| {
                self.logs.push(Log { path: path.into(), end: 0 });
                self.logs.len() - 1
            });
            if self.own.as_ref().is_none_or(|own| own.log != log) {
                self.scan(log)?;
            }
        }
        Ok(())
    }

    /// Reads a file on from where its records ended.
    fn scan(&mut self, log: usize) -> io::Result<()> {
        let Log { path, end } = &self.logs[log];
        let mut end = *end;
        let mut file = disk::regular(path)?;
        if file.metadata()?.len() <= end {
            return Ok(());
        }
        file.seek(SeekFrom::Start(end))?;
        let mut file = BufReader::new(file);
        let (mut line, mut body) = (Vec::new(), Vec::new());
        loop {
            line.clear();
            file.by_ref().take(HEAD_MAX).read_until(b'\n', &mut line)?;
            let Some((hash, check, length)) = head(&line) else { break };
            body.clear();
            if file.by_ref().take(length).read_to_end(&mut body)? as u64 != length {
                break;
            }
            let at = end + line.len() as u64;
            end = at + length;
            // What is damaged is passed over, and run again.
            if disk::hash64(&body) == check {
                self.places.insert(hash, Place { log, at, length, check });
            }
        }
        self.logs[log].end = end;
        Ok(())
    }

    /// Runs of which there is a record.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Keys of all records.
    pub(crate) fn keys(&self) -> impl Iterator<Item = u64> {
        self.places.keys().copied()
    }

    /// There is no record.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Where the record is, if there is one.
    pub(crate) fn find(&self, hash: u64) -> Option<Found> {
        let place = *self.places.get(&hash)?;
        Some(Found { path: Arc::clone(&self.logs[place.log].path), place })
    }

    /// Takes a run on; `None` if somebody else has. Whether it was finished meanwhile [`Records::refresh`] tells.
    pub(crate) fn claim(&self, hash: u64) -> io::Result<Option<Claim>> {
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(format!("{hash:016x}.{CLAIM}"));
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Ok(None),
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(Claim { path, _held: file })),
        }
    }

    /// Adds a record that [`pack`] made; on disk when it returns.
    pub(crate) fn append(&mut self, hash: u64, body: Vec<u8>) -> io::Result<()> {
        self.append_all(vec![(hash, body)])
    }

    /// Adds records that [`pack`] made, by the hashes of their runs; on disk when it returns.
    pub(crate) fn append_all(&mut self, records: Vec<(u64, Vec<u8>)>) -> io::Result<()> {
        let own = match self.own.take() {
            Some(own) => own,
            None => self.begin()?,
        };
        let (log, mut end) = (own.log, self.logs[own.log].end);
        let (mut frames, mut places) = (Vec::new(), Vec::with_capacity(records.len()));
        for (hash, body) in records {
            let (length, check) = (body.len() as u64, disk::hash64(&body));
            let head = format!("{hash:016x} {check:016x} {length}\n");
            let at = end + head.len() as u64;
            end = at + length;
            frames.extend(head.into_bytes());
            frames.extend(body);
            places.push((hash, Place { log, at, length, check }));
        }
        let mut file = &own.file;
        if let Err(error) = file.write_all(&frames).and_then(|()| file.sync_data()) {
            // On a full disk half a record takes room that somebody wants. If this fails, too, readers pass over it.
            let whole = self.logs[log].end;
            let _ = if whole > 0 { file.set_len(whole) } else { fs::remove_file(&self.logs[log].path) };
            return Err(error);
        }
        self.logs[log].end = end;
        self.places.extend(places);
        self.own = Some(own);
        Ok(())
    }

    /// A file of this process' own.
    fn begin(&mut self) -> io::Result<Own> {
        fs::create_dir_all(&self.folder)?;
        let mut number = self.logs.len();
        loop {
            number += 1;
            let path = self.folder.join(format!("{number}.{LOG}"));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Ok(file) => {
                    self.logs.push(Log { path: path.into(), end: 0 });
                    return Ok(Own { log: self.logs.len() - 1, file });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Of a file of records: files that began later have larger ones.
fn number(path: &Path) -> u64 {
    path.file_stem().and_then(|stem| stem.to_str()?.parse().ok()).unwrap_or(u64::MAX)
}

/// `<run> <check> <length>`: the first line of a record.
fn head(line: &[u8]) -> Option<(u64, u64, u64)> {
    let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let mut words = line.split(' ');
    let mut hash = || u64::from_str_radix(words.next().filter(|word| word.len() == 16)?, 16).ok();
    let (run, check) = (hash()?, hash()?);
    let length = words.next()?.parse().ok().filter(|&length| length <= SUMMARY_MAX)?;
    words.next().is_none().then_some((run, check, length))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn files(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn append(records: &mut Records, hash: u64, record: &Json) {
        pack(record).and_then(|body| records.append(hash, body)).expect("written");
    }

    fn read(records: &Records, hash: u64) -> Option<Json> {
        records.find(hash)?.read()
    }

    #[test]
    fn what_one_appends_another_finds() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || Records::open(folder.path()).expect("readable");
        let (mut one, mut other) = (open(), open());
        append(&mut one, 1, &json!({ "a": 0.1 }));
        assert!(other.find(1).is_none(), "not looked at yet");
        append(&mut other, 2, &json!([1, null]));
        append(&mut one, 3, &json!("x"));
        one.refresh().expect("readable");
        other.refresh().expect("readable");
        for records in [&one, &other, &open()] {
            assert_eq!(read(records, 1), Some(json!({ "a": 0.1 })));
            assert_eq!(read(records, 2), Some(json!([1, null])));
            assert_eq!(read(records, 3), Some(json!("x")));
            assert_eq!(read(records, 4), None);
        }
        assert_eq!(files(folder.path()), ["1.log", "2.log"], "one for each that wrote");
        append(&mut other, 1, &json!("more"));
        assert_eq!(read(&open(), 1), Some(json!("more")), "what was written last");
    }

    /// Whatever of the last record a kill left: those before it are whole, it is not there, and the next is.
    #[test]
    fn half_a_record_is_none_and_hides_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut records = Records::open(folder.path()).expect("readable");
        append(&mut records, 1, &json!({ "is": "whole" }));
        let whole = fs::read(folder.path().join("1.log")).expect("a file");
        append(&mut records, 2, &json!({ "is": "the last" }));
        let both = fs::read(folder.path().join("1.log")).expect("a file");
        drop(records);
        for length in whole.len()..both.len() {
            fs::write(folder.path().join("1.log"), &both[..length]).expect("written");
            let _ = fs::remove_file(folder.path().join("2.log"));
            let mut records = Records::open(folder.path()).expect("readable");
            assert_eq!(
                (records.find(1).is_some(), records.find(2).is_some()),
                (true, false),
                "{length} bytes"
            );
            append(&mut records, 2, &json!("again"));
            let records = Records::open(folder.path()).expect("readable");
            assert_eq!(read(&records, 2), Some(json!("again")), "{length} bytes");
            assert_eq!(read(&records, 1), Some(json!({ "is": "whole" })));
        }
        // A byte that is another in the middle costs its record, and no other.
        for at in 0..whole.len() {
            let mut damaged = both.clone();
            damaged[at] ^= 1;
            fs::write(folder.path().join("1.log"), damaged).expect("written");
            let records = Records::open(folder.path()).expect("readable");
            assert_ne!(read(&records, 1), Some(json!({ "is": "another" })));
            let is_in_body = at > whole.iter().position(|&byte| byte == b'\n').expect("a line");
            assert!(!is_in_body || records.find(1).is_none() && records.find(2).is_some(), "byte {at}");
        }
    }

    #[test]
    fn a_run_is_claimed_by_one_and_free_when_that_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || Records::open(folder.path()).expect("readable");
        let (one, other) = (open(), open());
        let claim = one.claim(7).expect("a claim").expect("free");
        assert!(other.claim(7).expect("no error").is_none());
        assert!(other.claim(8).expect("no error").is_some());
        drop(claim);
        drop(other.claim(7).expect("a claim").expect("free again"));
        assert!(files(folder.path()).is_empty(), "claims leave nothing");
    }
}
