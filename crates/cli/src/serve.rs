//! `congestlab serve`: the runs and sweeps of a folder as a page in the browser of this machine.
//!
//! It only reads, and answers only a browser of this machine that was given the address: it listens on 127.0.0.1, the address has
//! 128 random bits in it, and requests that name another host (a name that was bound to 127.0.0.1 anew) or come from a page of
//! another origin are refused. What may be asked for is a fixed list and the names of the runs that were found, so no request
//! names a file. A stranger may have written a folder: child processes draw reports from its numbers and decode its tables, and
//! a damaged table can end a child only.

mod line;
mod list;

use std::io::{self, Read as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use congestlab_scenario::folder::FolderError;
use congestlab_scenario::style;
use serde_json::json;

use crate::args::ServeArguments;
use crate::failure::{Failure, Message};
use crate::http::{self, Answer, Request};
use crate::machine::{self, Clock};
use crate::output::{Screen, print};
use crate::signals;
use list::{Kind, List, has_links};

const PAGE: &str = include_str!("serve/page.html");
const PROGRAM: &str = include_str!("serve/page.js");
const STYLE: &str = include_str!("serve/page.css");
/// Reports and comparisons at once, until they are sent, and seconds for which another waits.
const MADE_AT_ONCE: usize = 2;
const WAIT_S: f64 = 10.0;
/// Seconds after which one is given up, and the largest that is shown, bytes.
const MADE_S: f64 = 30.0;
const MADE_MAX: u64 = 32 << 20;
/// Time between two looks at whether to end.
const STEP: Duration = Duration::from_millis(50);
/// The page asks for its own files, shows reports in frames, and its pictures are in its memory.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src data:; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// A report has an origin of its own, which is nobody's, and asks nobody for anything. Its script is ours: the file in the folder
/// could have one that opens connections, which no policy forbids (preconnect, WebRTC).
const REPORT_POLICY: &str = "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; \
    style-src 'unsafe-inline'; img-src data: blob:; frame-ancestors 'self'; base-uri 'none'; form-action 'none'";

/// Serves until Ctrl-C, SIGTERM or SIGHUP, which is its end and no interruption.
pub(crate) fn serve(arguments: &ServeArguments, screen: &Screen) -> Result<(), Failure> {
    let refuse = |error: io::Error| {
        let text = format!("can not read {}: {error}", arguments.runs.display());
        Failure::Input(Message::new(
            text,
            "give a folder of runs, as `congestlab run FILE --out DIR` makes it",
        ))
    };
    if !arguments.runs.is_dir() {
        return Err(Failure::folder(FolderError::none(arguments.runs.clone())));
    }
    let root = arguments.runs.canonicalize().map_err(refuse)?;
    std::fs::read_dir(&root).map_err(refuse)?;
    let stop = signals::stop_flag()?;
    let failed = |error: io::Error| {
        let text = format!("can not serve on port {} of 127.0.0.1: {error}", arguments.port);
        Failure::Run(Message::new(text, "another port, or none for one that is free"))
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let token = format!("{:032x}", machine::secret().map_err(failed)?);
    let url = format!("http://127.0.0.1:{port}/{token}/");
    let served = Served {
        token,
        hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")],
        list: Mutex::new(List::new(root.clone())),
        root,
        making: Arc::new(AtomicUsize::new(0)),
    };
    let answer = Arc::new(move |request: &Request| served.answer(request));
    let spawned =
        thread::Builder::new().name("serve".into()).spawn(move || http::accept(&listener, "serve", answer));
    spawned.map_err(failed)?;
    // One line, so that a program can read it while this goes on.
    print(&if screen.json { format!("{}\n", json!({ "url": url })) } else { format!("{url}\n") })?;
    screen.note("for a browser of this machine, and nobody else: the address is the key; Ctrl-C ends it");
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(STEP);
    }
    Ok(())
}

struct Served {
    token: String,
    hosts: [String; 2],
    /// Without links in it.
    root: PathBuf,
    list: Mutex<List>,
    making: Arc<AtomicUsize>,
}

impl Served {
    fn answer(&self, request: &Request) -> Answer {
        let mut answer = match self.require_friend(request) {
            Ok(()) => self.of(request).unwrap_or_else(|refusal| refusal),
            Err(refusal) => refusal,
        };
        if !answer.headers.iter().any(|(name, _)| *name == "Content-Security-Policy") {
            answer
                .headers
                .push(("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'".into()));
        }
        for (name, value) in [
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
        ] {
            answer.headers.push((name, value.into()));
        }
        answer
    }

    /// Refuses whoever was sent here by another page, or by a name that is not this machine's own.
    fn require_friend(&self, request: &Request) -> Result<(), Answer> {
        let refuse = |code, text: &str| Err(Answer::refusal(code, text));
        match request.header("host") {
            Ok(Some(host)) if self.hosts.iter().any(|known| known == host) => {}
            _ => return refuse(421, "this is not the host that was asked for"),
        }
        match request.header("origin") {
            Ok(None) => {}
            Ok(Some(origin))
                if self.hosts.iter().any(|known| origin.strip_prefix("http://") == Some(known)) => {}
            _ => return refuse(403, "pages of another origin are not answered"),
        }
        match request.header("sec-fetch-site") {
            // `none`: somebody typed the address, or clicked on it in a terminal.
            Ok(None | Some("same-origin" | "none")) => Ok(()),
            _ => refuse(403, "pages of another origin are not answered"),
        }
    }

    fn of(&self, request: &Request) -> Result<Answer, Answer> {
        let nothing = || Answer::refusal(404, "there is nothing here");
        let (token, rest) =
            request.path().strip_prefix('/').and_then(|path| path.split_once('/')).ok_or_else(nothing)?;
        if !is_same(token.as_bytes(), self.token.as_bytes()) {
            return Err(nothing());
        }
        let query = request.query().ok_or_else(|| Answer::refusal(400, "the query is no text"))?;
        let told = |name: &str| {
            let value = query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
            value.ok_or_else(|| Answer::refusal(400, format!("the query has no {name}")))
        };
        match rest {
            "" => {
                let mut answer = Answer::of("text/html; charset=utf-8", PAGE);
                answer.headers.push(("Content-Security-Policy", PAGE_POLICY.into()));
                Ok(answer)
            }
            "page.js" => Ok(Answer::of("text/javascript; charset=utf-8", PROGRAM)),
            "page.css" => Ok(Answer::of("text/css; charset=utf-8", style::css() + STYLE)),
            "list" => {
                let since = told("since")?.parse().map_err(|_| Answer::refusal(400, "since is no number"))?;
                let mut list = self.list.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                list.look();
                Ok(Answer::of("application/json", list.since(since)))
            }
            "report" => self.report(told("of")?),
            "compare" => self.compare([told("one")?, told("other")?]),
            _ => Err(nothing()),
        }
    }

    /// Returns the folder of what the list has by this name, if it is still below the folder that is served.
    fn folder(&self, name: &str, kind: Option<Kind>) -> Result<PathBuf, Answer> {
        let is_known = {
            let list = self.list.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            list.kind(name).is_some_and(|found| kind.is_none_or(|kind| kind == found))
        };
        let nothing = || Answer::refusal(404, "the list has nothing of this name");
        if !is_known {
            return Err(nothing());
        }
        let path = self.root.join(name).canonicalize().ok().filter(|path| path.starts_with(&self.root));
        path.filter(|path| !has_links(path)).ok_or_else(nothing)
    }

    /// Lets `congestlab report` draw a run or a sweep.
    fn report(&self, name: &str) -> Result<Answer, Answer> {
        let folder = self.folder(name, None)?;
        let mut answer = self.make(&["report", "--out", "-"], &[folder], "text/html; charset=utf-8")?;
        answer.headers.push(("Content-Security-Policy", REPORT_POLICY.into()));
        Ok(answer)
    }

    /// Lets `congestlab compare` compare two runs; its object, or its error in words.
    fn compare(&self, names: [&str; 2]) -> Result<Answer, Answer> {
        let [one, other] = names.map(|name| self.folder(name, Some(Kind::Run)));
        self.make(&["compare", "--all", "--inline"], &[one?, other?], "application/json")
    }

    /// Lets a process of its own make an answer of folders.
    fn make(&self, command: &[&str], folders: &[PathBuf], kind: &'static str) -> Result<Answer, Answer> {
        let one = OneMore::wait(&self.making)
            .ok_or_else(|| Answer::refusal(503, "others are made at the moment"))?;
        let failed = |error: io::Error| Answer::refusal(500, format!("the server cannot show this: {error}"));
        let mut program = Command::new(std::env::current_exe().map_err(failed)?);
        program.args(command).args(["--json", "--quiet"]).args(folders);
        let (code, out, err) = bounded(&mut program).map_err(failed)?;
        // 3: they do not agree.
        if [Some(0), Some(3)].contains(&code) {
            let mut answer = Answer::of(kind, out);
            answer.until_sent = Some(Arc::new(one));
            return Ok(answer);
        }
        let said: serde_json::Value = serde_json::from_slice(&err).unwrap_or_default();
        let reason = said["diagnostics"][0]["message"].as_str().or_else(|| said[0]["message"].as_str());
        Err(Answer::refusal(400, reason.unwrap_or("the server cannot show this")))
    }
}

/// One of those that are made, until it is dropped.
#[derive(Debug)]
struct OneMore(Arc<AtomicUsize>);

impl OneMore {
    /// `None`: there are as many as there may be, for as long as anybody waits.
    fn wait(count: &Arc<AtomicUsize>) -> Option<Self> {
        let clock = Clock::start();
        while clock.wall() < WAIT_S {
            let one = Self(count.clone());
            if count.fetch_add(1, Ordering::Relaxed) < MADE_AT_ONCE {
                return Some(one);
            }
            drop(one);
            thread::sleep(STEP);
        }
        None
    }
}

impl Drop for OneMore {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs a command for no longer than it may take. Returns its status, and what it wrote to stdout and stderr.
fn bounded(command: &mut Command) -> io::Result<(Option<i32>, Vec<u8>, Vec<u8>)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let read = |from: Option<Box<dyn io::Read + Send>>| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = from.map(|from| from.take(MADE_MAX + 1).read_to_end(&mut bytes));
            bytes
        })
    };
    let out = read(out.map(|out| Box::new(out) as _));
    let err = read(err.map(|err| Box::new(err) as _));
    let clock = Clock::start();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if clock.wall() > MADE_S {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("it takes more than {MADE_S} s")));
        }
        thread::sleep(Duration::from_millis(10));
    };
    let [out, err] = [out, err].map(|bytes| bytes.join().unwrap_or_default());
    if out.len() as u64 > MADE_MAX {
        return Err(io::Error::other(format!("it is larger than {} MiB", MADE_MAX >> 20)));
    }
    Ok((status.code(), out, err))
}

/// Compares without telling by the time it takes how much was right.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report that was cut after 32 MiB was shown as if it were whole.
    #[test]
    fn what_is_too_large_is_refused_and_not_cut() {
        let of = |bytes: u64| {
            bounded(Command::new("head").args(["-c", &bytes.to_string(), "/dev/zero"]))
                .map(|(_, out, _)| out.len())
        };
        assert_eq!(of(MADE_MAX).expect("head is everywhere") as u64, MADE_MAX);
        assert_eq!(of(MADE_MAX + 1).expect_err("too large").to_string(), "it is larger than 32 MiB");
    }
}
