//! RCP's bytes on the wire: a TCP option for experiments (RFC 6994), whose two bytes behind kind and length say that it is
//! RCP's. Nobody else has written down where RCP's header goes (assumed).

use super::Header;

/// Kind of TCP options for experiments (RFC 4727).
const KIND: u8 = 253;
/// Name of RCP among them, "RC".
const NAME: [u8; 2] = *b"RC";

/// Reason for which bytes are no such option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The bytes end before the option does.
    Truncated,
    /// Another option stands there.
    Foreign,
    /// Length that no option of RCP's has.
    Length(u8),
}

impl core::fmt::Display for Error {
    #[inline] // or it would be in each BPF object
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Truncated => out.write_str("the bytes end within the option"),
            Self::Foreign => out.write_str("it is no option of RCP's: allowed is kind 253 with the name RC"),
            Self::Length(length) => write!(out, "RCP's option has {length} bytes: allowed are 12 and 8"),
        }
    }
}

/// Option of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// Header of data and SYN: rate, then round trip time.
    Forward(Header),
    /// Reply on ACK and SYN-ACK: the rate, in the steps of headers.
    Back(u32),
}

impl TcpOption {
    /// Bytes on data and SYN.
    pub const FORWARD: u8 = 12;
    /// Bytes on ACK and SYN-ACK.
    pub const BACK: u8 = 8;

    /// Writes the option; the bytes behind its length, which is the second, are none of it.
    #[inline]
    pub const fn emit(self) -> [u8; 12] {
        let (length, rate, rtt) = match self {
            Self::Forward(header) => (Self::FORWARD, header.rate, header.rtt),
            Self::Back(rate) => (Self::BACK, rate, 0),
        };
        let ([a, b, c, d], [e, f, g, h]) = (rate.to_be_bytes(), rtt.to_be_bytes());
        [KIND, length, NAME[0], NAME[1], a, b, c, d, e, f, g, h]
    }

    /// Reads the option at the beginning of these bytes.
    ///
    /// # Errors
    /// If they do not begin with an option of RCP's.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let [kind, length, name @ ..] = bytes else { return Err(Error::Truncated) };
        if *kind != KIND {
            return Err(Error::Foreign);
        }
        match name.first_chunk() {
            None => return Err(Error::Truncated),
            Some(name) if *name != NAME => return Err(Error::Foreign),
            Some(_) => {}
        }
        let word = |at: usize| {
            let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(Error::Truncated)?;
            Ok(u32::from_be_bytes(*bytes))
        };
        match *length {
            Self::FORWARD => Ok(Self::Forward(Header { rate: word(4)?, rtt: word(8)? })),
            Self::BACK => word(4).map(Self::Back),
            other => Err(Error::Length(other)),
        }
    }
}
