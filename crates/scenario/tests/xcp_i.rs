//! What is said about XCP-i where paths change, and what its routers count.

mod common;

use std::path::Path;

use congestlab_scenario::{Measure, Scenario};

const ON: &str = "law = { xcp = { interoperable = true } }";

/// Routers a, x and y, legacy links c and d, and an XCP router p of the old kind; y has this law.
fn text(y: &str, flow: &str) -> String {
    let mut text = "[run]\nduration = \"10 s\"\n".to_owned();
    for (name, law) in [("a", ON), ("c", ""), ("d", ""), ("x", ON), ("y", y), ("p", "law = \"xcp\"")] {
        text += &format!("[links.{name}]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n{law}\n");
    }
    text + &format!("[flows.f]\n{flow}\n")
}

/// Its warnings.
fn read(y: &str, flow: &str) -> Result<Vec<String>, String> {
    let text = text(y, flow);
    let scenario =
        Scenario::parse("test.toml", &text, Path::new(""), &[], None).map_err(|e| e.to_string())?;
    // As it is written out, it reads back as the same, and says the same.
    let written = scenario.normalised();
    let again =
        Scenario::parse("again.toml", &written, Path::new(""), &[], None).map_err(|e| e.to_string())?;
    assert_eq!(again.normalised(), written);
    let messages = |scenario: &Scenario| -> Vec<String> {
        scenario.warnings().iter().map(|warning| warning.message().to_owned()).collect()
    };
    assert_eq!(messages(&scenario), messages(&again));
    Ok(messages(&scenario))
}

/// A link that only a later path crosses is used, and may bound a cloud.
#[test]
fn links_of_later_paths_count() {
    let flow = format!(
        "{ON}\npath = [\"a\", \"c\", \"x\"]\nswitch = [{{ at = \"5 s\", path = [\"a\", \"d\", \"y\"] }}]"
    );
    let none: Vec<String> = Vec::new();
    assert_eq!(read(ON, &flow).unwrap(), none);
    let y = "law = { xcp = { interoperable = true, estimator = { oracle = { error = 0.05 } } } }";
    assert_eq!(read(y, &flow).unwrap(), none);
    // No cloud lies before y on this one.
    let next = flow.replace("\"d\", \"y\"", "\"y\"");
    let refused = read(y, &next).unwrap_err();
    assert!(refused.contains("`links.y.law.xcp.estimator` is on a link that bounds no cloud"), "{refused}");
}

#[test]
fn a_path_that_comes_back_to_its_router_has_a_warning() {
    let flow = format!("{ON}\npath = [\"a\", \"c\", \"y\"]");
    let none: Vec<String> = Vec::new();
    let same = |name: &str| format!("{ON}\nat = \"{name}\"");
    assert_eq!(
        read(&same("R"), &flow).unwrap(),
        ["`links.x.law` is interoperable, but no flow that crosses it is"]
    );
    let flow = flow.replace("[\"a\", \"c\", \"y\"]", "[\"x\", \"c\", \"a\", \"d\", \"y\"]");
    assert_eq!(read(ON, &flow).unwrap(), none);
    // a's router is named after it.
    let warnings = read(&same("a"), &flow).unwrap();
    let expected = "`flows.f` goes from `links.a` to `links.y`, of one router, through links without XCP-i";
    assert_eq!(warnings, [expected]);
    // One port after the other is no cloud.
    assert_eq!(read(&same("a"), &flow.replace(", \"d\"", "")).unwrap(), none);
}

#[test]
fn each_path_of_a_flow_is_looked_at() {
    let on = |path: &str, switch: &str| {
        format!("{ON}\npath = {path}\nswitch = [{{ at = \"5 s\", path = {switch} }}]")
    };
    let both = on(r#"["a", "c", "x", "d", "y"]"#, r#"["c", "d"]"#);
    let deaf =
        "`flows.f.law` is xcp, but no link of its path runs a law that answers it: `links.c`, `links.d`";
    assert_eq!(
        read(ON, &both).unwrap(),
        ["`flows.f.law` is interoperable, but no link of `flows.f.switch[0].path` is", deaf]
    );
    let first = on(r#"["c", "d"]"#, r#"["a", "c", "x", "d", "y"]"#);
    assert_eq!(
        read(ON, &first).unwrap(),
        ["`flows.f.law` is interoperable, but no link of its path is", deaf]
    );
    let inside = on(r#"["a", "c", "x", "d", "y"]"#, r#"["a", "p", "x", "d", "y"]"#);
    assert_eq!(
        read(ON, &inside).unwrap(),
        ["`links.p.law` is not interoperable, but flows that cross it are"]
    );
    // A flow without TTL that comes to such routers later.
    let plain = r#"law = "xcp"
path = ["p"]
switch = [{ at = "5 s", path = ["a", "c", "x"] }]"#;
    let warnings = read("law = \"xcp\"", plain).unwrap();
    let expected = "`flows.f.law` is not interoperable, but links of its path are";
    assert!(warnings.iter().any(|warning| warning == expected), "{warnings:?}");
}

/// The same for all ports of a router, and for nobody else.
#[test]
fn results_say_what_a_router_counted() {
    let text = text(&format!("{ON}\nat = \"x\""), &format!("{ON}\npath = [\"a\", \"c\", \"x\"]"));
    let got = common::run(&common::scenario(&text, &[]), &Measure::default());
    // Each link has two directions.
    let [c, x, y] = [2, 6, 8].map(|link| &got.links[link].xcp_i);
    let counted = x.as_ref().unwrap();
    assert!(counted["requests"] > 5 && counted["estimates"] > 5 && counted["crossed"] > 1000, "{counted:?}");
    assert_eq!((counted["foreign"], counted["broken"]), (0, 0));
    assert_eq!((c, y), (&None, x));
}
