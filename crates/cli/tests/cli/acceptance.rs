//! Report cards: what is measured of a law, and how it is told.

use std::fs;

use serde_json::Value;

use crate::{Lab, SCENARIO};

/// The criteria of a case, by their words.
fn criterion<'a>(card: &'a Value, that: &str) -> &'a Value {
    let cases =
        card["sections"].as_array().unwrap().iter().flat_map(|section| section["cases"].as_array().unwrap());
    let mut all = cases.flat_map(|case| case["criteria"].as_array().unwrap());
    all.find(|criterion| criterion["that"].as_str().unwrap().contains(that)).unwrap()
}

fn of<'a>(criterion: &'a Value, law: &str) -> &'a Value {
    criterion["laws"].as_array().unwrap().iter().find(|cell| cell["of"] == law).unwrap()
}

#[test]
fn a_card_is_the_same_bytes_from_the_same_seed_on_any_number_of_threads() {
    let lab = Lab::new(SCENARIO);
    let card = |threads: &str, seed: &str, page: &str| {
        let arguments = ["acceptance", "xcp", "--only", "fairness", "--only", "loss", "--beside", "cubic"];
        let more = ["--json", "--quiet", "--threads", threads, "--seed", seed, "--html", page];
        let finished = lab.run(&[&arguments[..], &more].concat()).exits(0);
        (finished.stdout(), fs::read(lab.path(page)).unwrap())
    };
    let first = card("1", "1", "one.html");
    assert_eq!(first, card("2", "1", "two.html"));
    assert_ne!(first.0, card("2", "2", "other.html").0, "errors on the wire are drawn");
    let text = String::from_utf8(first.1).unwrap();
    assert!(text.contains("<h2>Fairness</h2>") && text.contains("class=\"fails\""), "{text}");
    assert!(!text.contains("src=\"http") && !text.contains("href=\"http"), "a page needs nothing else");
}

#[test]
fn a_card_says_what_is_met_what_is_short_and_what_does_not_apply() {
    let lab = Lab::new(SCENARIO);
    let arguments =
        ["acceptance", "cubic", "--only", "fairness", "--only", "capacity", "--beside", "xcp", "--json"];
    let finished = lab.run(&arguments).exits(0);
    let card = finished.json();
    let delay = criterion(&card, "95th percentile");
    assert_eq!(delay["at_most"], 20.0);
    assert!(of(delay, "cubic")["value"].as_f64().unwrap() > 30.0, "it fills 40 ms: {delay}");
    assert!(
        of(delay, "cubic")["short_by"].as_f64().unwrap() > 10.0 && of(delay, "xcp")["verdict"] == "met",
        "{delay}"
    );
    let queue = criterion(&card, "longest mean queue");
    assert_eq!(of(queue, "cubic")["verdict"], "not applicable", "nobody tells it a capacity");
    assert_eq!(of(queue, "cubic")["why"], "links of cubic have no `capacity`");
    assert!(of(queue, "xcp")["value"].as_f64().unwrap() > 50.0, "it keeps what it is told too much: {queue}");
    let numbers =
        [&card["met"], &card["missed"], &card["not_applicable"]].map(|number| number.as_u64().unwrap());
    assert_eq!(numbers, [2, 2, 3], "{card}");
    let text = lab.run(&arguments[..8]).stdout();
    // A case that does not apply is one line. An upper bound is exceeded, and nothing is short of it.
    let line = "\n  capacity: links that are told -5, 0, +2.5 and +10 % of what they carry: does not apply, links of cubic \
                have no `capacity`\n";
    for says in [line, " above the bound", "cubic meets 2"] {
        assert!(text.contains(says), "no {says} in\n{text}");
    }
    let has = |word: &str| text.split_whitespace().any(|one| one == word);
    assert!(!has("-") && !has("short"), "{text}");
    // Laws next to it that a case does not apply to have no column.
    let arguments = ["acceptance", "xcp", "--only", "capacity", "--beside", "cubic", "--beside", "sack"];
    let page = lab.path("card.html");
    let text = lab.run(&[&arguments[..], &["--html", "card.html"]].concat()).exits(0).stdout();
    assert!(text.contains("    does not apply to cubic, sack: their links have no `capacity`\n"), "{text}");
    assert!(text.lines().any(|line| line.split_whitespace().eq(["bound", "xcp", "verdict"])), "{text}");
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("<p>The case does not apply to cubic, sack: their links have no `capacity`.</p>"),
        "{page}"
    );
    // A case that applies to none of the laws is still counted.
    let none = lab.run(&["acceptance", "cubic", "--only", "capacity", "--beside", "sack"]).exits(0).stdout();
    assert!(none.contains("cubic meets 0 bounds of 3, misses 0, and 3 do not apply"), "{none}");
    lab.run(&["acceptance", "cubic", "--only", "fairness", "--beside", "xcp", "--check"]).exits(3);
    lab.run(&["acceptance", "xcp", "--only", "fairness", "--beside", "xcp", "--check"]).exits(0);
}

/// XCP-i is no setting of a law, but only laws of XCP's family run with it; classes are of packets with XCP's header.
#[test]
fn clouds_and_classes_are_measured_of_laws_that_can_have_them() {
    let lab = Lab::new(SCENARIO);
    let cases = ["--only", "shared-clouds", "--only", "beside-tcp-classes"];
    let card =
        lab.run(&[&["acceptance", "xcp", "--beside", "rcp", "--json"], &cases[..]].concat()).exits(0).json();
    let late = criterion(&card, "who came late");
    assert!(of(late, "xcp")["value"].as_f64().unwrap() > 0.4, "{late}");
    assert_eq!(of(late, "rcp")["why"], "rcp has no `interoperable`");
    let beside = criterion(&card, "BBRv3");
    assert!((0.7..1.4).contains(&of(beside, "xcp")["value"].as_f64().unwrap()), "{beside}");
    assert_eq!(of(beside, "rcp")["verdict"], "not applicable", "{beside}");
}

#[test]
fn parts_are_measured_by_switching_them_off() {
    let lab = Lab::new(SCENARIO);
    let card = lab.run(&["acceptance", "xcp2", "--parts", "--only", "half-duplex", "--json"]).exits(0).json();
    let parts = card["parts"].as_array().unwrap();
    for (part, that) in [("calibrate", "in turns: mean queue"), ("pacing", "with collisions: mean queue")] {
        let that = &format!("{that}, of that of XCP");
        let is_it = |found: &&Value| found["part"] == part && found["that"] == *that;
        let found = parts.iter().find(is_it).unwrap_or_else(|| panic!("{part} buys no {that}: {card}"));
        assert_eq!(found["buys"], true, "{found}");
        assert!(of(criterion(&card, that), &format!("no {part}"))["short_by"].as_f64() > Some(0.0), "{card}");
    }
    let refused = lab.run(&["acceptance", "cubic", "--parts"]).exits(2);
    assert!(refused.stderr().contains("cubic has no parts"), "{}", refused.stderr());
}

#[test]
fn laws_and_cases_that_are_not_there_are_refused_with_those_that_are() {
    let lab = Lab::new(SCENARIO);
    for (arguments, says) in [
        (&["acceptance", "xpc2"][..], "there is no law `xpc2`"),
        (&["acceptance", "xcp", "--beside", "taco"], "there is no law `taco`"),
        (&["acceptance", "xcp", "--only", "fairnes"], "there is no case `fairnes`"),
        (&["acceptance", "xcp", "--only", "loss", "--html", "no/card.html"], "no folder"),
    ] {
        let refused = lab.run(arguments).exits(2);
        assert!(refused.stderr().contains(says), "{arguments:?}: {}", refused.stderr());
    }
    let stderr = lab.run(&["acceptance", "xpc2"]).stderr();
    assert!(["xcp2", "cubic", "prague"].iter().all(|law| stderr.contains(law)), "{stderr}");
}
