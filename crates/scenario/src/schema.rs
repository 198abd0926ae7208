//! JSON Schema of the language, from the same declarations as the decoder.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::file::File;

/// The schema of a scenario file, draft-07: what editors of TOML understand.
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<File>();
    schema.insert("title".into(), "congestlab scenario".into());
    schema.to_value()
}
