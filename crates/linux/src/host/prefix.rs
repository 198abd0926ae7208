//! Prefixes of addresses, as people write them and as the map of peers has them.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use super::{half, word};
use crate::error::{Error, Result};

/// A prefix of IPv4 or IPv6 addresses, such as 10.0.2.0/24 or 2001:db8::7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl FromStr for Prefix {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::input(
                format!("{text:?} is no prefix of addresses"),
                "such as 10.0.2.0/24, 10.0.2.7, 2001:db8::/32 or 2001:db8::7",
            )
        };
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let length = match length {
            None => most,
            Some(length) if is_number(length) => length.parse().map_err(|_| wrong())?,
            Some(_) => return Err(wrong()),
        };
        if length > most { Err(wrong()) } else { Ok(Self { address: masked(address, length), length }) }
    }
}

/// The address without the bits behind the prefix: the map takes them for the same.
fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl Prefix {
    /// Every peer.
    pub(super) const ALL: Self = Self { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), length: 0 };

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_ipv4() && masked(address, self.length) == self.address
    }

    pub(crate) fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// As the map has it: the cookie of a namespace, then IPv4 as ::ffff:a.b.c.d.
    pub(super) fn key(self, scope: u64) -> [u8; 28] {
        let (address, before) = match self.address {
            IpAddr::V4(address) => (address.to_ipv6_mapped(), 96),
            IpAddr::V6(address) => (address, 0),
        };
        let mut key = [0; 28];
        key[..4].copy_from_slice(&(64 + before + u32::from(self.length)).to_ne_bytes());
        key[4..12].copy_from_slice(&scope.to_ne_bytes());
        key[12..].copy_from_slice(&address.octets());
        key
    }

    /// With the namespace that it holds in.
    pub(super) fn from_key(key: &[u8]) -> Option<(u64, Self)> {
        let length = u8::try_from(half(key, 0).checked_sub(64)?).ok()?;
        let address = Ipv6Addr::from(<[u8; 16]>::try_from(key.get(12..28)?).ok()?);
        let prefix = match address.to_ipv4_mapped() {
            Some(address) if length >= 96 => Self { address: address.into(), length: length - 96 },
            _ => Self { address: address.into(), length },
        };
        Some((word(key, 4), prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_no_bits_behind_its_length_and_is_read_back_from_the_map() {
        for (text, expected) in [
            ("10.0.2.7/24", "10.0.2.0/24"),
            ("10.0.2.7", "10.0.2.7/32"),
            ("10.1.2.3/0", "0.0.0.0/0"),
            ("2001:db8::7/32", "2001:db8::/32"),
            ("2001:db8::7", "2001:db8::7/128"),
            ("::1/0", "::/0"),
        ] {
            let prefix: Prefix = text.parse().unwrap();
            assert_eq!(prefix.to_string(), expected);
            assert_eq!(Prefix::from_key(&prefix.key(5)), Some((5, prefix)), "{text}");
        }
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/-1", "10.0.0.0/+1", "eth0"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}
