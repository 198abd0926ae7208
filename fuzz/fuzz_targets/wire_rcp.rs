//! Any bytes as RCP's TCP option: refused, or read, written, and read again the same.
#![no_main]

use congestlab_core::law::rcp::TcpOption;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| match TcpOption::parse(input) {
    Ok(option) => {
        let (bytes, length) = (option.emit(), usize::from(input[1]));
        assert_eq!(&bytes[..length], &input[..length]);
        assert_eq!(TcpOption::parse(&bytes[..length]), Ok(option));
    }
    Err(error) => assert!(!error.to_string().is_empty()),
});
