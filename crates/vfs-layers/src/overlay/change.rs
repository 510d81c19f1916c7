//! Changing a draft of an overlay.

use std::ops::Bound;

use bytes::{Bytes, BytesMut};
use vfs_core::{
    Backend as _, CopyRequest, CopyResult, DeleteRequest, DeleteResult, DeleteScope, EditMode, EditRequest, EditResult,
    Error, ErrorKind, LsRequest, OpContext, Rebase, Relocate as _, RenameRequest, RenameResult, Result, TransferMode,
    VfsPath, WriteMode, WriteRequest, WriteResult,
};

use super::merged::{Before, Found, Kind, Merged};

impl Merged {
    /// Remembers what the base had at `path` when it was first changed here.
    fn touch(&mut self, path: &VfsPath, found: &Found) {
        if self.touched.contains_key(path) {
            return;
        }
        let before = match found {
            Found::Base(info) => info.version.clone().map_or(Before::Nothing, Before::File),
            Found::Link => Before::Link,
            Found::Nothing | Found::Upper(_) | Found::Directory(_) => Before::Nothing,
        };
        self.touched.insert_mut(path.clone(), before);
    }

    /// Puts `content` at `path`, where `found` is.
    async fn put(&mut self, cx: &OpContext, path: &VfsPath, found: &Found, content: Bytes) -> Result<WriteResult> {
        let budget = self.budget;
        if self.upper.snapshot().total_bytes().saturating_add(content.len() as u64) > budget {
            let message = format!("the overlay may hold {budget} bytes; commit or discard changes, or change less");
            return Err(Error::new(ErrorKind::QuotaExceeded, message).with_path(path));
        }
        self.touch(path, found);
        if matches!(found, Found::Link) {
            self.hide(path);
        }
        let request = WriteRequest::new(path.clone(), content).mode(WriteMode::Overwrite);
        self.upper.write(cx, request).await
    }

    pub(super) async fn write(&mut self, cx: &OpContext, req: WriteRequest) -> Result<WriteResult> {
        let path = self.real(cx, &req.path).await?;
        let found = self.find(cx, &path).await.map_err(|error| error.with_path(&req.path))?;
        if matches!(found, Found::Directory(_)) {
            return Err(Error::at(ErrorKind::IsADirectory, &req.path));
        }
        let is_new = matches!(found, Found::Nothing);
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
            Found::Directory(_) => return Err(Error::at(ErrorKind::IsADirectory, &req.path)),
            Found::Nothing | Found::Link => return Err(Error::not_found(&req.path)),
            Found::Upper(_) | Found::Base(_) => found.version().cloned(),
        };
        if let Some(expected) = req.expected_version.take()
            && version.as_ref() != Some(&expected)
        {
            return Err(Error::conflict(&req.path, version));
        }
        if matches!(found, Found::Base(_)) {
            let content = self.fetch(cx, &path).await.map_err(|error| error.with_path(&req.path))?.content;
            self.put(cx, &path, &found, content).await.map_err(|error| error.with_path(&req.path))?;
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
        result.relocate(&Rebase::new(asked, path))
    }

    pub(super) async fn delete(&mut self, cx: &OpContext, req: DeleteRequest) -> Result<DeleteResult> {
        if req.path.is_root() {
            let message = "the root itself cannot be changed; name something below it";
            return Err(Error::invalid_argument(message).with_path(&req.path));
        }
        let path = self.real_entry(cx, &req.path).await?;
        let found = self.find_entry(cx, &path).await.map_err(|error| error.with_path(&req.path))?;
        match &found {
            Found::Nothing => return Err(Error::not_found(&req.path)),
            found if req.scope == DeleteScope::EmptyDirectory => {
                self.check_empty(cx, &path, found).await.map_err(|error| error.with_path(&req.path))?;
            }
            Found::Link if req.expected_version.is_some() => {
                return Err(Error::invalid_argument("a link has no version to expect").with_path(&req.path));
            }
            Found::Directory(_) if !req.recursive => return Err(Error::at(ErrorKind::IsADirectory, &req.path)),
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
    async fn check_empty(&self, cx: &OpContext, path: &VfsPath, found: &Found) -> Result<()> {
        if !matches!(found, Found::Directory(_)) {
            return Err(Error::at(ErrorKind::NotADirectory, path));
        }
        let listed = self.ls(cx, LsRequest::new(path.clone()).limit(1)).await?;
        let is_empty = listed.entries.is_empty() && listed.problems.is_empty();
        if is_empty { Ok(()) } else { Err(Error::at(ErrorKind::NotEmpty, path)) }
    }

    /// Removes what is at `path`, which is `found`, and says how many files that were.
    async fn remove(&mut self, cx: &OpContext, path: &VfsPath, found: &Found) -> Result<u64> {
        let files = match found {
            Found::Directory(_) => {
                let files = self.files(cx, path).await?;
                for (file, kind) in &files {
                    let found = match kind {
                        Kind::Link => Found::Link,
                        Kind::File => self.find(cx, &file.path).await?,
                    };
                    self.touch(&file.path, &found);
                }
                files.len() as u64
            }
            found => {
                self.touch(path, found);
                1
            }
        };
        match self.upper.delete(cx, DeleteRequest::new(path.clone()).recursive()).await {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(error),
        }
        self.hide(path);
        self.hide_emptied(cx, path).await?;
        Ok(files)
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
    async fn hide_emptied(&mut self, cx: &OpContext, path: &VfsPath) -> Result<()> {
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
                Err(error) if error.kind() == ErrorKind::NotFound => {}
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
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn rename(&mut self, cx: &OpContext, req: RenameRequest) -> Result<RenameResult> {
        let (from, to) = (self.real_entry(cx, &req.from).await?, self.real_entry(cx, &req.to).await?);
        let ends = Ends { from: &from, to: &to, mode: req.mode };
        let (found, replaced, _) =
            self.transfer(cx, &ends).await.map_err(|error| ends.respell(error, &req.from, &req.to))?;
        self.remove(cx, &from, &found).await.map_err(|error| error.with_path(&req.from))?;
        Ok(RenameResult::new(req.from, req.to, replaced))
    }

    pub(super) async fn copy(&mut self, cx: &OpContext, req: CopyRequest) -> Result<CopyResult> {
        let (from, to) = (self.real(cx, &req.from).await?, self.real_entry(cx, &req.to).await?);
        let ends = Ends { from: &from, to: &to, mode: req.mode };
        let transferred = self.transfer(cx, &ends).await;
        let (_, replaced, (files, bytes)) = transferred.map_err(|error| ends.respell(error, &req.from, &req.to))?;
        Ok(CopyResult::new(req.from, req.to, replaced, files, bytes))
    }

    /// Puts what is at one end at the other too. Says what was at the source, whether something was replaced, and how many
    /// files and bytes it was.
    async fn transfer(&mut self, cx: &OpContext, ends: &Ends<'_>) -> Result<(Found, bool, (u64, u64))> {
        let Ends { from, to, mode } = *ends;
        ends.check()?;
        let found = self.find_entry(cx, from).await?;
        let files = match &found {
            Found::Nothing => return Err(Error::not_found(from)),
            Found::Link => return Err(link(from)),
            Found::Directory(_) => {
                let files = self.files(cx, from).await?;
                // What a link to a directory leads to is no part of this one.
                if let Some((entry, _)) = files.iter().find(|(entry, kind)| entry.is_dir && *kind == Kind::Link) {
                    return Err(link(&entry.path));
                }
                files.into_iter().map(|(entry, _)| entry.path).collect()
            }
            _ => vec![from.clone()],
        };
        let replaced = self.check_target(cx, to, matches!(found, Found::Directory(_)), mode).await?;
        if files.is_empty() {
            let message = "the directory is empty, and an overlay keeps only files; nothing can be moved or copied";
            return Err(Error::new(ErrorKind::Unsupported, message).with_path(from));
        }
        let (mut count, mut bytes) = (0, 0);
        for file in files {
            cx.check()?;
            let content = self.fetch(cx, &file).await?.content;
            let target = to.join(file.strip_prefix(from).unwrap_or_default())?;
            let there = self.find_entry(cx, &target).await?;
            count += 1;
            bytes += content.len() as u64;
            self.put(cx, &target, &there, content).await?;
        }
        Ok((found, replaced, (count, bytes)))
    }

    /// Whether something at the target is replaced; refused where it may not be.
    async fn check_target(&self, cx: &OpContext, to: &VfsPath, is_dir: bool, mode: TransferMode) -> Result<bool> {
        let there = self.find_entry(cx, to).await?;
        let kind = match (&there, is_dir) {
            (Found::Nothing, _) => return Ok(false),
            _ if mode != TransferMode::Overwrite => ErrorKind::AlreadyExists,
            (Found::Directory(_), false) => ErrorKind::IsADirectory,
            (Found::Directory(_), true) => {
                if self.ls(cx, LsRequest::new(to.clone()).limit(1)).await?.entries.is_empty() {
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
            (_, Found::Directory(_)) => Err(Error::at(ErrorKind::IsADirectory, path)),
            (Some(content), found) => self.put(cx, path, found, content).await.map(drop),
            (None, Found::Nothing) => Ok(()),
            (None, found) => self.remove(cx, path, found).await.map(drop),
        }
    }
}

impl Merged {
    /// Forgets that `path` was changed here; `false` where that cannot be, because a directory above it was removed.
    pub(super) async fn forget(&mut self, cx: &OpContext, path: &VfsPath) -> Result<bool> {
        let mut without = self.gone.clone();
        without.remove_mut(path);
        let before = std::mem::replace(&mut self.gone, without);
        if self.is_hidden(path) {
            self.gone = before;
            return Ok(false);
        }
        match self.upper.delete(cx, DeleteRequest::new(path.clone())).await {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
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

/// The ends of a rename or copy, without links.
struct Ends<'a> {
    from: &'a VfsPath,
    to: &'a VfsPath,
    mode: TransferMode,
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
        match error.path() {
            Some(path) if path == self.from.as_str() => error.with_path(from),
            Some(path) if path == self.to.as_str() => error.with_path(to),
            _ => error.or_path(from),
        }
    }
}
