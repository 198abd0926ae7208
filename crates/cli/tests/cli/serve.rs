//! `congestlab serve`: the list, reports and comparisons for a browser of this machine, and nothing for anybody else.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::{Lab, SCENARIO};

/// A server of a folder of the lab, until it is dropped.
struct Server {
    child: Child,
    port: u16,
    token: String,
}

/// A program reads the address while the server goes on: one object, one line.
#[test]
fn the_address_as_json_is_one_line() {
    let lab = Lab::new(SCENARIO);
    let mut command = lab.command(&["serve", ".", "--quiet", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    let read = BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    read.expect("it says where it is");
    let told: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    assert!(told["url"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")), "{line}");
}

impl Server {
    fn start(lab: &Lab, folder: &str) -> Self {
        let mut command = lab.command(&["serve", folder, "--quiet"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it is");
        let rest = line.trim().strip_prefix("http://127.0.0.1:").expect("an address of this machine alone");
        let (port, token) = rest.split_once('/').expect("a token");
        let token = token.strip_suffix('/').expect("a folder").to_owned();
        assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{token}");
        Self { child, port: port.parse().expect("a port"), token }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// The answer to these bytes.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The answer to a browser of this machine that asks for what is behind the token.
    fn get(&self, target: &str) -> (u16, String) {
        let Self { port, token, .. } = self;
        let answer = self.ask(&format!("GET /{token}/{target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {answer:?}"));
        (head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code"), body.to_owned())
    }

    fn list(&self, since: u64) -> Value {
        let (code, body) = self.get(&format!("list?since={since}"));
        assert_eq!(code, 200, "{body}");
        serde_json::from_str(&body).expect("JSON")
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two runs and a sweep of two points below `all`.
fn lab() -> Lab {
    let sweep = "\n[sweep]\ngrid = { \"run.seed\" = [1, 2] }\n";
    let lab = Lab::new(&format!("{SCENARIO}{sweep}"));
    for seed in ["1", "2"] {
        lab.run(&["run", "scenario.toml", "--out", "all/runs", "--quiet", "--seed", seed]).exits(0);
    }
    lab.run(&["sweep", "scenario.toml", "--out", "all/swept", "--quiet"]).exits(0);
    lab
}

fn ids(list: &Value, kind: &str) -> Vec<String> {
    let lines = list["lines"].as_array().expect("lines").iter().filter(|line| line["kind"] == kind);
    lines.map(|line| line["id"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn runs_and_sweeps_are_listed_shown_and_compared() {
    let lab = lab();
    let server = Server::start(&lab, "all");
    let list = server.list(0);
    let (runs, sweeps) = (ids(&list, "run"), ids(&list, "sweep"));
    assert_eq!((runs.len(), sweeps), (2, vec!["swept".to_owned()]), "{list}");
    let line =
        |id: &str| list["lines"].as_array().and_then(|lines| lines.iter().find(|line| line["id"] == id));
    let sweep = line("swept").expect("a sweep");
    assert_eq!((&sweep["done"], &sweep["all"], &sweep["complete"]), (&2.into(), &2.into(), &true.into()));
    let run = line(&runs[0]).expect("a run");
    let summary = fs::read(lab.path("all").join(&runs[0]).join("summary.json")).expect("a file");
    let summary: Value = serde_json::from_slice(&summary).expect("JSON");
    assert_eq!(run["utilization"], summary["links"]["bottleneck"]["utilization"]);
    assert_eq!((&run["scenario"], &run["seed"]), (&"scenario".into(), &summary["seed"]));
    assert_eq!((&run["laws"][0], &run["flows"]), (&"xcp".into(), &2.into()));

    let (code, page) = server.get(&format!("report?of={}", runs[0]));
    assert_eq!(code, 200);
    assert_eq!(
        page.into_bytes(),
        fs::read(lab.path("all").join(&runs[0]).join("report.html")).expect("a file")
    );
    assert_eq!(server.get("report?of=swept").0, 200);
    let (code, body) = server.get(&format!("compare?one={}&other={}", runs[0], runs[1]));
    let found: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {code} {body}"));
    assert!(found["rows"].as_array().is_some_and(|rows| rows.len() > 10), "{body}");
    assert!(found["svg"].as_str().is_some_and(|svg| svg.contains("<svg")), "{body}");
    assert_eq!(server.get(&format!("compare?one={}&other=swept", runs[0])).0, 404, "a sweep is no run");

    // What a reader of the tables refuses, or dies of, is an answer, and the server lives.
    let table = lab.path("all").join(&runs[1]).join("links.parquet");
    fs::write(&table, b"PAR1").expect("writable");
    let (code, body) = server.get(&format!("compare?one={}&other={}", runs[0], runs[1]));
    assert_eq!((code, body.contains("damaged")), (400, true), "{body}");

    // What comes, changes and goes is told to who has the rest.
    std::thread::sleep(Duration::from_millis(1100));
    let version = server.list(0)["version"].as_u64().expect("a number");
    assert_eq!(ids(&server.list(version), "run").len(), 0);
    lab.run(&["run", "scenario.toml", "--out", "all/more/deep", "--quiet"]).exits(0);
    fs::remove_dir_all(lab.path("all").join(&runs[0])).expect("writable");
    std::thread::sleep(Duration::from_millis(1100));
    let list = server.list(version);
    assert_eq!((ids(&list, "run").len(), &list["gone"][0]), (1, &runs[0].clone().into()), "{list}");
    assert_eq!(server.get(&format!("report?of={}", runs[0])).0, 404);
}

/// The folder of a stranger: values of other types, huge ones, links, and a report with a script of its own.
#[test]
fn the_folder_of_a_stranger_is_shown_without_harm() {
    let lab = lab();
    let runs: Vec<_> = fs::read_dir(lab.path("all/runs")).expect("a folder").flatten().collect();
    let [ours, theirs] = [runs[0].path(), runs[1].path()];
    let script = "<link rel=preconnect href=//evil.example><script>new RTCPeerConnection()</script>";
    fs::write(theirs.join("report.html"), script).expect("writable");
    let summary = fs::read_to_string(ours.join("summary.json")).expect("a file");
    let made = |name: &str, text: &str| {
        fs::create_dir_all(lab.path("all").join(name)).expect("writable");
        fs::write(lab.path("all").join(name).join("summary.json"), text).expect("writable");
    };
    let value: Value = serde_json::from_str(&summary).expect("JSON");
    let changed = |path: &str, to: Value| {
        let mut value = value.clone();
        *value.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = to;
        value.to_string()
    };
    made("mean", &changed("/links/bottleneck/queue_mean_packets", json!([1, 2])));
    made("flows", &changed("/flows", json!("many")));
    for number in 0..6 {
        made(&format!("huge{number}"), &changed("/seed", json!("1".repeat(15 << 20))));
    }
    fs::create_dir(lab.path("all/linked")).expect("writable");
    std::os::unix::fs::symlink(ours.join("summary.json"), lab.path("all/linked/summary.json"))
        .expect("a link");

    // A sweep whose points are those of another folder, and one with a log for each of many processes.
    fs::create_dir_all(lab.path("all/runs/sweep-linked")).expect("writable");
    std::os::unix::fs::symlink(lab.path("all/swept/points"), lab.path("all/runs/sweep-linked/points"))
        .expect("a link");
    fs::create_dir_all(lab.path("all/runs/sweep-many/points")).expect("writable");
    for number in 0..1100 {
        fs::write(lab.path(&format!("all/runs/sweep-many/points/{number}.log")), "").expect("writable");
    }

    let server = Server::start(&lab, "all");
    let list = server.list(0);
    let damaged = |id: &str| {
        let lines = list["lines"].as_array().expect("lines");
        lines.iter().find(|line| line["id"] == id).is_some_and(|line| line["error"].is_string())
    };
    for id in ["mean", "flows", "huge0", "huge5", "linked", "runs/sweep-linked", "runs/sweep-many"] {
        assert!(damaged(id), "{id} is damaged: {list}");
    }
    assert_eq!(list["lines"].as_array().map(Vec::len), Some(3 + 2 + 6 + 1 + 2), "{list}");
    let name = theirs.file_name().and_then(|name| name.to_str()).expect("text");
    let (code, page) = server.get(&format!("report?of=runs/{name}"));
    assert!(code == 200 && page.contains("<svg") && !page.contains("evil.example"), "{code}");
    assert_eq!(server.get("report?of=linked").0, 404, "links are not followed");
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).expect("it runs");
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let most: u64 = most.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(most < 256 << 10, "{most} kB");
}

/// Another machine's pages, names that were bound to this address, guesses, and names of files.
#[test]
fn nobody_else_gets_anything() {
    let lab = lab();
    fs::write(lab.path("secret"), "kept").expect("writable");
    let server = Server::start(&lab, "all");
    let runs = ids(&server.list(0), "run");
    // A folder that looks like a run, and whose report leads elsewhere; and one that is elsewhere.
    let trap = lab.path("all/trap-1-0");
    fs::create_dir(&trap).expect("writable");
    fs::write(trap.join("summary.json"), "{}").expect("writable");
    std::os::unix::fs::symlink(lab.path("secret"), trap.join("report.html")).expect("links");
    std::os::unix::fs::symlink("/etc", lab.path("all/away")).expect("links");
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(ids(&server.list(0), "run").len(), 3);
    let Server { port, token, .. } = &server;
    let own = format!("Host: 127.0.0.1:{port}\r\n");
    let get = |target: &str, headers: &str| server.ask(&format!("GET {target} HTTP/1.1\r\n{headers}\r\n"));
    let code = |answer: &str| answer.split(' ').nth(1).unwrap_or_default().to_owned();
    let page = format!("/{token}/");
    let localhost = format!(
        "Host: localhost:{port}\r\nOrigin: http://localhost:{port}\r\nSec-Fetch-Site: same-origin\r\n"
    );
    for friend in [own.clone(), localhost, format!("{own}Sec-Fetch-Site: none\r\n")] {
        let answer = get(&page, &friend);
        assert_eq!(code(&answer), "200", "{answer}");
        for header in [
            "Content-Security-Policy: default-src 'none'; script-src 'self'",
            "frame-ancestors 'none'",
            "Referrer-Policy: no-referrer",
            "X-Content-Type-Options: nosniff",
            "Cache-Control: no-store",
            "Cross-Origin-Resource-Policy: same-origin",
        ] {
            assert!(answer.contains(header), "{header}: {answer}");
        }
        assert!(!answer.contains("Access-Control"), "{answer}");
    }
    let mut wrong = token.clone();
    wrong.replace_range(31.., if token.ends_with('0') { "1" } else { "0" });
    let behind = |target: &str| format!("/{token}/{target}");
    let list = behind("list?since=0");
    for (target, headers, expected) in [
        // Bound anew to this machine's address.
        (list.as_str(), format!("Host: evil.example:{port}\r\n"), "421"),
        (&list, "Host: 127.0.0.1\r\n".into(), "421"),
        (&list, format!("{own}Host: evil.example\r\n"), "421"),
        (&list, String::new(), "421"),
        // Of another page.
        (&list, format!("{own}Origin: https://evil.example\r\n"), "403"),
        (&list, format!("{own}Origin: null\r\n"), "403"),
        (&list, format!("{own}Origin: http://127.0.0.1:1\r\n"), "403"),
        (&list, format!("{own}Sec-Fetch-Site: cross-site\r\n"), "403"),
        (&list, format!("{own}Sec-Fetch-Site: same-site\r\n"), "403"),
        // Without the address.
        ("/", own.clone(), "404"),
        ("/list?since=0", own.clone(), "404"),
        ("//list?since=0", own.clone(), "404"),
        (&format!("/{wrong}/"), own.clone(), "404"),
        (&format!("/{}/", &token[..31]), own.clone(), "404"),
        // For files.
        (&behind("../secret"), own.clone(), "404"),
        (&behind("report?of=../secret"), own.clone(), "404"),
        (&behind("report?of=%2e%2e"), own.clone(), "404"),
        (&behind("report?of=/etc/passwd"), own.clone(), "404"),
        (&behind("report?of=away"), own.clone(), "404"),
        (&behind("report?of=trap-1-0"), own.clone(), "404"),
        (&behind(&format!("report?of={}/..", runs[0])), own.clone(), "404"),
        (&behind(&format!("report?of={}%00", runs[0])), own.clone(), "404"),
        (&behind(&format!("compare?one={}&other=--help", runs[0])), own.clone(), "404"),
        (&behind("page.js/../../secret"), own.clone(), "404"),
        // No questions.
        (&behind("report"), own.clone(), "400"),
        (&behind("report?of=%ff"), own.clone(), "400"),
        (&behind("list?since=-1"), own.clone(), "400"),
        (&behind("list"), format!("{own}X: {}\r\n", "x".repeat(9000)), "431"),
    ] {
        let answer = get(target, &headers);
        assert_eq!(code(&answer), expected, "{target} {headers}: {answer}");
        assert!(!answer.contains("kept") && !answer.contains("root:"), "{answer}");
        assert!(answer.contains("default-src 'none'") || expected == "431", "{answer}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let answer = server.ask(&format!("{method} {list} HTTP/1.1\r\n{own}\r\n"));
        assert_eq!(code(&answer), "405", "{answer}");
    }
    // Nothing of this has changed anything.
    assert_eq!(fs::read_to_string(lab.path("secret")).expect("a file"), "kept");
    assert_eq!(server.get("").0, 200);
}

#[test]
fn a_signal_ends_it_and_leaves_nothing() {
    let lab = lab();
    let before = lab.files();
    for signal in [Signal::INT, Signal::TERM] {
        let mut server = Server::start(&lab, "all");
        server.list(0);
        server.signal(signal);
        let mut status = None;
        for _ in 0..100 {
            status = status.or(server.child.try_wait().expect("a child"));
            if status.is_none() {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        let status = status.expect("it ends within five seconds");
        assert_eq!(status.code(), Some(0), "to be ended is no failure of what has no other end");
    }
    assert_eq!(lab.files(), before);
    let finished = lab.run(&["serve", "none"]).exits(2);
    assert!(finished.stderr().contains("there is no folder none"), "{}", finished.stderr());
    let finished = lab.run(&["serve", "scenario.toml"]).exits(2);
    assert_eq!(finished.stdout(), "");
}

/// A sweep that a kill ended shows how far it came, and records of other sweeps are not counted.
#[test]
fn a_sweep_on_its_way_says_how_far_it_is() {
    let lab = lab();
    lab.run(&["sweep", "scenario.toml", "--out", "all/part", "--quiet", "--shard", "1/2"]).exits(0);
    let server = Server::start(&lab, "all");
    let list = server.list(0);
    let lines = list["lines"].as_array().expect("lines");
    let part = lines.iter().find(|line| line["id"] == "part").expect("a sweep");
    let done = part["done"].as_u64().expect("a number");
    assert_eq!((&part["all"], &part["complete"]), (&2.into(), &(done == 2).into()), "{part}");
    assert_eq!(part["scenario"], "scenario");
}

/// Ten thousand runs: the document holds those that can be seen, and a view is one short piece of work.
#[test]
fn ten_thousand_runs_are_listed_without_a_stutter() {
    let test = "ten_thousand_runs_are_listed_without_a_stutter";
    let lab = lab();
    let server = Server::start(&lab, "all");
    let run = ids(&server.list(0), "run").remove(0);
    drop(server);
    let folder = lab.path("all").join(&run);
    let read = |name: &str| fs::read(folder.join(name)).expect("a file");
    let (summary, scenario) = (read("summary.json"), read("scenario.toml"));
    for index in 0..10_000 {
        let copy = lab.path(&format!("all/many/copy-{index}-0123456789abcdef"));
        fs::create_dir_all(&copy).expect("writable");
        fs::write(copy.join("summary.json"), &summary).expect("writable");
        fs::write(copy.join("scenario.toml"), &scenario).expect("writable");
    }
    let Some(mut browser) = Browser::start() else {
        return println!("SKIP {test}: there is no chromium");
    };
    let server = Server::start(&lab, "all");
    browser.navigate(&server.url());
    // The first look reads ten thousand summaries, in a build for tests.
    wait(&mut browser, "document.querySelector('#said').textContent.startsWith('10003 of 10003')");
    let rows = "document.querySelectorAll('#rows > *').length";
    assert!(
        browser.run(rows).as_u64().is_some_and(|rows| (10..100).contains(&rows)),
        "{}",
        browser.run(rows)
    );
    // However far the list is scrolled, the document has the lines that can be seen and a few around.
    let most = "(async () => { let most = 0; const body = document.querySelector('#body'); \
                for (let i = 0; i < 100; i += 1) { body.scrollTop = i * 2800; draw(); \
                most = Math.max(most, document.querySelectorAll('#rows > *').length); \
                await new Promise((done) => setTimeout(done, 0)); } return most; })()";
    let most = browser.run(most).as_u64().expect("a number");
    assert!((1..200).contains(&most), "{most} lines in the document");
    let filtered = "(() => { const filter = document.querySelector('#filter'); \
                    filter.value = 'copy-99'; filter.dispatchEvent(new Event('input')); \
                    return document.querySelector('#table').getAttribute('aria-rowcount'); })()";
    let left = browser.run(filtered);
    let left: u64 = left.as_str().expect("a text").parse().expect("a number");
    assert!((2..1000).contains(&left), "{left} lines pass the filter");
}

/// Waits until the page says so.
#[track_caller]
fn wait(browser: &mut Browser, what: &str) {
    for _ in 0..3600 {
        if browser.run(what) == true {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("never: {what}: {}", browser.run("document.body.innerText"));
}

/// Filter, list, marks, comparison, report and titles, without a mouse.
#[test]
fn the_page_is_used_by_keys_alone() {
    let test = "the_page_is_used_by_keys_alone";
    let lab = lab();
    let Some(mut browser) = Browser::start() else {
        return println!("SKIP {test}: there is no chromium");
    };
    let server = Server::start(&lab, "all");
    let runs = ids(&server.list(0), "run");
    let arguments = ["compare", &format!("all/{}", runs[0]), &format!("all/{}", runs[1]), "--all", "--json"];
    let compared = lab.run(&arguments).json();
    browser.navigate(&server.url());
    wait(&mut browser, "document.querySelector('#said').textContent === '3 of 3'");
    // Boxes can be seen, and columns stand below their titles.
    let seen = "[...document.querySelectorAll('#rows [type=checkbox]')].filter(box => {
        const [inner, outer] = [box, box.parentElement].map(element => element.getBoundingClientRect());
        return inner.width > 8 && inner.left >= outer.left && inner.right <= outer.right;
    }).length";
    assert_eq!(browser.run(seen), 2);
    let aligned = "[...document.querySelector('#head').children].every((title, column) =>
        [...document.querySelectorAll('#rows > *')].every(row =>
            Math.abs(title.getBoundingClientRect().right - row.children[column].getBoundingClientRect().right) < 1))";
    assert_eq!(browser.run(aligned), true);
    let focused = |browser: &mut Browser| {
        let focused = browser.run("document.activeElement.id || document.activeElement.tagName");
        focused.as_str().expect("a text").to_owned()
    };
    let active = "document.querySelector('#active > :nth-child(2)').title";
    let listed = |browser: &mut Browser| {
        let rows = "[...document.querySelectorAll('#rows > * > :nth-child(2)')].map((cell) => cell.title)";
        browser.run(rows)
    };

    browser.press("Tab");
    assert_eq!(focused(&mut browser), "filter");
    browser.type_text("sweep");
    assert_eq!(listed(&mut browser), json!(["swept"]));
    for _ in 0..5 {
        browser.press("Backspace");
    }
    assert_eq!(listed(&mut browser).as_array().map(Vec::len), Some(3));

    // Two runs cannot be compared before they are marked.
    browser.press("Tab");
    assert_eq!(focused(&mut browser), "table");
    for key in ["End", " ", "ArrowUp", " "] {
        browser.press(key);
    }
    assert_eq!(browser.run("document.querySelectorAll('[aria-selected=true]').length"), 2);
    browser.press("Shift+Tab");
    assert_eq!(focused(&mut browser), "compare");
    browser.press("Enter");
    wait(&mut browser, "document.querySelector('#content').innerText.startsWith('The runs ')");
    let verdict = browser.run("document.querySelector('#content > p').textContent");
    let expected = if compared["holds"] == true { "The runs agree." } else { "The runs do not agree." };
    assert!(verdict.as_str().is_some_and(|said| said.starts_with(expected)), "{verdict}: {compared}");
    let metrics = "[...document.querySelectorAll('#content td:first-child')].map((cell) => cell.textContent)";
    let expected: Vec<_> =
        compared["rows"].as_array().expect("rows").iter().map(|row| &row["metric"]).collect();
    assert_eq!(browser.run(metrics), json!(expected));
    wait(&mut browser, "document.querySelector('#content img').naturalWidth > 100");

    // Behind the list and one of its titles: the button that closes, and the list has the focus again.
    for expected in ["table", "BUTTON", "close"] {
        browser.press("Tab");
        assert_eq!(focused(&mut browser), expected);
    }
    browser.press(" ");
    assert_eq!(
        (browser.run("document.querySelector('#shown').hidden"), focused(&mut browser)),
        (json!(true), "table".into())
    );

    // A report is in a frame that has nothing of the page, and whose page has nothing of it.
    let run = browser.run(active);
    browser.press("Enter");
    let drawn = "document.readyState === 'complete' && document.querySelectorAll('canvas').length > 0";
    let is_drawn = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        browser.run_in_frame(drawn) == true
    });
    assert!(is_drawn, "{}", browser.run_in_frame("document.body.innerText"));
    assert_eq!(browser.run_in_frame("document.querySelector('h1').textContent"), "scenario");
    let asked = browser.run_in_frame("decodeURIComponent(location.search)");
    assert_eq!(asked, format!("?of={}", run.as_str().expect("a name")));
    let reaches =
        "(() => { try { return String(parent.document.title); } catch (error) { return error.name; } })()";
    assert_eq!(browser.run_in_frame(reaches), "SecurityError");
    assert_eq!(browser.run("document.querySelector('iframe').contentDocument === null"), true);
    for expected in ["BUTTON", "close", "IFRAME"] {
        browser.press("Tab");
        assert_eq!(focused(&mut browser), expected);
    }
    browser.press("Shift+Tab");
    browser.press("Enter");
    assert_eq!(focused(&mut browser), "table");

    // Titles sort, either way; arrows go from one to the next.
    browser.press("Tab");
    browser.press("ArrowRight");
    assert_eq!(browser.run("document.activeElement.textContent"), "seed");
    let seeds = "[...document.querySelectorAll('#rows > * > :nth-child(3)')].map((cell) => cell.textContent)";
    browser.press("Enter");
    assert_eq!(browser.run(seeds), json!(["1", "2", "-"]));
    browser.press("Enter");
    assert_eq!(browser.run(seeds), json!(["2", "1", "-"]));
    assert_eq!(browser.run("document.activeElement.parentElement.getAttribute('aria-sort')"), "descending");
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
}
