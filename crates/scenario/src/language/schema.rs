//! JSON Schema of the scenario language, from the same declarations as the decoder.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::language::file::File;

/// Names the schema, wherever it lies. The examples name the copy beside them, which needs no network.
const ID: &str = "urn:congestlab:scenario";

/// Returns the schema of a scenario file in JSON Schema draft-07, which TOML editors understand.
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<File>().to_value();
    let mut named = json!({ "$schema": schema["$schema"], "$id": ID, "title": "congestlab scenario" });
    if let (Value::Object(named), Value::Object(schema)) = (&mut named, &mut schema) {
        for (key, value) in std::mem::take(schema) {
            named.entry(key).or_insert(value);
        }
    }
    named
}
