//! `congestlab check law`: a protocol of the list is put to its trial.

mod kernel;

use congestlab_scenario::diagnostic::choices;
use congestlab_scenario::laws::Protocol;
use congestlab_scenario::store;
use congestlab_scenario::trial::{self, Answer};
use serde_json::{Value, json};

use crate::failure::{Failure, Message};
use crate::output::{Screen, print};

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
    trial::of(protocol, &mut take);
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
