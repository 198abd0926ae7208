//! Work that takes its time: on a thread of its own, without the GIL, ended by Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyTimeoutError};
use pyo3::prelude::*;

use crate::law::Trouble;

/// How often whoever waits looks for signals: Ctrl-C is answered within 0.2 s, which the engine has a part of.
pub(crate) const SIGNALS_EVERY: Duration = Duration::from_millis(25);
/// Looks after which a law that does not return is left to itself: two seconds.
const PATIENCE: u32 = 80;

/// Does `work` on a thread of its own. Other threads of Python go on; a signal whose handler raises sets `stop`, and the
/// exception is raised once the work has ended.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (done, interrupt) = std::thread::scope(|scope| {
        let (send, mut receive) = mpsc::sync_channel(1);
        let worker = scope.spawn(move || send.send(work()));
        let mut interrupt = None;
        let done = loop {
            match look(py, &mut receive) {
                Ok(done) => break Some(done),
                Err(mpsc::RecvTimeoutError::Disconnected) => break None,
                Err(mpsc::RecvTimeoutError::Timeout) if interrupt.is_some() => {}
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
    match (done, interrupt) {
        (_, Some(error)) => Err(error),
        (done, None) => done.ok_or_else(panicked),
    }
}

/// Waits a moment without the GIL.
fn look<T: Send>(py: Python<'_>, receive: &mut mpsc::Receiver<T>) -> Result<T, mpsc::RecvTimeoutError> {
    // std's receiver is not Sync: the closure without the GIL takes it, and hands it back.
    let (_, none) = mpsc::sync_channel(0);
    let taken = std::mem::replace(receive, none);
    let (back, got) = py.detach(move || {
        let got = taken.recv_timeout(SIGNALS_EVERY);
        (taken, got)
    });
    *receive = back;
    got
}

fn panicked() -> PyErr {
    PyRuntimeError::new_err("congestlab has panicked, which is a mistake in it: see stderr")
}

/// Spans after which work that calls laws in Python is given up: a single call, and all of the work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) call: Duration,
    pub(crate) all: Duration,
}

/// Does `work` that calls laws in Python on a thread of its own. A signal whose handler raises ends it: the exception is raised
/// in a law that does not return, too. A law that sleeps in C never sees it; its thread is left to itself after two seconds, and
/// the exception names the method.
///
/// # Errors
/// The exception of a signal, or `TimeoutError` with the method if a limit is exceeded.
pub(crate) fn wait_for_laws<T: Send + 'static>(
    py: Python<'_>,
    trouble: &Arc<Trouble>,
    limits: Option<Limits>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, mut receive) = mpsc::sync_channel(1);
    let own = Arc::clone(trouble);
    // Attached once, or each call of a law would make the thread known to Python anew.
    let work = move || {
        let done = Python::attach(|py| {
            own.enter(py);
            py.detach(work)
        });
        // A caller that has given up takes nothing.
        let _ = send.send(done);
    };
    std::thread::Builder::new()
        .spawn(work)
        .map_err(|error| PyRuntimeError::new_err(format!("no thread for the law: {error}")))?;
    let mut interrupt: Option<PyErr> = None;
    let (mut looks, mut since, mut last) = (0, 0, trouble.last_call());
    loop {
        match look(py, &mut receive) {
            Ok(done) => return interrupt.map_or(Ok(done), Err),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(interrupt.unwrap_or_else(panicked)),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        looks += 1;
        let call = trouble.last_call();
        if call != last || call.1.is_none() {
            (since, last) = (looks, call);
        }
        let method = call.1.unwrap_or("a method");
        if let Some(error) = &interrupt {
            trouble.interrupt(py);
            if looks > PATIENCE {
                let left = format!("{method} of the law has not returned, and its thread goes on until it does");
                if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    return Err(PyKeyboardInterrupt::new_err(left));
                }
                return Err(interrupt.unwrap_or_else(panicked));
            }
            continue;
        }
        let is_over = |looks: u32, limit: Duration| SIGNALS_EVERY.saturating_mul(looks) > limit;
        let timeout = limits.and_then(|Limits { call, all }| {
            if is_over(looks - since, call) {
                return Some(format!("{method} of the law has not returned for {} s", call.as_secs()));
            }
            is_over(looks, all).then(|| {
                format!("the law is called for ever: not over after {} s, {method} was last", all.as_secs())
            })
        });
        interrupt = match timeout {
            Some(text) => Some(PyTimeoutError::new_err(text)),
            None => py.check_signals().err(),
        };
        if interrupt.is_some() {
            trouble.stop().store(true, Ordering::Relaxed);
            looks = 0;
            since = 0;
        }
    }
}
