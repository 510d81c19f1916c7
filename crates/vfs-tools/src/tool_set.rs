//! The tools of one backend.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::Value;
use vfs_core::backend::{AccessMode, MutationMode};
use vfs_core::operation::OperationClass;
use vfs_core::state::FilesUpdate;
use vfs_core::{Backend, Error, ErrorKind, OpContext, Result, VfsPath};

use crate::large_text::LargeTextSource;
use crate::outcome::{FailureKind, MAX_ERROR_CHARACTERS, ToolOutcome};
use crate::profile::Profile;
use crate::result_store::ResultStore;
use crate::tool::Tool;
use crate::tool_call::ToolCall;
use crate::tool_definition::OfferedCapabilities;
use crate::tool_set_state::ToolSetState;

/// The tools by which a model uses a backend.
///
/// # Behaviour
///
/// * A tool that the backend cannot serve is not offered: none that runs commands if there is no shell, and none that changes files if
///   the directory of the profile, mostly the root, is read-only. Descriptions name only tools that are there.
/// * A clone, and a set that is made from another one, is a handle on the same backend and remembers what either has shown to the model.
///   For another conversation, create another set.
///
/// ```
/// use std::sync::Arc;
///
/// use serde_json::json;
/// use vfs_core::{BackendExt, OpContext};
/// use vfs_memory::MemoryBackend;
/// use vfs_tools::{Profile, ToolSet};
///
/// # futures::executor::block_on(async {
/// let files = MemoryBackend::new();
/// files.create_text("/plan.md", "- draft\n").await?;
///
/// let tools = ToolSet::new(Arc::new(files), Profile::DeepagentsClassic);
/// let names: Vec<_> = tools.tools().iter().map(|tool| tool.name()).collect();
/// assert_eq!(names, ["ls", "read_file", "write_file", "edit_file", "glob", "grep"]);
///
/// let arguments = json!({ "file_path": "/plan.md", "old_string": "draft", "new_string": "final" });
/// let outcome = tools.call(&OpContext::new(), "edit_file", &arguments).await;
/// assert_eq!(outcome.to_text(), "Successfully replaced 1 instance(s) of the string in '/plan.md'");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct ToolSet {
    profile: Profile,
    setup: Arc<ToolSetState>,
    tools: Vec<Tool>,
}

impl ToolSet {
    /// Creates the tools of `profile` for `backend`.
    pub fn new(backend: Arc<dyn Backend>, profile: Profile) -> Self {
        Self::with_setup(profile, ToolSetState::new(backend, profile.max_characters(), profile.long_text_format()))
    }

    fn with_setup(profile: Profile, setup: ToolSetState) -> Self {
        let setup = Arc::new(setup);
        let offered = OfferedCapabilities {
            changes: setup.files.capabilities(&profile.directory()).access == AccessMode::ReadWrite,
            shell: setup.files.as_shell().is_some(),
        };
        let definitions = profile.definitions().iter().filter(|definition| offered.has(definition.needs));
        let tools = definitions.map(|definition| Tool {
            definition,
            description: (definition.description)(offered).into(),
            profile,
            setup: Arc::clone(&setup),
        });
        Self { tools: tools.collect(), profile, setup }
    }

    fn with_changed_setup(&self, change: impl FnOnce(&mut ToolSetState)) -> Self {
        let mut setup = ToolSetState::clone(&self.setup);
        change(&mut setup);
        Self::with_setup(self.profile, setup)
    }

    /// Returns the tools over another backend, such as the state of the agent at its next run. They remember what this set has shown.
    ///
    /// # Errors
    ///
    /// Those of [`store_large_results`](Self::store_large_results) if results are stored.
    pub fn with_backend(&self, backend: Arc<dyn Backend>) -> Result<Self> {
        Ok(Self::with_setup(self.profile, self.setup.with_files(backend)?))
    }

    /// Stores the output of commands, results of other tools and messages that are too long for the model in `store`. The model reads
    /// and searches them in the [directory of the profile](Profile::stored_results_directory). Only calls see the directory that have a
    /// path in it, or search from the root by a pattern that begins with it. It is not there for commands, and hides a directory of this
    /// name. Without a store, the middle of a long text is lost.
    ///
    /// # Errors
    ///
    /// `unsupported` for [`Profile::ClaudeMemory`], which reads nothing but memories, and for a backend that only returns its changes.
    pub fn store_large_results(&self, store: ResultStore) -> Result<Self> {
        if self.profile == Profile::ClaudeMemory {
            let words = "storing results failed: the tool of this profile reads only files below /memories";
            return Err(Error::new(ErrorKind::Unsupported, words));
        }
        Ok(Self::with_setup(self.profile, self.setup.with_store(store)?))
    }

    /// Sets the maximum number of characters of a result; a token has about four. Default: 40,000 for the native tools, whose results
    /// are mostly shorter; the others cut theirs at about 80,000, as the systems do from which they come. Less than 2,000, the length of
    /// an error, counts as 2,000.
    #[must_use]
    pub fn max_characters(&self, characters: usize) -> Self {
        self.with_changed_setup(|setup| setup.max_characters = characters)
    }

    /// Sets the maximum number of characters of all results of one [`call_all`](Self::call_all), of which each call has the same share.
    /// A share is at least 2,000 characters, so that more calls may exceed the maximum. Default: no maximum.
    #[must_use]
    pub fn max_turn_characters(&self, characters: usize) -> Self {
        self.with_changed_setup(|setup| setup.max_turn_characters = characters)
    }

    /// Refuses to change, replace or delete a file that is there and of which the model has read nothing. A directory is deleted with its
    /// files. The native tools also refuse to edit what has changed since; the others accept any version that was read.
    #[must_use]
    pub fn read_before_edit(&self) -> Self {
        self.with_changed_setup(|setup| setup.reads_before_edits = true)
    }

    /// Sets the directory at which relative paths in arguments start. Default: the root.
    #[must_use]
    pub fn working_directory(&self, directory: VfsPath) -> Self {
        self.with_changed_setup(|setup| setup.working_directory = directory)
    }

    /// Returns the tools, in the order in which they should be offered.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns the tool `name`.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// Calls the tool `name`. A name that is no tool is a failure whose text has the names of the tools.
    pub async fn call(&self, cx: &OpContext, name: &str, arguments: &Value) -> ToolOutcome {
        self.call_within(cx, name, arguments, None, self.setup.max_characters_of_each(1)).await
    }

    /// Performs the calls of one turn of a model, and returns their outcomes in the same order.
    ///
    /// # Behaviour
    ///
    /// * Calls that only read run at once with those beside them that only read, too. A call that changes something runs after all calls
    ///   before it, and before all calls after it.
    /// * Over a backend that only returns its changes, all calls see the files as they were before the turn. A call that would change a
    ///   file which an earlier call of the turn changed is refused, as merging both updates would lose one of them.
    /// * The results share [`max_turn_characters`](Self::max_turn_characters).
    pub async fn call_all(&self, cx: &OpContext, calls: &[ToolCall]) -> Vec<ToolOutcome> {
        let max_characters = self.setup.max_characters_of_each(calls.len());
        let mut outcomes = Vec::with_capacity(calls.len());
        for calls in calls.chunk_by(|one, other| self.only_reads(one) && self.only_reads(other)) {
            if let [call] = calls
                && let Some(path) = self.path_changed_before(call, &outcomes)
            {
                let text =
                    format!("Error: an earlier call of this turn changed {path}; repeat this call in the next turn");
                outcomes.push(ToolOutcome::failed(FailureKind::Backend(ErrorKind::Conflict), text));
                continue;
            }
            let calls = calls.iter().map(|ToolCall { name, arguments, id }| {
                self.call_within(cx, name, arguments, id.as_deref(), max_characters)
            });
            outcomes.extend(join_all(calls).await);
        }
        outcomes
    }

    /// Shortens the result of another tool of the agent, for the call `id`, as the output of a command is.
    pub async fn shorten_result(&self, cx: &OpContext, id: Option<&str>, text: &str) -> ToolOutcome {
        let max = self.setup.max_characters_of_each(1).min(self.setup.max_long_characters());
        self.setup.replace_long_text(cx, LargeTextSource::Call(id), max, ToolOutcome::text(text)).await
    }

    /// Shortens a message of a person that is longer than `max_characters`, as results are. Less than 2,000 counts as 2,000.
    pub async fn shorten_message(&self, cx: &OpContext, text: &str, max_characters: usize) -> ToolOutcome {
        let max = max_characters.max(MAX_ERROR_CHARACTERS);
        self.setup.replace_long_text(cx, LargeTextSource::Message, max, ToolOutcome::text(text)).await
    }

    /// Returns the first file that `call` would change and that is changed by an update of `outcomes`, which only returns it.
    fn path_changed_before<'a>(&self, call: &ToolCall, outcomes: &'a [ToolOutcome]) -> Option<&'a VfsPath> {
        let effect = self.get(&call.name)?.effect(&call.arguments).ok()?;
        if effect.class != OperationClass::Write {
            return None;
        }
        let is_returned = |path: &VfsPath| self.setup.files.capabilities(path).mutations == MutationMode::Returned;
        let overlaps = |one: &VfsPath, other: &VfsPath| one.starts_with(other) || other.starts_with(one);
        let updates = outcomes.iter().filter_map(|outcome| outcome.files_update.as_ref());
        updates
            .flat_map(FilesUpdate::keys)
            .find(|changed| effect.paths.iter().any(|path| overlaps(path, changed)) && is_returned(changed))
    }

    fn only_reads(&self, call: &ToolCall) -> bool {
        let effect = self.get(&call.name).map(|tool| tool.effect(&call.arguments));
        // A call that cannot be read changes nothing.
        effect.and_then(Result::ok).is_none_or(|effect| effect.class == OperationClass::Read)
    }

    async fn call_within(
        &self,
        cx: &OpContext,
        name: &str,
        arguments: &Value,
        id: Option<&str>,
        max_characters: usize,
    ) -> ToolOutcome {
        match self.get(name) {
            Some(tool) => tool.call_within(cx, arguments, id, max_characters).await,
            None => {
                let names: Vec<_> = self.tools.iter().map(Tool::name).collect();
                let name: String = name.chars().take(60).collect();
                let text = format!("Error: there is no tool '{name}'; the tools are {}", names.join(", "));
                ToolOutcome::failed(FailureKind::UnknownTool, text)
            }
        }
    }
}
