//! A tool that a model calls.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use vfs_core::operation::OperationClass;
use vfs_core::{OpContext, VfsPath};

use crate::action::{Action, CallScope, Effect};
use crate::annotations::Annotations;
use crate::argument_error::ArgumentError;
use crate::arguments::Arguments;
use crate::large_text::LargeTextSource;
use crate::outcome::{ChangedFile, FailureKind, Part, ToolOutcome};
use crate::parameter::ParameterKind;
use crate::profile::Profile;
use crate::schema::{SchemaForm, input_schema};
use crate::tool_definition::{Needs, ToolDefinition};
use crate::tool_set_state::{ToolSetState, cut_end, cut_middle};

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
    pub(crate) setup: Arc<ToolSetState>,
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
        let backend = setup.backend_for(&effect.paths, self.globs(&arguments));
        let scope = CallScope { backend, cx, session: &setup.session, setup, id, max_characters };
        // The native tools make a change on the version that the model was shown: no parallel call of `edit`, `write` or `manage` may come
        // between the checks of that version and the change.
        let is_exclusive = effect.class == OperationClass::Write && self.profile == Profile::Native;
        let outcome = match is_exclusive {
            false => self.perform(&scope, &*action).await,
            true => match setup.session.change(cx).await {
                Ok(_change) => self.perform(&scope, &*action).await,
                Err(error) => {
                    let error = error.or_path(effect.paths.first().unwrap_or(&VfsPath::root()));
                    ToolOutcome::of_error(&error, error.for_model())
                }
            },
        };
        self.with_notes(&scope, outcome, arguments.notes()).await
    }

    async fn perform(&self, scope: &CallScope<'_>, action: &dyn Action) -> ToolOutcome {
        if let Some(refused) = scope.refuse_unread(action.changes()).await {
            return refused;
        }
        let outcome = action.perform(scope).await;
        self.remember(&outcome.changed);
        outcome
    }

    /// Appends notes to an outcome, whose text is shortened if both together are too long.
    async fn with_notes(&self, scope: &CallScope<'_>, mut outcome: ToolOutcome, notes: &[String]) -> ToolOutcome {
        let interrupted = self.setup.session.take_interrupted();
        let interrupted_note = (!interrupted.is_empty()).then(|| interrupted_note(&interrupted));
        let length = |text: &str| text.chars().count() + 3;
        let others = outcome.parts.iter().skip(1).map(|part| match part {
            Part::Text(text) => length(text),
            Part::File(_) => 0,
        });
        let reserved: usize = others.chain(interrupted_note.iter().chain(notes).map(|note| length(note))).sum();
        let max_characters = scope.max_characters.saturating_sub(reserved).max(MIN_CHARACTERS);
        outcome = self.shortened(scope, outcome, max_characters).await;
        if let Some(note) = interrupted_note
            && !outcome.push_note(&note)
        {
            // The next outcome that has room for it has the note.
            self.setup.session.add_interrupted(interrupted);
        }
        for note in notes {
            outcome.push_note(note);
        }
        outcome
    }

    /// Shortens the text of an outcome to `max_characters`. A failure is short by itself, unless it is the output of a command.
    async fn shortened(&self, scope: &CallScope<'_>, mut outcome: ToolOutcome, max_characters: usize) -> ToolOutcome {
        let setup = scope.setup;
        match (self.definition.needs, outcome.failure) {
            // The native tool stores a long output itself.
            (Needs::Shell, None | Some(FailureKind::Command)) if self.profile == Profile::Native => {
                cut_middle(&mut outcome, max_characters);
                outcome
            }
            (Needs::Shell, None | Some(FailureKind::Command)) => {
                let max = if setup.stores_results() { setup.max_long_characters() } else { usize::MAX };
                let source = LargeTextSource::Call(scope.id);
                setup.replace_long_text(scope.cx, source, max_characters.min(max), outcome).await
            }
            (_, None) => {
                cut_end(&mut outcome, max_characters);
                outcome
            }
            (_, Some(_)) => outcome,
        }
    }

    /// Remembers that the model knows the files that its call has changed. The native tools know better, as they show their lines.
    fn remember(&self, changed: &[ChangedFile]) {
        if self.profile == Profile::Native {
            return;
        }
        let session = &self.setup.session;
        // A file that was renamed is as unknown as it was before.
        let is_unknown = |file: &ChangedFile| file.version.is_none() && session.version(&file.path).is_none();
        let is_rename_of_unknown = changed.iter().any(is_unknown);
        for ChangedFile { path, version } in changed {
            match version {
                Some(version) if !is_rename_of_unknown => session.show(path, version, None),
                _ => session.forget(path),
            }
        }
    }

    /// Returns the patterns of paths in `arguments`.
    fn globs<'a>(&self, arguments: &'a Arguments) -> impl Iterator<Item = &'a str> {
        let globs = self.definition.parameters.iter().filter(|parameter| parameter.kind == ParameterKind::Glob);
        globs.filter_map(|parameter| arguments.text(parameter.name))
    }

    fn read(&self, arguments: &Value) -> Result<Arguments, ArgumentError> {
        Arguments::read(arguments, self.definition.parameters, &self.setup.working_directory)
    }
}

/// Returns the note about files of an earlier call that was dropped in the middle of its edits.
fn interrupted_note(files: &[VfsPath]) -> String {
    let shown = files.iter().take(MAX_NAMED_FILES);
    let shown = shown.map(|path| path.as_str().escape_debug().take(MAX_NAMED_CHARACTERS).collect::<String>());
    let shown = shown.collect::<Vec<_>>().join(", ");
    let more = if files.len() > MAX_NAMED_FILES { ", ..." } else { "" };
    format!("an earlier edit was interrupted and may be in {shown}{more}: read them")
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name()).field("backend", &self.setup.files).finish_non_exhaustive()
    }
}
