//! Measured values in the words that say why a claim fails.
//!
//! A cause names values and does not repeat them, so that it never contradicts the verdict beside it: `{measured}` is what the
//! claim itself measured, `{measured of "CLAIM"}` what another claim of the figure did, `{measured of "CLAIM" in FIGURE}` one of
//! another figure. The values come from the run, or from verdicts.toml for figures that were not run.

use congestlab_scenario::claims::CheckedClaim;
use congestlab_scenario::number::significant;
use congestlab_scenario::paper::Paper;

use super::Ran;

/// Returns why a claim fails, with the values that its cause names. A name that means no claim stays as it is.
pub(super) fn cause(paper: &Paper, ran: &[Ran], figure: &str, claim: &CheckedClaim) -> Option<String> {
    let measured = |of: &Named<'_>| {
        let (name, that) = (of.figure.unwrap_or(figure), of.claim.unwrap_or(claim.that()));
        let now = ran.iter().filter(|ran| ran.name == name).flat_map(|ran| &ran.answers);
        let now = now.map(|answer| &answer.verdict).find(|verdict| verdict.that == that);
        let text = now.map(|verdict| verdict.text.as_str());
        text.or_else(|| paper.written(name, that).map(|written| written.measured.as_str())).map(values)
    };
    Some(filled(claim.cause()?, &measured))
}

/// The claim that a value belongs to. `None` stands for the claim whose cause names the value, and for the figure of that claim.
#[derive(Debug, PartialEq)]
struct Named<'a> {
    claim: Option<&'a str>,
    figure: Option<&'a str>,
}

impl<'a> Named<'a> {
    /// Reads what stands between the braces; `None`: it names no value.
    fn read(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("measured")?;
        if rest.is_empty() {
            return Some(Self { claim: None, figure: None });
        }
        let (claim, rest) = rest.strip_prefix(" of \"")?.rsplit_once('"')?;
        let figure = if rest.is_empty() { None } else { Some(rest.strip_prefix(" in ")?) };
        Some(Self { claim: Some(claim), figure })
    }
}

/// Puts values in the place of their names.
fn filled(text: &str, measured: &dyn Fn(&Named<'_>) -> Option<String>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        filled.push_str(before);
        let value = behind.split_once('}').and_then(|(name, after)| {
            let value = measured(&Named::read(name)?)?;
            Some((value, after))
        });
        match value {
            Some((value, after)) => {
                filled.push_str(&value);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = behind;
            }
        }
    }
    filled + rest
}

/// Returns the values of a verdict's text without metric, places and bounds: `1.93 ± 0.11 and 2.24 ± 0.15`.
fn values(text: &str) -> String {
    const BOUNDS: [&str; 8] = [
        ": at_least",
        ": at_most",
        ": within",
        ": never",
        ": equals",
        ": undecided",
        ": less than half",
        ": ",
    ];
    let text = text.split_once(" (one run").map_or(text, |(text, _)| text);
    let (body, fails) = match text.split_once(" is ") {
        Some((metric, body)) => (body, !metric.contains(" along ")),
        None => (text, false),
    };
    // Of a failure the bound follows its values; the last of these marks is any other bound.
    let end = BOUNDS.iter().filter(|_| fails).find_map(|bound| body.rfind(bound));
    let body = end.map_or(body, |end| &body[..end]);
    let body = match body.split_once("crossover at ").and_then(|(_, place)| place.split_once(" = ")) {
        Some((_, at)) => at.split(',').next().unwrap_or(at),
        None => body,
    };
    let mut list: Vec<String> = Vec::new();
    for part in body.split("; ") {
        let value = part.split_once(" at ").map_or(part, |(value, _)| value);
        // How many seeds an interval took is not its value.
        let value = match value.split_once(" of ") {
            Some((interval, _)) if interval.contains('±') => interval,
            _ => value,
        };
        // An interval has as many digits as it should.
        let value = if value.contains('±') {
            value.to_owned()
        } else {
            value.split(' ').map(rounded).collect::<Vec<_>>().join(" ")
        };
        if list.last() != Some(&value) {
            list.push(value);
        }
    }
    match list.split_last() {
        Some((last, [one, rest @ ..])) if !last.starts_with("and ") => {
            let first = rest.iter().fold(one.clone(), |list, value| list + ", " + value);
            format!("{first} and {last}")
        }
        _ => list.join(", "),
    }
}

/// A number with four significant digits if it has more; any other word as it is.
fn rounded(word: &str) -> String {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    match word.parse::<f64>() {
        Ok(number) if digits > 4 && number.is_finite() => significant(number),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_its_values() {
        let texts = [
            ("0.9778 ± 0.0001", "0.9778 ± 0.0001"),
            ("1.93 ± 0.11 at a.b = 0.2; 2.24 ± 0.15 of 20 seeds at a.b = 0.3", "1.93 ± 0.11 and 2.24 ± 0.15"),
            (
                "links.a.utilization is 0.78219317949765 at run.seed = 1; 0.7821931 at run.seed = 2: at_least 0.86 (2 of 2)",
                "0.7822",
            ),
            (
                "links.xcp.drops_total is 16192 at run.seed = 4; 11229 at run.seed = 5: never (2 of 5)",
                "16192 and 11229",
            ),
            ("f is 41295000: within: at least 41400000", "41.3 M"),
            (
                "links.x.queue along links.x.law = { y = 1 } is 0.02: 241, 0.05: 559.4",
                "0.02: 241, 0.05: 559.4",
            ),
            ("crossover at links.x.error = 0.0016971184259319853, not in [0.0005, 0.0015]", "0.001697"),
            ("833 (one run: seeds changed nothing)", "833"),
            ("jain.xcp is 11 of 30 seeds: less than half", "11 of 30 seeds"),
            ("0.0000001218 to 0.00006172 in 20 values", "0.0000001218 to 0.00006172 in 20 values"),
        ];
        for (text, wanted) in texts {
            assert_eq!(values(text), wanted, "{text}");
        }
    }

    #[test]
    fn names_of_values_are_replaced_and_others_stay() {
        let measured = |named: &Named<'_>| match (named.claim, named.figure) {
            (None, None) => Some("1".to_owned()),
            (Some("a \"b\""), None) => Some("2".to_owned()),
            (Some("c"), Some("fig04")) => Some("3".to_owned()),
            _ => None,
        };
        let text = "{measured}, {measured of \"a \"b\"\"}, {measured of \"c\" in fig04}, {measured of \"d\"}, { x = 1 }";
        assert_eq!(filled(text, &measured), "1, 2, 3, {measured of \"d\"}, { x = 1 }");
    }

    /// A cause names the values that a run measures. It does not begin with a number or state one for a claim that holds, each
    /// name means a claim, and no other number is a stale copy of a measured one.
    #[test]
    fn no_cause_contradicts_the_verdict_beside_it() {
        let mut wrong = Vec::new();
        for paper in super::super::folder::read(None).expect("the project's papers") {
            for (figure, scenario) in paper.scenarios(None).expect("they are right") {
                for claim in scenario.claims() {
                    let Some(written) = claim.cause() else { continue };
                    let shown = cause(&paper, &[], &figure, claim).expect("it has a cause");
                    let verdict = paper.written(&figure, claim.that());
                    let stale = verdict.map_or(Vec::new(), |verdict| stale(written, &verdict.measured));
                    let place = format!("{} {figure}: {}", paper.key, claim.that());
                    if shown.contains("{measured") {
                        wrong.push(format!("{place}: a value of no claim: {shown}"));
                    }
                    let states = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
                    if states(written) || written.split("it holds: ").skip(1).any(states) {
                        wrong.push(format!("{place}: write {{measured}}: {written}"));
                    }
                    wrong.extend(stale.iter().map(|number| format!("{place}: {number} is stale: {written}")));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Returns the numbers of three digits and more that are within 1 % of a measured number, but are not its rounding. Numbers
    /// of ns-2 and bounds do not count.
    fn stale(cause: &str, verdict: &str) -> Vec<String> {
        let numbers = |text: &str| -> Vec<String> {
            let words = text.split([' ', ',', ';', ':', '(', ')']).map(|word| word.trim_end_matches('.'));
            words.filter(|word| word.parse::<f64>().is_ok()).map(str::to_owned).collect()
        };
        let all = numbers(verdict);
        let is_measured = |number: &String| all.contains(number);
        let sentences = cause.split(". ").filter(|sentence| !sentence.contains("ns-2"));
        let said = sentences.flat_map(numbers).filter(|said| said.len() > 3 && !is_measured(said));
        said.filter(|said| {
            let decimals = said.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            let value: f64 = said.parse().expect("a number");
            let near = |number: &f64| (number - value).abs() < 0.01 * value.abs();
            let is_same = |number: &f64| format!("{number:.decimals$}") == *said;
            let found: Vec<f64> = all.iter().filter_map(|number| number.parse().ok()).filter(near).collect();
            !found.is_empty() && !found.iter().any(is_same)
        })
        .collect()
    }
}
