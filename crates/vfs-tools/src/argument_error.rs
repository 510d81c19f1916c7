//! Errors of arguments, in words for a model.

use std::fmt;

use serde_json::Value;

use crate::large_text::shortened;
use crate::parameter::ParameterKind;

/// Maximum number of characters of a value that an error shows.
const MAX_SHOWN_CHARACTERS: usize = 60;

/// An argument that cannot be read. Its text is for the model, in one line: which argument, what came, and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentError {
    text: String,
    /// Whether a profile has worded the text, which is then shown as it is.
    is_worded: bool,
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ArgumentError {}

impl ArgumentError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_worded: false }
    }

    /// Creates an error with the whole text that the model sees, as a protocol words it.
    pub(crate) fn worded(text: String) -> Self {
        Self { text, is_worded: true }
    }

    /// Returns the text for a model.
    pub(crate) fn for_model(&self) -> String {
        if self.is_worded { self.text.clone() } else { format!("Error: {}", self.text) }
    }

    /// Creates an error of the argument at `place`, which has to be `allowed` and is `value`.
    pub(crate) fn refused(place: &str, allowed: &str, value: &Value) -> Self {
        Self::new(format!("`{place}` has to be {allowed}; got {}", shown(value)))
    }

    /// Creates an error of an argument of this kind that is missing.
    pub(crate) fn missing(place: &str, kind: &ParameterKind) -> Self {
        Self::new(format!("`{place}` is missing; it has to be {}", allowed(kind)))
    }

    /// Creates an error of arguments that are no object, with the reason if they are text.
    pub(crate) fn not_an_object(arguments: &Value, reason: Option<&serde_json::Error>) -> Self {
        let reason = reason.map(|reason| format!(", which is no JSON: {reason}")).unwrap_or_default();
        Self::new(format!("the arguments have to be a JSON object; got {}{reason}", shown(arguments)))
    }
}

/// Returns what a parameter of `kind` takes, in words.
pub(crate) fn allowed(kind: &ParameterKind) -> String {
    match kind {
        ParameterKind::Text | ParameterKind::Glob => "a text".to_owned(),
        ParameterKind::Range => "a range such as '20-60', '20-' or '-40'".to_owned(),
        ParameterKind::Path => "a path".to_owned(),
        ParameterKind::Boolean => "`true` or `false`".to_owned(),
        ParameterKind::Integer { min: i64::MIN, max: i64::MAX } => "a whole number".to_owned(),
        ParameterKind::Integer { min, max: i64::MAX } => format!("a whole number from {min}"),
        ParameterKind::Integer { min, max } => format!("a whole number from {min} to {max}"),
        ParameterKind::Choice(choices) => format!("one of \"{}\"", choices.join("\", \"")),
        ParameterKind::List(of) => format!("a list, each item {}", allowed(of)),
        ParameterKind::Object(parameters) => {
            let names: Vec<_> = parameters.iter().map(|parameter| parameter.name).collect();
            format!("an object with `{}`", names.join("`, `"))
        }
    }
}

/// Returns `value` for an error, shortened.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text {:?}", cut(text)),
        Value::Array(values) => format!("a list of {}", values.len()),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}

/// Returns `text`, shortened.
pub(crate) fn cut(text: &str) -> String {
    shortened(text, MAX_SHOWN_CHARACTERS, "…")
}
