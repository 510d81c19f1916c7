//! The calls of one turn of a model.

use serde_json::Value;

/// A call of a tool, as a model makes it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments: a JSON object, or a text that has one.
    pub arguments: Value,
    /// The id that the model gave the call, which names the file of a result that is too long.
    pub id: Option<String>,
}

impl ToolCall {
    /// Creates a call without an id.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self { name: name.into(), arguments, id: None }
    }

    /// Sets the id.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}
