//! The sender that TH built (`profile = "thesis"`), so that what went wrong there does so here: the
//! header of draft-falk-xcp-spec-00 with its coarse units, the window's rate for the flow's whatever
//! was sent (TH 8), no reaction to loss (TH 3.1), no aging (TH 3.3), in integers.

use super::{Header, Sender, SenderConfig, feedback};
use crate::law::{Ack, Send, SenderLaw};
use crate::units::{Bytes, Duration, Wide, mul_div};

/// Binary places of the times in a header.
const HEADER_PLACES: u32 = 28;

/// Round trip time as version 1 states it: ms, rounded up.
#[inline(always)]
fn millis(rtt: Duration) -> u64 {
    rtt.0.div_ceil(1_000_000)
}

impl Sender {
    /// cwnd = max(cwnd + Reverse_Feedback * RTT / 1000, MSS), each time in whole bytes (TH 6; draft-00
    /// §3.1.3 printed `* 1000`).
    #[inline]
    pub(super) fn thesis_on_ack(&mut self, config: &SenderConfig, ack: &Ack) {
        let feedback = feedback(ack.reply);
        let change = mul_div(feedback.unsigned_abs() as u64, millis(ack.srtt), 1000);
        let window = if feedback < 0 { self.window() - Bytes(change) } else { self.window() + Bytes(change) };
        // TH 4.1: the remedy against a window beyond what the receiver takes.
        let window = if config.clamp { window.min(ack.awnd) } else { window };
        self.set_window(window.max(self.mss()));
    }

    /// Throughput = cwnd / RTT in B/ms (TH 8), and the rest of what the interface could send, divided
    /// among the packets of a round trip (TH 1) though none may be left to send.
    #[inline(always)]
    pub(super) fn thesis_on_send(&self, config: &SenderConfig, send: &Send) -> Header {
        let rtt = millis(send.srtt);
        if rtt == 0 {
            return Header::default();
        }
        let mss = self.mss().0;
        let window = self.window().0 / mss.max(1) * mss; // snd_cwnd counts packets
        let throughput = (window / rtt).clamp(1, u32::MAX as u64);
        // The router divides (draft-00 §3.2.1): X = size / throughput, to the nearest 2^-28 s.
        let rate = throughput * 1000;
        let x = Wide::product(send.size.0, 1 << HEADER_PLACES).plus(rate / 2).over(rate).to_u64();

        let share = |rate: u64| mul_div(rate, mss, throughput * rtt.min(u32::MAX as u64));
        let (desired, used) = (config.desired_rate.0, rate);
        let delta = if desired < used {
            -(share(used - desired).min(1 << 31) as i64)
        } else {
            share(desired - used).min(i32::MAX as u64) as i64
        };
        let rtt = Duration(rtt.saturating_mul(1_000_000)).to_header();
        Header { x: x.clamp(1, u32::MAX as u64) as u32, rtt, delta: delta as i32, reverse: 0 }
    }
}
