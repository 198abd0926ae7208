//! `congestlab serve`: the runs and sweeps of a folder as a page in the browser of this machine.
//!
//! It only reads, and answers only a browser of this machine that was given the address: it listens on 127.0.0.1, the address has
//! 128 random bits in it, and requests that name another host (a name that was bound to 127.0.0.1 anew) or come from a page of
//! another origin are refused. What may be asked for is a fixed list and the names of the runs that were found, so no request
//! names a file. Tables are decoded by a process of their own, which a damaged one may end.

mod list;

use std::io::{self, Read as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use congestlab_scenario::{disk, style};
use serde_json::json;

use crate::args::ServeArguments;
use crate::failure::{Failure, Message};
use crate::http::{self, Answer, Request};
use crate::machine::{self, Clock};
use crate::output::{Screen, print};
use list::{Kind, List};

const PAGE: &str = include_str!("serve/page.html");
const PROGRAM: &str = include_str!("serve/page.js");
const STYLE: &str = include_str!("serve/page.css");
const REPORT: &str = "report.html";
/// The largest report that is shown, bytes.
const REPORT_MAX: u64 = 64 << 20;
/// Comparisons at once: each decodes the tables of two runs.
const COMPARED_AT_ONCE: usize = 2;
/// Seconds after which a comparison is given up.
const COMPARE_S: f64 = 30.0;
/// The largest comparison that is shown, bytes.
const COMPARE_MAX: u64 = 64 << 20;
/// Time between two looks at whether to end.
const STEP: Duration = Duration::from_millis(50);
/// The page asks for its own files, shows reports in frames, and its pictures are in its memory.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src data:; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// A report has an origin of its own, which is nobody's, and asks nobody for anything.
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
    let root = arguments.runs.canonicalize().map_err(refuse)?;
    std::fs::read_dir(&root).map_err(refuse)?;
    let stop = machine::stop_flag()?;
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
        compared: AtomicUsize::new(0),
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
    compared: AtomicUsize,
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
                Ok(Answer::of("application/json", list.since(since).to_string()))
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
        self.below(&self.root.join(name)).ok_or_else(nothing)
    }

    /// Returns the path without links, unless they lead away.
    fn below(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok().filter(|path| path.starts_with(&self.root))
    }

    fn report(&self, name: &str) -> Result<Answer, Answer> {
        let path = self.folder(name, None)?.join(REPORT);
        let page = self
            .below(&path)
            .and_then(|path| disk::read_file(&path, REPORT_MAX).ok())
            .ok_or_else(|| Answer::refusal(404, "it has no report; `congestlab report` makes one"))?;
        let mut answer = Answer::of("text/html; charset=utf-8", page);
        answer.headers.push(("Content-Security-Policy", REPORT_POLICY.into()));
        Ok(answer)
    }

    /// Lets `congestlab compare` compare two runs; its object, or its error in words.
    fn compare(&self, names: [&str; 2]) -> Result<Answer, Answer> {
        let [one, other] = names.map(|name| self.folder(name, Some(Kind::Run)));
        let (one, other) = (one?, other?);
        let _one_more = OneMore::of(&self.compared)
            .ok_or_else(|| Answer::refusal(503, "other runs are compared at the moment"))?;
        let failed =
            |error: io::Error| Answer::refusal(500, format!("the runs can not be compared: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["compare", "--json", "--quiet", "--all", "--inline"]).args([one, other]);
        let (code, out, err) = bounded(&mut command).map_err(failed)?;
        // 3: they do not agree.
        if [Some(0), Some(3)].contains(&code) {
            return Ok(Answer::of("application/json", out));
        }
        let said: serde_json::Value = serde_json::from_slice(&err).unwrap_or_default();
        let reason = said["diagnostics"][0]["message"].as_str().or_else(|| said[0]["message"].as_str());
        Err(Answer::refusal(400, reason.unwrap_or("the runs can not be compared")))
    }
}

/// One of those at work, until it is dropped.
struct OneMore<'a>(&'a AtomicUsize);

impl<'a> OneMore<'a> {
    /// `None`: there are as many as there may be.
    fn of(count: &'a AtomicUsize) -> Option<Self> {
        let one = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < COMPARED_AT_ONCE).then_some(one)
    }
}

impl Drop for OneMore<'_> {
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
            // Half of it is refused as no JSON by who reads it.
            let _ = from.map(|from| from.take(COMPARE_MAX).read_to_end(&mut bytes));
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
        if clock.wall() > COMPARE_S {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("it takes more than {COMPARE_S} s")));
        }
        thread::sleep(Duration::from_millis(10));
    };
    let [out, err] = [out, err].map(|bytes| bytes.join().unwrap_or_default());
    Ok((status.code(), out, err))
}

/// Compares without telling by the time it takes how much was right.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other)) == 0
}
