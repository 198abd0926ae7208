//! The version of XCP-r that its paper rejects (XR §IV, "first version"; docs/design/protocols.md 4.3): the receiver
//! keeps nothing. Each packet's feedback is taken for that of all packets of its window,
//!
//! ```text
//! cwnd = H_feedback * H_cwnd + H_cwnd
//! ```
//!
//! which over-estimates, since feedback varies within a window. XR's H_cwnd counts packets in the product
//! (C-39). Every ACK is believed; there is nothing to tell a receiver that keeps nothing.

#[cfg(feature = "words")]
mod words;

use super::protocol::Protocol;
use super::settings::{Field, Settings};
use super::xcp_r::{self, Data};
use super::{
    Ack, EchoLaw, Heard, Hue, Lie, Look, Needs, Packet, Receiving, Reply, Send, SenderLaw, Shape, xcp,
};
use crate::units::{Bytes, Duration, Rate, Time, Wide};
use core::any::Any;
use core::convert::Infallible;

/// Configuration of XCP-r's first version: XCP's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config(xcp_r::Config);

impl Settings for Config {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        self.0.xcp.each_of_family(tell);
    }
}

/// Returns the protocols of this file: `xcp-r-v0` alone; on links it is XCP.
pub(super) const fn protocols() -> &'static [Protocol<Infallible, Config>] {
    const {
        &[Protocol {
            name: "xcp-r-v0",
            about: "the version of XCP-r that its paper rejects: one packet speaks for its window",
            page: "xcp-r-v0",
            look: Look::new(Hue::Purple, Shape::Ring, 2),
            link_series: &[],
            flow_series: &[],
            link: None,
            sender: Some(Config(xcp_r::Config {
                epochs: false,
                own: xcp_r::Own::Reset,
                ..xcp_r::Config::DEFAULT
            })),
        }]
    }
}

/// Sender state of one flow: XCP-r's, which believes every ACK.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender(xcp_r::Sender);

impl SenderLaw for Sender {
    type Config = Config;
    type Echo = Echo;

    #[inline(always)]
    fn name(_config: &Config) -> &'static str {
        "xcp-r-v0"
    }

    #[inline(always)]
    fn needs(config: &Config) -> Needs {
        xcp_r::Sender::needs(&config.0)
    }

    #[inline(always)]
    fn start(config: &Config, mss: Bytes, initial_window: Bytes) -> Self {
        Self(xcp_r::Sender::new(&config.0, mss, initial_window))
    }

    #[inline]
    fn on_ack(&mut self, config: &Config, now: Time, ack: &Ack) {
        self.0.on_ack(&config.0, now, ack);
    }

    #[inline]
    fn on_loss(&mut self, config: &Config, now: Time, flight: Bytes) {
        self.0.on_loss(&config.0, now, flight);
    }

    #[inline]
    fn on_timeout(&mut self, config: &Config, now: Time, flight: Bytes, is_first: bool) {
        self.0.on_timeout(&config.0, now, flight, is_first);
    }

    #[inline]
    fn on_restart(&mut self, config: &Config, now: Time, initial_window: Bytes) {
        self.0.on_restart(&config.0, now, initial_window);
    }

    #[inline]
    fn on_send(&mut self, config: &Config, now: Time, send: &Send, packet: &mut impl Packet) {
        SenderLaw::on_send(&mut self.0, &config.0, now, send, packet);
    }

    #[inline]
    fn window(&self) -> Bytes {
        self.0.window()
    }

    #[inline]
    fn pacing_rate(&self, config: &Config, srtt: Duration) -> Option<Rate> {
        self.0.pacing_rate(&config.0, srtt)
    }

    #[inline(always)]
    fn base(config: &Config) -> &dyn Any {
        &config.0.xcp
    }

    #[inline(always)]
    fn base_mut(config: &mut Config) -> &mut dyn Any {
        &mut config.0.xcp
    }

    #[inline(always)]
    fn base_state(&self) -> &dyn Any {
        self.0.base_state()
    }
}

/// Receiver state: XCP-r's, of which every packet begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo(xcp_r::Echo);

impl EchoLaw<Config> for Echo {
    #[inline(always)]
    fn start(_config: &Config, mss: Bytes) -> Self {
        Self(xcp_r::Echo::new(mss))
    }

    /// cw' = Cwnd + feedback * packets in Cwnd, with the feedback in bytes of window.
    #[inline(always)]
    fn on_data(&mut self, config: &Config, packet: &impl Packet, receiver: impl Receiving) -> Heard {
        if let Some(data) = Data::of(packet, receiver) {
            let change = data.header.delta as i64 * data.header.rtt as i64;
            let cwnd = data.window.cwnd as u64;
            let all = Wide::product(change.unsigned_abs(), cwnd).over(data.mss.0.max(1)).to_u64();
            let stated = xcp::with_places(Bytes(cwnd));
            let window = if change < 0 { stated.saturating_sub(all) } else { stated.saturating_add(all) };
            self.0.keep(&config.0, &data, window);
        }
        Heard::Taken
    }

    #[inline(always)]
    fn on_ack(&mut self, _config: &Config, _receiver: impl Receiving) -> Reply {
        self.0.reply().into()
    }

    #[inline]
    fn forge(config: &Config, lie: Lie, packet: &mut impl Packet) {
        xcp::forge(&config.0.xcp, lie, packet);
    }
}
