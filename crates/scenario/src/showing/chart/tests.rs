//! Looks of what is drawn together.

use super::*;

#[test]
fn laws_keep_their_look_and_curves_of_one_law_differ() {
    let both = looks(&[("xcp", Some("xcp")), ("cubic", Some("cubic"))]);
    assert_eq!(both[0].1, style::of_law("xcp").expect("a law"));
    assert_eq!(both[1].1, style::of_law("cubic").expect("a law"));
    let four = looks(&[("a", Some("xcp")), ("b", Some("xcp")), ("c", Some("cubic")), ("d", Some("cubic"))]);
    assert_eq!(four[0].1.hue, four[1].1.hue, "one colour for each law");
    for (place, (_, look)) in four.iter().enumerate() {
        assert!(four[place + 1..].iter().all(|(_, other)| other != look), "{place}");
    }
    let same =
        |names: &[&'static str]| looks(&names.iter().map(|name| (*name, Some("xcp"))).collect::<Vec<_>>());
    let [one, other] = &same(&["a", "b"])[..] else { panic!("two") };
    assert!(one.1.hue == other.1.hue && one.1 != other.1, "few curves of one law have its colour");
    let many = same(&["a", "b", "c", "d", "e", "f"]);
    assert_ne!(many[0].1.hue, many[1].1.hue, "more of them than dashes have their own");
}
