//! Renames and copies from one mount to another.

mod record;
mod take_back;

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use vfs_core::{
    Backend, CopyRequest, CopyResult, DeleteRequest, DownloadRequest, Error, ErrorKind, FilesUpdate, LsRequest,
    Mutations, OpContext, RenameRequest, RenameResult, ResolveRequest, Result, StatRequest, TransferMode,
    UnaryRequest as _, Version, VfsPath, WriteMode, WriteRequest,
};

use crate::backend::{CompositeBackend, mounted, replaces};
use crate::identity::is_within;
use crate::table::MountTable;

/// The name of the file with which a directory is made that has nothing in it.
const DIRECTORY_MARKER: &str = ".vfs-directory";

/// A whole file, as it was read or written.
#[derive(Debug, Clone)]
pub(crate) struct Copied {
    pub(crate) content: Bytes,
    pub(crate) version: Version,
}

/// What is to be transferred.
struct Inventory {
    is_dir: bool,
    /// Whether something at the target is replaced.
    replaced: bool,
    files: Vec<Item>,
    /// Directories without anything in them.
    empty: Vec<EmptyDirectory>,
}

/// A directory without anything in it.
struct EmptyDirectory {
    from: VfsPath,
    to: VfsPath,
}

/// One file that is to be transferred.
struct Item {
    from: VfsPath,
    to: VfsPath,
    kind: Kind,
}

/// What stands at the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    File,
    /// A link to a file. It becomes what it leads to, and is removed as a link, which has no version.
    Link,
}

impl Kind {
    /// The request to remove what was copied in the version `version`.
    pub(crate) fn removal(self, path: VfsPath, version: Version) -> DeleteRequest {
        match self {
            Kind::File => DeleteRequest::new(path).expected_version(version),
            Kind::Link => DeleteRequest::new(path),
        }
    }
}

/// A file that was written to the target.
pub(crate) struct Written {
    version: Version,
    update: Option<FilesUpdate>,
}

/// One file at the target, where it came from, and what was there before.
struct Placed {
    from: VfsPath,
    kind: Kind,
    /// Whether the source was, or may have been, removed.
    is_taken: bool,
    /// The version that was copied.
    source: Version,
    /// Whether a rollback may have written the source again, in another version than `source`.
    is_restored: bool,
    to: VfsPath,
    version: Version,
    before: Option<Copied>,
}

/// What was done so far.
#[derive(Default)]
struct Progress {
    placed: Vec<Placed>,
    bytes: u64,
    update: Option<FilesUpdate>,
    /// Whether directories of the source were, or may have been, removed.
    has_emptied: bool,
}

impl Progress {
    fn merge(&mut self, update: Option<FilesUpdate>) {
        if let Some(update) = update {
            self.update.get_or_insert_default().extend(update);
        }
    }
}

impl CompositeBackend {
    /// Copies across mounts; of what fails nothing is left.
    pub(crate) async fn copy_across(
        &self,
        cx: &OpContext,
        table: Arc<MountTable>,
        req: CopyRequest,
    ) -> Result<CopyResult> {
        let this = self.clone();
        vfs_search::run_to_completion(cx, |cx| async move { this.copy_files(&cx, &table, req).await }).await
    }

    /// Moves across mounts; of what fails nothing is left.
    pub(crate) async fn rename_across(
        &self,
        cx: &OpContext,
        table: Arc<MountTable>,
        req: RenameRequest,
    ) -> Result<RenameResult> {
        let this = self.clone();
        vfs_search::run_to_completion(cx, |cx| async move { this.move_files(&cx, &table, req).await }).await
    }

    async fn copy_files(&self, cx: &OpContext, table: &MountTable, req: CopyRequest) -> Result<CopyResult> {
        let CopyRequest { from, to, mode, .. } = req;
        check_source_and_target(cx, table, &from, &to)?;
        let mut inventory = self.inventory(cx, &from, &to).await?;
        inventory.replaced = self.check_target(cx, table, &inventory, &to, mode).await?;
        let mut progress = Progress::default();
        if let Err(error) = self.place_all(cx, &inventory, mode, &mut progress).await {
            let undone = self.put_back(cx, &to, &inventory, progress, None, error).await;
            return Err(undone.unwrap_or_else(|error| error));
        }
        let files = progress.placed.len() as u64;
        let mut result = CopyResult::new(from, to, inventory.replaced, files, progress.bytes);
        result.files_update = progress.update;
        Ok(result)
    }

    async fn move_files(&self, cx: &OpContext, table: &MountTable, req: RenameRequest) -> Result<RenameResult> {
        let RenameRequest { from, to, mode, .. } = req;
        check_source_and_target(cx, table, &from, &to)?;
        if table.holds(&from) {
            return Err(mounted(&from));
        }
        if self.returns(&to) && !self.returns(&from) {
            let message = "the target only says what is to be changed, so the source cannot go yet; copy it, and delete it \
                           once the change is merged";
            return Err(Error::new(ErrorKind::CrossBackend, message).with_path(&to));
        }
        let mut inventory = self.inventory(cx, &from, &to).await?;
        // A rename replaces a link, and what is written here would go to what it leads to.
        if self.kind(cx, &to).await? == Kind::Link {
            return Err(if replaces(mode) { link_at_target(&to) } else { Error::at(ErrorKind::AlreadyExists, &to) });
        }
        inventory.replaced = self.check_target(cx, table, &inventory, &to, mode).await?;
        let mut recorded = self.record(cx, table, &from, &to, &inventory, mode).await?;
        let mut progress = Progress::default();
        let moved = match self.place_all(cx, &inventory, mode, &mut progress).await {
            Ok(()) => self.take_sources(cx, &from, &mut progress).await,
            Err(error) => Err(error),
        };
        let outcome = match moved {
            Ok(()) => Ok(progress.update),
            // If not all could be put back, the record stays for `recover`.
            Err(error) => Err(self.put_back(cx, &to, &inventory, progress, recorded.as_mut(), error).await?),
        };
        if let (Some(journal), Some(recorded)) = (&self.journal, recorded) {
            journal.end(&cx.for_cleanup(), recorded).await.map_err(|source| {
                let done = if outcome.is_err() { "it was not moved" } else { "it was moved" };
                let message =
                    format!("{done}, but its record in the journal cannot be removed; the next recovery removes it");
                Error::new(source.kind(), message).with_path(&to).with_source(source)
            })?;
        }
        let mut result = RenameResult::new(from, to, inventory.replaced);
        result.files_update = outcome?;
        Ok(result)
    }

    /// What is at and below `from`, for `to`.
    async fn inventory(&self, cx: &OpContext, from: &VfsPath, to: &VfsPath) -> Result<Inventory> {
        let kind = self.kind(cx, from).await?;
        if !self.stat(cx, StatRequest::new(from.clone())).await?.is_dir {
            let item = Item { from: from.clone(), to: to.clone(), kind };
            return Ok(Inventory { is_dir: false, replaced: false, files: vec![item], empty: Vec::new() });
        }
        if kind == Kind::Link {
            return Err(link_to_directory(from));
        }
        let listed = self.ls(cx, LsRequest::new(from.clone()).recursive()).await?;
        if let Some(problem) = listed.problems.into_iter().next() {
            let message = "something in it cannot be read, so it cannot be transferred whole";
            return Err(Error::new(problem.code, message).with_path_text(&problem.path));
        }
        if listed.truncated.is_some() {
            return Err(Error::new(ErrorKind::TooLarge, "it goes too deep to be listed whole").with_path(from));
        }
        let mut inventory = Inventory { is_dir: true, replaced: false, files: Vec::new(), empty: Vec::new() };
        if listed.entries.is_empty() {
            inventory.empty.push(EmptyDirectory { from: from.clone(), to: to.clone() });
        }
        for entry in listed.entries {
            let below = entry.path.strip_prefix(from).unwrap_or_default();
            let target = to.join(below).map_err(|error| error.with_path(&entry.path))?;
            let kind = self.kind(cx, &entry.path).await?;
            if !entry.is_dir {
                inventory.files.push(Item { from: entry.path, to: target, kind });
                continue;
            }
            if kind == Kind::Link {
                return Err(link_to_directory(&entry.path));
            }
            if self.is_empty_directory(cx, &entry.path).await? {
                inventory.empty.push(EmptyDirectory { from: entry.path, to: target });
            }
        }
        Ok(inventory)
    }

    /// Whether there is a link at `path`.
    pub(crate) async fn kind(&self, cx: &OpContext, path: &VfsPath) -> Result<Kind> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return Ok(Kind::File) };
        if !self.capabilities(path).links {
            return Ok(Kind::File);
        }
        let real = self.resolve(cx, ResolveRequest::new(path.clone())).await.map(|resolved| resolved.path);
        if real.as_ref().is_ok_and(|real| real == path) {
            return Ok(Kind::File);
        }
        let parent = self.resolve(cx, ResolveRequest::new(parent)).await?.path;
        let real = match real {
            // The directory is within its mount, so the name is a link that leads out of it.
            Err(error) if error.kind() == ErrorKind::PathEscape => return Ok(Kind::Link),
            real => real?,
        };
        Ok(if parent.child(name)? == real { Kind::File } else { Kind::Link })
    }

    /// Whether changes at `path` are only returned to the caller, who makes them.
    fn returns(&self, path: &VfsPath) -> bool {
        self.capabilities(path).mutations == Mutations::Returned
    }

    async fn is_empty_directory(&self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        Ok(self.capabilities(path).empty_directories
            && self.ls(cx, LsRequest::new(path.clone()).limit(1)).await?.entries.is_empty())
    }

    /// Whether anything is in the directory at `path`, be it a link that leads nowhere.
    async fn has_entries(&self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        let listed = self.ls(cx, LsRequest::new(path.clone())).await?;
        Ok(!listed.entries.is_empty() || !listed.problems.is_empty())
    }

    /// Whether something at the target is replaced; refused where it may not be.
    async fn check_target(
        &self,
        cx: &OpContext,
        table: &MountTable,
        inventory: &Inventory,
        to: &VfsPath,
        mode: TransferMode,
    ) -> Result<bool> {
        let there = match self.stat(cx, StatRequest::new(to.clone())).await {
            Ok(there) => there,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let refused = |kind| Err(Error::at(kind, to));
        match (inventory.is_dir, there.is_dir) {
            _ if !replaces(mode) => refused(ErrorKind::AlreadyExists),
            (false, true) => refused(ErrorKind::IsADirectory),
            (true, false) => refused(ErrorKind::NotADirectory),
            (true, true) if table.holds_below(to) || self.has_entries(cx, to).await? => refused(ErrorKind::NotEmpty),
            (true, true) if table.holds(to) => Err(mounted(to)),
            _ => Ok(true),
        }
    }

    /// Reads the whole file at `path`.
    pub(crate) async fn fetch(&self, cx: &OpContext, path: &VfsPath) -> Result<Copied> {
        let answer = DownloadRequest::new(path.clone()).send(self, cx).await?;
        match (answer.content, answer.version) {
            (Some(content), Some(version)) => Ok(Copied { content, version }),
            _ => Err(Error::new(ErrorKind::Internal, "the backend gave neither file nor error").with_path(path)),
        }
    }

    /// Copies every file, and compares each with its source.
    async fn place_all(
        &self,
        cx: &OpContext,
        inventory: &Inventory,
        mode: TransferMode,
        progress: &mut Progress,
    ) -> Result<()> {
        for Item { from, to, kind } in &inventory.files {
            cx.check()?;
            let source = self.fetch(cx, from).await?;
            let before = match self.fetch(cx, to).await {
                Ok(there) if replaces(mode) => Some(there),
                Ok(_) => return Err(Error::already_exists(to)),
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            let placed = |version, before| Placed {
                from: from.clone(),
                kind: *kind,
                is_taken: false,
                source: source.version.clone(),
                is_restored: false,
                to: to.clone(),
                version,
                before,
            };
            match self.put(cx, to, &source, before.as_ref()).await {
                Ok(written) => {
                    progress.placed.push(placed(written.version.clone(), before));
                    progress.merge(written.update);
                    progress.bytes += source.content.len() as u64;
                }
                Err(error) => {
                    // It may have been written all the same, with only the answer lost.
                    if error.is_temporary()
                        && let Ok(found) = self.fetch(&cx.for_cleanup(), to).await
                        && found.content == source.content
                        && before.as_ref().is_none_or(|before| before.version != found.version)
                    {
                        progress.placed.push(placed(found.version, before));
                    }
                    return Err(error);
                }
            }
            self.compare(cx, to, &source).await?;
        }
        for directory in &inventory.empty {
            self.make_directory(cx, &directory.to).await?;
        }
        Ok(())
    }

    /// Writes `source` to `to`, where `there` is what was there.
    pub(crate) async fn put(
        &self,
        cx: &OpContext,
        to: &VfsPath,
        source: &Copied,
        there: Option<&Copied>,
    ) -> Result<Written> {
        let mode = there.map_or(WriteMode::CreateNew, |there| WriteMode::IfVersion(there.version.clone()));
        let written = self.write(cx, WriteRequest::new(to.clone(), source.content.clone()).mode(mode)).await?;
        Ok(Written { version: written.version, update: written.files_update })
    }

    /// Reads what was written to `to`, and compares it with its source.
    pub(crate) async fn compare(&self, cx: &OpContext, to: &VfsPath, source: &Copied) -> Result<()> {
        if self.returns(to) {
            return Ok(());
        }
        let found = self.fetch(cx, to).await?;
        if found.content == source.content { Ok(()) } else { Err(Error::conflict(to, Some(found.version))) }
    }

    /// Makes a directory without anything in it, where there can be one.
    pub(crate) async fn make_directory(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        if !self.capabilities(path).empty_directories {
            return Ok(());
        }
        // No operation makes a directory but for a file in it.
        let file = path.child(DIRECTORY_MARKER)?;
        let version = match self.write(cx, WriteRequest::new(file.clone(), "")).await {
            Ok(written) => written.version,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.left_marker(cx, &file).await?.ok_or(error)?
            }
            Err(error) => return Err(error),
        };
        self.delete(&cx.for_cleanup(), DeleteRequest::new(file).expected_version(version)).await.map(drop)
    }

    /// Removes the file that a crash left in the directory `path` while that was made.
    pub(crate) async fn remove_marker(&self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        let file = path.child(DIRECTORY_MARKER)?;
        match self.left_marker(cx, &file).await? {
            Some(version) => self.delete(cx, DeleteRequest::new(file).expected_version(version)).await.map(drop),
            None => Ok(()),
        }
    }

    /// The version of an empty `file` that a crash left while a directory was made; `None` if it has any content.
    async fn left_marker(&self, cx: &OpContext, file: &VfsPath) -> Result<Option<Version>> {
        let info = self.stat(cx, StatRequest::new(file.clone())).await?;
        Ok(info.version.filter(|_| info.size == 0))
    }

    /// Deletes the sources, each on the version that was copied.
    async fn take_sources(&self, cx: &OpContext, from: &VfsPath, progress: &mut Progress) -> Result<()> {
        for index in 0..progress.placed.len() {
            let file = &mut progress.placed[index];
            // What was a link may be a file by now, which nobody copied.
            if file.kind == Kind::Link && self.kind(cx, &file.from).await? != Kind::Link {
                return Err(Error::at(ErrorKind::Conflict, &file.from));
            }
            file.is_taken = true;
            let request = file.kind.removal(file.from.clone(), file.source.clone());
            let deleted = self.delete(cx, request).await?;
            progress.merge(deleted.files_update);
        }
        if self.returns(from) {
            return Ok(());
        }
        progress.has_emptied = true;
        self.remove_emptied(cx, from).await
    }
}

/// Refuses to move what comes from another mount onto a link.
pub(crate) fn link_at_target(path: &VfsPath) -> Error {
    let message = "a move from another mount cannot replace a link, only write to its target; delete the link first";
    Error::new(ErrorKind::CrossBackend, message).with_path(path)
}

/// Refuses a link to a directory: it has nothing of its own that could be transferred.
fn link_to_directory(path: &VfsPath) -> Error {
    let message = "it is a link to a directory, which another backend cannot have; transfer what it leads to";
    Error::new(ErrorKind::CrossBackend, message).with_path(path)
}

/// Refuses what cannot be transferred wherever the ends are.
fn check_source_and_target(cx: &OpContext, table: &MountTable, from: &VfsPath, to: &VfsPath) -> Result<()> {
    let refuse = |message: &'static str, path| Err(Error::invalid_argument(message).with_path(path));
    if from.is_root() || to.is_root() {
        return refuse("the root itself can be neither end; name something below it", from);
    }
    if from == to {
        return refuse("both ends are the same", from);
    }
    if to.starts_with(from) {
        return refuse("the target lies inside the source", to);
    }
    if table.holds(from) {
        return Ok(());
    }
    // The same files may be mounted twice, and then a path has two names.
    let (source, target) = (table.route(from), table.route(to));
    let ends = if Arc::ptr_eq(&source.backend, &target.backend) {
        Some((source.rebase.to_inner(from)?.to_string(), target.rebase.to_inner(to)?.to_string()))
    } else {
        table.location(cx, from)?.zip(table.location(cx, to)?)
    };
    match ends {
        Some((from_inside, to_inside)) if from_inside == to_inside => {
            refuse("both ends are the same file, by two mounts of one backend", from)
        }
        Some((from_inside, to_inside)) if is_within(&to_inside, &from_inside) => {
            refuse("the target lies inside the source, by another mount of the same backend", to)
        }
        _ => Ok(()),
    }
}
