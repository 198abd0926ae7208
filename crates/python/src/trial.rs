//! Laws in Python on trial: the questions of `congestlab check law`.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use congestlab_scenario::trial::{self, Answer, Asking};
use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;

use crate::law::{self, Trouble};
use crate::wait::{Limits, wait_for_laws};

/// Question, `ok`, `FAIL` or `skip`, and details, of each.
type Told = Vec<(&'static str, &'static str, String)>;

/// Spans in which a law has to answer: a call of it, and a question.
const LIMITS: Limits = Limits { call: Duration::from_secs(10), all: Duration::from_secs(600) };

/// Asks every question of a law of senders, of one of links, or of both together. Ctrl-C ends it.
#[pyfunction]
pub(crate) fn check_law(py: Python<'_>, laws: Vec<Bound<'_, PyAny>>) -> PyResult<Told> {
    let trouble = Arc::new(Trouble::default());
    let (protocol, lowers) = law::protocol(&laws, &trouble)?;
    // A law that never returns keeps it.
    let protocol: &'static _ = Box::leak(Box::new(protocol));
    let interrupted = RefCell::new(None);
    let is_over = Cell::new(false);
    let ask = |question: &'static str, asking: Asking<'static>| {
        if is_over.get() {
            return Some(Answer::NotAsked("what never ends above comes first".into()));
        }
        if interrupted.borrow().is_some() {
            return Some(Answer::NotAsked("interrupted".into()));
        }
        let answer = match wait_for_laws(py, &trouble, Some(LIMITS), asking) {
            Ok(answer) => answer,
            Err(error) if error.is_instance_of::<PyTimeoutError>(py) => {
                is_over.set(true);
                return Some(Answer::No(error.value(py).to_string()));
            }
            Err(error) => {
                *interrupted.borrow_mut() = Some(error);
                return Some(Answer::NotAsked("interrupted".into()));
            }
        };
        if let Some(error) = trouble.take() {
            return Some(Answer::No(format!("it raises {}", raised(py, &error))));
        }
        Some(match (question, answer) {
            (trial::LOWERS, Answer::Yes(_) | Answer::No(_)) if protocol.link.is_some() && !lowers => {
                Answer::NotAsked("the link law has no only_lowers(came, left)".into())
            }
            (trial::RAISES, Answer::Yes(text)) if !lowers => {
                Answer::Yes(format!("{text}; it has no only_lowers(came, left) to say what is raised"))
            }
            (_, answer) => answer,
        })
    };
    let mut told = Told::new();
    trial::of(protocol, &ask, &mut |question, answer| {
        told.push(match answer {
            Answer::Yes(text) => (question, "ok", text),
            Answer::No(text) => (question, "FAIL", text),
            Answer::NotAsked(text) => (question, "skip", text),
        });
    });
    interrupted.into_inner().map_or(Ok(told), Err)
}

/// The exception, and the line of the law that raised it.
fn raised(py: Python<'_>, error: &PyErr) -> String {
    let mut last = error.traceback(py).map(Bound::into_any);
    let mut line = None;
    while let Some(frame) = last.filter(|frame| !frame.is_none()) {
        line = frame.getattr("tb_lineno").and_then(|line| line.extract::<u32>()).ok();
        last = frame.getattr("tb_next").ok();
    }
    line.map_or_else(|| error.to_string(), |line| format!("{error}, in line {line}"))
}
