//! Quantities as text, and the arithmetic that every law rounds with.

use congestlab_core::units::{
    BitRate, Bytes, Duration, Rate, Ratio, SECOND, Time, UnitError, Wide, limbs, mul_div, mul_div_up,
};
use std::fmt::{Debug, Display};
use std::str::FromStr;

#[path = "xcp/random.rs"]
mod random;
use random::Random;

fn refused<T: FromStr<Err = UnitError> + Debug>(text: &str) -> String {
    let message = text.parse::<T>().unwrap_err().to_string();
    let starts_lower = message.chars().next().unwrap().is_lowercase() || message.starts_with('"');
    assert!(starts_lower && !message.ends_with('.'), "not one lower-case clause: {message}");
    message
}

#[test]
fn the_units_of_the_contract_are_read() {
    for (text, ns) in [
        ("1 ns", 1),
        ("60 s", 60 * SECOND),
        ("100 ms", SECOND / 10),
        ("40ms", SECOND / 25),
        ("  1.5   s ", 3 * SECOND / 2),
        ("0.25 min", 15 * SECOND),
        ("7 us", 7000),
        ("7 µs", 7000),
        ("7 \u{3bc}s", 7000),
        ("0.0005 ms", 500),
        ("1.500000000000000000000000 s", 3 * SECOND / 2),
        ("0 s", 0),
        ("00012.50 ms", 12_500_000),
        ("18446744073709551615 ns", u64::MAX),
        ("18446744073.709551615 s", u64::MAX),
    ] {
        assert_eq!(text.parse(), Ok(Duration(ns)), "{text}");
        assert_eq!(text.parse(), Ok(Time(ns)), "{text}");
    }
    for (text, bytes) in [
        ("1500 B", 1500),
        ("250 kB", 250_000),
        ("1 MB", 1_000_000),
        ("2 GB", 2_000_000_000),
        ("3 TB", 3_000_000_000_000),
        ("1 KiB", 1024),
        ("1 MiB", 1 << 20),
        ("0.5 GiB", 1 << 29),
        ("1 TiB", 1 << 40),
        ("0 B", 0),
    ] {
        assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
    }
    for (text, bits) in [
        ("10 Mbit/s", 10_000_000),
        ("10.6 Mbit/s", 10_600_000),
        ("1 bit/s", 1),
        ("64 kbit/s", 64_000),
        ("1 Gbit/s", 1_000_000_000),
        ("2 Tbit/s", 2_000_000_000_000),
        ("1 B/s", 8),
        ("20 kB/s", 160_000),
        ("20 MB/s", 160_000_000),
        ("1 GB/s", 8_000_000_000),
        ("1 TB/s", 8_000_000_000_000),
        ("1 KiB/s", 8192),
        ("1 MiB/s", 8 << 20),
        ("1 GiB/s", 8 << 30),
        ("0.125 B/s", 1),
        ("0 Mbit/s", 0),
    ] {
        assert_eq!(text.parse(), Ok(BitRate(bits)), "{text}");
    }
    assert_eq!("10 Mbit/s".parse(), Ok(Rate(1_250_000)));
    assert_eq!("20 MB/s".parse(), Ok(Rate(20_000_000)));
    assert_eq!("18446744073709551615 B/s".parse(), Ok(Rate(u64::MAX)));
}

/// docs/design/contract.md 2.
#[test]
fn a_unit_that_can_mean_two_things_is_refused_with_both() {
    let both = "can mean two things: write";
    assert_eq!(refused::<BitRate>("20 mbps"), format!("\"20 mbps\" {both} \"20 Mbit/s\" or \"20 MB/s\""));
    assert_eq!(refused::<BitRate>("20 Mbps"), format!("\"20 Mbps\" {both} \"20 Mbit/s\" or \"20 MB/s\""));
    assert_eq!(refused::<Rate>("1.5Gbps"), format!("\"1.5 Gbps\" {both} \"1.5 Gbit/s\" or \"1.5 GB/s\""));
    assert_eq!(refused::<BitRate>("64 kb/s"), format!("\"64 kb/s\" {both} \"64 kbit/s\" or \"64 kB/s\""));
    assert_eq!(refused::<BitRate>("9 bps"), format!("\"9 bps\" {both} \"9 bit/s\" or \"9 B/s\""));
    assert_eq!(refused::<BitRate>("9 Tb"), format!("\"9 Tb\" {both} \"9 Tbit/s\" or \"9 TB/s\""));
    assert_eq!(refused::<BitRate>("10 M"), format!("\"10 M\" {both} \"10 Mbit/s\" or \"10 MB/s\""));
    assert_eq!(refused::<BitRate>("1 KB/s"), format!("\"1 KB/s\" {both} \"1 kB/s\" or \"1 KiB/s\""));
    assert_eq!(refused::<Bytes>("64 KB"), format!("\"64 KB\" {both} \"64 kB\" or \"64 KiB\""));
    assert_eq!(refused::<Bytes>("64 K"), format!("\"64 K\" {both} \"64 kB\" or \"64 KiB\""));
    assert_eq!(refused::<Bytes>("2 Mb"), format!("\"2 Mb\" {both} \"2 MB\" or \"2 MiB\""));
    assert_eq!(refused::<Bytes>("2 g"), format!("\"2 g\" {both} \"2 GB\" or \"2 GiB\""));
    assert_eq!(refused::<Bytes>("2 tb"), format!("\"2 tb\" {both} \"2 TB\" or \"2 TiB\""));
    assert_eq!(refused::<Duration>("5 m"), format!("\"5 m\" {both} \"5 ms\" or \"5 min\""));
}

#[test]
fn a_misspelt_unit_is_refused_with_what_to_write() {
    let instead = "is not a unit here: write";
    assert_eq!(refused::<BitRate>("20 mbit/s"), format!("\"mbit/s\" {instead} \"20 Mbit/s\""));
    assert_eq!(refused::<BitRate>("20 Mbit"), format!("\"Mbit\" {instead} \"20 Mbit/s\""));
    assert_eq!(refused::<BitRate>("20 MBps"), format!("\"MBps\" {instead} \"20 MB/s\""));
    assert_eq!(refused::<BitRate>("20 MB"), format!("\"MB\" {instead} \"20 MB/s\""));
    assert_eq!(refused::<BitRate>("20 Kbits/s"), format!("\"Kbits/s\" {instead} \"20 kbit/s\""));
    assert_eq!(refused::<Rate>("7 bytes/s"), format!("\"bytes/s\" {instead} \"7 B/s\""));
    assert_eq!(refused::<Bytes>("7 bytes"), format!("\"bytes\" {instead} \"7 B\""));
    assert_eq!(refused::<Bytes>("7 b"), format!("\"b\" {instead} \"7 B\""));
}

#[test]
fn a_number_alone_is_refused_with_the_units_it_could_have() {
    assert_eq!(
        refused::<BitRate>("20"),
        "\"20\" has no unit and could mean 20 of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, B/s, kB/s, MB/s, \
         GB/s or TB/s"
    );
    assert_eq!(
        refused::<Bytes>("1.5"),
        "\"1.5\" has no unit and could mean 1.5 of B, kB, MB, GB, TB, KiB, MiB, GiB or TiB"
    );
    assert_eq!(refused::<Time>("0"), "\"0\" has no unit and could mean 0 of ns, us, ms, s or min");
}

#[test]
fn every_other_mistake_is_named() {
    assert_eq!(refused::<Duration>(" "), "nothing where a duration belongs");
    assert_eq!(refused::<Bytes>(""), "nothing where an amount of data belongs");
    assert_eq!(refused::<Rate>(""), "nothing where a rate belongs");
    let unknown = "unknown unit \"parsec\" where a duration belongs, in ns, us, ms, s or min";
    assert_eq!(refused::<Duration>("3 parsec"), unknown);
    assert_eq!(
        refused::<Duration>("3 MB"),
        "\"MB\" is the unit of an amount of data where a duration belongs, in ns, us, ms, s or min"
    );
    assert_eq!(
        refused::<Bytes>("3 MB/s"),
        "\"MB/s\" is the unit of a rate where an amount of data belongs, in B, kB, MB, GB, TB, KiB, MiB, GiB \
         or TiB"
    );
    assert!(
        refused::<BitRate>("3 ms").starts_with("\"ms\" is the unit of a duration where a rate belongs, in ")
    );
    assert!(refused::<BitRate>("3 MiB").starts_with("\"MiB\" is the unit of an amount of data where"));
    assert!(refused::<Bytes>("3 Mbps").starts_with("unknown unit \"Mbps\" where an amount of data"));
    for text in ["-5 ms", "−5 ms", "-0 s", "-5"] {
        assert_eq!(refused::<Duration>(text), format!("\"{text}\" is negative"));
    }
    for text in ["ms", "five ms", ".5 s", "5. s", "1.2.3 s", ". s", "-", "- 5 s", "+5 s", "∞ s", "-ms"] {
        let expected = format!("\"{text}\" does not begin with a number such as 40 or 1.5");
        assert_eq!(refused::<Duration>(text), expected);
    }
    assert!(refused::<Duration>("1,5 s").starts_with("unknown unit \",5 s\""));
    // Exponents are not in the grammar; the e is taken as the unit's.
    assert!(refused::<Duration>("1e3 s").starts_with("unknown unit \"e3 s\""));
    for text in ["1.5 ns", "0.0001 us", "0.1234567891 s", "0.00000000000000000001 s"] {
        assert_eq!(refused::<Duration>(text), format!("\"{text}\" is finer than 1 ns"));
    }
    assert_eq!(refused::<Bytes>("0.5 B"), "\"0.5 B\" is finer than 1 B");
    assert_eq!(refused::<BitRate>("0.5 bit/s"), "\"0.5 bit/s\" is finer than 1 bit/s");
    assert_eq!(refused::<Rate>("1 bit/s"), "\"1 bit/s\" is finer than 1 B/s");
    for text in ["18446744073709551616 ns", "18446744074 s", "307445735 min", "99999999999999999999 s"] {
        assert_eq!(refused::<Duration>(text), format!("\"{text}\" is too large"));
    }
    assert_eq!(refused::<Rate>("18446744073709551616 B/s"), "\"18446744073709551616 B/s\" is too large");
    assert_eq!(refused::<BitRate>("3000000 TB/s"), "\"3000000 TB/s\" is too large");
}

/// A message quotes at most 24 bytes, whole characters, and shows that there was more.
#[test]
fn a_long_text_is_cut_between_characters() {
    let text = format!("x{}", "ü".repeat(40));
    let expected = format!("\"x{}…\" does not begin with a number such as 40 or 1.5", "ü".repeat(11));
    assert_eq!(refused::<Duration>(&text), expected);
    assert!(format!("{:?}", "x".parse::<Bytes>()).contains("NotANumber { text: \"x\" }"));
}

#[test]
fn the_largest_unit_that_divides_is_written() {
    let check = |quantity: &dyn Display, text: &str| assert_eq!(quantity.to_string(), text);
    check(&Duration(0), "0 s");
    check(&Duration(1), "1 ns");
    check(&Duration(1500), "1500 ns");
    check(&Duration(7000), "7 us");
    check(&Duration(40_000_000), "40 ms");
    check(&Duration(1_500_000_000), "1500 ms");
    check(&Time(90 * SECOND), "90 s");
    check(&Time(120 * SECOND), "2 min");
    check(&Bytes(0), "0 B");
    check(&Bytes(1500), "1500 B");
    check(&Bytes(250_000), "250 kB");
    check(&Bytes(1 << 20), "1 MiB");
    check(&Bytes(3 << 40), "3 TiB");
    check(&Bytes(5_000_000_000_000), "5 TB");
    check(&BitRate(0), "0 bit/s");
    check(&BitRate(10_600_000), "10600 kbit/s");
    check(&BitRate(2_000_000_000_000), "2 Tbit/s");
    check(&Rate(0), "0 B/s");
    check(&Rate(1_250_000), "1250 kB/s");
    check(&Rate(999), "999 B/s");
    check(&Rate(7_000_000_000_000), "7 TB/s");
}

fn survives<T: FromStr<Err = UnitError> + Display + Debug + PartialEq>(quantity: T) {
    let text = quantity.to_string();
    assert_eq!(text.parse(), Ok(quantity), "{text}");
}

#[test]
fn what_is_written_reads_back_the_same() {
    let mut random = Random::new(1);
    for _ in 0..100_000 {
        // Of every size, half of them round.
        let n = random.next() >> random.below(64);
        let round = [1, 10, 60, 1000, 1024, 1_000_000, 1 << 20, SECOND];
        let n = if random.below(2) == 0 { n } else { n.saturating_mul(round[random.below(8) as usize]) };
        survives(Duration(n));
        survives(Time(n));
        survives(Bytes(n));
        survives(BitRate(n));
        survives(Rate(n));
    }
}

/// The parser must not panic, whatever it is given.
#[test]
fn any_text_is_read_or_refused() {
    let pieces = [
        "0", "9", "1", ".", "-", "−", " ", "Mbit/s", "m", "K", "k", "b", "B", "i", "/s", "ps", "µ", "s", "ü",
        "∞",
    ];
    let mut random = Random::new(2);
    for _ in 0..100_000 {
        let text: String = (0..random.below(30)).map(|_| pieces[random.below(20) as usize]).collect();
        for message in [
            text.parse::<Duration>().err(),
            text.parse::<Bytes>().err(),
            text.parse::<BitRate>().err(),
            text.parse::<Rate>().err(),
        ] {
            assert!(message.is_none_or(|message| !message.to_string().is_empty()));
        }
    }
}

/// The limbs against the compiler's own 128 bits.
#[test]
fn two_limbs_compute_as_128_bits() {
    let mut random = Random::new(3);
    let of_any_size = |random: &mut Random| match random.below(8) {
        0 => u64::MAX - random.below(3),
        1 => (1 << random.below(64)) - random.below(2),
        _ => random.next() >> random.below(64),
    };
    for _ in 0..1_000_000 {
        let [a, b, c] = [(); 3].map(|()| of_any_size(&mut random));
        let product = u128::from(a) * u128::from(b);
        let saturated = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        let halves = ((product >> 64) as u64, product as u64);
        assert_eq!(limbs::product(a, b), halves, "{a} * {b} in limbs");
        if halves.0 < c {
            assert_eq!(
                limbs::quotient(halves.0, halves.1, c),
                (product / u128::from(c)) as u64,
                "{a} * {b} / {c}"
            );
        }
        if c > 0 {
            let divisor = u128::from(c);
            assert_eq!(mul_div(a, b, c), saturated(product / divisor), "{a} * {b} / {c}");
            assert_eq!(
                mul_div_up(a, b, c),
                saturated(product.saturating_add(divisor - 1) / divisor),
                "{a} * {b} / {c}, up"
            );
            let twice = Wide::product(a, b).over(c).over(b.max(1)).to_u64();
            assert_eq!(twice, saturated(product / divisor / u128::from(b.max(1))));
        } else {
            assert_eq!((mul_div(a, b, c), mul_div_up(a, b, c)), (u64::MAX, u64::MAX));
        }
        let sum = Wide::product(a, b).plus(c);
        assert_eq!(sum.over(1 << 63).to_u64(), saturated((product + u128::from(c)) >> 63));
        assert_eq!(sum > Wide::product(a, b), c > 0);
        assert_eq!(sum.is_at_most(Wide::product(a, b)), u64::from(c == 0));
        assert_eq!(Wide::product(a, b).is_at_most(sum), 1);
        let other = Wide::product(b, c);
        assert_eq!(other.is_at_most(sum), u64::from(other <= sum));
        assert_eq!(sum.is_at_most(other), u64::from(sum <= other));
        let places = random.below(128) as u32;
        let shifted = Wide::shifted(a, places);
        if u128::from(a).leading_zeros() >= places {
            assert_eq!(
                shifted.over(1 << 63).over(1 << 63).to_u64(),
                saturated((u128::from(a) << places) >> 126)
            );
            assert_eq!(shifted.to_u64(), saturated(u128::from(a) << places), "{a} << {places}");
        } else {
            assert_eq!(shifted, Wide::MAX, "{a} << {places}");
        }
        let grown = Wide::product(a, b).times_2_32();
        if product.leading_zeros() >= 32 {
            assert_eq!(grown.over(c.max(1)).to_u64(), saturated((product << 32) / u128::from(c.max(1))));
        } else {
            assert_eq!(grown, Wide::MAX);
        }
    }
    assert_eq!(Wide::MAX.plus(1), Wide::MAX);
    assert_eq!(Wide::MAX.plus(0), Wide::MAX);
    assert_eq!(Wide::MAX.over(0), Wide::MAX);
    assert_eq!(Wide::ZERO.over(7), Wide::ZERO);
}

#[test]
fn time_rounds_up_and_credit_rounds_down() {
    assert_eq!(Bytes(10).per(Duration(3 * SECOND)), Rate(3));
    assert_eq!(Bytes(10).per(Duration(0)), Rate(u64::MAX));
    assert_eq!(Bytes(10).at(Rate(3)), Duration(3_333_333_334));
    assert_eq!(Bytes(9).at(Rate(3)), Duration(3 * SECOND));
    assert_eq!(Bytes(10).at(Rate(0)), Duration(u64::MAX));
    assert_eq!(Bytes(0).at(Rate(5)), Duration(0));
    // One division of a word, or a wide one: the same to both sides of the limit.
    let limit = u64::MAX / SECOND;
    for bytes in [limit - 1, limit, limit + 1, limit + 2] {
        for rate in [1, 7, SECOND - 1, SECOND, SECOND + 1, u64::MAX] {
            assert_eq!(
                Bytes(bytes).at(Rate(rate)),
                Duration(mul_div_up(bytes, SECOND, rate)),
                "{bytes} {rate}"
            );
        }
    }
    assert_eq!(Rate(3).over(Duration(1_999_999_999)), Bytes(5));
    assert_eq!(Rate(3).bits(), BitRate(24));
    assert_eq!(Rate(u64::MAX).bits(), BitRate(u64::MAX));
    assert_eq!(BitRate(23).bytes(), Rate(2));
    assert_eq!(Ratio::ppm(226_000).of(1000), 226);
    assert_eq!(Ratio::ppm(999_999).of(1), 0);
    assert_eq!(Ratio::ONE.of(u64::MAX), u64::MAX);
}

#[test]
fn sums_and_differences_saturate() {
    assert_eq!(Time(5) + Duration(7), Time(12));
    assert_eq!(Time::NEVER + Duration(7), Time::NEVER);
    assert_eq!(Time(9) - Time(5), Duration(4));
    assert_eq!(Time(5) - Time(9), Duration(0));
    assert_eq!(Bytes(5) - Bytes(9), Bytes(0));
    assert_eq!(Bytes(9) - Bytes(5), Bytes(4));
    assert_eq!(Rate(u64::MAX) + Rate(1), Rate(u64::MAX));
    assert_eq!(BitRate(2) + BitRate(3), BitRate(5));
    let mut span = Duration(3);
    span += Duration(4);
    assert_eq!(span, Duration(7));
    span -= Duration(9);
    assert_eq!(span, Duration(0));
}
