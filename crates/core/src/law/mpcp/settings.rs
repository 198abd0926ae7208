//! Settings of MPCP's senders and receivers.

use super::level::DIGITS_MAX;
use super::order::Order;
#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings, words};
use crate::units::{Duration, Ratio};

/// Moment at which a level of overload cuts the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// The chain's first packet cuts, for the worst that it can mean; the others correct it upward (MP 3.3).
    #[default]
    AtOnce,
    /// The complete chain cuts.
    Complete,
}

words!(Cut { AtOnce = "at-once", Complete = "complete", });

/// Time for which a cut window stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// One interval of the links (VNS).
    #[default]
    Interval,
    /// One round trip (MP 2.2).
    RoundTrip,
}

words!(Hold { Interval = "interval", RoundTrip = "round-trip", });

/// Reaction to a lost packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// The window is halved once per window, as in Reno: a loss is congestion (VNS).
    #[default]
    Tcp,
    /// The window stays while chains tell the links' load; given up, a flow that ran longer ones halves it.
    Maintain,
    /// The window stays, also while chains are given up.
    Ignore,
}

words!(Loss { Tcp = "tcp", Maintain = "maintain", Ignore = "ignore", });

/// Growth while the sender repairs losses after a timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// Codes move the window again (RFC 5681 §3.1).
    #[default]
    Grow,
    /// The window stays one packet until the repair is over, as the figures of MP ask for.
    Hold,
}

words!(Repair { Grow = "grow", Hold = "hold", });

/// Configuration of MPCP's sender law, shared by all flows that run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SenderConfig {
    /// Packets of a chain; 1 is VCP.
    pub n: u32,
    /// True if the protocol's name fixes `n`.
    pub is_preset: bool,
    /// Encoding of a packet's place in its chain.
    pub order: Order,
    /// t_rho, the links' interval; 200 ms (VNS).
    pub interval: Duration,
    /// Packets that a window of ACKs adds; 1 (VNS), times (rtt / interval)^2 for equal rates (C-20).
    pub alpha: Ratio,
    /// Factor of VCP's window when a link is overloaded; 0.875 (VNS).
    pub beta: Ratio,
    /// Growth of VCP's window per interval while load is low; 0.0625 (VNS).
    pub xi: Ratio,
    /// kappa in the growth per interval xi = kappa (1 - sigma) / sigma, sigma a level's upper bound; 0.25 (VNS; C-22).
    pub kappa: Ratio,
    /// The most of the headroom 1 / sigma - 1 that growth takes per round trip; 0.5.
    pub eta: Ratio,
    /// Largest rtt / interval of multiplicative growth; 2.5 (VNS).
    pub exponent_max: Ratio,
    /// Round trip time as which additive growth counts longer ones; 500 ms (C-20).
    pub rtt_max: Duration,
    /// Moment at which a level of overload cuts the window.
    pub cut: Cut,
    /// Time for which a cut window stays.
    pub hold: Hold,
    /// Reaction to a lost packet.
    pub loss: Loss,
    /// Growth while the sender repairs losses after a timeout.
    pub repair: Repair,
    /// True to give back what a loss took that was none: packets that were only late arrive before their
    /// retransmissions can (ours, after RFC 3522 and RFC 4015).
    pub undo: bool,
    /// True to take chains that only ever repeat their first digit for zones, as links of VCP write them (ours).
    pub zones: bool,
    /// True to pace small windows (VNS).
    pub pacing: bool,
    /// True to pace all windows (ours): a window sent as a burst is load in one interval and none in the next, where
    /// the round trip is longer than the interval.
    pub smooth: bool,
    /// Echoes of one type in a row, 3 (MP 3.4), after which chains are given up for a while. With more than
    /// two packets: chains without a complete one, n + 1 (docs/design/protocols.md 7.4, assumed).
    pub strikes: u32,
    /// Round trips for which chains are given up, twice as many each time; 8.
    pub resume: u32,
    /// Number of the relapse with which chains are given up for good; 3.
    pub relapses: u32,
}

impl SenderConfig {
    /// Returns the defaults for chains of `n` packets.
    #[inline]
    pub const fn of(n: u32, is_preset: bool) -> Self {
        Self {
            n,
            is_preset,
            order: Order::of(n),
            interval: Duration(200_000_000),
            alpha: Ratio::ONE,
            beta: Ratio::ppm(875_000),
            xi: Ratio::ppm(62_500),
            kappa: Ratio::ppm(250_000),
            eta: Ratio::ppm(500_000),
            exponent_max: Ratio::ppm(2_500_000),
            rtt_max: Duration(500_000_000),
            cut: Cut::AtOnce,
            hold: Hold::Interval,
            loss: Loss::Tcp,
            repair: Repair::Grow,
            undo: true,
            zones: true,
            pacing: true,
            smooth: true,
            strikes: if n > 2 { n.saturating_add(1) } else { 3 },
            resume: 8,
            relapses: 3,
        }
    }

    #[inline]
    pub(super) fn digits(&self) -> u8 {
        self.n.clamp(1, DIGITS_MAX) as u8
    }
}

impl Settings for SenderConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        let is_vcp = self.is_preset && self.n == 1;
        if !self.is_preset {
            tell("n", "Packets of a chain, 1 to 8; 2 (MP).", Field::Number(&mut self.n, DIGITS_MAX));
        }
        if !is_vcp {
            tell(
                "order",
                "How a packet's place in its chain is told; swap (MP 3.2), above two packets checksum (MP 5).",
                Field::Word(&mut self.order),
            );
        }
        tell("interval", "The links' interval; 200 ms (VNS).", Field::Span(&mut self.interval));
        tell(
            "alpha",
            "Additive growth in packets; 1 (VNS), times (rtt / interval)^2.",
            Field::Factor(&mut self.alpha),
        );
        tell("beta", "VCP: factor of a cut; 0.875 (VNS).", Field::Factor(&mut self.beta));
        tell("xi", "VCP: growth per interval at low load; 0.0625 (VNS).", Field::Factor(&mut self.xi));
        if !is_vcp {
            tell(
                "kappa",
                "Growth per interval by the bound s of a level is kappa (1 - s) / s; 0.25 (VNS).",
                Field::Factor(&mut self.kappa),
            );
            tell(
                "eta",
                "The most of the headroom 1 / s - 1 that a round trip takes; 0.5 (A-16).",
                Field::Factor(&mut self.eta),
            );
        }
        tell(
            "exponent_max",
            "The largest rtt / interval of multiplicative growth; 2.5 (VNS).",
            Field::Factor(&mut self.exponent_max),
        );
        tell(
            "rtt_max",
            "Additive growth counts a longer round trip as this; 500 ms (C-20).",
            Field::Span(&mut self.rtt_max),
        );
        if !is_vcp {
            tell(
                "cut",
                "When a window is cut: at-once, with a chain's first packet (MP 3.3), or when it is complete.",
                Field::Word(&mut self.cut),
            );
        }
        tell(
            "hold",
            "For how long a cut window stays: interval (VNS) or round-trip (MP 2.2).",
            Field::Word(&mut self.hold),
        );
        tell(
            "loss",
            "What a loss does: tcp, it halves the window (VNS), maintain, nothing unless chains are given up, or ignore, nothing.",
            Field::Word(&mut self.loss),
        );
        tell(
            "repair",
            "Window while losses are repaired after a timeout: grow (RFC 5681) or hold, one packet until the repair is over.",
            Field::Word(&mut self.repair),
        );
        tell(
            "undo",
            "Give back what a loss took if the packet was only late (RFC 4015); true.",
            Field::Switch(&mut self.undo),
        );
        tell(
            "pacing",
            "Pace windows up to 64 packets with gaps above 100 ms; true (VNS).",
            Field::Switch(&mut self.pacing),
        );
        tell(
            "smooth",
            "Pace every window over its round trip; true (MP and VNS: false).",
            Field::Switch(&mut self.smooth),
        );
        if !is_vcp {
            tell(
                "zones",
                "Read chains that only repeat their first digit as zones, which links of VCP write; true.",
                Field::Switch(&mut self.zones),
            );
            tell(
                "strikes",
                "Echoes of one type in a row until chains are given up; 3 (MP 3.4). n > 2: incomplete chains; n + 1.",
                Field::Count(&mut self.strikes),
            );
            tell(
                "resume",
                "Round trips until chains are tried again, doubled each time; 8 (A-17).",
                Field::Count(&mut self.resume),
            );
            tell(
                "relapses",
                "Having given up so often again, it stays VCP; 3 (A-17).",
                Field::Count(&mut self.relapses),
            );
        }
    }

    #[cfg(feature = "words")]
    fn settle(&mut self, is_written: &dyn Fn(&str) -> bool) {
        self.order.settle(self.n, is_written);
        if !is_written("strikes") {
            self.strikes = Self::of(self.n, self.is_preset).strikes;
        }
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        self.order.check(self.n, tell);
        Finding::timer("interval", self.interval, "\"200 ms\"", tell);
    }
}
