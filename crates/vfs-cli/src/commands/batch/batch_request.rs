//! Parser of requests: id, operation and fields.

use std::fmt;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use vfs_config::suggest;
use vfs_core::operation::from_json;
use vfs_core::{Error, Result, VfsPath};

/// The fields of a request other than `id`, `op` and `timeout_ms`.
pub(super) type OperationFields = Map<String, Value>;

/// A request, as far as its line could be parsed.
#[derive(Debug, Default)]
pub(super) struct BatchRequest {
    /// The id of the request, which the answer repeats byte for byte.
    pub(super) id: Option<Box<RawValue>>,
    /// The name of the operation.
    pub(super) op: Option<String>,
    /// The timeout of the operation in milliseconds, or `null` for none.
    pub(super) timeout_ms: Option<Option<u64>>,
    /// All other fields.
    pub(super) fields: OperationFields,
}

/// Parses `line`. If that fails, the request has the fields before the fault, so that the answer can repeat its id.
pub(super) fn parse(line: &[u8]) -> (BatchRequest, Result<()>) {
    let mut request = BatchRequest::default();
    let mut json = serde_json::Deserializer::from_slice(line);
    let outcome = (&mut request).deserialize(&mut json).and_then(|()| json.end());
    let invalid =
        |error| Error::invalid_argument(format!("the line is not a request: {}", describe_error(line, &error)));
    (request, outcome.map_err(invalid))
}

/// Describes the parse error of `line`.
fn describe_error(line: &[u8], error: &serde_json::Error) -> String {
    if line.trim_ascii_start().first() != Some(&b'{') {
        return r#"a request is a JSON object, such as {"op":"ls","path":"/"}"#.to_owned();
    }
    let text = error.to_string();
    // Remove the line number, which is always 1.
    let reason = text.rsplit_once(" at line ").map_or(&*text, |(reason, _)| reason);
    let reason = reason.replace("expected ident", "expected `null`, `true` or `false`");
    match error.classify() {
        Category::Eof => format!("the JSON ends too early, at column {}", error.column()),
        Category::Syntax => format!("the JSON is invalid at column {}: {reason}", error.column()),
        Category::Data | Category::Io => reason,
    }
}

impl<'de> DeserializeSeed<'de> for &mut BatchRequest {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut BatchRequest {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `op`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let is_duplicate = match name.as_str() {
                "id" => self.id.replace(map.next_value()?).is_some(),
                "op" => self.op.replace(map.next_value()?).is_some(),
                "timeout_ms" => self.timeout_ms.replace(map.next_value()?).is_some(),
                _ => self.fields.insert(name.clone(), map.next_value()?).is_some(),
            };
            if is_duplicate {
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
        }
        Ok(())
    }
}

/// Normalises the paths among `fields` with `parse`, whose error is more precise than that of the deserializer.
pub(super) fn parse_paths(fields: &mut OperationFields, parse: impl Fn(&str) -> Result<VfsPath>) -> Result<()> {
    for name in ["path", "from", "to", "cwd"] {
        if let Some(Value::String(text)) = fields.get_mut(name) {
            *text = parse(text)?.as_str().to_owned();
        }
    }
    Ok(())
}

/// Accepts `file_path`, the name in agent frameworks, for `path`.
pub(super) fn accept_file_path(fields: &mut OperationFields) {
    if fields.get("path").is_none_or(Value::is_null)
        && let Some(path) = fields.remove("file_path")
    {
        fields.insert("path".to_owned(), path);
    }
}

/// Parses the fields as the request type `T`.
pub(super) fn decode<T: DeserializeOwned>(fields: OperationFields) -> Result<T> {
    from_json(&Value::Object(fields)).map_err(|error| match suggest::reword(error.message(), &[]) {
        Some(message) => Error::invalid_argument(message),
        None => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_lines_are_refused_with_the_id_before_the_error() {
        let seven = Some("7");
        for (line, id, reason) in [
            (&b"nonsense"[..], None, "a request is a JSON object, such as"),
            (b"[]", None, "a request is a JSON object"),
            (b"7", None, "a request is a JSON object"),
            (br#"{"id":7,"op":"read""#, seven, "the JSON ends too early, at column 19"),
            (br#"{"id":7,"op":nope}"#, seven, "invalid at column 15: expected `null`, `true` or `false`"),
            (br#"{"id":7,"path":"\ud800"}"#, seven, "hex escape"),
            (b"{\"id\":7,\"path\":\"\xff\"}", seven, "invalid unicode"),
            (br#"{"id":7,"op":3}"#, seven, "expected a string"),
            (br#"{"id":7,"path":"/a","path":"/b"}"#, seven, "duplicate field `path`"),
            (br#"{"id":7} {"id":8}"#, seven, "trailing characters"),
            (br#"{"id":7,"offset":1e999}"#, seven, "out of range"),
        ] {
            let (request, outcome) = parse(line);
            let error = outcome.expect_err(reason);
            assert_eq!(request.id.as_deref().map(RawValue::get), id, "{reason}");
            assert!(error.to_string().contains(reason), "{error}");
            assert!(!error.to_string().contains("line 1"), "{error}");
        }
    }

    #[test]
    fn ids_are_repeated_byte_for_byte() {
        for id in ["7", "-0", "1e400", "123456789012345678901234567890", "null", r#"{"a": [1]}"#, r#""\u0041""#] {
            let (request, outcome) = parse(format!(r#"{{"id":{id},"op":"stat"}}"#).as_bytes());
            outcome.expect("it is a request");
            assert_eq!(request.id.as_deref().map(RawValue::get), Some(id));
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        let line = format!("{{\"id\":{}", "[".repeat(1_000_000));
        assert!(parse(line.as_bytes()).1.is_err());
    }
}
