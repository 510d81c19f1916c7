//! A tool that a model calls.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use vfs_core::OpContext;

use crate::action::{CallScope, Effect};
use crate::annotations::Annotations;
use crate::argument_error::ArgumentError;
use crate::arguments::Arguments;
use crate::large_text::TextSource;
use crate::outcome::{ChangedFile, FailureKind, Part, ToolOutcome};
use crate::profile::Profile;
use crate::schema::{SchemaForm, input_schema};
use crate::setup::{Setup, cut_end};
use crate::tool_definition::{Needs, ToolDefinition};

/// Maximum number of files that a note names, and of the characters of each.
const MAX_NAMED_FILES: usize = 5;
const MAX_NAMED_CHARACTERS: usize = 200;

/// Number of characters of a result that notes leave at least.
const MIN_CHARACTERS: usize = 500;

/// A tool that a model calls.
///
/// A clone is a handle on the same backend.
#[derive(Clone)]
pub struct Tool {
    pub(crate) definition: &'static ToolDefinition,
    pub(crate) description: Arc<str>,
    pub(crate) profile: Profile,
    pub(crate) setup: Arc<Setup>,
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
        self.call_within(cx, arguments, None, self.setup.max_characters_of_each(1)).await
    }

    /// Calls the tool for the call `id` of a model; the result has at most `max_characters`.
    pub(crate) async fn call_within(
        &self,
        cx: &OpContext,
        arguments: &Value,
        id: Option<&str>,
        max_characters: usize,
    ) -> ToolOutcome {
        let read = self.read(arguments).and_then(|arguments| Ok(((self.definition.action)(&arguments)?, arguments)));
        let (action, arguments) = match read {
            Ok(read) => read,
            Err(error) => return ToolOutcome::failed(FailureKind::InvalidArguments, error.for_model()),
        };
        let setup = &*self.setup;
        let effect = action.effect();
        let backend = setup.backend_for(&effect.paths);
        let scope = CallScope { backend, cx, session: &setup.session, setup, id, max_characters };
        if let Some(refused) = scope.refuse_unread(action.changes()).await {
            return refused;
        }
        let mut outcome = action.perform(&scope).await;
        self.remember(&outcome.changed);
        let mut notes: Vec<String> = self.interrupted_note().into_iter().collect();
        notes.extend(arguments.notes().iter().cloned());
        let others = outcome.parts.iter().skip(1).map(|part| match part {
            Part::Text(text) => text.chars().count() + 1,
            Part::File(_) => 0,
        });
        let reserved = others.sum::<usize>() + notes.iter().map(|note| note.chars().count() + 3).sum::<usize>();
        let max_characters = max_characters.saturating_sub(reserved).max(MIN_CHARACTERS);
        if self.definition.needs == Needs::Shell {
            let max = if setup.stores_results() { setup.max_long_characters() } else { usize::MAX };
            outcome = setup.replace_long_text(cx, TextSource::Call(id), max_characters.min(max), outcome).await;
        } else {
            cut_end(&mut outcome, max_characters);
        }
        for note in notes {
            outcome.push_note(&note);
        }
        outcome
    }

    /// Remembers that the model knows the files that its call has changed. The native tools know better, as they show their lines.
    fn remember(&self, changed: &[ChangedFile]) {
        if self.profile == Profile::Native {
            return;
        }
        for ChangedFile { path, version } in changed {
            match version {
                Some(version) => self.setup.session.show(path, version, None),
                None => self.setup.session.forget(path),
            }
        }
    }

    /// Returns a note about the files of an earlier call that was dropped in the middle of its edits, once.
    fn interrupted_note(&self) -> Option<String> {
        let interrupted = self.setup.session.take_interrupted();
        if interrupted.is_empty() {
            return None;
        }
        let shown = interrupted.iter().take(MAX_NAMED_FILES).map(|path| {
            let shown: String = path.as_str().chars().take(MAX_NAMED_CHARACTERS).collect();
            shown.escape_debug().to_string()
        });
        let shown = shown.collect::<Vec<_>>().join(", ");
        let more = if interrupted.len() > MAX_NAMED_FILES { ", ..." } else { "" };
        Some(format!("an earlier edit was interrupted and may be in {shown}{more}: read them"))
    }

    fn read(&self, arguments: &Value) -> Result<Arguments, ArgumentError> {
        Arguments::read(arguments, self.definition.parameters, &self.setup.working_directory)
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name()).field("backend", &self.setup.files).finish_non_exhaustive()
    }
}
