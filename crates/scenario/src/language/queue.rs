//! Amounts that wait: "200 packets", "1 BDP", "250 kB".

use congestlab_core::units::{BitRate, Bytes, Duration, Kind};
use schemars::{Schema, SchemaGenerator};

use congestlab_text::decode::{
    Language, NUMBER, number_or_text, out_of_range, quantity, text_schema, wrong_type,
};
use congestlab_text::diagnostic::Findings;
use congestlab_text::tree::{Node, Value};

/// Millionths in one.
const MILLION: u64 = 1_000_000;
/// More packets than any machine holds, and few enough for all that is computed with them.
pub(crate) const PACKETS_MAX: u64 = 1_000_000_000;
/// As long as a run can be times the fastest link, in bytes, would be more; memory ends before.
const BYTES_MAX: u64 = PACKETS_MAX * 65_535;
/// Bandwidth-delay products.
const BDP_MAX: u64 = 1_000;

/// An amount of waiting data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Packets of any size.
    Packets(u64),
    /// Bytes of whole IP packets.
    Bytes(u64),
    /// Millionths of the bandwidth-delay product.
    Bdp(u64),
}

impl Amount {
    /// A whole bandwidth-delay product.
    pub(crate) const ONE_BDP: Self = Self::Bdp(MILLION);
}

/// Rate times round trip, times the millionths, rounded up to packets, at least 1 (docs/design/contract.md 2).
/// `None` above [`PACKETS_MAX`].
pub(crate) fn bdp_packets(
    millionths: u64,
    rate: BitRate,
    round_trip: Duration,
    packet_size: u16,
) -> Option<u64> {
    // bit/s x ns x millionths; below 2^40 x 2^70 x 2^30 only if checked.
    let work = u128::from(rate.0).checked_mul(round_trip.0.into())?.checked_mul(millionths.into())?;
    let per_packet = u128::from(packet_size) * 8 * 1_000_000_000 * u128::from(MILLION);
    let packets = work.div_ceil(per_packet).max(1);
    u64::try_from(packets).ok().filter(|&packets| packets <= PACKETS_MAX)
}

/// A decimal number without sign or exponent, in millionths. `None` if it is none or finer.
fn millionths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || text.ends_with('.')
        || fraction.len() > 6
        || !is_number(whole)
        || !is_number(fraction)
    {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(MILLION)?.checked_add(fraction)
}

const HELP: &str =
    "write packets (\"200 packets\"), bandwidth-delay products (\"1 BDP\") or bytes (\"250 kB\")";

impl Language for Amount {
    fn decode(node: &Node, findings: &mut Findings) -> Option<Self> {
        let Some(text) = number_or_text(node) else {
            wrong_type(node, "an amount", HELP, findings);
            return None;
        };
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, name) = (text[..split].trim(), text[split..].trim());
        let (amount, max) = match name {
            "packet" | "packets" => {
                (millionths(number).filter(|n| n % MILLION == 0).map(|n| n / MILLION), PACKETS_MAX)
            }
            "BDP" | "bdp" => (millionths(number), BDP_MAX * MILLION),
            _ => match text.parse::<Bytes>() {
                Ok(bytes) => (Some(bytes.0), BYTES_MAX),
                Err(_) if name.is_empty() && !number.is_empty() => {
                    let place = findings.place();
                    let message = format!(
                        "`{place}`: \"{text}\" has no unit and could mean {text} packets, BDP or bytes"
                    );
                    findings.error("scenario::unit", node.span, message, HELP);
                    return None;
                }
                Err(error) => {
                    let message = format!("`{}`: {error}", findings.place());
                    findings.error("scenario::unit", node.span, message, HELP);
                    return None;
                }
            },
        };
        match amount {
            Some(n) if (1..=max).contains(&n) => Some(match name {
                "packet" | "packets" => Self::Packets(n),
                "BDP" | "bdp" => Self::Bdp(n),
                _ => Self::Bytes(n),
            }),
            Some(0) => {
                let message = format!("`{}` is \"{text}\", but nothing would fit", findings.place());
                let help = "allowed: from \"1 packet\" or \"1 B\" on";
                findings.error("scenario::range", node.span, message, help);
                None
            }
            Some(_) => {
                let allowed = "up to 1000000000 packets, 1000 BDP or 65 TB";
                out_of_range(node.span, &format!("\"{text}\""), allowed, findings);
                None
            }
            None => {
                let place = findings.place();
                let message = format!("`{place}`: \"{number}\" is no number of {name}");
                let help = "packets are whole; BDPs have up to six decimals";
                findings.error("scenario::unit", node.span, message, help);
                None
            }
        }
    }

    fn encode(&self) -> Value {
        Value::string(match self {
            Self::Packets(1) => "1 packet".into(),
            Self::Packets(packets) => format!("{packets} packets"),
            Self::Bytes(bytes) => Bytes(*bytes).to_string(),
            Self::Bdp(millionths) => {
                let decimal = format!("{}.{:06}", millionths / MILLION, millionths % MILLION);
                format!("{} BDP", decimal.trim_end_matches('0').trim_end_matches('.'))
            }
        })
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        let named = format!("{NUMBER}\\s*(?:packets?|BDP|bdp)\\s*");
        text_schema(
            "Packets of any size, bandwidth-delay products, or bytes.",
            &[&named, &quantity(Kind::Bytes)],
            &["200 packets", "1 BDP", "250 kB"],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bdp_is_rounded_up_to_packets_and_never_zero() {
        let bdp = |millionths, rate, rtt, size| bdp_packets(millionths, BitRate(rate), Duration(rtt), size);
        assert_eq!(bdp(MILLION, 10_000_000, 80_000_000, 1000), Some(100));
        assert_eq!(bdp(MILLION, 10_000_001, 80_000_000, 1000), Some(101));
        assert_eq!(bdp(MILLION / 2, 10_000_000, 80_000_000, 1000), Some(50));
        assert_eq!(bdp(MILLION, 10_000_000, 0, 1500), Some(1));
        assert_eq!(bdp(MILLION, 1_000_000_000_000, u64::MAX, 20), None, "too many packets");
        assert_eq!(bdp(u64::MAX, u64::MAX, u64::MAX, 1), None, "beyond 128 bits");
    }

    #[test]
    fn decimals_are_read_exactly() {
        assert_eq!(millionths("0.5"), Some(500_000));
        assert_eq!(millionths("12"), Some(12_000_000));
        assert_eq!(millionths("0.000001"), Some(1));
        for text in ["", ".", ".5", "1.", "0.0000001", "1e3", "-1", "1.2.3", "99999999999999999999"] {
            assert_eq!(millionths(text), None, "{text}");
        }
    }
}
