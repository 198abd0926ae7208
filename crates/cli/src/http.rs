//! A small server of HTTP/1, for numbers to Prometheus ([`crate::linux`]) and for the page of `congestlab serve`.
//!
//! Whoever asks may be hostile: a request is a head of at most 8 KiB without a body and takes at most 5 s, so does its
//! answer, and 16 are served at once: one more ends the oldest whose request has not come whole, so silent ones keep nobody
//! out, and is refused if all have. There is no keep-alive. It refuses what is not GET or HEAD.

use std::any::Any;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
#[cfg(feature = "linux")]
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

#[cfg(feature = "linux")]
use crate::machine;
use crate::machine::Clock;

const REQUEST_MAX: usize = 8192;
const PATIENCE_S: f64 = 5.0;
/// Bytes that are read and thrown away behind a refused request, so that the answer is not lost to a reset.
const REST_MAX: usize = 64 << 10;
const REST_S: f64 = 1.0;
/// Requests that are served at once.
pub(crate) const AT_ONCE: usize = 16;
/// Refused connections that are not closed yet.
const REFUSED_MAX: usize = 64;

/// The head of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// Path and query as they were sent.
    pub(crate) target: String,
    is_head: bool,
    /// Names in small letters, and values.
    headers: Vec<(String, String)>,
}

impl Request {
    /// Returns the path without the query.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Returns the value of a header by its name in small letters: `Err` if it is there more than once, since readers of one
    /// request could then disagree on what it says.
    pub(crate) fn header(&self, name: &str) -> Result<Option<&str>, ()> {
        let mut found =
            self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let first = found.next();
        if found.next().is_some() { Err(()) } else { Ok(first) }
    }

    /// Returns true if it asks for a host that is a number, or by the name that this machine calls itself: a page of a
    /// browser elsewhere can have a name of its own lead here, and then read the answer (DNS rebinding).
    #[cfg(feature = "linux")]
    pub(crate) fn is_for_this_machine(&self) -> bool {
        let Ok(Some(host)) = self.header("host") else { return self.header("host") == Ok(None) };
        if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
            return true;
        }
        let (name, port) = host.rsplit_once(':').unwrap_or((host, "0"));
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        bare.is_some_and(|host| host.parse::<Ipv6Addr>().is_ok())
            || (port.parse::<u16>().is_ok()
                && ["localhost", &machine::host()].iter().any(|own| name.eq_ignore_ascii_case(own)))
    }

    /// Returns the values of the query by their names, with `%41` and the like decoded; `None` if something in it is no text.
    pub(crate) fn query(&self) -> Option<Vec<(String, String)>> {
        let (_, query) = self.target.split_once('?').unwrap_or_default();
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((decoded(name)?, decoded(value)?))
            })
            .collect()
    }
}

/// Text without `%41` and the like.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(more.get(..2)?).ok()?;
            // A sign is no digit, though numbers may begin with one.
            if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &more[2..];
        } else {
            bytes.push(*first);
            rest = more;
        }
    }
    String::from_utf8(bytes).ok()
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    /// Media type.
    pub(crate) kind: &'static str,
    /// Further headers, without line breaks.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Dropped once the answer is sent, or given up.
    pub(crate) until_sent: Option<Arc<dyn Any + Send + Sync>>,
}

impl Answer {
    /// Returns what was asked for.
    pub(crate) fn of(kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { code: 200, kind, headers: Vec::new(), body: body.into(), until_sent: None }
    }

    /// Returns a refusal in a line of text.
    pub(crate) fn refusal(code: u16, text: impl Into<String>) -> Self {
        let body = format!("{}\n", text.into()).into_bytes();
        Self { code, kind: "text/plain; charset=utf-8", headers: Vec::new(), body, until_sent: None }
    }

    fn bytes(&self, has_body: bool) -> Vec<u8> {
        let reason = match self.code {
            200 => "OK",
            400 => "Bad Request",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            421 => "Misdirected Request",
            431 => "Request Header Fields Too Large",
            500 => "Internal Server Error",
            _ => "Service Unavailable",
        };
        let mut head = format!(
            "HTTP/1.0 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
            self.code,
            self.kind,
            self.body.len()
        );
        if self.code == 405 {
            head.push_str("Allow: GET, HEAD\r\n");
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("Connection: close\r\n\r\n");
        let mut bytes = head.into_bytes();
        if has_body {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

/// Answers requests in threads of that name, for as long as the process lives.
pub(crate) fn accept(
    listener: &TcpListener,
    name: &'static str,
    answer: Arc<impl Fn(&Request) -> Answer + Send + Sync + 'static>,
) {
    let (served, mut refused) = (Arc::new(Mutex::new(Served::default())), VecDeque::new());
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Out of files, for example: others may give some back.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let Some(one) = One::take(&served, &stream) else {
            // It fits into the socket's memory, or is lost: nobody waits for that. Closed at once, with its request unread, the
            // connection would be reset, and the answer lost.
            let told = stream
                .set_nonblocking(true)
                .and_then(|()| (&stream).write(&too_many().bytes(true)))
                .and_then(|_| stream.shutdown(Shutdown::Write));
            if told.is_ok() {
                refused.push_back(stream);
            }
            if refused.len() > REFUSED_MAX {
                refused.pop_front();
            }
            continue;
        };
        refused.clear();
        let answer = answer.clone();
        let spawned = thread::Builder::new().name(name.into()).spawn(move || {
            let _ = serve_one(&stream, &one, &*answer);
        });
        drop(spawned);
    }
}

fn too_many() -> Answer {
    Answer::refusal(503, "too many requests at once")
}

/// Connections that are served: the oldest first.
#[derive(Default)]
struct Served {
    begun: u64,
    all: VecDeque<Connection>,
}

struct Connection {
    number: u64,
    /// Until the request has come whole: what ends it.
    waits: Option<TcpStream>,
}

/// One of those that are served, until it is dropped.
struct One {
    served: Arc<Mutex<Served>>,
    number: u64,
}

impl One {
    /// `None`: there are as many as may be, and all of them are at work.
    fn take(served: &Arc<Mutex<Served>>, stream: &TcpStream) -> Option<Self> {
        let mut all = lock(served);
        if all.all.len() >= AT_ONCE {
            let oldest = all.all.iter().position(|connection| connection.waits.is_some())?;
            if let Some(stream) = all.all.remove(oldest).and_then(|connection| connection.waits) {
                // Its thread reads that nothing more comes, and ends.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        let number = all.begun;
        all.begun += 1;
        all.all.push_back(Connection { number, waits: stream.try_clone().ok() });
        Some(Self { served: served.clone(), number })
    }

    /// The request has come whole.
    fn works(&self) {
        let mut served = lock(&self.served);
        let own = served.all.iter_mut().find(|connection| connection.number == self.number);
        own.into_iter().for_each(|connection| connection.waits = None);
    }
}

impl Drop for One {
    fn drop(&mut self) {
        lock(&self.served).all.retain(|connection| connection.number != self.number);
    }
}

fn lock(served: &Mutex<Served>) -> MutexGuard<'_, Served> {
    served.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve_one(stream: &TcpStream, one: &One, answer: &impl Fn(&Request) -> Answer) -> io::Result<()> {
    let request = request(stream)?;
    one.works();
    let (answer, has_body) = match request {
        Ok(request) => (answer(&request), !request.is_head),
        Err(refusal) => (refusal, true),
    };
    send(stream, &answer.bytes(has_body))?;
    stream.shutdown(Shutdown::Write)?;
    let (clock, mut rest, mut buffer) = (Clock::start(), 0, [0; 4096]);
    while rest < REST_MAX && answer.code != 200 {
        match read(stream, &mut buffer, &clock, REST_S)? {
            0 => break,
            count => rest += count,
        }
    }
    Ok(())
}

/// Reads a request to the end of its head. Returns it, or the answer that refuses it.
fn request(stream: &TcpStream) -> io::Result<Result<Request, Answer>> {
    let (clock, mut bytes, mut buffer) = (Clock::start(), Vec::new(), [0; 1024]);
    loop {
        if bytes.windows(4).any(|end| end == b"\r\n\r\n") || bytes.windows(2).any(|end| end == b"\n\n") {
            return Ok(judge(&bytes));
        }
        if bytes.len() >= REQUEST_MAX {
            return Ok(Err(Answer::refusal(431, "a request may have 8 KiB")));
        }
        match read(stream, &mut buffer, &clock, PATIENCE_S) {
            Ok(0) => return Ok(Err(no_request())),
            Ok(count) => bytes.extend(&buffer[..count]),
            Err(error) if is_late(&error) => {
                return Ok(Err(Answer::refusal(408, "the request did not end in 5 s")));
            }
            Err(error) => return Err(error),
        }
    }
}

fn no_request() -> Answer {
    Answer::refusal(400, "this is no request of HTTP/1")
}

/// Reads the first line and the headers.
fn judge(bytes: &[u8]) -> Result<Request, Answer> {
    let text = std::str::from_utf8(bytes).map_err(|_| no_request())?;
    let mut lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else { return Err(no_request()) };
    if !version.starts_with("HTTP/1.") {
        return Err(no_request());
    }
    if !["GET", "HEAD"].contains(&method) {
        return Err(Answer::refusal(405, "allowed: GET, HEAD"));
    }
    let mut headers = Vec::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or_else(no_request)?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(Request { target: target.to_owned(), is_head: method == "HEAD", headers })
}

fn is_late(error: &io::Error) -> bool {
    [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind())
}

/// Returns the rest of the time, or the error that it is over.
fn left(clock: &Clock, most: f64) -> io::Result<Option<Duration>> {
    let left = most - clock.wall();
    // A socket takes no time of 0.
    if left < 0.001 { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(Duration::from_secs_f64(left))) }
}

fn read(mut stream: &TcpStream, buffer: &mut [u8], clock: &Clock, most: f64) -> io::Result<usize> {
    loop {
        stream.set_read_timeout(left(clock, most)?)?;
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Sends all, or gives up: who reads a byte at a time has as long as who reads nothing.
fn send(mut stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let clock = Clock::start();
    while !bytes.is_empty() {
        stream.set_write_timeout(left(&clock, PATIENCE_S)?)?;
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str) -> Request {
        Request { target: target.into(), ..Request::default() }
    }

    #[test]
    fn a_query_is_decoded_and_what_is_no_text_refused() {
        let of = |target: &str| request(target).query();
        assert_eq!(of("/x"), Some(vec![]));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(of("/x?a=1&b=%2e%2E%2fé&c"), Some(vec![pair("a", "1"), pair("b", "../é"), pair("c", "")]));
        for wrong in ["/x?a=%", "/x?a=%2", "/x?a=%+1", "/x?a=%ff", "/x?a=%zz", "/x?%é=1"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[cfg(feature = "linux")]
    #[test]
    fn a_host_with_a_name_is_another() {
        let is_here =
            |head: &str| judge(format!("GET / HTTP/1.1\r\n{head}\r\n").as_bytes()).expect("a request");
        for host in ["127.0.0.1:9", "10.1.2.3", "[::1]:9", "[fe80::1]", "localhost", "LOCALHOST:9"] {
            assert!(is_here(&format!("Host: {host}\r\n")).is_for_this_machine(), "{host}");
        }
        assert!(is_here("").is_for_this_machine(), "HTTP/1.0 has none");
        for host in [
            "evil.example",
            "evil.example:9",
            "localhost.evil.example",
            "127.0.0.1.evil:9",
            "",
            "localhost:x",
        ] {
            assert!(!is_here(&format!("Host: {host}\r\n")).is_for_this_machine(), "{host}");
        }
        assert!(!is_here("Host: localhost\r\nHost: evil.example\r\n").is_for_this_machine());
    }

    #[test]
    fn headers_are_found_in_any_case_and_doubt_is_no_answer() {
        let request = judge(b"GET /a?b HTTP/1.1\r\nHOST: x\r\nA: 1\r\na: 2\r\n\r\n").expect("a request");
        assert_eq!((request.path(), request.header("host")), ("/a", Ok(Some("x"))));
        assert_eq!((request.header("a"), request.header("b")), (Err(()), Ok(None)));
        assert_eq!(judge(b"GET / HTTP/1.1\r\nno header\r\n\r\n").map_err(|answer| answer.code), Err(400));
    }
}
