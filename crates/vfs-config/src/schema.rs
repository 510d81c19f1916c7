//! JSON schema of the configuration file.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use serde_json::Value;

use crate::tables::ConfigFileTable;

/// Returns the JSON schema (draft 2020-12) of the configuration file, as text that ends with a line break.
///
/// # Behaviour
///
/// The schema describes every key and its possible values. Editors also use it for TOML: put `#:schema vfs.schema.json` at the
/// top of the file.
pub fn schema() -> String {
    let mut schema = SchemaSettings::draft2020_12()
        .with_transform(without_null)
        .into_generator()
        .into_root_schema_for::<ConfigFileTable>();
    // If another crate of the program has the feature `preserve_order` of serde_json, keys are in the order of insertion.
    let keys = schema.ensure_object();
    keys.sort_keys();
    keys.values_mut().for_each(Value::sort_all_objects);
    // A schema consists of maps with text keys, so the conversion to JSON cannot fail.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Removes `null` from the types of optional keys, because TOML has no null.
fn without_null(schema: &mut Schema) {
    transform_subschemas(&mut without_null, schema);
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|word| word != "null");
        if let [word] = &types[..] {
            let word = word.clone();
            schema.insert("type".to_owned(), word);
        }
    }
    let Some(Value::Array(choices)) = schema.get_mut("anyOf") else { return };
    choices.retain(|choice| choice.get("type").is_none_or(|word| word != "null"));
    if let [Value::Object(only)] = &choices[..] {
        let only = only.clone();
        schema.remove("anyOf");
        only.into_iter().for_each(|(key, value)| drop(schema.insert(key, value)));
    }
}
