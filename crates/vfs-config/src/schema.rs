//! The form of the file, for editors.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use serde_json::Value;

use crate::tables::FileTable;

/// The JSON schema of the file, draft 2020-12, as text that ends with a line break.
///
/// # Behaviour
///
/// It says of every key what it is and what it may be. Editors take it for TOML too: `#:schema vfs.schema.json` at the top
/// of the file.
pub fn schema() -> String {
    let schema = SchemaSettings::draft2020_12()
        .with_transform(without_null)
        .into_generator()
        .into_root_schema_for::<FileTable>();
    // A schema is made of maps with text keys, which always have a JSON.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Takes out the nulls that stand for what may be left out: TOML has none.
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
