//! Any text as a link trace: refused with a line of it, or read, written, read again and served.
#![no_main]

use congestlab_net::service::{Server, Service};
use congestlab_net::trace::Trace;
use libfuzzer_sys::fuzz_target;
use std::fmt::Write;

fuzz_target!(|text: &[u8]| {
    let lines = text.split(|&byte| byte == b'\n').count();
    let trace = match Trace::parse(text) {
        Ok(trace) => trace,
        Err(error) => {
            assert!(error.line().is_none_or(|line| (1..=lines).contains(&line)), "{error} of {lines} lines");
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(trace.stamps().is_sorted() && trace.period() > 0);
    assert!(trace.stamps().len() <= lines);
    let mut written = String::new();
    for stamp in trace.stamps() {
        writeln!(written, "{stamp}").unwrap();
    }
    assert_eq!(Trace::parse(written.as_bytes()).as_ref(), Ok(&trace));

    let period = trace.period();
    let service = Service::Trace(trace.clone());
    assert_eq!(service.work(0, period), u128::from(trace.bits_per_period()) * 1_000_000_000_000);
    // Packets by the bytes of the text, each queued while the one before is sent, or after a rest.
    let mut server = Server::new(&service);
    let (mut now, mut busy_until) = (0, 0);
    for &byte in text.iter().take(64) {
        if busy_until > u64::MAX / 4 {
            break;
        }
        let size = 1 + u32::from(byte) * 37;
        let begin = if byte & 1 == 0 {
            now = busy_until + u64::from(byte) * (period / 256);
            let begin = server.opening(now, busy_until);
            assert!(begin > now, "an opportunity that is over");
            assert!(begin - now <= period, "more than a period without an opportunity");
            begin
        } else {
            server.next_opening(busy_until)
        };
        assert!(begin >= busy_until);
        let end = server.transmit(begin, size);
        assert!(end >= begin);
        // At the latest one opportunity per period.
        assert!(end - begin <= period.saturating_mul(u64::from(size.div_ceil(1500))));
        (now, busy_until) = (now.max(begin), end);
    }
});
