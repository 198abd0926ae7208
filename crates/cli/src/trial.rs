//! `congestlab check law`: a protocol of the list is put to its trial.

pub(crate) mod kernel;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use congestlab_scenario::diagnostic::choices;
use congestlab_scenario::laws::Protocol;
use congestlab_scenario::store;
use congestlab_scenario::trial::{self, Answer, Asking};
use serde_json::{Value, json};

use crate::failure::{Failure, Message};
use crate::machine::Clock;
use crate::output::{Screen, print};

/// Seconds of computing, and of all, after which nobody waits for an answer any more. Laws of the list take five of the
/// former at most; the latter is for those that wait for something.
const MOST: [f64; 2] = [100.0, 1800.0];

/// Asks in a thread that has the name of the question, so that whatever ends the program, as a stack that overflows, tells
/// where; `None`: the answer does not come.
fn within([computing, all]: [f64; 2], question: &'static str, asking: Asking<'static>) -> Option<Answer> {
    let (send, answers) = mpsc::channel();
    // As much as a program's own stack, for tests of laws that compilers did not optimise.
    let asked = thread::Builder::new().name(question.into()).stack_size(16 << 20).spawn(move || {
        // Nobody listens any more: the answer came too late.
        let _ = send.send(asking());
    });
    if let Err(error) = asked {
        return Some(Answer::NotAsked(format!("no thread for it: {error}")));
    }
    let clock = Clock::start();
    loop {
        match answers.recv_timeout(Duration::from_millis(100)) {
            Ok(answer) => return Some(answer),
            Err(RecvTimeoutError::Timeout) if clock.cpu() < computing && clock.wall() < all => {}
            Err(_) => return None,
        }
    }
}

pub(crate) fn trial(name: &str, screen: &Screen) -> Result<(), Failure> {
    let Some(protocol) = Protocol::of(name) else {
        let known = choices(name, Protocol::all().map(|protocol| protocol.name));
        return Err(Failure::Input(Message::new(format!("there is no law `{name}`"), known)));
    };
    let mut answers: Vec<Value> = Vec::new();
    let mut refused = 0;
    let mut printed = Ok(());
    let mut take = |question: &'static str, answer: Answer| {
        let (word, text) = match answer {
            Answer::Yes(text) => ("ok", text),
            Answer::No(text) => ("FAIL", text),
            Answer::NotAsked(text) => ("skip", text),
        };
        refused += usize::from(word == "FAIL");
        if screen.json {
            answers.push(json!({ "question": question, "answer": word, "details": text }));
        } else if printed.is_ok() {
            printed = print(&format!("{word:<5} {question}\n      {text}\n"));
        }
    };
    trial::of(protocol, &|question, asking| within(MOST, question, asking), &mut take);
    take(
        "BPF: the law compiles for kernels, and nothing that it calls is missing there",
        kernel::build(protocol),
    );
    printed?;
    if cfg!(not(debug_assertions)) && !screen.quiet {
        crate::output::say("this build wraps what overflows; one without --release finds it");
    }
    if screen.json {
        print(&store::pretty(&json!({ "law": name, "holds": refused == 0, "answers": answers })))?;
    }
    if refused > 0 {
        let text = format!("{name} fails {refused} of what every law must satisfy");
        return Err(Failure::Claim(Message::new(text, "see docs/new-law.md")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A law that computes for ever, one that waits for ever, and one that answers.
    #[test]
    fn nobody_waits_for_an_answer_that_never_comes() {
        let is_over = Arc::new(AtomicBool::new(false));
        for is_busy in [true, false] {
            let over = is_over.clone();
            let asking = move || {
                while !over.load(Ordering::Relaxed) {
                    if is_busy {
                        std::hint::spin_loop();
                    } else {
                        thread::sleep(Duration::from_millis(10));
                    }
                }
                Answer::Yes(String::new())
            };
            let most = if is_busy { [0.2, 600.0] } else { [600.0, 0.2] };
            assert_eq!(within(most, "does it end", Box::new(asking)), None);
        }
        is_over.store(true, Ordering::Relaxed);
        let name = || Answer::Yes(thread::current().name().unwrap_or_default().into());
        assert_eq!(within(MOST, "does it end", Box::new(name)), Some(Answer::Yes("does it end".into())));
    }
}
