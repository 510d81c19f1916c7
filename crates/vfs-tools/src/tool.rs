//! A tool that a model calls.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use vfs_core::{Backend, OpContext, VfsPath};

use crate::action::{CallScope, Effect};
use crate::annotations::Annotations;
use crate::argument_error::ArgumentError;
use crate::arguments::Arguments;
use crate::outcome::{FailureKind, ToolOutcome};
use crate::schema::{SchemaForm, input_schema};
use crate::session::Session;
use crate::tool_definition::ToolDefinition;

/// Maximum number of files that a note names, and of the characters of each.
const MAX_NAMED_FILES: usize = 5;
const MAX_NAMED_CHARACTERS: usize = 200;

/// A tool that a model calls.
///
/// A clone is a handle on the same backend.
#[derive(Clone)]
pub struct Tool {
    pub(crate) definition: &'static ToolDefinition,
    pub(crate) description: Arc<str>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) session: Arc<Session>,
    pub(crate) working_directory: VfsPath,
}

impl Tool {
    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.definition.name
    }

    /// Returns the description for the model.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns hints about what the tool does.
    pub fn annotations(&self) -> Annotations {
        self.definition.annotations
    }

    /// Returns the JSON schema of the arguments.
    pub fn input_schema(&self, form: SchemaForm) -> Value {
        input_schema(self.definition.parameters, form)
    }

    /// Returns what a call with `arguments` would do, without doing it.
    ///
    /// # Errors
    ///
    /// If an argument is missing or cannot be read.
    pub fn effect(&self, arguments: &Value) -> Result<Effect, ArgumentError> {
        Ok((self.definition.action)(&self.read(arguments)?)?.effect())
    }

    /// Calls the tool with the JSON object `arguments`, or a text that has one.
    ///
    /// # Behaviour
    ///
    /// * Every failure is an outcome whose text the model can act on: of at most 2,000 characters, or the output of a command. It has no
    ///   path of the host.
    /// * Unknown arguments, and entries that could not be read, are noted in parts of their own.
    pub async fn call(&self, cx: &OpContext, arguments: &Value) -> ToolOutcome {
        let read = self.read(arguments).and_then(|arguments| Ok(((self.definition.action)(&arguments)?, arguments)));
        let (action, arguments) = match read {
            Ok(read) => read,
            Err(error) => return ToolOutcome::failed(FailureKind::InvalidArguments, error.for_model()),
        };
        let scope = CallScope { backend: &*self.backend, cx, session: &self.session };
        let mut outcome = action.perform(&scope).await;
        self.note_interrupted(&mut outcome);
        for note in arguments.notes() {
            outcome.push_note(note);
        }
        outcome
    }

    /// Notes the files of an earlier call that was dropped in the middle of its edits, in the first outcome that has room for it.
    fn note_interrupted(&self, outcome: &mut ToolOutcome) {
        let interrupted = self.session.take_interrupted();
        if interrupted.is_empty() {
            return;
        }
        let shown = interrupted.iter().take(MAX_NAMED_FILES).map(|path| {
            let shown: String = path.as_str().chars().take(MAX_NAMED_CHARACTERS).collect();
            shown.escape_debug().to_string()
        });
        let shown = shown.collect::<Vec<_>>().join(", ");
        let more = if interrupted.len() > MAX_NAMED_FILES { ", ..." } else { "" };
        if !outcome.push_note(&format!("an earlier edit was interrupted and may be in {shown}{more}: read them")) {
            self.session.add_interrupted(interrupted);
        }
    }

    fn read(&self, arguments: &Value) -> Result<Arguments, ArgumentError> {
        Arguments::read(arguments, self.definition.parameters, &self.working_directory)
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name()).field("backend", &self.backend).finish_non_exhaustive()
    }
}
