//! Settings of XCP's senders and receivers.

#[cfg(feature = "words")]
use crate::law::settings::Finding;
use crate::law::settings::{Field, Settings, words};
use crate::units::{Rate, Ratio};

/// Change of rate that a sender asks for (docs/design/protocols.md 1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestPolicy {
    /// As much as the flow can use: nothing more when application or receiver limit it (D03).
    #[default]
    Demand,
    /// Always the most that a header can say (ns-2).
    Unlimited,
}

/// Reaction of a sender to loss (docs/design/protocols.md 1.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPolicy {
    /// The window is halved once per window, 1 MSS after a timeout; feedback still applies (ns-2).
    #[default]
    Tcp,
    /// The window stays (P-XCP); 1 MSS after a timeout. See [`SenderConfig::safety_net`].
    Maintain,
    /// TCP runs in parallel; back to XCP when its feedback is the stricter (D03 5.1).
    Fallback,
}

/// Source of the throughput that a sender states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateSource {
    /// The window: W / srtt.
    #[default]
    Window,
    /// Bytes handed to IP, metered; at most W / srtt.
    Measured,
    /// The window; what was sent in the last round trip while the application leaves some of the window unused.
    Used,
}

/// Unit of the feedback that ACKs return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// The rates, B/s: the window moves by the sender's smoothed round trip of each (draft-03 §4.1.3).
    #[default]
    Rate,
    /// Bytes of window: each rate times the round trip that its packet stated (K02's H_feedback).
    Bytes,
    /// The sum of all rates since the beginning ([`super::CumulativeEcho`]): whatever ACK arrives says all that the lost ones said
    /// (docs/design/protocols.md 13.7).
    Sum,
}

/// Configuration of XCP's sender law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderConfig {
    /// Change of rate that the sender asks for.
    pub request: RequestPolicy,
    /// Reaction to loss.
    pub loss: LossPolicy,
    /// True for [`LossPolicy::Maintain`] with a safety net (docs/design/protocols.md 13.8): the window is TCP's, halved, for
    /// as long as losses look like those of a queue.
    pub safety_net: bool,
    /// True: cwnd is kept at most awnd (TH 4.1). The window in use and stated is min(cwnd, awnd) either way; TH alone
    /// states cwnd.
    pub clamp: bool,
    /// Weight of the metered rate in the window, once per RTT (D03 4.1.3.1); `None`: no aging.
    pub aging: Option<Ratio>,
    /// True to pace at window / srtt.
    pub pacing: bool,
    /// Source of the stated throughput.
    pub rate_source: RateSource,
    /// Unit of the feedback that ACKs return.
    pub feedback: Feedback,
    /// True to refuse positive feedback beyond the sum of the requests ([`Asked`](super::Asked)). Hosts on Linux always do.
    pub verify: bool,
    /// Weight of the flow's share (K02 §6): X is multiplied by it. 1 is `Ratio::ppm(1_000_000)`.
    pub price: Ratio,
    /// The most that the flow can use, usually the speed of its interface.
    pub desired_rate: Rate,
    /// Implementation that the sender follows.
    pub profile: Profile,
}

/// Implementation that a sender follows.
// A tag of its own, so that senders apart are one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Profile {
    /// draft-03's sender.
    Standard,
    /// ns-2's (docs/ns2.md 3, 5): X from whole packets with window inflation, feedback of duplicate ACKs
    /// dropped.
    Ns2,
    /// TH's: of the rest of the configuration only `clamp` and `desired_rate` count.
    Thesis,
    /// draft-03's, that lies.
    Liar(Lies),
}

words!(RequestPolicy { Demand = "demand", Unlimited = "unlimited", });
words!(LossPolicy { Tcp = "tcp", Maintain = "maintain", Fallback = "fallback", });
words!(RateSource { Window = "window", Measured = "measured", Used = "used", });
words!(Feedback { Rate = "rate", Bytes = "bytes", Sum = "sum", });

impl SenderConfig {
    /// Default configuration: draft-03's sender, which reacts to loss as TCP, and paces (TH 4.6), so that traffic in the other
    /// direction does not bunch its packets.
    pub const DEFAULT: Self = Self {
        request: RequestPolicy::Demand,
        loss: LossPolicy::Tcp,
        safety_net: false,
        clamp: true,
        aging: None,
        pacing: true,
        rate_source: RateSource::Window,
        feedback: Feedback::Rate,
        verify: false,
        price: Ratio::ONE,
        desired_rate: Rate(u64::MAX),
        profile: Profile::Standard,
    };
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Settings for SenderConfig {
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        self.each_of_family(tell);
        tell(
            "feedback",
            "What ACKs return: rate, times the sender's round trip (default); bytes, times the packet's own (K02); or sum, of all rates, which outlasts lost ACKs.",
            Field::Word(&mut self.feedback),
        );
        tell(
            "safety_net",
            "With loss = maintain: TCP's window while a tenth is lost and round trips are long, or links ask for less; false.",
            Field::Switch(&mut self.safety_net),
        );
        self.profile.each(tell);
    }

    #[cfg(feature = "words")]
    fn check(&self, tell: &mut dyn FnMut(Finding)) {
        if self.safety_net && self.loss != LossPolicy::Maintain {
            let help = "write loss = \"maintain\" too: other reactions to loss need no net";
            tell(Finding::range("safety_net", "is on and nothing is maintained", help));
        }
    }
}

impl SenderConfig {
    /// Settings that XCP-r's sender has, too; its receiver always multiplies by the packet's round trip.
    pub(in crate::law) fn each_of_family(
        &mut self,
        tell: &mut impl FnMut(&'static str, &'static str, Field<'_>),
    ) {
        tell(
            "loss",
            "What to do on loss: tcp (default), maintain (P-XCP), fallback.",
            Field::Word(&mut self.loss),
        );
        tell(
            "request",
            "What to ask for: demand (default), unlimited (ns-2).",
            Field::Word(&mut self.request),
        );
        tell(
            "clamp",
            "Keep the window within what the receiver advertises; true.",
            Field::Switch(&mut self.clamp),
        );
        tell(
            "aging",
            "Once per round trip move the window towards the metered rate: true (weight 0.5), false (default), or the weight.",
            Field::Weight(&mut self.aging),
        );
        tell(
            "pacing",
            "Pace at window over round trip time; true (profile ns2: false, as all papers).",
            Field::Switch(&mut self.pacing),
        );
        tell(
            "rate",
            "Where the stated throughput comes from: window (default); measured; or used, the window but for what an application leaves unused (default of pxcp).",
            Field::Word(&mut self.rate_source),
        );
        tell(
            "verify",
            "Refuse positive feedback beyond the sum of what was asked for, as hosts on Linux always do; false.",
            Field::Switch(&mut self.verify),
        );
        tell("price", "Weight of the flow's share (K02, 6); 1.", Field::Factor(&mut self.price));
        tell(
            "desired_rate",
            "The most that the flow can use; absent: the rate of its access; without one, ten times its first link's.",
            Field::Rate(&mut self.desired_rate),
        );
    }
}

/// Lies of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lies {
    /// Factor of the round trip time that headers state.
    pub stated_rtt: Ratio,
    /// Factor of positive feedback, as if whoever receives forged it in ACKs.
    pub forged: Ratio,
    /// True: negative feedback is not heard.
    pub deaf: bool,
}

impl Lies {
    /// The truth.
    pub const NONE: Self = Self { stated_rtt: Ratio::ONE, forged: Ratio::ONE, deaf: false };
}

impl Profile {
    /// Tells the lies of a sender that follows no implementation, to change them.
    fn each(&mut self, tell: &mut impl FnMut(&'static str, &'static str, Field<'_>)) {
        let mut lies = if let Self::Liar(lies) = *self { lies } else { Lies::NONE };
        tell(
            "stated_rtt",
            "Factor of the round trip that headers state: above 1 the sender lies; 1.",
            Field::Factor(&mut lies.stated_rtt),
        );
        tell(
            "forged",
            "Factor of positive feedback, as if ACKs were forged: above 1 the sender takes more than it was granted; 1.",
            Field::Factor(&mut lies.forged),
        );
        tell("deaf", "Do not hear negative feedback; false.", Field::Switch(&mut lies.deaf));
        match self {
            Self::Standard | Self::Liar(_) if lies == Lies::NONE => *self = Self::Standard,
            Self::Standard | Self::Liar(_) => *self = Self::Liar(lies),
            Self::Ns2 | Self::Thesis => {}
        }
    }
}
