//! Renames and copies from one mount to another.

mod journal_writer;
mod rollback;

use std::sync::Arc;

use bytes::Bytes;
use vfs_core::backend::MutationMode;
use vfs_core::operation::UnaryRequest as _;
use vfs_core::state::FilesUpdate;
use vfs_core::transfer::{FileDownloadRequest, TransferTargetMode};
use vfs_core::{
    Backend, CopyRequest, CopyResult, DeleteRequest, Error, ErrorKind, LsRequest, OpContext, RenameRequest,
    RenameResult, ResolveRequest, Result, StatRequest, Version, VfsPath, WriteMode, WriteRequest,
};

use crate::backend::{CompositeBackend, is_overwrite, mount_point_error};
use crate::journal::EntryKind;
use crate::mount_identity::is_within;
use crate::mount_table::MountTable;

/// Name of the temporary file with which an empty directory is created.
const DIRECTORY_MARKER: &str = ".vfs-directory";

/// The content and the version of a file.
#[derive(Debug, Clone)]
pub(crate) struct VersionedContent {
    pub(crate) content: Bytes,
    pub(crate) version: Version,
}

/// The files and directories of a transfer.
struct TransferPlan {
    is_dir: bool,
    /// Whether the target is replaced.
    replaces_target: bool,
    files: Vec<TransferFile>,
    /// Directories without entries.
    empty_dirs: Vec<TransferDirectory>,
}

/// A directory without entries.
struct TransferDirectory {
    from: VfsPath,
    to: VfsPath,
}

/// A file to transfer.
struct TransferFile {
    from: VfsPath,
    to: VfsPath,
    kind: EntryKind,
}

/// The version and the update of a write to the target.
pub(crate) struct WriteReceipt {
    version: Version,
    update: Option<FilesUpdate>,
}

/// A file at the target, with its source and the content that it replaced.
struct CopiedFile {
    from: VfsPath,
    kind: EntryKind,
    /// Whether the source was, or may have been, removed.
    is_source_removed: bool,
    /// The version that was copied.
    source: Version,
    /// Whether a rollback may have written the source again, in another version than `source`.
    is_restored: bool,
    to: VfsPath,
    version: Version,
    before: Option<VersionedContent>,
}

/// The completed part of a transfer.
#[derive(Default)]
struct TransferProgress {
    copied: Vec<CopiedFile>,
    bytes: u64,
    update: Option<FilesUpdate>,
    /// Whether directories of the source were, or may have been, removed.
    has_emptied: bool,
}

impl TransferProgress {
    fn merge(&mut self, update: Option<FilesUpdate>) {
        if let Some(update) = update {
            self.update.get_or_insert_default().extend(update);
        }
    }
}

impl CompositeBackend {
    /// Copies across mounts; a failed copy is rolled back.
    pub(crate) async fn copy_across(
        &self,
        cx: &OpContext,
        table: Arc<MountTable>,
        req: CopyRequest,
    ) -> Result<CopyResult> {
        let composite = self.clone();
        // The id is that of the whole copy. A rollback writes some paths a second time, which the id would refuse.
        let cx = &cx.without_operation_id();
        vfs_search::run_to_completion(cx, |cx| async move { composite.copy_files(&cx, &table, req).await }).await
    }

    /// Moves across mounts; a failed move is rolled back.
    pub(crate) async fn rename_across(
        &self,
        cx: &OpContext,
        table: Arc<MountTable>,
        req: RenameRequest,
    ) -> Result<RenameResult> {
        let composite = self.clone();
        let cx = &cx.without_operation_id();
        vfs_search::run_to_completion(cx, |cx| async move { composite.move_files(&cx, &table, req).await }).await
    }

    async fn copy_files(&self, cx: &OpContext, table: &MountTable, req: CopyRequest) -> Result<CopyResult> {
        let CopyRequest { from, to, mode, .. } = req;
        check_source_and_target(cx, table, &from, &to)?;
        let mut plan = self.plan(cx, &from, &to).await?;
        plan.replaces_target = self.check_target(cx, table, &plan, &to, mode).await?;
        let mut progress = TransferProgress::default();
        if let Err(error) = self.copy_all(cx, &plan, mode, &mut progress).await {
            let error = self.rollback(cx, &to, &plan, progress, None, error).await;
            return Err(error.unwrap_or_else(|error| error));
        }
        let files = progress.copied.len() as u64;
        let mut result = CopyResult::new(from, to, plan.replaces_target, files, progress.bytes);
        result.files_update = progress.update;
        Ok(result)
    }

    async fn move_files(&self, cx: &OpContext, table: &MountTable, req: RenameRequest) -> Result<RenameResult> {
        let RenameRequest { from, to, mode, .. } = req;
        check_source_and_target(cx, table, &from, &to)?;
        if table.is_mount_or_ancestor(&from) {
            return Err(mount_point_error(&from));
        }
        if self.only_returns_changes(&to) && !self.only_returns_changes(&from) {
            let message = "changes at the target are only returned, so the source cannot be deleted yet; copy it, and delete it \
                           after the change is merged";
            return Err(Error::new(ErrorKind::CrossBackend, message).with_path(&to));
        }
        let mut plan = self.plan(cx, &from, &to).await?;
        // A rename replaces a link, but a write here would follow it.
        if self.kind(cx, &to).await? == EntryKind::Link {
            return Err(if is_overwrite(mode) {
                link_at_target(&to)
            } else {
                Error::at(ErrorKind::AlreadyExists, &to)
            });
        }
        plan.replaces_target = self.check_target(cx, table, &plan, &to, mode).await?;
        let mut recorded = self.record(cx, table, &from, &to, &plan, mode).await?;
        let mut progress = TransferProgress::default();
        let result = match self.copy_all(cx, &plan, mode, &mut progress).await {
            Ok(()) => self.remove_sources(cx, &from, &mut progress).await,
            Err(error) => Err(error),
        };
        let outcome = match result {
            Ok(()) => Ok(progress.update),
            // If the rollback is incomplete, the record stays for `recover`.
            Err(error) => Err(self.rollback(cx, &to, &plan, progress, recorded.as_mut(), error).await?),
        };
        if let (Some(journal), Some(recorded)) = (&self.journal, recorded) {
            journal.end(&cx.for_cleanup(), recorded).await.map_err(|source| {
                let state = if outcome.is_err() { "nothing was moved" } else { "the move is complete" };
                let message =
                    format!("{state}, but the record in the journal cannot be removed; the next recovery removes it");
                Error::new(source.kind(), message).with_path(&to).with_source(source)
            })?;
        }
        let mut result = RenameResult::new(from, to, plan.replaces_target);
        result.files_update = outcome?;
        Ok(result)
    }

    /// Returns the files and directories at and below `from`, with their targets below `to`.
    async fn plan(&self, cx: &OpContext, from: &VfsPath, to: &VfsPath) -> Result<TransferPlan> {
        let kind = self.kind(cx, from).await?;
        if !self.stat(cx, StatRequest::new(from.clone())).await?.is_dir {
            let item = TransferFile { from: from.clone(), to: to.clone(), kind };
            return Ok(TransferPlan {
                is_dir: false,
                replaces_target: false,
                files: vec![item],
                empty_dirs: Vec::new(),
            });
        }
        if kind == EntryKind::Link {
            return Err(link_to_directory(from));
        }
        let listed = self.ls(cx, LsRequest::new(from.clone()).recursive()).await?;
        if let Some(problem) = listed.problems.into_iter().next() {
            let message = "an entry of the directory cannot be read, so the directory cannot be transferred";
            return Err(Error::new(problem.code, message).with_path_text(&problem.path));
        }
        if listed.truncated.is_some() {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "the directory is too deep to be listed completely; transfer parts of it separately",
            )
            .with_path(from));
        }
        let mut plan = TransferPlan { is_dir: true, replaces_target: false, files: Vec::new(), empty_dirs: Vec::new() };
        if listed.entries.is_empty() {
            plan.empty_dirs.push(TransferDirectory { from: from.clone(), to: to.clone() });
        }
        for entry in listed.entries {
            let below = entry.path.strip_prefix(from).unwrap_or_default();
            let target = to.join(below).map_err(|error| error.with_path(&entry.path))?;
            let kind = self.kind(cx, &entry.path).await?;
            if !entry.is_dir {
                plan.files.push(TransferFile { from: entry.path, to: target, kind });
                continue;
            }
            if kind == EntryKind::Link {
                return Err(link_to_directory(&entry.path));
            }
            if self.is_empty_directory(cx, &entry.path).await? {
                plan.empty_dirs.push(TransferDirectory { from: entry.path, to: target });
            }
        }
        Ok(plan)
    }

    /// Returns whether there is a link at `path`.
    pub(crate) async fn kind(&self, cx: &OpContext, path: &VfsPath) -> Result<EntryKind> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return Ok(EntryKind::File) };
        if !self.capabilities(path).links {
            return Ok(EntryKind::File);
        }
        let real = self.resolve(cx, ResolveRequest::new(path.clone())).await.map(|resolved| resolved.path);
        if real.as_ref().is_ok_and(|real| real == path) {
            return Ok(EntryKind::File);
        }
        let parent = self.resolve(cx, ResolveRequest::new(parent)).await?.path;
        let real = match real {
            // The parent is in its mount, so the entry is a link that leads out of the mount.
            Err(error) if error.kind() == ErrorKind::PathEscape => return Ok(EntryKind::Link),
            real => real?,
        };
        Ok(if parent.child(name)? == real { EntryKind::File } else { EntryKind::Link })
    }

    /// Returns whether changes at `path` are only returned to the caller, who applies them.
    fn only_returns_changes(&self, path: &VfsPath) -> bool {
        self.capabilities(path).mutations == MutationMode::Returned
    }

    async fn is_empty_directory(&self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        Ok(self.capabilities(path).empty_directories
            && self.ls(cx, LsRequest::new(path.clone()).limit(1)).await?.entries.is_empty())
    }

    /// Returns whether the directory at `path` has entries, including dangling links.
    async fn has_entries(&self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        let listed = self.ls(cx, LsRequest::new(path.clone())).await?;
        Ok(!listed.entries.is_empty() || !listed.problems.is_empty())
    }

    /// Returns whether the target is replaced, or an error if it may not be.
    async fn check_target(
        &self,
        cx: &OpContext,
        table: &MountTable,
        plan: &TransferPlan,
        to: &VfsPath,
        mode: TransferTargetMode,
    ) -> Result<bool> {
        let existing = match self.stat(cx, StatRequest::new(to.clone())).await {
            Ok(existing) => existing,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let refused = |kind| Err(Error::at(kind, to));
        match (plan.is_dir, existing.is_dir) {
            _ if !is_overwrite(mode) => refused(ErrorKind::AlreadyExists),
            (false, true) => refused(ErrorKind::IsADirectory),
            (true, false) => refused(ErrorKind::NotADirectory),
            (true, true) if table.has_mounts_below(to) || self.has_entries(cx, to).await? => {
                refused(ErrorKind::NotEmpty)
            }
            (true, true) if table.is_mount_or_ancestor(to) => Err(mount_point_error(to)),
            _ => Ok(true),
        }
    }

    /// Reads the whole file at `path`.
    pub(crate) async fn fetch(&self, cx: &OpContext, path: &VfsPath) -> Result<VersionedContent> {
        let response = FileDownloadRequest::new(path.clone()).send(self, cx).await?;
        match (response.content, response.version) {
            (Some(content), Some(version)) => Ok(VersionedContent { content, version }),
            _ => Err(Error::new(ErrorKind::Internal, "internal: the backend returned neither a file nor an error")
                .with_path(path)),
        }
    }

    /// Copies every file, and verifies each copy.
    async fn copy_all(
        &self,
        cx: &OpContext,
        plan: &TransferPlan,
        mode: TransferTargetMode,
        progress: &mut TransferProgress,
    ) -> Result<()> {
        for TransferFile { from, to, kind } in &plan.files {
            cx.check()?;
            let source = self.fetch(cx, from).await?;
            let before = match self.fetch(cx, to).await {
                Ok(existing) if is_overwrite(mode) => Some(existing),
                Ok(_) => return Err(Error::already_exists(to)),
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            let copied = |version, before| CopiedFile {
                from: from.clone(),
                kind: *kind,
                is_source_removed: false,
                source: source.version.clone(),
                is_restored: false,
                to: to.clone(),
                version,
                before,
            };
            match self.write_copy(cx, to, &source, before.as_ref()).await {
                Ok(written) => {
                    progress.copied.push(copied(written.version.clone(), before));
                    progress.merge(written.update);
                    progress.bytes += source.content.len() as u64;
                }
                Err(error) => {
                    // The file may have been written, and only the response lost.
                    if error.is_temporary()
                        && let Ok(found) = self.fetch(&cx.for_cleanup(), to).await
                        && found.content == source.content
                        && before.as_ref().is_none_or(|before| before.version != found.version)
                    {
                        progress.copied.push(copied(found.version, before));
                    }
                    return Err(error);
                }
            }
            self.verify_copy(cx, to, &source).await?;
        }
        for directory in &plan.empty_dirs {
            self.make_directory(cx, &directory.to).await?;
        }
        Ok(())
    }

    /// Writes `source` to `to`, on the precondition that `existing` is there.
    pub(crate) async fn write_copy(
        &self,
        cx: &OpContext,
        to: &VfsPath,
        source: &VersionedContent,
        existing: Option<&VersionedContent>,
    ) -> Result<WriteReceipt> {
        let mode = existing.map_or(WriteMode::CreateNew, |existing| WriteMode::IfVersion(existing.version.clone()));
        let written = self.write(cx, WriteRequest::new(to.clone(), source.content.clone()).mode(mode)).await?;
        Ok(WriteReceipt { version: written.version, update: written.files_update })
    }

    /// Reads the copy at `to`, and compares it with `source`.
    pub(crate) async fn verify_copy(&self, cx: &OpContext, to: &VfsPath, source: &VersionedContent) -> Result<()> {
        if self.only_returns_changes(to) {
            return Ok(());
        }
        let found = self.fetch(cx, to).await?;
        if found.content == source.content { Ok(()) } else { Err(Error::conflict(to, Some(found.version))) }
    }

    /// Creates an empty directory, if the backend has such.
    pub(crate) async fn make_directory(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        if !self.capabilities(path).empty_directories {
            return Ok(());
        }
        // No operation creates a directory without a file in it.
        let file = path.child(DIRECTORY_MARKER)?;
        let version = match self.write(cx, WriteRequest::new(file.clone(), "")).await {
            Ok(written) => written.version,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.stale_marker(cx, &file).await?.ok_or(error)?
            }
            Err(error) => return Err(error),
        };
        self.delete(&cx.for_cleanup(), DeleteRequest::new(file).expected_version(version)).await.map(drop)
    }

    /// Removes the marker file that a crash left in the directory `path` during its creation.
    pub(crate) async fn remove_marker(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        let file = path.child(DIRECTORY_MARKER)?;
        match self.stale_marker(cx, &file).await? {
            Some(version) => self.delete(cx, DeleteRequest::new(file).expected_version(version)).await.map(drop),
            None => Ok(()),
        }
    }

    /// Returns the version of the empty marker `file` that a crash left; `None` if it has content.
    async fn stale_marker(&self, cx: &OpContext, file: &VfsPath) -> Result<Option<Version>> {
        let info = self.stat(cx, StatRequest::new(file.clone())).await?;
        Ok(info.version.filter(|_| info.size == 0))
    }

    /// Deletes the sources, each in the version that was copied.
    async fn remove_sources(&self, cx: &OpContext, from: &VfsPath, progress: &mut TransferProgress) -> Result<()> {
        for index in 0..progress.copied.len() {
            let file = &mut progress.copied[index];
            // A link may have been replaced by a file, which was not copied.
            if file.kind == EntryKind::Link && self.kind(cx, &file.from).await? != EntryKind::Link {
                return Err(Error::at(ErrorKind::Conflict, &file.from));
            }
            file.is_source_removed = true;
            let request = file.kind.removal(file.from.clone(), file.source.clone());
            let deleted = self.delete(cx, request).await?;
            progress.merge(deleted.files_update);
        }
        if self.only_returns_changes(from) {
            return Ok(());
        }
        progress.has_emptied = true;
        self.remove_emptied(cx, from).await
    }
}

/// Returns the error of a move from another mount to a link.
pub(crate) fn link_at_target(path: &VfsPath) -> Error {
    let message = "a move from another mount cannot replace a link, only write to its target; delete the link first";
    Error::new(ErrorKind::CrossBackend, message).with_path(path)
}

/// Returns the error of transferring a link to a directory, which has no content of its own.
fn link_to_directory(path: &VfsPath) -> Error {
    let message = "the entry is a link to a directory, which another backend cannot have; transfer the directory that it leads to";
    Error::new(ErrorKind::CrossBackend, message).with_path(path)
}

/// Checks that `from` and `to` are different and do not contain each other.
fn check_source_and_target(cx: &OpContext, table: &MountTable, from: &VfsPath, to: &VfsPath) -> Result<()> {
    let refuse = |message: &'static str, path| Err(Error::invalid_argument(message).with_path(path));
    if from.is_root() || to.is_root() {
        return refuse("the root itself cannot be changed; name something below it", from);
    }
    if from == to {
        return refuse("source and target are the same entry", from);
    }
    if to.starts_with(from) {
        return refuse("the target is inside the source", to);
    }
    if table.is_mount_or_ancestor(from) {
        return Ok(());
    }
    // The same files may be mounted twice, so that one file has two paths.
    let (source, target) = (table.route(from), table.route(to));
    let ends = if Arc::ptr_eq(&source.backend, &target.backend) {
        Some((source.mapping.to_inner(from)?.to_string(), target.mapping.to_inner(to)?.to_string()))
    } else {
        table.location(cx, from)?.zip(table.location(cx, to)?)
    };
    match ends {
        Some((from_inside, to_inside)) if from_inside == to_inside => {
            refuse("source and target are the same file, through two mounts of one backend", from)
        }
        Some((from_inside, to_inside)) if is_within(&to_inside, &from_inside) => {
            refuse("the target is inside the source, through another mount of the same backend", to)
        }
        _ => Ok(()),
    }
}
