//! The version of XCP-r that its paper rejects (XR §IV, "first version"; docs/design/protocols.md 4.3): the receiver
//! keeps nothing. Each packet's feedback is taken for that of all packets of its window,
//!
//! ```text
//! cwnd = H_feedback * H_cwnd + H_cwnd
//! ```
//!
//! which over-estimates, since feedback varies within a window. XR's H_cwnd counts packets in the product
//! (C-39). Every ACK is believed; there is nothing to tell a receiver that keeps nothing.

use super::settings::{Field, Settings};
use super::{Ack, Data, Echo, Protocol, Send, SenderConfig, SenderLaw, xcp, xcp_r};
use crate::units::{Bytes, Duration, Rate, Time, Wide};

/// Configuration of XCP-r's first version: XCP's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config(xcp_r::Config);

impl Settings for Config {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        self.0.xcp.each_of_family(tell);
    }
}

/// Returns the protocols of this file: `xcp-r-v0` alone; on links it is XCP.
pub const fn protocols() -> &'static [Protocol] {
    const {
        &[Protocol {
            name: "xcp-r-v0",
            about: "the version of XCP-r that its paper rejects: one packet speaks for its window",
            page: "xcp-r-v0",
            link: None,
            sender: Some(SenderConfig::XcpRV0(Config(xcp_r::Config {
                epochs: false,
                ..xcp_r::Config::DEFAULT
            }))),
        }]
    }
}

/// Sender state of one flow: XCP-r's, which believes every ACK.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender(xcp_r::Sender);

impl SenderLaw for Sender {
    type Config = Config;

    const INITIAL_WINDOW: Option<u32> = xcp_r::Sender::INITIAL_WINDOW;

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
    fn on_send(&mut self, config: &Config, now: Time, send: &Send) -> Option<xcp::Header> {
        Some(self.0.on_send(&config.0, now, send))
    }

    #[inline]
    fn on_send_window(&mut self, config: &Config) -> Option<xcp_r::Header> {
        Some(self.0.on_send_header(&config.0))
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
    fn echo(config: &Config, mss: Bytes) -> Echo {
        xcp_r::Sender::echo(&config.0, mss)
    }

    /// cw' = Cwnd + feedback * packets in Cwnd, with the feedback in bytes of window.
    #[inline(always)]
    fn on_data(config: &Config, echo: &mut Echo, data: &Data) {
        let Echo::Window(echo) = echo else { return };
        let change = data.header.delta as i64 * data.header.rtt as i64;
        let cwnd = data.window.cwnd as u64;
        let all = Wide::product(change.unsigned_abs(), cwnd).over(data.mss.0.max(1)).to_u64();
        let stated = xcp::with_places(Bytes(cwnd));
        let window = if change < 0 { stated.saturating_sub(all) } else { stated.saturating_add(all) };
        echo.keep(&config.0, data, window);
    }

    #[inline(always)]
    fn header_bytes(config: &Config) -> u16 {
        xcp_r::Sender::header_bytes(&config.0)
    }

    #[inline(always)]
    fn withstands_loss(config: &Config) -> bool {
        xcp_r::Sender::withstands_loss(&config.0)
    }

    #[inline(always)]
    fn xcp_config(config: &Config) -> Option<&xcp::SenderConfig> {
        Some(&config.0.xcp)
    }

    #[inline(always)]
    fn xcp_config_mut(config: &mut Config) -> Option<&mut xcp::SenderConfig> {
        Some(&mut config.0.xcp)
    }

    #[inline(always)]
    fn xcp(&self) -> Option<&xcp::Sender> {
        Some(self.0.xcp())
    }
}
