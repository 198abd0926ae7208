//! Work that takes its time: on a thread of its own, without the GIL, ended by Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::law::Trouble;

/// How often whoever waits looks for signals: Ctrl-C is answered within 0.2 s, which the engine has a part of.
pub(crate) const SIGNALS_EVERY: Duration = Duration::from_millis(25);

/// Does `work` on a thread of its own. Other threads of Python go on; a signal whose handler raises sets `stop`, and the
/// exception is raised once the work has ended.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    wait_and(py, stop, &|_| {}, work)
}

/// The same of work that calls laws in Python. One of them may never return: then the exception is raised in it, too.
pub(crate) fn wait_for_laws<T: Send>(
    py: Python<'_>,
    trouble: &Trouble,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    // Attached once, or each call of a law would make the thread known to Python anew.
    let work = || {
        Python::attach(|py| {
            trouble.enter(py);
            py.detach(work)
        })
    };
    wait_and(py, trouble.stop(), &|py| trouble.interrupt(py), work)
}

/// `hurry` is called again and again while work goes on that was to stop.
fn wait_and<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    hurry: &dyn Fn(Python<'_>),
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (done, interrupt) = std::thread::scope(|scope| {
        let (send, receive) = mpsc::sync_channel(1);
        let worker = scope.spawn(move || send.send(work()));
        // std's receiver is not Sync: the closure without the GIL has it, and hands it back.
        let (mut receive, mut interrupt) = (receive, None);
        let done = loop {
            let (back, got) = py.detach(move || {
                let got = receive.recv_timeout(SIGNALS_EVERY);
                (receive, got)
            });
            receive = back;
            match got {
                Ok(done) => break Some(done),
                Err(mpsc::RecvTimeoutError::Disconnected) => break None,
                Err(mpsc::RecvTimeoutError::Timeout) if interrupt.is_some() => hurry(py),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    if let Err(error) = py.check_signals() {
                        stop.store(true, Ordering::Relaxed);
                        interrupt = Some(error);
                    }
                }
            }
        };
        // A panic was told on stderr.
        let _ = worker.join();
        (done, interrupt)
    });
    if let Some(error) = interrupt {
        return Err(error);
    }
    done.ok_or_else(|| {
        PyRuntimeError::new_err("congestlab has panicked, which is a mistake in it: see stderr")
    })
}
