//! Files written whole or not at all, and files of others read with care.
//!
//! What is being written has a hidden name that ends in `.part`, and whoever writes it holds a lock on it. The lock ends
//! with its process, however that ends: what nobody holds is litter, and the next who writes into that folder clears it
//! away.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a file whole or not at all: beside its place first, then renamed.
///
/// # Errors
/// Those of the file system.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with(path, |out| out.write_all(bytes))
}

/// As [`write_atomically`], from a function that writes.
///
/// # Errors
/// Those of the file system and of the function.
pub fn write_with(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    let (temporary, file) = part(path)?;
    let result = (|| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if result.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Makes a file in a folder and takes it away, with what others left there half-written.
///
/// # Errors
/// Those of the file system.
pub fn try_folder(folder: &Path) -> io::Result<()> {
    let (path, _held) = part(&folder.join("try"))?;
    fs::remove_file(&path)?;
    clear(folder);
    Ok(())
}

/// A file beside `path`, held for as long as it is open.
fn part(path: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let path = sibling(path);
        let file = File::create(&path)?;
        if hold(&file, &path) {
            return Ok((path, file));
        }
    }
}

/// A folder beside `path`, held for as long as the file is open.
pub fn part_folder(path: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let path = sibling(path);
        fs::create_dir_all(&path)?;
        let lock = path.join(LOCK);
        match File::create(&lock) {
            Ok(file) if hold(&file, &lock) => return Ok((path, file)),
            // Somebody found it before it was held.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

/// Name of an older result that is out of the way, in a folder that is held: [`clear`] puts it back.
pub const OLDER: &str = "older";

/// In a folder that is being written; not a part of what is written.
pub const LOCK: &str = ".lock";

/// Locks a file that was made just now; false if it was taken for litter before. File systems without locks have no
/// litter, because nobody clears there.
fn hold(file: &File, path: &Path) -> bool {
    !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && path.exists()
}

/// Clears away what was half-written by processes that have ended.
pub fn clear(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type());
        if !is_part(&entry.file_name().to_string_lossy()) {
            continue;
        }
        match kind {
            Ok(kind) if kind.is_file() => {
                if let Some(_held) = litter(&path) {
                    let _ = fs::remove_file(&path);
                }
            }
            Ok(kind) if kind.is_dir() => match path.join(LOCK).symlink_metadata() {
                Ok(lock) if lock.is_file() => {
                    if let Some(_held) = litter(&path.join(LOCK)) {
                        // Who took it aside did not live to put another in its place.
                        let _ = fs::rename(path.join(OLDER), owner(&path));
                        let _ = fs::remove_dir_all(&path);
                    }
                }
                Ok(_) => {}
                // Not held yet, or no more; nothing that is in it goes.
                Err(_) => drop(fs::remove_dir(&path)),
            },
            _ => {}
        }
    }
}

/// Takes a file that nobody holds. It stays taken until it is gone: who makes one of this name meanwhile finds it held,
/// and makes another.
fn litter(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    // Gone is what was given its name meanwhile.
    (file.try_lock().is_ok() && path.exists()).then_some(file)
}

/// A name beside `path` that no other process and no other call uses; see [`is_part`].
fn sibling(path: &Path) -> PathBuf {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}-{call}.part", std::process::id()));
    path.with_file_name(name)
}

/// Name that a name of [`sibling`] was to become.
fn owner(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_prefix('.').and_then(|name| name.strip_suffix(".part")).unwrap_or_default();
    path.with_file_name(name.rsplit_once('.').map_or(name, |(name, _)| name))
}

/// True if a name is one that [`sibling`] gives.
fn is_part(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let rest = name.strip_prefix('.').and_then(|name| name.strip_suffix(".part"));
    let numbers = rest.and_then(|rest| rest.rsplit_once('.')?.1.split_once('-'));
    numbers.is_some_and(|(process, call)| number(process) && number(call))
}

/// Reads a file of at most so many bytes. A device or a pipe is none: they may have no end, or nobody who writes.
///
/// # Errors
/// Those of the file system; it is no file, or larger.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (mut bytes, file) = (Vec::new(), regular(path)?);
    // It may grow while it is read.
    if file.metadata()?.len() <= most {
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= most {
            return Ok(bytes);
        }
    }
    Err(io::Error::other(format!("it is larger than {} MiB", most >> 20)))
}

/// Opens what is a file, which a pipe would not let go.
pub fn regular(path: &Path) -> io::Result<File> {
    let refuse = |kind: fs::FileType| {
        let what = if kind.is_dir() { "it is a folder" } else { "it is a device or a pipe, not a file" };
        Err(io::Error::other(what))
    };
    let before = fs::metadata(path)?.file_type();
    if !before.is_file() {
        return refuse(before);
    }
    let file = File::open(path)?;
    let after = file.metadata()?.file_type();
    if after.is_file() { Ok(file) } else { refuse(after) }
}

/// A name that every file system takes.
pub fn file_name(name: &str) -> String {
    let mut length = 0;
    let clean: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' })
        .take_while(|c| {
            length += c.len_utf8();
            length <= 64
        })
        .collect();
    let clean = clean.trim_start_matches('.');
    if clean.is_empty() { "scenario".into() } else { clean.into() }
}

/// 64-bit FNV-1a of texts, in hexadecimal: names files, keeps no secret.
pub fn hash(parts: &[&[u8]]) -> String {
    let hash = parts.iter().fold(FNV, |hash, part| {
        // The length keeps ("ab", "c") and ("a", "bc") apart.
        fnv(fnv(hash, part), &(part.len() as u64).to_le_bytes())
    });
    format!("{hash:016x}")
}

/// The same of bytes, as a number.
pub fn hash64(bytes: &[u8]) -> u64 {
    fnv(FNV, bytes)
}

/// The same of a file.
///
/// # Errors
/// Those of the file system; it is no file.
pub fn hash_file(path: &Path) -> io::Result<String> {
    let (mut file, mut buffer) = (regular(path)?, vec![0; 1 << 16]);
    let (mut hash, mut length) = (FNV, 0);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(format!("{:016x}", fnv(hash, &u64::to_le_bytes(length))));
        }
        hash = fnv(hash, &buffer[..count]);
        length += count as u64;
    }
}

const FNV: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
