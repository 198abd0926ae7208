//! Byte queue limits of an interface (`lib/dynamic_queue_limits.c` in the kernel): what its driver has in flight in the hardware's
//! queues, and what has gone, as files of sysfs show them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Context, Error, Result};

/// Where the kernel shows interfaces.
const SYSFS: &str = "/sys/class/net";

/// State of the hardware's queues at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// Bytes of frames that the driver has sent.
    pub bytes: u64,
    /// Frames that the driver has sent.
    pub packets: u64,
    /// Bytes that are in flight, in all queues.
    pub waiting: u64,
}

/// A reader of one interface's limits.
#[derive(Debug)]
pub struct BqlReader {
    folder: PathBuf,
    queues: Vec<PathBuf>,
}

impl BqlReader {
    /// Opens a reader of the interface with this name and index.
    ///
    /// # Errors
    /// If the interface keeps no limits, nothing has ever moved them, or sysfs shows the interfaces of another network namespace.
    pub fn open(name: &str, index: i32) -> Result<Self> {
        Self::open_in(Path::new(SYSFS), name, index)
    }

    fn open_in(sysfs: &Path, name: &str, index: i32) -> Result<Self> {
        const HELP: &str =
            "drain measures the interface's own queue, qdisc asks its shaper, command:'CMD' a program";
        let folder = sysfs.join(name);
        if number(&folder.join("ifindex")).ok() != u64::try_from(index).ok() {
            return Err(Error::input(
                format!("{} shows the interfaces of another network namespace", sysfs.display()),
                "enter the namespace with ip netns exec, which mounts /sys anew",
            ));
        }
        let list = fs::read_dir(folder.join("queues"))
            .context(|| format!("can not read {}", folder.join("queues").display()))?;
        let limits = list.flatten().map(|queue| queue.path().join("byte_queue_limits"));
        let mut queues: Vec<PathBuf> = limits.filter(|limits| limits.join("inflight").is_file()).collect();
        queues.sort();
        if queues.is_empty() {
            let what =
                format!("{name} keeps no byte queue limits: its driver does not say what is in flight");
            return Err(Error::input(what, HELP));
        }
        // A limit is 0 until the first byte has come back from the hardware (dql_reset, dql_completed).
        let has_moved = queues.iter().any(|queue| number(&queue.join("limit")).is_ok_and(|limit| limit > 0));
        if !has_moved {
            let what = format!(
                "the byte queue limits of {name} have never moved: its driver does not count, or has sent nothing yet"
            );
            return Err(Error::input(what, HELP));
        }
        Ok(Self { folder, queues })
    }

    /// Reads the present state.
    ///
    /// # Errors
    /// If the interface is gone.
    pub fn read(&self) -> Result<InFlight> {
        let mut waiting = 0;
        for queue in &self.queues {
            waiting += number(&queue.join("inflight"))?;
        }
        let sent = self.folder.join("statistics");
        Ok(InFlight {
            bytes: number(&sent.join("tx_bytes"))?,
            packets: number(&sent.join("tx_packets"))?,
            waiting,
        })
    }
}

/// The number in a file.
fn number(file: &Path) -> Result<u64> {
    let text = fs::read_to_string(file).context(|| format!("can not read {}", file.display()))?;
    text.trim().parse().map_err(|_| {
        Error::input(format!("{} holds {:?}, which is no number", file.display(), text.trim()), "")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sysfs with an interface of two queues.
    fn sysfs(limit: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let file = root.path().join("eth9").join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{text}\n")).unwrap();
        };
        put("ifindex", "7");
        put("statistics/tx_bytes", "1000000");
        put("statistics/tx_packets", "1000");
        put("queues/rx-0/rps_cpus", "0");
        for (queue, inflight) in [("tx-0", "3000"), ("tx-1", "1500")] {
            put(&format!("queues/{queue}/byte_queue_limits/inflight"), inflight);
            put(&format!("queues/{queue}/byte_queue_limits/limit"), limit);
        }
        root
    }

    #[test]
    fn what_is_in_flight_is_the_sum_over_all_queues() {
        let root = sysfs("4512");
        let reader = BqlReader::open_in(root.path(), "eth9", 7).unwrap();
        let expected = InFlight { bytes: 1_000_000, packets: 1000, waiting: 4500 };
        assert_eq!(reader.read().unwrap(), expected);
        fs::write(root.path().join("eth9/statistics/tx_bytes"), "many").unwrap();
        assert!(reader.read().unwrap_err().to_string().contains("\"many\""));
    }

    #[test]
    fn limits_that_are_not_there_or_never_move_are_refused() {
        let open = |root: &Path, index| BqlReader::open_in(root, "eth9", index).unwrap_err();
        let still = sysfs("0");
        let without = sysfs("1");
        fs::remove_dir_all(without.path().join("eth9/queues")).unwrap();
        fs::create_dir_all(without.path().join("eth9/queues/tx-0")).unwrap();
        for (root, index, says) in [
            (still.path(), 7, "have never moved"),
            (without.path(), 7, "keeps no byte queue limits"),
            (still.path(), 8, "another network namespace"),
        ] {
            let error = open(root, index);
            assert!(error.exit_code() == 2 && error.to_string().contains(says), "{error}");
        }
        // Loopback has none on any machine.
        let error = BqlReader::open("lo", 1).unwrap_err();
        assert!(error.to_string().contains("lo keeps no byte queue limits"), "{error}");
    }
}
