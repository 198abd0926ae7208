//! `congestlab check scone` over the loopback interface, where nobody advises: what it says, as a table and as JSON, and its status.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use crate::{Lab, SCENARIO};

/// A far end, gone with its owner, and its address.
struct Far(Child, String);

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn far(lab: &Lab, address: &str) -> Far {
    let mut child = lab
        .command(&["check", "scone", "--listen", address])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary of this package runs");
    let mut line = String::new();
    BufReader::new(child.stderr.take().expect("it is piped")).read_line(&mut line).expect("it says where");
    let address = line.strip_prefix("listening at ").and_then(|rest| rest.split_once(';')).expect(&line).0;
    let address = address.to_owned();
    Far(child, address)
}

#[test]
fn a_path_without_an_element_is_told_from_one_that_breaks_rules() {
    let lab = Lab::new(SCENARIO);
    let far = far(&lab, "127.0.0.1:0");
    let test = |words: &[&str]| {
        let words = [&["check", "scone", &far.1, "--wait", "5 s"], words].concat();
        lab.run(&words).exits(3)
    };
    let finished = test(&["--flows", "2"]);
    let (shown, said) = (finished.stdout(), finished.stderr());
    assert!(said.contains("1 of 6 rules do not hold: somebody advises"), "{said}");
    assert!(shown.contains("no code is raised") && shown.contains("all codes"), "{shown}");
    assert_eq!(shown.matches("FAILS").count(), 1, "{shown}");

    let report = test(&["--flows", "1", "--tell", "test {code} = 40", "--codes", "40", "--json"]).json();
    assert_eq!(report["kinds"]["codes"]["arrived"], 128);
    assert_eq!(report["kinds"]["unsummed"]["lost"], 0);
    assert_eq!(report["answers"][0]["advised"], 127);
    // Nobody lowers: what is left of the rules about rates fails as well.
    let broken = report["claims"].as_array().expect("a list").iter().filter(|claim| claim["holds"] == false);
    let broken: Vec<_> = broken.filter_map(|claim| claim["that"].as_str()).collect();
    assert_eq!(broken, ["somebody advises", "the advice is within a step of the rate that was told"]);
}

#[test]
fn wrong_arguments_are_refused_and_nobody_is_waited_for() {
    let lab = Lab::new(SCENARIO);
    for (words, code, says) in [
        (&["check", "scone"][..], 2, "<ADDRESS>"),
        (&["check", "scone", "here"], 2, "here"),
        (&["check", "scone", "127.0.0.1:9", "--flows", "0"], 2, "--flows"),
        (&["check", "scone", "127.0.0.1:9", "--wait", "0 s"], 2, "1 ms to 60 s"),
        (&["check", "scone", "127.0.0.1:9", "--tell", "true", "--codes", "127"], 2, "0..=126"),
        (&["check", "scone", "127.0.0.1:9", "--listen-in", "no-such-namespace"], 1, "no-such-namespace"),
        (&["check", "scone", "--listen", "192.0.2.1:9"], 1, "192.0.2.1:9"),
    ] {
        let error = lab.run(words).exits(code).stderr();
        assert!(error.contains(says), "{words:?}: {error}");
    }
    let far = far(&lab, "127.0.0.1:0");
    let words = ["check", "scone", &far.1, "--tell", "echo no {rate} >&2; false", "--codes", "0"];
    let error = lab.run(&words).exits(1).stderr();
    assert!(error.contains("no 100000 bit/s"), "{error}");
}
