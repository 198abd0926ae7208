//! The page's simulator without a page: questions of `page/engine.js` as lines, answered by one thread of this machine.
//!
//! `tests/measure.mjs` holds the speed of the module against it: the same code does the same work. Of each answer it tells
//! the fingerprint, the packet-hops, and the seconds from the bytes of the question to those of the answer.

use std::io::{BufRead as _, Write as _};
use std::time::Instant;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for question in std::io::stdin().lock().lines() {
        let question = question?;
        #[expect(
            clippy::disallowed_methods,
            reason = "it is what the program is for; no result depends on it"
        )]
        let begin = Instant::now();
        let (status, answer) = congestlab_playground::ask(question.as_bytes());
        let seconds = begin.elapsed().as_secs_f64();
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        let result = &answer["result"];
        let told = serde_json::json!({
            "status": status, "seconds": seconds,
            "packet_hops": result["packet_hops"], "fingerprint": result["fingerprint"],
        });
        writeln!(out, "{told}")?;
        out.flush()?;
    }
    Ok(())
}
