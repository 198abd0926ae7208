//! The sender laws that a host can run: their names, their programs, and their settings as the programs read them.

use congestlab_core::law::xcp::LossPolicy;
use congestlab_core::law::{abc, dctcp, mpcp, prague, xcp, xcp_r};
use congestlab_core::units::{Rate, Ratio};

/// Name of the persistent host that runs XCP, and of its congestion control.
pub const NAME: &str = "xcp";
/// Name of the persistent host that runs XCP-r, and of its congestion control; a kernel takes no dash in one.
pub const XCP_R: &str = "xcpr";
/// Name of the persistent host that runs VCP, and of its congestion control.
pub const VCP: &str = "vcp";
/// Name of the persistent host that runs DPCP, and of its congestion control.
pub const DPCP: &str = "dpcp";
/// Name of the persistent host that runs TPCP, and of its congestion control.
pub const TPCP: &str = "tpcp";
/// Name of the persistent host that runs DCTCP, and of its congestion control: the kernel's own is `dctcp`.
pub const DCTCP: &str = "cdctcp";
/// Name of the persistent host that runs TCP Prague, and of its congestion control; there is a kernel with a `prague`.
pub const PRAGUE: &str = "cprag";
/// Name of the persistent host that runs ABC, and of its congestion control.
pub const ABC: &str = "abc";
/// Law of a host that runs XCP and says in its headers what routers with XCP-i want to know ([`super::Config::interoperable`]).
pub const XCP_I: &str = "xcp-i";
/// Names of persistent hosts: there is one at most.
pub const NAMES: [&str; 8] = [NAME, XCP_R, VCP, DPCP, TPCP, DCTCP, PRAGUE, ABC];

/// Each law's name, its name as people write it, and its object file, which `bpf/build.sh` makes.
static PROGRAMS: [(&str, &str, &[u8]); NAMES.len()] = [
    (NAME, "XCP", include_bytes!("../../bpf/objects/host.bpf.o")),
    (XCP_R, "XCP-r", include_bytes!("../../bpf/objects/host-xcpr.bpf.o")),
    (VCP, "VCP", include_bytes!("../../bpf/objects/host-vcp.bpf.o")),
    (DPCP, "DPCP", include_bytes!("../../bpf/objects/host-dpcp.bpf.o")),
    (TPCP, "TPCP", include_bytes!("../../bpf/objects/host-tpcp.bpf.o")),
    (DCTCP, "DCTCP", include_bytes!("../../bpf/objects/host-dctcp.bpf.o")),
    (PRAGUE, "Prague", include_bytes!("../../bpf/objects/host-prague.bpf.o")),
    (ABC, "ABC", include_bytes!("../../bpf/objects/host-abc.bpf.o")),
];

/// The row of the law whose name a host's name begins with: the longest, for `xcpr` begins with `xcp`.
fn program(name: &str) -> &'static (&'static str, &'static str, &'static [u8]) {
    let rows = PROGRAMS.iter().filter(|(own, ..)| name.starts_with(own));
    rows.max_by_key(|(own, ..)| own.len()).unwrap_or(&PROGRAMS[0])
}

/// A sender law, with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// XCP.
    Xcp(xcp::SenderConfig),
    /// XCP-r with epochs, and the settings that it has of XCP.
    XcpR(xcp_r::Config),
    /// VCP, DPCP or TPCP: of MPCP's settings those that chains of one packet have and, with more, when a window is cut. Chains
    /// are of three packets at most.
    Mpcp(mpcp::SenderConfig),
    /// DCTCP.
    Dctcp(dctcp::Config),
    /// TCP Prague.
    Prague(prague::Config),
    /// ABC.
    Abc(abc::SenderConfig),
}

impl Sender {
    /// Returns the name of the law.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Xcp(_) => NAME,
            Self::XcpR(_) => XCP_R,
            Self::Mpcp(sender) if sender.n > 2 => TPCP,
            Self::Mpcp(sender) if sender.n > 1 => DPCP,
            Self::Mpcp(_) => VCP,
            Self::Dctcp(_) => DCTCP,
            Self::Prague(_) => PRAGUE,
            Self::Abc(_) => ABC,
        }
    }

    /// Returns the name of the law as people write it.
    pub fn title(&self) -> &'static str {
        title(self.name())
    }

    /// Returns true if the law has the ECN field of packets for itself.
    pub fn owns_ecn(&self) -> bool {
        !matches!(self, Self::Xcp(_) | Self::XcpR(_))
    }

    /// Returns true if packets may not be sent as one for a device to cut: each has a code or a number of its own.
    pub(super) fn is_single(&self) -> bool {
        matches!(self, Self::Abc(_)) || matches!(self, Self::Mpcp(sender) if sender.n > 1)
    }

    /// Returns the packets of a first window where nobody says otherwise.
    pub fn initial_window(&self) -> u32 {
        match self {
            Self::Dctcp(_) | Self::Prague(_) | Self::Abc(_) => 10, // RFC 6928
            _ => 1,                                                // TH Ex. 11
        }
    }

    /// Returns the object file with the law's programs.
    pub(super) fn object(&self) -> &'static [u8] {
        program(self.name()).2
    }

    /// Returns `struct SenderConfig` of `bpf/law.h`, `bpf/vcp.h` or `bpf/dctcp.h`: as many bytes for each law.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32);
        match self {
            Self::Xcp(_) | Self::XcpR(_) => {
                let (sender, last) = match self {
                    Self::XcpR(config) => (&config.xcp, config.own == xcp_r::Own::Reset),
                    Self::Xcp(sender) => (sender, sender.safety_net),
                    _ => return bytes,
                };
                bytes.extend(sender.desired_rate.0.to_ne_bytes());
                let words = [
                    u32::from(sender.request == xcp::RequestPolicy::Unlimited),
                    match sender.loss {
                        xcp::LossPolicy::Tcp => 0,
                        xcp::LossPolicy::Maintain => 1,
                        xcp::LossPolicy::Fallback => 2,
                    },
                    match sender.rate_source {
                        xcp::RateSource::Window => 0,
                        xcp::RateSource::Measured => 1,
                        xcp::RateSource::Used => 2,
                    },
                    sender.aging.map_or(0, |weight| weight.0),
                    sender.price.0,
                ];
                bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
                let switches = [sender.clamp, sender.pacing, sender.profile == xcp::Profile::Ns2, last];
                bytes.extend(switches.map(u8::from));
            }
            Self::Mpcp(sender) => {
                let micros = |span: u64| u32::try_from(span / 1000).unwrap_or(u32::MAX);
                let words = [
                    sender.alpha.0,
                    sender.beta.0,
                    sender.xi.0,
                    match sender.loss {
                        mpcp::Loss::Tcp => 0,
                        mpcp::Loss::Maintain => 1,
                        mpcp::Loss::Ignore => 2,
                    },
                    sender.exponent_max.0,
                    micros(sender.interval.0),
                    micros(sender.rtt_max.0),
                ];
                bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
                let is_round_trip = sender.hold == mpcp::Hold::RoundTrip;
                let is_late = sender.cut == mpcp::Cut::Complete;
                bytes.extend([is_round_trip, sender.pacing, sender.smooth, is_late].map(u8::from));
            }
            Self::Dctcp(_) | Self::Prague(_) | Self::Abc(_) => {
                let prague = if let Self::Prague(prague) = self { *prague } else { prague::Config::DEFAULT };
                let has_linux = matches!(self, Self::Dctcp(dctcp) if dctcp.linux);
                bytes.extend(prague.rtt_target.0.to_ne_bytes());
                bytes.extend(prague.transition.to_ne_bytes());
                let paces = !matches!(self, Self::Dctcp(_));
                bytes.extend([prague.rtt_independent, has_linux, paces].map(u8::from));
                bytes.resize(32, 0);
            }
        }
        bytes
    }
}

/// The law with that name, as commands and scenarios write it.
pub(super) fn law(name: &str) -> String {
    title(name).to_lowercase()
}

/// The law with that name, as people write it.
pub(super) fn title(name: &str) -> &'static str {
    program(name).1
}

/// Returns the sender law as hosts run it, with this reaction to loss. Protections that a simulation may
/// switch off are on; the safety net is one of them.
pub fn sender_config(loss: xcp::LossPolicy) -> Sender {
    Sender::Xcp(xcp::SenderConfig {
        request: xcp::RequestPolicy::Demand,
        loss,
        safety_net: loss == LossPolicy::Maintain,
        clamp: true,
        aging: Some(Ratio::ppm(500_000)), // draft-03 §4.1.3.1
        pacing: true,
        rate_source: xcp::RateSource::Window,
        feedback: xcp::Feedback::Rate,
        verify: true,
        price: Ratio::ONE,
        desired_rate: Rate(10_000_000_000 / 8), // what a header can ask for in a round trip or two
        profile: xcp::Profile::Standard,
    })
}

/// Returns XCP-r's sender law as hosts run it, with this reaction to loss: [`sender_config`]'s, but for the safety net.
pub fn xcp_r_config(loss: xcp::LossPolicy) -> Sender {
    match sender_config(loss) {
        Sender::Xcp(xcp) => Sender::XcpR(xcp_r::Config {
            xcp: xcp::SenderConfig { safety_net: false, ..xcp },
            ..xcp_r::Config::DEFAULT
        }),
        other => other,
    }
}

/// Returns VCP's sender law as hosts run it, with this reaction to loss.
pub fn vcp_config(loss: mpcp::Loss) -> Sender {
    Sender::Mpcp(mpcp::SenderConfig { loss, ..mpcp::SenderConfig::of(1, true) })
}

/// Returns DPCP's sender law as hosts run it, with this reaction to loss.
pub fn dpcp_config(loss: mpcp::Loss) -> Sender {
    Sender::Mpcp(mpcp::SenderConfig { loss, ..mpcp::SenderConfig::of(2, true) })
}

/// Returns TPCP's sender law as hosts run it, with this reaction to loss.
pub fn tpcp_config(loss: mpcp::Loss) -> Sender {
    Sender::Mpcp(mpcp::SenderConfig { loss, ..mpcp::SenderConfig::of(3, true) })
}

/// Returns DCTCP's sender law as hosts run it.
pub fn dctcp_config() -> Sender {
    Sender::Dctcp(dctcp::Config::default())
}

/// Returns TCP Prague's sender law as hosts run it.
pub fn prague_config() -> Sender {
    Sender::Prague(prague::Config::DEFAULT)
}

/// Returns ABC's sender law as hosts run it.
pub fn abc_config() -> Sender {
    Sender::Abc(abc::SenderConfig {})
}
