//! Column parameters of the SQL function `change`.

use chrono::{DateTime, SubsecRound, Utc};
use vfs_core::{Error, ErrorKind, Result, VfsPath};

use super::read::CHUNK_BYTES;
use super::row_conversion;
use crate::store::{Condition, NewValue, Precondition, StagedContent, ValueContent, Write, version_of};

/// Maximum size of a value in bytes.
pub(super) const MAX_VALUE: u64 = 256 << 20;
/// Maximum length of a path in bytes, so that it fits into an entry of an index.
pub(super) const MAX_PATH: usize = 2048;
/// Maximum size of an indexed text in bytes. Indexing longer texts takes too long.
const MAX_SEARCHABLE: usize = 128 << 10;
/// Maximum size in bytes of the contents that are sent in the statement of the change; a message has at most 1 GiB.
const MAX_INLINE: usize = 32 << 20;
/// Number of decimal places of a second that Postgres stores.
const MICROSECONDS: u16 = 6;

/// Columns of the conditions of a change.
#[derive(Default)]
pub(super) struct ConditionParameters<'a> {
    pub(super) kinds: Vec<i16>,
    pub(super) paths: Vec<&'a str>,
    pub(super) versions: Vec<Option<&'a str>>,
}

impl<'a> ConditionParameters<'a> {
    pub(super) fn new(conditions: &'a [Condition]) -> Self {
        let mut columns = Self::default();
        for condition in conditions {
            match condition {
                Condition::At(_, Precondition::Any) => {}
                Condition::At(path, Precondition::Absent) => columns.push(1, path, None),
                Condition::At(path, Precondition::Version(version)) => columns.push(2, path, Some(version.as_str())),
                Condition::NothingBelow(path) => columns.push(3, path, None),
            }
        }
        columns
    }

    fn push(&mut self, kind: i16, path: &'a VfsPath, version: Option<&'a str>) {
        self.kinds.push(kind);
        self.paths.push(path.as_str());
        // Postgres cannot store a text with NUL, so no value has such a version; nor the empty one.
        self.versions.push(version.map(|version| if version.contains('\0') { "" } else { version }));
    }
}

/// Columns of the writes of a change.
#[derive(Default)]
pub(super) struct WriteParameters<'a> {
    pub(super) kinds: Vec<i16>,
    pub(super) parents: Vec<&'a str>,
    pub(super) names: Vec<&'a str>,
    pub(super) sources: Vec<Option<&'a str>>,
    /// Contents that are sent before the change.
    pub(super) large: Vec<LargeContent<'a>>,
    /// Contents that are already in the store, each with the index of its write.
    pub(super) staged: Vec<(usize, &'a StagedContent)>,
    pub(super) datas: Vec<Option<&'a [u8]>>,
    pub(super) are_texts: Vec<bool>,
    pub(super) sizes: Vec<Option<i64>>,
    pub(super) versions: Vec<Option<String>>,
    pub(super) created: Vec<Option<DateTime<Utc>>>,
    pub(super) modified: Vec<Option<DateTime<Utc>>>,
}

/// Content that is sent before the change.
pub(super) struct LargeContent<'a> {
    /// Index of the write.
    pub(super) step: usize,
    pub(super) content: &'a [u8],
    pub(super) is_text: bool,
}

impl<'a> WriteParameters<'a> {
    /// Returns the columns of `writes`.
    ///
    /// # Errors
    ///
    /// `too_large` or `invalid_path` if a value or a path exceeds its limit.
    pub(super) fn new(writes: &'a [Write]) -> Result<Self> {
        let mut columns = Self::default();
        let mut inline = 0;
        for write in writes {
            match write {
                Write::Put(path, value) => columns.put(path, value, &mut inline)?,
                Write::Delete(path) => columns.push(2, path, None, None),
                Write::Move { from, to } => {
                    check_path(to)?;
                    columns.push(3, to, Some(from), None);
                }
                Write::Copy { from, to, at } => {
                    check_path(to)?;
                    columns.push(4, to, Some(from), Some((*at, *at)));
                }
            }
        }
        Ok(columns)
    }

    fn put(&mut self, path: &'a VfsPath, value: &'a NewValue, inline: &mut usize) -> Result<()> {
        check_path(path)?;
        let content: &[u8] = match &value.content {
            ValueContent::Bytes(content) => content,
            ValueContent::Staged(staged) => {
                self.push(1, path, None, Some((value.created_at, value.modified_at)));
                let step = self.kinds.len() - 1;
                self.sizes[step] = Some(staged.size.cast_signed());
                self.versions[step] = Some(staged.version.as_str().to_owned());
                self.staged.push((step, staged));
                return Ok(());
            }
        };
        let size = content.len();
        if size as u64 > MAX_VALUE {
            let message = format!("{size} bytes are more than the {MAX_VALUE} that a Postgres store can hold");
            return Err(Error::new(ErrorKind::TooLarge, message).with_path(path));
        }
        let is_text = is_searchable(content);
        self.push(1, path, None, Some((value.created_at, value.modified_at)));
        let step = self.kinds.len() - 1;
        self.sizes[step] = Some(size as i64);
        self.versions[step] = Some(version_of(content).as_str().to_owned());
        self.are_texts[step] = is_text;
        if size <= CHUNK_BYTES && *inline + size <= MAX_INLINE {
            *inline += size;
            self.datas[step] = Some(content);
        } else {
            self.large.push(LargeContent { step, content, is_text });
        }
        Ok(())
    }

    fn push(
        &mut self,
        kind: i16,
        path: &'a VfsPath,
        source: Option<&'a VfsPath>,
        times: Option<(DateTime<Utc>, DateTime<Utc>)>,
    ) {
        let (parent, name) = row_conversion::split_path(path);
        self.kinds.push(kind);
        self.parents.push(parent);
        self.names.push(name);
        self.sources.push(source.map(VfsPath::as_str));
        self.datas.push(None);
        self.are_texts.push(false);
        self.sizes.push(None);
        self.versions.push(None);
        self.created.push(times.map(|(created, _)| created.trunc_subsecs(MICROSECONDS)));
        self.modified.push(times.map(|(_, modified)| modified.trunc_subsecs(MICROSECONDS)));
    }
}

/// Returns whether `content` is text that the database indexes.
pub(super) fn is_searchable(content: &[u8]) -> bool {
    content.len() <= MAX_SEARCHABLE && !content.contains(&0) && std::str::from_utf8(content).is_ok()
}

fn check_path(path: &VfsPath) -> Result<()> {
    if path.as_str().len() > MAX_PATH {
        let message =
            format!("the path is longer than the {MAX_PATH} bytes that a Postgres store can hold; use a shorter one");
        return Err(Error::new(ErrorKind::InvalidPath, message).with_path(path));
    }
    Ok(())
}
