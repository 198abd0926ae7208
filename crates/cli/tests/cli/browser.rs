//! A headless Chromium, driven over the DevTools protocol on a pair of pipes: no port, no library.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// A browser that says nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Browser {
    process: Child,
    commands: File,
    messages: Receiver<Value>,
    session: Option<String>,
    calls: u64,
    /// What the page reported without being asked.
    events: Vec<Value>,
    _folder: TempDir,
}

impl Browser {
    /// With one empty page; `None` where there is no Chromium.
    pub(crate) fn start() -> Option<Self> {
        let found = Command::new("sh").args(["-c", "command -v chromium"]).stdout(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            return None;
        }
        let folder =
            tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target directory is writable");
        // The protocol is spoken on descriptors 3 and 4, which a shell can give it.
        let script = "exec chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars \
                      --no-first-run --disable-background-networking --disable-component-update \
                      --disable-extensions --user-data-dir=profile --remote-debugging-pipe about:blank \
                      3<commands 4>messages >log 2>&1";
        let made = Command::new("mkfifo").args(["commands", "messages"]).current_dir(folder.path()).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        let process = Command::new("sh").args(["-c", script]).current_dir(folder.path()).spawn();
        let process = process.expect("there is a shell");
        let commands = File::create(folder.path().join("commands")).expect("the shell reads it");
        let messages = File::open(folder.path().join("messages")).expect("the shell writes it");
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(messages).split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("the browser speaks JSON");
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self {
            process,
            commands,
            messages: receiver,
            session: None,
            calls: 0,
            events: Vec::new(),
            _folder: folder,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", target);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Runtime", "Log", "Network", "Page"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        // A frame with an origin of its own is a process of its own, of which the page's session hears nothing.
        let all = json!({ "autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true });
        browser.call("Target.setAutoAttach", all);
        Some(browser)
    }

    fn receive(&mut self) -> Value {
        self.messages.recv_timeout(PATIENCE).expect("the browser answers")
    }

    /// A command of the protocol, and its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut command = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).expect("the browser listens");
        loop {
            let message = self.receive();
            if message["id"] == self.calls {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    pub(crate) fn resize(&mut self, width: u32, height: u32, is_phone: bool) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    pub(crate) fn prefer_dark(&mut self) {
        let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
        self.call("Emulation.setEmulatedMedia", dark);
    }

    /// Opens a file and waits until it is loaded and painted.
    pub(crate) fn open(&mut self, path: &Path) {
        self.navigate(&format!("file://{}", path.display()));
    }

    /// Opens an address and waits until it is loaded and painted.
    pub(crate) fn navigate(&mut self, url: &str) {
        self.events.clear();
        self.call("Page.navigate", json!({ "url": url }));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let message = self.receive();
            self.events.push(message);
        }
        self.painted();
    }

    /// Waits until what was asked for is on the screen.
    pub(crate) fn painted(&mut self) {
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))");
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub(crate) fn run(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// The value of an expression in the frame of another origin that is there; waits until there is one.
    #[track_caller]
    pub(crate) fn run_in_frame(&mut self, expression: &str) -> Value {
        let frame = loop {
            let of = |event: &Value, method: &str| {
                (event["method"] == method)
                    .then(|| event["params"]["sessionId"].as_str().map(str::to_owned))
                    .flatten()
            };
            let gone: Vec<String> =
                self.events.iter().filter_map(|event| of(event, "Target.detachedFromTarget")).collect();
            let is_frame = |event: &&Value| event["params"]["targetInfo"]["type"] == "iframe";
            let attached = self.events.iter().rev().filter(is_frame);
            let mut there = attached.filter_map(|event| of(event, "Target.attachedToTarget"));
            if let Some(session) = there.find(|session| !gone.contains(session)) {
                break session;
            }
            let message = self.receive();
            self.events.push(message);
        };
        let page = self.session.replace(frame);
        let value = self.run(expression);
        self.session = page;
        value
    }

    /// Presses a key and lets it go, with Shift held if it begins with `Shift+`.
    pub(crate) fn press(&mut self, key: &str) {
        let (modifiers, key) = key.strip_prefix("Shift+").map_or((0, key), |key| (8, key));
        // Buttons hear the character that a key makes, and fields the key's number.
        let (code, text) = match key {
            "Tab" => (9, None),
            "Backspace" => (8, None),
            "Enter" => (13, Some("\r")),
            " " => (32, Some(" ")),
            _ => (0, None),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "modifiers": modifiers });
            if code > 0 {
                event["windowsVirtualKeyCode"] = json!(code);
            }
            if let Some(text) = text.filter(|_| kind == "keyDown") {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
        self.painted();
    }

    /// Types a text into what has the focus.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
        self.painted();
    }

    /// Moves the mouse along points; with the button down, if there are several.
    pub(crate) fn mouse(&mut self, points: &[(f64, f64)]) {
        let last = points.len() - 1;
        for (index, (x, y)) in points.iter().enumerate() {
            let is_drag = last > 0;
            let event = |kind: &str| {
                json!({ "type": kind, "x": x, "y": y, "button": if is_drag { "left" } else { "none" },
                        "clickCount": i32::from(is_drag) })
            };
            self.call("Input.dispatchMouseEvent", event("mouseMoved"));
            if is_drag && index == 0 {
                self.call("Input.dispatchMouseEvent", event("mousePressed"));
            }
            if is_drag && index == last {
                self.call("Input.dispatchMouseEvent", event("mouseReleased"));
            }
        }
        self.painted();
    }

    /// Errors and warnings on the console, exceptions, and what the browser blocked.
    pub(crate) fn complaints(&self) -> Vec<&Value> {
        let is_complaint = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                ["error", "warning", "assert"].iter().any(|kind| event["params"]["type"] == *kind)
            }
            Some("Log.entryAdded") => {
                ["error", "warning"].iter().any(|level| event["params"]["entry"]["level"] == *level)
            }
            _ => false,
        };
        self.events.iter().filter(is_complaint).collect()
    }

    /// What the page asked for.
    pub(crate) fn requests(&self) -> Vec<String> {
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.map(|event| event["params"]["request"]["url"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Keeps a picture of the window where `CONGESTLAB_SCREENSHOTS` says, for people.
    pub(crate) fn screenshot(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("CONGESTLAB_SCREENSHOTS") else { return };
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        // base64 of the coreutils: nothing else here wants a decoder.
        let path = Path::new(&folder).join(format!("{name}.png"));
        let mut decoder = Command::new("base64")
            .arg("-d")
            .stdin(Stdio::piped())
            .stdout(File::create(path).expect("the folder is there"))
            .spawn()
            .expect("coreutils");
        let text = answer["data"].as_str().expect("a picture");
        decoder.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
        decoder.wait().expect("it ends");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The shell became the browser; its helpers end with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
