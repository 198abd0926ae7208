//! The numbers of a record by their places in it, as JSON has them, without JSON: a million records as maps take
//! longer to make than the run took that they are of.

use std::fmt::Display;

use serde::Serialize;
use serde::ser::{Error as _, Impossible, SerializeStruct, Serializer};

/// The field is no number, or the value is no record.
#[derive(Debug)]
pub(crate) struct Other;

impl Display for Other {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a record of numbers")
    }
}

impl std::error::Error for Other {}

impl serde::ser::Error for Other {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

/// Calls `tell` with place, name and number of each field of a record; `None` where JSON has no number there.
/// A value that is no record has no fields.
pub(crate) fn each_number(record: &impl Serialize, tell: &mut impl FnMut(usize, &'static str, Option<f64>)) {
    // All that can go wrong is that it is no record.
    let _ = record.serialize(Record { next: 0, tell });
}

/// A serializer of a record: tells its fields, one after the other.
struct Record<'a, Tell> {
    next: usize,
    tell: &'a mut Tell,
}

impl<Tell: FnMut(usize, &'static str, Option<f64>)> SerializeStruct for Record<'_, Tell> {
    type Ok = ();
    type Error = Other;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Other> {
        (self.tell)(self.next, name, value.serialize(Number).ok().filter(|number| number.is_finite()));
        self.next += 1;
        Ok(())
    }

    fn end(self) -> Result<(), Other> {
        Ok(())
    }
}

/// A serializer of a field: its number.
struct Number;

/// The methods of a serializer for values that it has no use for.
macro_rules! refuse {
    ($($method:ident($($type:ty),*)),* $(,)?) => {
        $(fn $method(self $(, _: $type)*) -> Result<Self::Ok, Other> {
            Err(Other::custom(""))
        })*
    };
}

/// The same for values that have parts.
macro_rules! refuse_parts {
    ($($method:ident($($type:ty),*) -> $part:ident),* $(,)?) => {
        $(fn $method(self $(, _: $type)*) -> Result<Self::$part, Other> {
            Err(Other::custom(""))
        })*
    };
}

/// Refusals that both have in common: of text and of values within values.
macro_rules! refuse_others {
    () => {
        type Error = Other;
        type SerializeSeq = Impossible<Self::Ok, Other>;
        type SerializeTuple = Impossible<Self::Ok, Other>;
        type SerializeTupleStruct = Impossible<Self::Ok, Other>;
        type SerializeTupleVariant = Impossible<Self::Ok, Other>;
        type SerializeMap = Impossible<Self::Ok, Other>;
        type SerializeStructVariant = Impossible<Self::Ok, Other>;

        refuse! {
            serialize_bool(bool), serialize_char(char), serialize_str(&str), serialize_bytes(&[u8]),
            serialize_none(), serialize_unit(), serialize_unit_struct(&'static str),
            serialize_unit_variant(&'static str, u32, &'static str),
        }

        refuse_parts! {
            serialize_seq(Option<usize>) -> SerializeSeq,
            serialize_tuple(usize) -> SerializeTuple,
            serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct,
            serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant,
            serialize_map(Option<usize>) -> SerializeMap,
            serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant,
        }

        fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Self::Ok, Other> {
            value.serialize(self)
        }

        fn serialize_newtype_struct<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            value: &T,
        ) -> Result<Self::Ok, Other> {
            value.serialize(self)
        }

        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<Self::Ok, Other> {
            Err(Other)
        }
    };
}

/// Every integer and float as JSON's reader would have it as a float.
macro_rules! numbers {
    ($($method:ident($type:ty)),* $(,)?) => {
        $(fn $method(self, value: $type) -> Result<f64, Other> {
            Ok(value as f64)
        })*
    };
}

impl Serializer for Number {
    type Ok = f64;
    type SerializeStruct = Impossible<f64, Other>;

    numbers! {
        serialize_i8(i8), serialize_i16(i16), serialize_i32(i32), serialize_i64(i64),
        serialize_u8(u8), serialize_u16(u16), serialize_u32(u32), serialize_u64(u64),
        serialize_f32(f32), serialize_f64(f64),
    }

    refuse_others! {}

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct, Other> {
        Err(Other)
    }
}

impl<'a, Tell: FnMut(usize, &'static str, Option<f64>)> Serializer for Record<'a, Tell> {
    type Ok = ();
    type SerializeStruct = Self;

    refuse! {
        serialize_i8(i8), serialize_i16(i16), serialize_i32(i32), serialize_i64(i64),
        serialize_u8(u8), serialize_u16(u16), serialize_u32(u32), serialize_u64(u64),
        serialize_f32(f32), serialize_f64(f64),
    }

    refuse_others! {}

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Other> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use congestlab_sim::outcome::FlowOutcome;
    use serde_json::Value as Json;

    use super::*;

    /// Names that JSON has of a record, and numbers where it has any.
    fn by_json(record: &impl Serialize) -> Vec<(String, Option<f64>)> {
        let Ok(Json::Object(row)) = serde_json::to_value(record) else { return Vec::new() };
        row.into_iter().map(|(name, value)| (name, value.as_f64())).collect()
    }

    fn told(record: &impl Serialize) -> Vec<(String, Option<f64>)> {
        let mut told = Vec::new();
        each_number(record, &mut |place, name, number| {
            assert_eq!(place, told.len(), "{name}");
            told.push((name.to_owned(), number));
        });
        told
    }

    #[test]
    fn a_record_has_the_names_and_numbers_that_json_has_of_it() {
        #[derive(Serialize)]
        struct Mixed {
            less: i64,
            large: u64,
            is_on: bool,
            word: &'static str,
            list: Vec<u32>,
            some: Option<Option<f64>>,
            none: Option<u8>,
            endless: f64,
        }
        let (list, some, none) = (vec![1, 2], Some(Some(0.1)), None);
        let mixed = Mixed {
            less: -3,
            large: u64::MAX,
            is_on: true,
            word: "7",
            list,
            some,
            none,
            endless: f64::INFINITY,
        };
        assert_eq!(told(&mixed), by_json(&mixed));
        assert_eq!(told(&mixed).iter().filter(|(_, number)| number.is_some()).count(), 3);
        let flow = FlowOutcome {
            goodput_bps: Some(0.1),
            sent_packets: (1 << 60) + 1,
            rtt_mean_ms: Some(f64::NAN),
            ..FlowOutcome::default()
        };
        assert_eq!(told(&flow), by_json(&flow));
        assert!(told(&flow).len() > 25);
        assert_eq!(told(&17), []);
    }
}
