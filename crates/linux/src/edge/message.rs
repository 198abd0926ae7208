//! Messages between the two edges of a cloud, as datagrams of UDP. Numbers are big-endian.
//!
//! | bytes | what |
//! | --- | --- |
//! | 0-3 | `XCPI` |
//! | 4, 5 | version, 1, and kind |
//! | 6-7 | number of probes, or of this probe |
//! | 8-11 | number of the request |
//! | 12-15 | gap between probes, or how late the latest of them was, ns |
//! | 16-23 | nonce of the request |
//! | 24-31 | cookie of the upstream edge for who asks |
//! | 32-39 | clock of who says it, ns |
//! | 40-47 | clock of the request, or how long the round takes, ns |
//! | 48-49 | bytes of a probe as a whole IP packet |
//! | 50-55 | zero |

/// Bytes of a message; probes have more behind it.
pub const SIZE: usize = 56;
/// Bytes of IP and UDP before it.
pub const HEADERS: u16 = 28;
const MARK: [u8; 4] = *b"XCPI";
const VERSION: u8 = 1;

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The downstream edge asks for probes, or with none of them for an acknowledgment alone.
    Request,
    /// The upstream edge does not know who asks: the cookie is to be said with the next request.
    Challenge,
    /// The upstream edge has the request.
    Ack,
    /// A probe.
    Probe,
    /// The upstream edge has sent all probes.
    Report,
}

const KINDS: [Kind; 5] = [Kind::Request, Kind::Challenge, Kind::Ack, Kind::Probe, Kind::Report];

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Kind of the message.
    pub kind: Kind,
    /// Number of probes; of a probe its own, from 0.
    pub count: u16,
    /// Number of the request.
    pub id: u32,
    /// Gap between probes; of a report the most by which a probe was late. In ns.
    pub gap: u32,
    /// Nonce of the request, which all answers repeat: who has not seen it can not forge one.
    pub nonce: u64,
    /// Cookie of the upstream edge: who says it has got it at the address from which it asks.
    pub cookie: u64,
    /// Clock of who says it, ns.
    pub stamp: u64,
    /// Clock of the request that is answered, ns; of other messages 0.
    pub echo: u64,
    /// Bytes of a probe as a whole IP packet.
    pub size: u16,
}

impl Message {
    /// Returns the bytes of the message.
    pub fn emit(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &MARK);
        put(4, &[VERSION, self.kind as u8]);
        put(6, &self.count.to_be_bytes());
        put(8, &self.id.to_be_bytes());
        put(12, &self.gap.to_be_bytes());
        put(16, &self.nonce.to_be_bytes());
        put(24, &self.cookie.to_be_bytes());
        put(32, &self.stamp.to_be_bytes());
        put(40, &self.echo.to_be_bytes());
        put(48, &self.size.to_be_bytes());
        bytes
    }

    /// Reads a datagram; `None`: it is no such message, or one of another version.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; SIZE] = bytes.first_chunk()?;
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        if bytes[..4] != MARK || bytes[4] != VERSION {
            return None;
        }
        Some(Self {
            kind: *KINDS.get(usize::from(bytes[5]))?,
            count: half(6),
            id: word(8),
            gap: word(12),
            nonce: long(16),
            cookie: long(24),
            stamp: long(32),
            echo: long(40),
            size: half(48),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for kind in KINDS {
            let message = Message {
                kind,
                count: 50,
                id: 0x0102_0304,
                gap: 200_000,
                nonce: 0x1112_1314_1516_1718,
                cookie: 0x2122_2324_2526_2728,
                stamp: u64::MAX - 1,
                echo: 7,
                size: 1500,
            };
            assert_eq!(Message::parse(&message.emit()), Some(message));
            let mut longer = message.emit().to_vec();
            longer.extend([0xff; 100]);
            assert_eq!(Message::parse(&longer), Some(message), "a probe has more behind it");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let good = Message {
            kind: Kind::Request,
            count: 0,
            id: 1,
            gap: 0,
            nonce: 2,
            cookie: 3,
            stamp: 4,
            echo: 5,
            size: 6,
        }
        .emit();
        assert_eq!(Message::parse(&good[..SIZE - 1]), None);
        for (at, value) in [(0, b'Y'), (4, 2), (5, 5), (5, 255)] {
            let mut bad = good;
            bad[at] = value;
            assert_eq!(Message::parse(&bad), None, "byte {at} is {value}");
        }
    }
}
