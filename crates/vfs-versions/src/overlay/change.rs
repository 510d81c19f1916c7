//! Mutations of a draft of an overlay state.

use std::cmp::Reverse;
use std::ops::Bound;

use bytes::{Bytes, BytesMut};
use vfs_core::{
    Backend as _, CopyRequest, CopyResult, DeleteRequest, DeleteResult, DeleteScope, EditMode, EditRequest, EditResult,
    Error, ErrorKind, LsRequest, MapPaths as _, OpContext, PathMapping, RenameRequest, RenameResult, Result,
    TransferMode, Version, VfsPath, WriteMode, WriteRequest, WriteResult,
};

use super::merged::{Before, Kind, Merged, OverlayEntry};

impl Merged {
    /// Remembers what the base had at `path` when it was first changed here.
    fn touch(&mut self, path: &VfsPath, found: &OverlayEntry) {
        if self.touched.contains_key(path) {
            return;
        }
        let before = match found {
            OverlayEntry::Base(info) => info.version.clone().map_or(Before::Nothing, Before::File),
            OverlayEntry::Link => Before::Link,
            OverlayEntry::Nothing | OverlayEntry::Upper(_) | OverlayEntry::Directory(_) => Before::Nothing,
        };
        self.touched.insert_mut(path.clone(), before);
    }

    /// Puts `content` at `path`, where `found` is.
    ///
    /// In the midst of a change twice as much may be held as after it: what is moved is in two places.
    async fn put(
        &mut self,
        cx: &OpContext,
        path: &VfsPath,
        found: &OverlayEntry,
        content: Bytes,
    ) -> Result<WriteResult> {
        let before = self.held();
        let written = self.place(cx, path, found, content).await?;
        self.check_held(self.budget.saturating_mul(2), before, path)?;
        Ok(written)
    }

    /// As [`put`](Self::put), however much that is.
    async fn place(
        &mut self,
        cx: &OpContext,
        path: &VfsPath,
        found: &OverlayEntry,
        content: Bytes,
    ) -> Result<WriteResult> {
        self.touch(path, found);
        if matches!(found, OverlayEntry::Link) {
            self.hide(path);
        }
        let request = WriteRequest::new(path.clone(), content).mode(WriteMode::Overwrite);
        self.upper.write(cx, request).await
    }

    /// How many bytes of content are held here.
    pub(super) fn held(&self) -> u64 {
        self.upper.snapshot().total_bytes()
    }

    /// Refuses that by a change of `path` more is held than the budget, and than the `before` bytes that were.
    pub(super) fn check_budget(&self, before: u64, path: &VfsPath) -> Result<()> {
        self.check_held(self.budget, before, path)
    }

    fn check_held(&self, most: u64, before: u64, path: &VfsPath) -> Result<()> {
        let held = self.held();
        if held <= most || held <= before {
            return Ok(());
        }
        let budget = self.budget;
        let message = format!("the overlay may hold {budget} bytes; commit or discard changes, or change less");
        Err(Error::new(ErrorKind::QuotaExceeded, message).with_path(path))
    }

    pub(super) async fn write(&mut self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        let path = self.real(cx, &req.path).await?;
        let found = self.find(cx, &path).await.map_err(|error| error.with_path(&req.path))?;
        if matches!(found, OverlayEntry::Directory(_)) {
            return Err(Error::at(ErrorKind::IsADirectory, &req.path));
        }
        let is_new = matches!(found, OverlayEntry::Nothing);
        let mut content = req.content;
        match &req.mode {
            WriteMode::CreateNew if !is_new => return Err(Error::already_exists(&req.path)),
            WriteMode::IfVersion(version) if found.version() != Some(version) => {
                return Err(Error::conflict(&req.path, found.version().cloned()));
            }
            WriteMode::Append if !is_new => {
                let before = self.fetch(cx, &path).await?.content;
                let mut whole = BytesMut::with_capacity(before.len() + content.len());
                whole.extend_from_slice(&before);
                whole.extend_from_slice(&content);
                content = whole.freeze();
            }
            _ => {}
        }
        let written = self.put(cx, &path, &found, content).await.map_err(|error| error.with_path(&req.path))?;
        Ok(WriteResult::new(req.path, is_new, written.version, written.size))
    }

    pub(super) async fn edit(&mut self, cx: &OpContext, mut req: EditRequest) -> Result<EditResult> {
        let path = self.real(cx, &req.path).await?;
        let found = self.find(cx, &path).await.map_err(|error| error.with_path(&req.path))?;
        let version = match &found {
            OverlayEntry::Directory(_) => return Err(Error::at(ErrorKind::IsADirectory, &req.path)),
            OverlayEntry::Nothing | OverlayEntry::Link => return Err(Error::not_found(&req.path)),
            OverlayEntry::Upper(_) | OverlayEntry::Base(_) => found.version().cloned(),
        };
        if let Some(expected) = req.expected_version.take()
            && version.as_ref() != Some(&expected)
        {
            return Err(Error::conflict(&req.path, version));
        }
        if matches!(found, OverlayEntry::Base(_)) {
            let content = self.fetch(cx, &path).await.map_err(|error| error.with_path(&req.path))?.content;
            self.place(cx, &path, &found, content).await.map_err(|error| error.with_path(&req.path))?;
        }
        let (asked, mode) = (req.path.clone(), req.mode);
        req.path = path.clone();
        let mut result = self.upper.edit(cx, req).await.map_err(|error| error.with_path(&asked))?;
        if mode == EditMode::DryRun
            && let Some(version) = version
        {
            result.version = version;
        }
        // The diff names the path that was asked for, too; only a link makes that another one.
        result.map_paths(&PathMapping::new(asked, path))
    }

    pub(super) async fn delete(&mut self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        if req.path.is_root() {
            let message = "the root itself cannot be changed; name something below it";
            return Err(Error::invalid_argument(message).with_path(&req.path));
        }
        let path = self.real_entry(cx, &req.path).await?;
        let found = self.find_entry(cx, &path).await.map_err(|error| error.with_path(&req.path))?;
        match &found {
            OverlayEntry::Nothing => return Err(Error::not_found(&req.path)),
            found if req.scope == DeleteScope::EmptyDirectory => {
                self.check_empty(cx, &path, found).await.map_err(|error| error.with_path(&req.path))?;
            }
            OverlayEntry::Link if req.expected_version.is_some() => {
                return Err(Error::invalid_argument("a link has no version to expect").with_path(&req.path));
            }
            OverlayEntry::Directory(_) if !req.recursive => return Err(Error::at(ErrorKind::IsADirectory, &req.path)),
            found => {
                if let Some(expected) = &req.expected_version
                    && found.version() != Some(expected)
                {
                    return Err(Error::conflict(&req.path, found.version().cloned()));
                }
            }
        }
        let files = self.remove(cx, &path, &found).await.map_err(|error| error.with_path(&req.path))?;
        Ok(DeleteResult::new(req.path, files))
    }

    /// Refuses what is not a directory without anything in it.
    async fn check_empty(&self, cx: &OpContext, path: &VfsPath, found: &OverlayEntry) -> Result<()> {
        if !matches!(found, OverlayEntry::Directory(_)) {
            return Err(Error::at(ErrorKind::NotADirectory, path));
        }
        let listed = self.ls(cx, LsRequest::new(path.clone()).limit(1)).await?;
        let is_empty = listed.entries.is_empty() && listed.problems.is_empty();
        if is_empty { Ok(()) } else { Err(Error::at(ErrorKind::NotEmpty, path)) }
    }

    /// Removes what is at `path`, which is `found`, and says how many files that were.
    async fn remove(&mut self, cx: &OpContext, path: &VfsPath, found: &OverlayEntry) -> Result<u64> {
        let files = match found {
            OverlayEntry::Directory(_) => {
                let files = self.files(cx, path).await?;
                for (file, kind) in &files {
                    let found = match kind {
                        Kind::Link | Kind::FileLink => OverlayEntry::Link,
                        Kind::File => self.find(cx, file).await?,
                    };
                    self.touch(file, &found);
                }
                files.len() as u64
            }
            found => {
                self.touch(path, found);
                1
            }
        };
        self.remove_touched(cx, path).await?;
        Ok(files)
    }

    /// Removes all at and below `path`. What of the base was not touched before stays there.
    async fn remove_touched(&mut self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        match self.upper.delete(cx, DeleteRequest::new(path.clone()).recursive()).await {
            Ok(_) => {}
            Err(error) if error.is_absence() => {}
            Err(error) => return Err(error),
        }
        self.hide(path);
        self.hide_emptied(cx, path).await
    }

    /// Shows nothing of the base at and below `path` any more.
    fn hide(&mut self, path: &VfsPath) {
        // Those below come right after it, but for others that begin alike, such as `/a-b` after `/a`.
        let from = self.gone.range::<str, _>((Bound::Included(path.as_str()), Bound::Unbounded));
        let alike = from.take_while(|other| other.as_str().starts_with(path.as_str()));
        let below: Vec<_> = alike.filter(|other| other.starts_with(path)).cloned().collect();
        for other in below {
            self.gone.remove_mut(&other);
        }
        if !self.is_hidden(path) {
            self.gone.insert_mut(path.clone());
        }
    }

    /// A directory is there as long as there is something in it; those above `path` that have nothing left go too.
    pub(super) async fn hide_emptied(&mut self, cx: &OpContext, path: &VfsPath) -> Result<()> {
        let mut above = path.parent();
        while let Some(directory) = above.filter(|directory| !directory.is_root()) {
            match self.ls(cx, LsRequest::new(directory.clone()).limit(1)).await {
                Ok(listed) if listed.entries.is_empty() && listed.problems.is_empty() => {
                    if self.is_empty_in_base(cx, &directory).await? {
                        break;
                    }
                    self.hide(&directory);
                }
                Ok(_) => break,
                Err(error) if error.is_absence() => {}
                Err(error) => return Err(error),
            }
            above = directory.parent();
        }
        Ok(())
    }

    /// Whether the base has the directory without anything in it, so that it is there for its own sake.
    async fn is_empty_in_base(&self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        match self.base.ls(cx, LsRequest::new(path.clone()).limit(1)).await {
            Ok(listed) => Ok(listed.entries.is_empty() && listed.problems.is_empty()),
            Err(error) if error.is_absence() => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn rename(&mut self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        let (from, to) = (self.real_entry(cx, &req.from).await?, self.real_entry(cx, &req.to).await?);
        let ends = Ends { from: &from, to: &to, mode: req.mode, is_move: true };
        let held = self.held();
        let transferred = self.transfer(cx, &ends).await;
        let moved = transferred.map_err(|error| ends.respell(error, &req.from, &req.to))?;
        for (file, version) in moved.files {
            // What was copied is what goes: a file that the base has since, or another content, stays.
            if !self.touched.contains_key(&file) {
                self.touched.insert_mut(file, Before::File(version));
            }
        }
        self.remove_touched(cx, &from).await.map_err(|error| error.with_path(&req.from))?;
        self.check_budget(held, &req.to)?;
        Ok(RenameResult::new(req.from, req.to, moved.replaced))
    }

    pub(super) async fn copy(&mut self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        let from = self.real(cx, &req.from).await?;
        // As for a write, a link at the target is written through, and never replaced by a directory. What keeps the source
        // from being found, the transfer says in its turn.
        let to = match (req.mode, self.find(cx, &from).await) {
            (TransferMode::Overwrite, Ok(OverlayEntry::Upper(_) | OverlayEntry::Base(_))) => {
                self.real(cx, &req.to).await?
            }
            _ => self.real_entry(cx, &req.to).await?,
        };
        let ends = Ends { from: &from, to: &to, mode: req.mode, is_move: false };
        let held = self.held();
        let transferred = self.transfer(cx, &ends).await;
        let copied = transferred.map_err(|error| ends.respell(error, &req.from, &req.to))?;
        self.check_budget(held, &req.to)?;
        let files = copied.files.len() as u64;
        Ok(CopyResult::new(req.from, req.to, copied.replaced, files, copied.bytes))
    }

    /// Puts what is at one end at the other too. Of a link to a file in a directory, that is what the file holds.
    async fn transfer(&mut self, cx: &OpContext, ends: &Ends<'_>) -> Result<Transferred> {
        let Ends { from, to, mode, is_move } = *ends;
        ends.check()?;
        let found = self.find_entry(cx, from).await?;
        let files = match &found {
            OverlayEntry::Nothing => return Err(Error::not_found(from)),
            OverlayEntry::Link => return Err(link(from)),
            OverlayEntry::Directory(_) => self.files(cx, from).await?,
            _ => vec![(from.clone(), Kind::File)],
        };
        // What any other link leads to is no part of this directory.
        let is_refused = |kind: Kind| kind == Kind::Link || (is_move && kind == Kind::FileLink);
        if let Some((at, _)) = files.iter().find(|(_, kind)| is_refused(*kind)) {
            return Err(link(at));
        }
        let replaced = self.check_target(cx, to, matches!(found, OverlayEntry::Directory(_)), mode).await?;
        if files.is_empty() {
            let message = "the directory is empty, and an overlay keeps only files; nothing can be moved or copied";
            return Err(Error::new(ErrorKind::Unsupported, message).with_path(from));
        }
        let mut transferred = Transferred { replaced, files: Vec::new(), bytes: 0 };
        for (file, kind) in files {
            cx.check()?;
            let source = if kind == Kind::FileLink { self.real(cx, &file).await? } else { file.clone() };
            let whole = self.fetch(cx, &source).await?;
            let target = to.join(file.strip_prefix(from).unwrap_or_default())?;
            let there = self.find_entry(cx, &target).await?;
            transferred.bytes += whole.content.len() as u64;
            self.put(cx, &target, &there, whole.content).await?;
            transferred.files.push((file, whole.version));
        }
        Ok(transferred)
    }

    /// Whether something at the target is replaced; refused where it may not be.
    async fn check_target(&self, cx: &OpContext, to: &VfsPath, is_dir: bool, mode: TransferMode) -> Result<bool> {
        let there = self.find_entry(cx, to).await?;
        let kind = match (&there, is_dir) {
            (OverlayEntry::Nothing, _) => return Ok(false),
            _ if mode != TransferMode::Overwrite => ErrorKind::AlreadyExists,
            (OverlayEntry::Directory(_), false) => ErrorKind::IsADirectory,
            (OverlayEntry::Directory(_), true) => {
                let listed = self.ls(cx, LsRequest::new(to.clone()).limit(1)).await?;
                // A link that leads nowhere is listed as a problem, and makes the directory not empty.
                if listed.entries.is_empty() && listed.problems.is_empty() {
                    return Ok(true);
                }
                ErrorKind::NotEmpty
            }
            (_, true) => ErrorKind::NotADirectory,
            (_, false) => return Ok(true),
        };
        Err(Error::at(kind, to))
    }

    /// Makes the file at `path` what `content` is, whatever is there: its content, or nothing.
    pub(super) async fn set(&mut self, cx: &OpContext, path: &VfsPath, content: Option<Bytes>) -> Result<()> {
        let found = self.find_entry(cx, path).await?;
        match (content, &found) {
            (_, OverlayEntry::Directory(_)) => Err(Error::at(ErrorKind::IsADirectory, path)),
            (Some(content), found) => self.put(cx, path, found, content).await.map(drop),
            (None, OverlayEntry::Nothing) => Ok(()),
            (None, found) => self.remove(cx, path, found).await.map(drop),
        }
    }
}

impl Merged {
    /// Forgets the change of `path`. Returns `false` without effect if a directory above it was removed, if a directory replaced
    /// it, or if it was a link and there are changes below it, which the link would hide.
    pub(super) async fn forget(&mut self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        let is_below = |other: &VfsPath| other != path && other.starts_with(path);
        if self.touched.get(path) == Some(&Before::Link) && self.touched.keys().any(is_below) {
            return Ok(false);
        }
        let mut without = self.gone.clone();
        without.remove_mut(path);
        let before = std::mem::replace(&mut self.gone, without);
        if self.is_hidden(path) {
            self.gone = before;
            return Ok(false);
        }
        match self.upper.delete(cx, DeleteRequest::new(path.clone())).await {
            Ok(_) => {}
            Err(error) if error.is_absence() => {}
            Err(error) if error.kind() == ErrorKind::IsADirectory => {
                self.gone = before;
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        self.touched.remove_mut(path);
        Ok(true)
    }
}

/// Refuses to move what only the base can have.
fn link(path: &VfsPath) -> Error {
    let message = "it is a link, which an overlay cannot move; move or copy what it leads to, or delete it";
    Error::new(ErrorKind::Unsupported, message).with_path(path)
}

/// What was put at the other end of a rename or copy.
struct Transferred {
    /// Whether something was there.
    replaced: bool,
    /// Where the files are from, each with the version that it was taken in.
    files: Vec<(VfsPath, Version)>,
    bytes: u64,
}

/// The ends of a rename or copy, without links.
struct Ends<'a> {
    from: &'a VfsPath,
    to: &'a VfsPath,
    mode: TransferMode,
    is_move: bool,
}

impl Ends<'_> {
    fn check(&self) -> Result<()> {
        let refuse = |message: &'static str, path: &VfsPath| Err(Error::invalid_argument(message).with_path(path));
        if self.from.is_root() || self.to.is_root() {
            return refuse("the root itself can be neither end; name something below it", self.from);
        }
        if self.from == self.to {
            return refuse("both ends are the same", self.from);
        }
        if self.to.starts_with(self.from) {
            return refuse("the target lies inside the source", self.to);
        }
        Ok(())
    }

    /// `error` with the ends as the caller named them.
    fn respell(&self, error: Error, from: &VfsPath, to: &VfsPath) -> Error {
        let mut ends = [(from, self.from), (to, self.to)];
        // One may lie in the other.
        ends.sort_by_key(|(_, real)| Reverse(real.as_str().len()));
        let path = error.path().and_then(|path| VfsPath::parse(path).ok());
        match ends.into_iter().find(|(_, real)| path.as_ref().is_some_and(|path| path.starts_with(real))) {
            Some((asked, real)) => PathMapping::new(asked.clone(), real.clone()).error(error),
            None => error.or_path(from),
        }
    }
}
