//! Parser of requests in JSON, whose errors are for their sender.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use crate::error::{Error, Result};
use crate::path::VfsPath;

/// Parses the JSON form of a request, such as the arguments of a tool call or the body of an HTTP request.
///
/// # Errors
///
/// `invalid_path` for a path that is not valid, with its fault; otherwise `invalid_argument`, whose message names the field. Both
/// have a message that can be returned to the sender.
///
/// ```
/// use serde_json::json;
/// use vfs_core::operation::from_json;
/// use vfs_core::{ErrorKind, ReadRequest};
///
/// let request: ReadRequest = from_json(&json!({ "path": "/a.txt", "limit": 20 }))?;
/// assert_eq!(request.limit, Some(20));
/// let error = from_json::<ReadRequest>(&json!({ "path": "/a.txt", "limit": "all" })).expect_err("no number");
/// assert!(error.message().starts_with("`limit`: invalid type: string"), "{error}");
/// let error = from_json::<ReadRequest>(&json!({ "path": "/../a.txt" })).expect_err("a path that leads out");
/// assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidPath, Some("/../a.txt")));
/// # Ok::<(), vfs_core::Error>(())
/// ```
pub fn from_json<T: DeserializeOwned>(request: &Value) -> Result<T> {
    serde_path_to_error::deserialize(request).map_err(|error| {
        let field = error.path().to_string();
        let invalid_path = path_error(request, error.path());
        let message = error.into_inner().to_string();
        if let Some(invalid_path) = invalid_path.filter(|error| error.to_string() == message) {
            return invalid_path;
        }
        // Errors about the whole object name the field in their message.
        let has_field_name = field == "." || message.contains(&format!("`{field}`"));
        Error::invalid_argument(if has_field_name { message } else { format!("`{field}`: {message}") })
    })
}

/// Returns the error of the text at `field` as a path, if it is not a valid one.
fn path_error(request: &Value, field: &Path) -> Option<Error> {
    let value = field.iter().try_fold(request, |value, segment| match segment {
        Segment::Map { key } => value.get(key),
        Segment::Seq { index } => value.get(index),
        _ => None,
    });
    VfsPath::parse(value?.as_str()?).err()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::error::ErrorKind;
    use crate::operation::AnyRequest;

    #[test]
    fn errors_name_the_field_or_the_path() {
        use ErrorKind::{InvalidArgument, InvalidPath};
        for (operation, request, kind, message) in [
            ("read", json!({ "path": "a\0b" }), InvalidPath, "NUL"),
            ("rename", json!({ "from": "/a", "to": "/.." }), InvalidPath, "'..' is not allowed"),
            ("execute", json!({ "command": "ls", "cwd": "/../x" }), InvalidPath, "'..' is not allowed"),
            ("read", json!({ "path": 7 }), InvalidArgument, "`path`: invalid type: integer `7`"),
            ("read", json!({}), InvalidArgument, "missing field `path`"),
            ("read", json!([]), InvalidArgument, "invalid"),
            ("read", json!({ "path": "/a", "offset": -1 }), InvalidArgument, "`offset`: "),
            ("read", json!({ "path": "/a", "lines": 1 }), InvalidArgument, "unknown field `lines`, expected one of"),
            // A text that is no path is not taken for one.
            ("write", json!({ "path": "/a", "content": "/..", "mode": "/.." }), InvalidArgument, "`/..`"),
            ("grep", json!({ "pattern": { "regexp": "/.." } }), InvalidArgument, "`pattern`: expected a string, {"),
            ("reed", json!({ "path": "/a" }), InvalidArgument, "unknown operation `reed`; the operations are stat, "),
        ] {
            let error = AnyRequest::from_json(operation, &request).expect_err(message);
            assert_eq!(error.kind(), kind, "{operation} {request}: {error}");
            assert!(error.message().contains(message), "{operation} {request}: {error}");
        }
    }

    #[test]
    fn a_request_is_parsed_by_the_name_of_its_operation() {
        let json = json!({ "path": "/a", "old_string": "a", "new_string": "b", "replace_all": null });
        let request = AnyRequest::from_json("edit", &json).expect("a request");
        assert!(
            matches!(request, AnyRequest::Edit(edit) if edit.path.as_str() == "/a" && edit.replacements.len() == 1)
        );
    }
}
