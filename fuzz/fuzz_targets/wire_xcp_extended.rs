//! Any bytes as an extended congestion header: refused, or read, written, and read again the same; what
//! is written differs from what was read only where nobody looks.
#![no_main]

use congestlab_core::wire::xcp_extended::{Error, Repr, length_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let repr = match Repr::parse(input) {
        Ok(repr) => repr,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let is_right = match error {
                Error::Truncated { length } => length == input.len() && length < 36,
                Error::Version { version } => version == input[2] >> 4 && version != 3,
                Error::Format { format } => format == input[2] & 15 && length_of(format).is_none(),
                Error::Length { length } => {
                    length == input[1] && length_of(input[2] & 15) != Some(usize::from(length))
                }
            };
            assert!(is_right, "{error:?}");
            return;
        }
    };
    let (bytes, length) = repr.emit();
    assert_eq!(Repr::parse(&bytes[..length]), Ok(repr));
    assert_eq!((&bytes[..3], &bytes[4..20]), (&input[..3], &input[4..20]));
    assert_eq!(length, usize::from(input[1]));
    assert!(!repr.to_string().is_empty());
});
