//! How far a sweep has come, for those who only look: its folder says how many runs there are to be.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value as Json, json};

use crate::results::records::Records;
use congestlab_text::disk;

/// Where what is complete is kept, below the folder of a sweep.
pub const POINTS: &str = "points";
/// The file beside the records that says how many there are to be.
const PLAN: &str = "plan.json";
/// The largest such file that is read.
const PLAN_MAX: u64 = 1 << 16;

/// How far a sweep has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Name of the scenario; `None`: the folder does not say.
    pub scenario: Option<String>,
    /// Runs that are complete.
    pub done: u64,
    /// Runs that there are to be, each once however many points it answers; `None`: the folder does not say.
    pub all: Option<u64>,
}

/// Writes how many runs there are to be, unless that stands there already.
pub(crate) fn plan(points: &Path, scenario: &str, all: usize, foreign: usize) -> io::Result<()> {
    let path = points.join(PLAN);
    let text = json!({ "scenario": scenario, "runs": all, "foreign": foreign }).to_string();
    if disk::read_file(&path, PLAN_MAX).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    fs::create_dir_all(points)?;
    disk::write_atomically(&path, text.as_bytes())
}

/// Reads how far the sweep of a folder has come; `None` if there is none.
///
/// # Errors
/// Those of the file system.
pub fn standing(folder: &Path) -> io::Result<Option<Standing>> {
    let points = folder.join(POINTS);
    if !points.is_dir() {
        return Ok(None);
    }
    let records = Records::open(&points)?.len() as u64;
    let plan: Json = disk::read_file(&points.join(PLAN), PLAN_MAX)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    let all = plan["runs"].as_u64();
    let done = records.saturating_sub(plan["foreign"].as_u64().unwrap_or(0));
    let scenario = plan["scenario"].as_str().map(str::to_owned);
    Ok(Some(Standing { scenario, done: done.min(all.unwrap_or(done)), all }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::records::pack;

    #[test]
    fn what_others_left_is_not_counted_and_a_damaged_plan_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(standing(folder.path()).expect("readable"), None);
        let points = folder.path().join(POINTS);
        fs::create_dir(&points).expect("writable");
        let mut records = Records::open(&points).expect("readable");
        for hash in 1..=3 {
            records.append(hash, pack(&json!(hash)).expect("packed")).expect("written");
        }
        let read = || standing(folder.path()).expect("readable").expect("a sweep");
        assert_eq!(read(), Standing { scenario: None, done: 3, all: None });
        plan(&points, "first", 5, 1).expect("written");
        assert_eq!(read(), Standing { scenario: Some("first".into()), done: 2, all: Some(5) });
        plan(&points, "first", 1, 0).expect("written");
        assert_eq!(read().done, 1, "no more than all");
        fs::write(points.join(PLAN), "{").expect("written");
        assert_eq!(read(), Standing { scenario: None, done: 3, all: None });
    }
}
