//! Any bytes as an IPv4 packet with TCP, its place in a chain, and its numbers back: nothing panics, and what
//! can be written is read and restored as it was.
#![no_main]

use congestlab_core::law::Expected;
use congestlab_core::law::mpcp::Order;
use congestlab_core::wire::segment::{Repr, restore, set_ecn, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [choice, bytes @ ..] = input else { return };
    let mut bytes = bytes.to_vec();
    let Ok(natural) = Repr::parse(&bytes) else {
        assert!(write(&mut bytes, Order::Swap, 0).is_err());
        return;
    };
    set_ecn(&mut bytes, choice >> 6);
    let marked = Repr::parse(&bytes).expect("only a code was changed");
    assert_eq!(marked, Repr { ecn: choice >> 6, ..natural });

    let n = if choice & 1 == 0 { 1 + u32::from(choice >> 3 & 7) } else { 2 };
    let order = match choice & 3 {
        0 | 2 => Order::Checksum,
        1 => Order::Swap,
        _ => Order::Ipid,
    };
    let index = (choice >> 2 & 7) % n as u8;
    let own = natural.segment;
    let says = write(&mut bytes, order, index).expect("parsed before");
    let wire = Repr::parse(&bytes).expect("numbers were changed").segment;
    if own.deficit() != 0 {
        return; // broken before
    }
    if says {
        assert_eq!(order.read(&wire, n), Some(index));
    } else {
        assert_eq!(wire, own);
    }
    let (next, newest) = (own.sequence, own.acknowledgment);
    let expected = Expected { next, window: 0, oldest: newest, newest };
    assert_eq!(restore(&mut bytes, order, n, &expected), Ok(true));
    let back = Repr::parse(&bytes).expect("numbers were changed").segment;
    assert_eq!((back.sequence, back.acknowledgment), (next, newest));
});
