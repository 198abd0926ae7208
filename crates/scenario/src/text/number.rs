//! Numbers as text for people.

/// The text where there is nothing to measure.
pub const NOTHING: &str = "-";

/// Returns a rate with three significant digits, such as `9.88 Mbit/s`.
pub fn rate(bits_per_second: Option<f64>) -> String {
    let Some(rate) = bits_per_second else { return NOTHING.into() };
    let (factor, unit) = match rate {
        1e9.. => (1e9, "Gbit/s"),
        1e6.. => (1e6, "Mbit/s"),
        1e3.. => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    };
    format!("{} {unit}", number(Some(rate / factor)))
}

/// Returns a number with three significant digits.
pub fn number(value: Option<f64>) -> String {
    let Some(value) = value else { return NOTHING.into() };
    let digits = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Returns a number with four significant digits; large ones as `4.53 M`.
pub fn significant(value: f64) -> String {
    let (factor, unit) = match value.abs() {
        1e9.. => (1e9, " G"),
        1e6.. => (1e6, " M"),
        1e5.. => (1e3, " k"),
        _ => (1.0, ""),
    };
    let scaled = value / factor;
    let (mut digits, mut limit) = (3, 10.0);
    while digits > 0 && scaled.abs() >= limit {
        (digits, limit) = (digits - 1, limit * 10.0);
    }
    let mut limit = 1.0;
    while scaled != 0.0 && digits < 12 && scaled.abs() < limit {
        (digits, limit) = (digits + 1, limit / 10.0);
    }
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

/// Returns a share of 1 as per cent, with one decimal.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| NOTHING.into(), |share| format!("{:.1} %", share * 100.0))
}

/// Returns a large count, such as `4.53 M`.
pub fn count(value: f64) -> String {
    match value {
        1e9.. => format!("{} G", number(Some(value / 1e9))),
        1e6.. => format!("{} M", number(Some(value / 1e6))),
        1e4.. => format!("{} k", number(Some(value / 1e3))),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits_and_no_trailing_zeros() {
        assert_eq!(rate(Some(9_876_543.0)), "9.88 Mbit/s");
        assert_eq!(rate(Some(1e7)), "10 Mbit/s");
        assert_eq!(rate(Some(999.0)), "999 bit/s");
        assert_eq!(rate(None), "-");
        assert_eq!(number(Some(1234.5)), "1234");
        let written = [0.0, 1.0, 0.883_742, 1234.56, 99_999.0, 8_827_397.0, -0.001_234_56, f64::INFINITY];
        let shown = ["0", "1", "0.8837", "1235", "99999", "8.827 M", "-0.001235", "inf G"];
        assert_eq!(written.map(significant), shown.map(str::to_owned));
        assert_eq!(count(4_530_000.0), "4.53 M");
        assert_eq!(percent(Some(0.9991)), "99.9 %");
    }
}
