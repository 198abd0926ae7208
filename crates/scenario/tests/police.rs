//! Policers of links and lies of senders, as scenarios say them.

use std::path::Path;

use congestlab_scenario::laws::{SenderConfig, xcp};
use congestlab_scenario::net::packet::PS_PER_NS;
use congestlab_scenario::sim::model::{GroupKind, Model};
use congestlab_scenario::units::Ratio;
use congestlab_scenario::{Measure, Scenario};

const BASE: &str = r#"
[run]
duration = "5 s"

[links.pipe]
rate = "10 Mbit/s"
delay = "10 ms"
law = "xcp"

[flows.ftp]
law = "xcp"
path = ["pipe"]
"#;

fn scenario(settings: &[(&str, &str)]) -> Scenario {
    let settings: Vec<_> = settings.iter().map(|(path, value)| ((*path).into(), (*value).into())).collect();
    Scenario::parse("test.toml", BASE, Path::new(""), &settings, None).expect("a scenario")
}

fn model(settings: &[(&str, &str)]) -> Model {
    scenario(settings).model(&Measure::default())
}

fn profile(settings: &[(&str, &str)]) -> xcp::Profile {
    match &model(settings).groups[0].kind {
        GroupKind::Tcp(config) => match &config.law {
            SenderConfig::Xcp(law) => law.profile,
            law => panic!("{law:?}"),
        },
        GroupKind::Source(source) => panic!("{source:?}"),
    }
}

#[test]
fn a_link_has_a_policer_where_it_is_given_records() {
    let records = |value: Option<&str>| {
        let settings: Vec<_> = value.into_iter().map(|value| ("links.pipe.police", value)).collect();
        let model = model(&settings);
        assert_eq!(model.links[1].port.police, None, "the other direction has none");
        assert_eq!(model.links[0].port.delay, 10_000_000 * PS_PER_NS);
        model.links[0].port.police
    };
    assert_eq!(
        [None, Some("0"), Some("1"), Some("1000000")].map(records),
        [None, None, Some(1), Some(1_000_000)]
    );
    for law in ["pxcp", "xcp2"] {
        assert_eq!(
            model(&[("links.pipe.law", law), ("links.pipe.police", "8")]).links[0].port.police,
            Some(8)
        );
    }
}

/// 96 B each, where packets come.
#[test]
fn records_count_in_the_memory_of_a_run() {
    let needed = |records| scenario(&[("links.pipe.police", records)]).memory_needed(&Measure::default());
    // Of as many digits, because the text of a file counts too.
    assert_eq!(needed("900000") - needed("100000"), 76_800_000);
}

#[test]
fn a_sender_lies_in_what_is_written() {
    let lies = |settings| match profile(settings) {
        xcp::Profile::Liar(lies) => Some(lies),
        _ => None,
    };
    let none = xcp::Lies::NONE;
    assert_eq!(profile(&[]), xcp::Profile::Standard);
    assert_eq!(profile(&[("flows.ftp.law.xcp.deaf", "false")]), xcp::Profile::Standard);
    assert_eq!(lies(&[("flows.ftp.law.xcp.deaf", "true")]), Some(xcp::Lies { deaf: true, ..none }));
    let twenty = Ratio::ppm(20_000_000);
    assert_eq!(
        lies(&[("flows.ftp.law.xcp.stated_rtt", "20")]),
        Some(xcp::Lies { stated_rtt: twenty, ..none })
    );
    assert_eq!(lies(&[("flows.ftp.law.xcp.forged", "20")]), Some(xcp::Lies { forged: twenty, ..none }));
}

/// Its file with every default written out means the same.
#[test]
fn what_is_printed_is_read_again() {
    let settings = [("links.pipe.police", "64"), ("flows.ftp.law.xcp.forged", "1.5")];
    let printed = scenario(&settings).normalised();
    let again = Scenario::parse("again.toml", &printed, Path::new(""), &[], None).expect("a scenario");
    assert_eq!(again.normalised(), printed);
    let model = again.model(&Measure::default());
    assert_eq!(model.links[0].port.police, Some(64));
    assert!(printed.contains("forged = 1.5") && printed.contains("police = 64"), "{printed}");
}
