//! Shared state of the tools of a set: files, session, and limits of results.

use std::sync::Arc;

use vfs_composite::CompositeBackend;
use vfs_core::backend::MutationMode;
use vfs_core::{Backend, Error, ErrorKind, Layer as _, OpContext, Result, VfsPath};
use vfs_layers::ReadOnly;

use crate::large_text::{LargeText, LargeTextSource, cut, is_longer, start_and_end};
use crate::outcome::{MAX_ERROR_CHARACTERS, Part, ToolOutcome};
use crate::result_store::ResultStore;
use crate::session::Session;

/// Maximum size in bytes of the end of a text of which the middle is cut.
const MAX_END_BYTES: usize = 1_000;

/// Maximum number of characters of the reason why a text is not stored.
const MAX_REASON_CHARACTERS: usize = 600;

/// Shared state of the tools of a set.
#[derive(Debug, Clone)]
pub(crate) struct ToolSetState {
    format: LongTextFormat,
    pub(crate) files: Arc<dyn Backend>,
    pub(crate) session: Arc<Session>,
    pub(crate) working_directory: VfsPath,
    pub(crate) reads_before_edits: bool,
    pub(crate) max_characters: usize,
    pub(crate) max_turn_characters: usize,
    stored_results: Option<MountedResultStore>,
}

/// The form in which a profile shows a text that is too long.
#[derive(Debug, Clone)]
pub(crate) struct LongTextFormat {
    /// The number of characters over which a text is too long: of 10,000 tokens, or 20,000 in the profiles of other systems.
    pub(crate) max_characters: usize,
    /// The directory of stored texts.
    pub(crate) directory: VfsPath,
    /// The extension of their names.
    pub(crate) extension: &'static str,
    /// Returns the text that replaces a long one.
    pub(crate) placeholder: fn(&LargeText<'_>) -> String,
}

/// The store of large results, and the files with its directory mounted.
#[derive(Debug, Clone)]
struct MountedResultStore {
    store: ResultStore,
    mounted: Arc<dyn Backend>,
}

impl ToolSetState {
    pub(crate) fn new(files: Arc<dyn Backend>, max_characters: usize, format: LongTextFormat) -> Self {
        Self {
            format,
            files,
            session: Arc::default(),
            working_directory: VfsPath::root(),
            reads_before_edits: false,
            max_characters,
            max_turn_characters: usize::MAX,
            stored_results: None,
        }
    }

    /// Returns the setup over other files.
    pub(crate) fn with_files(&self, files: Arc<dyn Backend>) -> Result<Self> {
        let setup = Self { files, stored_results: None, ..self.clone() };
        let setup = match &self.stored_results {
            Some(results) => setup.with_store(results.store.clone())?,
            None => setup,
        };
        setup.session.forget_jobs();
        Ok(setup)
    }

    /// Returns the setup with large results in `store`.
    pub(crate) fn with_store(&self, store: ResultStore) -> Result<Self> {
        if store.backend().capabilities(&VfsPath::root()).mutations == MutationMode::Returned {
            let words = "storing results failed: the backend only returns its changes; use one that makes them";
            return Err(Error::new(ErrorKind::Unsupported, words));
        }
        let mounted = CompositeBackend::new(Arc::clone(&self.files));
        mounted.mount(self.format.directory.clone(), ReadOnly.layer(Arc::clone(store.backend())))?;
        Ok(Self { stored_results: Some(MountedResultStore { store, mounted: Arc::new(mounted) }), ..self.clone() })
    }

    /// Returns the number of characters over which the output of a command or a result of another tool is too long.
    pub(crate) fn max_long_characters(&self) -> usize {
        self.format.max_characters
    }

    pub(crate) fn stores_results(&self) -> bool {
        self.stored_results.is_some()
    }

    /// Returns the backend for a call with these paths and patterns below them: the files, which see stored results only in a call that
    /// names their directory.
    pub(crate) fn backend_for<'a>(&self, paths: &[VfsPath], globs: impl IntoIterator<Item = &'a str>) -> &dyn Backend {
        let directory = &self.format.directory;
        let begins_with_directory = |glob: &str| {
            let glob = glob.strip_prefix("./").or(glob.strip_prefix('/')).unwrap_or(glob);
            glob.strip_prefix(directory.relative()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_named = || {
            paths.iter().any(|path| path.starts_with(directory))
                || paths.iter().any(VfsPath::is_root) && globs.into_iter().any(begins_with_directory)
        };
        match &self.stored_results {
            Some(results) if is_named() => &*results.mounted,
            _ => &*self.files,
        }
    }

    /// Returns the maximum number of characters of each of the results of `calls` calls.
    pub(crate) fn max_characters_of_each(&self, calls: usize) -> usize {
        self.max_characters.min(self.max_turn_characters / calls.max(1)).max(MAX_ERROR_CHARACTERS)
    }

    /// Stores `text`, and returns the path by which the model reads it; `None` if there is no store.
    pub(crate) async fn store(
        &self,
        cx: &OpContext,
        source: LargeTextSource<'_>,
        text: &str,
    ) -> Option<Result<VfsPath>> {
        let store = &self.stored_results.as_ref()?.store;
        let id = source.id().unwrap_or(source.noun());
        let stored = store.store(cx, id, self.format.extension, text).await;
        Some(stored.and_then(|path| self.format.directory.join(path.relative())))
    }

    /// Replaces a text of over `max` characters by a placeholder, and stores the text if there is a store.
    pub(crate) async fn replace_long_text(
        &self,
        cx: &OpContext,
        source: LargeTextSource<'_>,
        max: usize,
        outcome: ToolOutcome,
    ) -> ToolOutcome {
        let Some(Part::Text(text)) = outcome.parts.first() else { return outcome };
        if !is_longer(text, max) {
            return outcome;
        }
        let (mut shown, artifact) = match self.store(cx, source, text).await {
            Some(Ok(path)) => ((self.format.placeholder)(&LargeText { source, text, path: &path }), Some(path)),
            Some(Err(error)) => (without_middle(text, max, &error.for_model()), None),
            None => (without_middle(text, max, "too long to be shown"), None),
        };
        cut(&mut shown, max, "…");
        let mut outcome = ToolOutcome { is_truncated: true, artifact, ..outcome };
        outcome.parts[0] = Part::Text(shown);
        outcome
    }
}

/// Cuts the end of the text of a result that can be had in smaller parts.
pub(crate) fn cut_end(outcome: &mut ToolOutcome, max: usize) {
    const NOTE: &str = "\n[cut: the rest exceeds the length of a result; call again for less at once]";
    if let Some(Part::Text(text)) = outcome.parts.first_mut()
        && is_longer(text, max)
    {
        cut(text, max.saturating_sub(NOTE.len()), "");
        // Half a line could pass for a whole one.
        let end = text.rfind('\n').filter(|at| *at >= text.len() / 2).unwrap_or(text.len());
        text.truncate(end);
        text.push_str(NOTE);
        outcome.is_truncated = true;
    }
}

/// Cuts the middle of the text of a command.
pub(crate) fn cut_middle(outcome: &mut ToolOutcome, max: usize) {
    if let Some(Part::Text(text)) = outcome.parts.first_mut()
        && is_longer(text, max)
    {
        *text = without_middle(text, max, "too long to be shown");
        cut(text, max, "…");
        outcome.is_truncated = true;
    }
}

/// Returns the start and the end of `text` in about `max` characters, with the reason between them.
fn without_middle(text: &str, max: usize, reason: &str) -> String {
    let reason: String = reason.chars().take(MAX_REASON_CHARACTERS).collect();
    let max = max.saturating_sub(reason.chars().count() + 60);
    let end = MAX_END_BYTES.min(max / 4);
    let (start, end) = start_and_end(text, max.saturating_sub(end), end);
    let left_out = text.len() - start.len() - end.len();
    format!("{start}\n[... {left_out} bytes left out: {reason}]\n{end}")
}
