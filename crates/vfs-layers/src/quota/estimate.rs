//! What a change will come to.

use vfs_core::{
    Backend, EditRequest, Error, ErrorKind, FileInfo, LsRequest, OpContext, OutputRef, RequestRef, Result, StatRequest,
    TransferMode, VfsPath, WriteMode, WriteRequest,
};

use super::ledger::Amount;

/// What there is before a change at the places that it is about to change, and what there will be.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Forecast {
    before: Amount,
    after: Amount,
    /// The largest of the files that are made or grow.
    pub(super) largest: u64,
}

impl Forecast {
    /// Looks at what is there. A change that the backend will refuse comes to nothing here: its own words are better.
    pub(super) async fn of(inner: &dyn Backend, cx: &OpContext, action: RequestRef<'_>) -> Result<Self> {
        match action {
            RequestRef::Write(write) => {
                let there = at(inner, cx, &write.path).await?;
                Ok(one_file(there.as_ref(), size_after(write, there.as_ref())))
            }
            RequestRef::CommitWriter(commit) => {
                let there = at(inner, cx, &commit.path).await?;
                Ok(one_file(there.as_ref(), Some(commit.size)))
            }
            RequestRef::Upload(upload) => {
                let there = at(inner, cx, &upload.path).await?;
                Ok(one_file(there.as_ref(), Some(upload.content.len() as u64)))
            }
            RequestRef::Edit(edit) => {
                let there = at(inner, cx, &edit.path).await?;
                let tried = inner.edit(cx, EditRequest::clone(edit).dry_run()).await?;
                Ok(one_file(there.as_ref(), Some(tried.size)))
            }
            RequestRef::Delete(delete) if delete.recursive => {
                Ok(Self { before: measure(inner, cx, &delete.path).await?.0, ..Self::default() })
            }
            RequestRef::Delete(delete) => {
                let there = at(inner, cx, &delete.path).await?;
                Ok(Self { before: file_amount(there.as_ref()), ..Self::default() })
            }
            RequestRef::Rename(rename) if rename.mode == TransferMode::Overwrite => {
                let there = at(inner, cx, &rename.to).await?;
                Ok(Self { before: file_amount(there.as_ref()), ..Self::default() })
            }
            RequestRef::Copy(copy) => {
                let there = at(inner, cx, &copy.to).await?;
                if there.is_some() && copy.mode != TransferMode::Overwrite {
                    return Ok(Self::default());
                }
                let (after, largest) = measure(inner, cx, &copy.from).await?;
                Ok(Self { before: file_amount(there.as_ref()), after, largest })
            }
            _ => Ok(Self::default()),
        }
    }

    /// What it adds, at most.
    pub(super) fn growth(&self) -> Amount {
        (self.after - self.before).growth()
    }

    /// What it came to by its `output`; `None` where that does not agree with what was there, as others change it too.
    pub(super) fn change(&self, output: OutputRef<'_>) -> Option<Amount> {
        let had_file = self.before.files > 0;
        let one = |size| Amount::of(1, size);
        match output {
            OutputRef::Write(write) | OutputRef::CommitWriter(write) => {
                (write.created != had_file).then(|| one(write.size) - self.before)
            }
            OutputRef::Edit(edit) => had_file.then(|| one(edit.size) - self.before),
            OutputRef::Copy(copy) => {
                (copy.replaced == had_file).then(|| Amount::of(copy.files, copy.bytes) - self.before)
            }
            OutputRef::Rename(rename) => (rename.replaced == had_file).then(|| -self.before),
            OutputRef::Delete(delete) => (i128::from(delete.files) == self.before.files).then(|| -self.before),
            OutputRef::Upload(_) => Some(self.after - self.before),
            _ => None,
        }
    }
}

/// What is there counts for: a file for itself, a directory for nothing.
fn file_amount(there: Option<&FileInfo>) -> Amount {
    there.filter(|info| !info.is_dir).map_or(Amount::default(), |info| Amount::of(1, info.size))
}

/// A file that will have `size` bytes; `None` where it will not be written.
fn one_file(there: Option<&FileInfo>, size: Option<u64>) -> Forecast {
    match size.filter(|_| there.is_none_or(|info| !info.is_dir)) {
        None => Forecast::default(),
        Some(size) => Forecast {
            before: file_amount(there),
            after: Amount::of(1, size),
            largest: if there.is_some_and(|info| info.size >= size) { 0 } else { size },
        },
    }
}

/// The size that a file has when it is written; `None` where that will be refused.
fn size_after(write: &WriteRequest, there: Option<&FileInfo>) -> Option<u64> {
    let added = write.content.len() as u64;
    match (&write.mode, there) {
        (WriteMode::CreateNew, Some(_)) => None,
        (WriteMode::IfVersion(version), there) if there.and_then(|info| info.version.as_ref()) != Some(version) => None,
        (WriteMode::Append, Some(there)) => Some(there.size.saturating_add(added)),
        _ => Some(added),
    }
}

/// What is at `path`; `None` where nothing is.
async fn at(inner: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<Option<FileInfo>> {
    match inner.stat(cx, StatRequest::new(path.clone())).await {
        Ok(info) => Ok(Some(info)),
        Err(error) if error.is_absence() => Ok(None),
        Err(error) => Err(error),
    }
}

/// All files at and below `path`, and the size of the largest.
pub(super) async fn measure(inner: &dyn Backend, cx: &OpContext, path: &VfsPath) -> Result<(Amount, u64)> {
    let entries = match at(inner, cx, path).await? {
        None => return Ok((Amount::default(), 0)),
        Some(info) if info.is_dir => {
            let listing = inner.ls(cx, LsRequest::new(path.clone()).recursive()).await?;
            if listing.truncated.is_some() {
                let message =
                    "the directory has more files than can be counted, or deeper ones; act on parts of the directory";
                return Err(Error::new(ErrorKind::TooLarge, message).with_path(path));
            }
            listing.entries
        }
        Some(info) => vec![info],
    };
    let (mut sum, mut largest) = (Amount::default(), 0);
    for file in entries.iter().filter(|entry| !entry.is_dir) {
        sum += Amount::of(1, file.size);
        largest = largest.max(file.size);
    }
    Ok((sum, largest))
}
