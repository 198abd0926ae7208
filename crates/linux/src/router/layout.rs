//! The layout of what a router's program remembers: kinds, names and places of all fields, as the type information says (BTF) that
//! objects and loaded programs carry. Where two programs have the same, the one can go on with the other's maps.
//!
//! The meaning of fields is their names, and [`MEANING`].

use std::collections::BTreeSet;
use std::fmt::Write as _;

use libbpf_rs::btf::types::{Array, Composite, Func, FuncProto, Int, MemberAttr, Ptr, Struct};
use libbpf_rs::btf::{Btf, BtfType, ReferencesType as _};

/// The meaning of the fields that have the same names: to be another where a law means another thing by one. At most 15.
pub(super) const MEANING: u32 = 0;

/// The structures in maps that stay: a port, what a processor has of it, keys and values of flows, a policer's bucket, weights and
/// cells of two classes.
const VALUES: [&str; 7] = ["port", "part", "flow", "record", "bucket", "classes", "cells"];
/// Beginnings of the names of a law's functions, whose first argument is its state.
const FUNCTIONS: [&str; 4] = ["law_link_", "law_part_", "law_queue_", "law_police_"];

/// The layout of a program's memory; comparable, and nothing more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout(BTreeSet<String>);

impl Layout {
    /// Reads the layout of an object's program; `None`: it has no type information, or not all that is needed.
    pub(super) fn of_object(object: &[u8]) -> Option<Self> {
        libbpf_rs::set_print(None); // what fails is told by us
        Self::of(&Btf::from_raw("layout", object).ok()??)
    }

    /// Reads that of the program with this number in the kernel.
    pub(super) fn of_program(id: u32) -> Option<Self> {
        Self::of(&Btf::from_prog_id(id).ok()?)
    }

    fn of(types: &Btf<'_>) -> Option<Self> {
        let mut parts = BTreeSet::new();
        for name in VALUES {
            if let Some(value) = types.type_by_name::<Struct<'_>>(name) {
                parts.insert(described(types, &value));
            }
        }
        let values = parts.len();
        let functions = types.type_by_kind::<Func<'_>>();
        for function in functions {
            let name = function.name().unwrap_or_default().to_string_lossy();
            if !FUNCTIONS.iter().any(|beginning| name.starts_with(beginning)) {
                continue;
            }
            let prototype = FuncProto::try_from(function.referenced_type()).ok()?;
            let state = types.type_by_id::<Ptr<'_>>(prototype.get(0)?.ty)?.referenced_type();
            parts.insert(described(types, &state));
        }
        (values > 0 && parts.len() > values).then_some(Self(parts))
    }
}

/// A type in one line, with all that it holds.
fn described(types: &Btf<'_>, of: &BtfType<'_>) -> String {
    let mut text = String::new();
    describe(types, of, &mut text);
    text
}

fn describe(types: &Btf<'_>, of: &BtfType<'_>, text: &mut String) {
    let of = of.skip_mods_and_typedefs();
    let name = of.name().unwrap_or_default().to_string_lossy();
    let _ = write!(text, "{:?} {name}", of.kind()); // a text takes all
    if let Ok(number) = Int::try_from(of) {
        let _ = write!(text, " {} {:?}", number.bits, number.encoding);
    } else if let Ok(array) = Array::try_from(of) {
        let _ = write!(text, " {} of ", array.capacity());
        describe(types, &array.contained_type(), text);
    } else if let Ok(fields) = Composite::try_from(of) {
        let _ = write!(text, " {} {{", fields.len());
        for field in fields.iter() {
            let (at, bits) = match field.attr {
                MemberAttr::Normal { offset } => (offset, 0),
                MemberAttr::BitField { size, offset } => (offset, size),
            };
            let _ = write!(text, " {at} {bits} {}: ", field.name.unwrap_or_default().to_string_lossy());
            // What it points to is elsewhere, and its type may be this one.
            if let Some(held) = types.type_by_id::<BtfType<'_>>(field.ty) {
                describe(types, &held, text);
            }
            text.push(',');
        }
        text.push('}');
    }
}

#[cfg(test)]
mod tests {
    use congestlab_core::law::Protocol;
    use congestlab_core::units::BitRate;

    use super::super::{AnyLaw, Weights, dpcp, law, pxcp, vcp, xcp_i};
    use super::*;

    /// Each law's own fields are in it, not only the words that C sees.
    #[test]
    fn each_object_tells_the_fields_of_its_law() {
        let rate = BitRate(1_000_000);
        let mut known = vec![
            (law(rate).object().to_vec(), "control_deadline"),
            (xcp_i(rate, [10, 0, 0, 1].into()).object().to_vec(), "control_deadline"),
            (pxcp(rate).object().to_vec(), "scaling"),
            (vcp(rate).object().to_vec(), "load_deadline"),
            (dpcp(rate).object().to_vec(), "load_deadline"),
            (law(rate).beside(Weights::Flows).unwrap().object().to_vec(), "weight"),
            (law(rate).policed(64).unwrap().object().to_vec(), "wanting"),
            (law(rate).per_cpu().unwrap().object().to_vec(), "taken"),
        ];
        for name in AnyLaw::names() {
            let law = AnyLaw::new(Protocol::of(name).unwrap(), rate, None).unwrap();
            known.push((law.object().to_vec(), "began"));
        }
        for name in AnyLaw::queue_names() {
            known.push((AnyLaw::queue(name, rate).unwrap().object().to_vec(), "dropped"));
        }
        let layouts: Vec<Layout> =
            known.iter().map(|(object, _)| Layout::of_object(object).unwrap()).collect();
        for ((_, field), Layout(parts)) in known.iter().zip(&layouts) {
            assert!(parts.iter().any(|part| part.contains(&format!(" {field}: "))), "{field}: {parts:?}");
        }
        for (first, one) in layouts.iter().enumerate() {
            for other in &layouts[first + 1..] {
                assert_ne!(one, other);
            }
        }
        assert_eq!(Layout::of_object(&known[0].0), Layout::of_object(&known[0].0));
        assert_eq!(Layout::of_object(b"no object"), None);
    }
}
