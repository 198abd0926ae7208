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
    trimmed(&format!("{value:.digits$}")).into()
}

/// A number without zeros behind its last digit, and without the sign of a zero.
fn trimmed(text: &str) -> &str {
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    if text == "-0" { "0" } else { text }
}

/// Returns a number with four significant digits; large ones as `4.53 M`.
pub fn significant(value: f64) -> String {
    let (factor, unit) = scale(value);
    let scaled = value / factor;
    let text = format!("{scaled:.*}", decimals(scaled, 4));
    format!("{}{unit}", trimmed(&text))
}

/// Returns a mean and half the width of its interval, in the same unit and with the same decimals, such as `0.982 ± 0.020`:
/// so many that the half has two significant digits, and the mean at most four. A half that would vanish is one unit of the
/// last digit; one that is but the rounding of sums is 0.
pub fn interval(mean: f64, half: f64) -> String {
    if half <= 1e-9 * mean.abs().max(1e-3) {
        return format!("{} ± 0", significant(mean));
    }
    let (factor, unit) = scale(mean);
    let (mean, half) = (mean / factor, half / factor);
    let digits = decimals(half, 2).min(decimals(mean, 4));
    format!("{mean:.digits$} ± {:.digits$}{unit}", half.max(10f64.powi(-(digits as i32))))
}

/// Divisor of a number, and the unit that says so.
fn scale(value: f64) -> (f64, &'static str) {
    match value.abs() {
        1e9.. => (1e9, " G"),
        1e6.. => (1e6, " M"),
        1e5.. => (1e3, " k"),
        _ => (1.0, ""),
    }
}

/// Decimals that give a number so many significant digits.
fn decimals(value: f64, significant: usize) -> usize {
    let (mut digits, mut limit) = (significant - 1, 10.0);
    while digits > 0 && value.abs() >= limit {
        (digits, limit) = (digits - 1, limit * 10.0);
    }
    let mut limit = 1.0;
    while value != 0.0 && digits < 12 && value.abs() < limit {
        (digits, limit) = (digits + 1, limit / 10.0);
    }
    digits
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
    fn an_interval_has_the_decimals_of_its_half() {
        let pairs =
            [(0.982_4, 0.019_73), (1586.0, 197.9), (0.999_9, 0.000_2), (1.0, 0.000_054), (0.5, 1e-16)];
        let shown = ["0.982 ± 0.020", "1586 ± 198", "0.9999 ± 0.0002", "1.000 ± 0.001", "0.5 ± 0"];
        assert_eq!(pairs.map(|(mean, half)| interval(mean, half)), shown);
        assert_eq!(interval(8_827_397.0, 310_000.0), "8.83 ± 0.31 M");
        assert_eq!(interval(0.0, 0.25), "0.00 ± 0.25");
        assert_eq!(interval(f64::NAN, f64::INFINITY), "NaN ± inf");
    }

    #[test]
    fn numbers_keep_three_digits_and_no_trailing_zeros() {
        assert_eq!(rate(Some(9_876_543.0)), "9.88 Mbit/s");
        assert_eq!(rate(Some(1e7)), "10 Mbit/s");
        assert_eq!(rate(Some(999.0)), "999 bit/s");
        assert_eq!(rate(None), "-");
        assert_eq!(number(Some(1234.5)), "1234");
        assert_eq!([-0.0, -0.001, 0.0].map(|value| number(Some(value))), ["0"; 3]);
        assert_eq!(significant(-0.0), "0");
        let written = [0.0, 1.0, 0.883_742, 1234.56, 99_999.0, 8_827_397.0, -0.001_234_56, f64::INFINITY];
        let shown = ["0", "1", "0.8837", "1235", "99999", "8.827 M", "-0.001235", "inf G"];
        assert_eq!(written.map(significant), shown.map(str::to_owned));
        assert_eq!(count(4_530_000.0), "4.53 M");
        assert_eq!(percent(Some(0.9991)), "99.9 %");
    }
}
