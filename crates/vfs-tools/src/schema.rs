//! JSON schemas of parameters, in the dialect 2020-12.

use serde_json::{Map, Value, json};

use crate::parameter::{Parameter, ParameterKind, Presence};

/// The form of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaForm {
    /// Parameters that may be left out are not in `required`.
    Plain,
    /// Every parameter of the schema is in `required`, one that may be left out may be `null`, and no other is allowed, as the strict
    /// modes of some services demand.
    Strict,
}

/// Returns the schema of an object with `parameters`.
pub fn input_schema(parameters: &[Parameter], form: SchemaForm) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for parameter in parameters.iter().filter(|parameter| parameter.presence != Presence::Hidden) {
        let is_required = parameter.presence == Presence::Required;
        let mut schema = kind_schema(&parameter.kind, form);
        if form == SchemaForm::Strict && !is_required {
            make_nullable(&mut schema);
        }
        if !parameter.description.is_empty() {
            schema.insert("description".to_owned(), parameter.description.into());
        }
        properties.insert(parameter.name.to_owned(), schema.into());
        if form == SchemaForm::Strict || is_required {
            required.push(parameter.name);
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    if form == SchemaForm::Strict {
        schema["additionalProperties"] = false.into();
    }
    schema
}

fn kind_schema(kind: &ParameterKind, form: SchemaForm) -> Map<String, Value> {
    let schema = match kind {
        ParameterKind::Text | ParameterKind::Range | ParameterKind::Path | ParameterKind::Glob => {
            json!({ "type": "string" })
        }
        ParameterKind::Boolean => json!({ "type": "boolean" }),
        ParameterKind::Integer { min, max } => {
            let mut schema = json!({ "type": "integer" });
            // Some services refuse bounds in their strict mode.
            if form == SchemaForm::Plain {
                if *min != i64::MIN {
                    schema["minimum"] = (*min).into();
                }
                if *max != i64::MAX {
                    schema["maximum"] = (*max).into();
                }
            }
            schema
        }
        ParameterKind::Choice(choices) => json!({ "type": "string", "enum": choices }),
        ParameterKind::List(of) => json!({ "type": "array", "items": kind_schema(of, form) }),
        ParameterKind::Object(parameters) => input_schema(parameters, form),
    };
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn make_nullable(schema: &mut Map<String, Value>) {
    if let Some(kind) = schema.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    }
    if let Some(Value::Array(choices)) = schema.get_mut("enum") {
        choices.push(Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: &[Parameter] = &[
        Parameter::required("path", ParameterKind::Path, "The file."),
        Parameter::optional("show", ParameterKind::Choice(&["lines", "files"]), ""),
        Parameter::optional("limit", ParameterKind::Integer { min: 0, max: i64::MAX }, ""),
        Parameter::optional(
            "edits",
            ParameterKind::List(&ParameterKind::Object(&[Parameter::required("old", ParameterKind::Text, "")])),
            "",
        ),
        Parameter::hidden("offset", ParameterKind::Integer { min: 0, max: i64::MAX }),
    ];

    #[test]
    fn a_plain_schema_requires_only_what_cannot_be_left_out() {
        assert_eq!(
            input_schema(PARAMETERS, SchemaForm::Plain),
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "The file." },
                    "show": { "type": "string", "enum": ["lines", "files"] },
                    "limit": { "type": "integer", "minimum": 0 },
                    "edits": {
                        "type": "array",
                        "items": { "type": "object", "properties": { "old": { "type": "string" } }, "required": ["old"] },
                    },
                },
                "required": ["path"],
            })
        );
    }

    #[test]
    fn a_strict_schema_requires_everything_and_allows_null() {
        let schema = input_schema(PARAMETERS, SchemaForm::Strict);
        assert_eq!(schema["required"], json!(["path", "show", "limit", "edits"]));
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(
            schema["properties"]["show"],
            json!({ "type": ["string", "null"], "enum": ["lines", "files", null] })
        );
        assert_eq!(schema["properties"]["limit"], json!({ "type": ["integer", "null"] }));
        assert_eq!(schema["properties"]["edits"]["items"]["additionalProperties"], json!(false));
    }
}
