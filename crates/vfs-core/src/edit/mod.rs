//! Replacing text in a file's bytes, byte-exact everywhere else.

mod diff;
mod encoded;
mod endings;
mod failure;
mod match_positions;
mod nearest;
mod replace;

pub(crate) use self::diff::rename_in_diff;

pub use self::diff::{diff, diff_files};

use crate::error::{Error, ErrorDetail, ErrorKind, Result};
#[cfg(doc)]
use crate::types::NewLineEndings;
use crate::types::{EditRequest, Replacement};

/// A file's bytes after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edited {
    /// All bytes.
    pub content: Vec<u8>,
    /// How many places were replaced.
    pub occurrences: u64,
}

/// Checks the arguments of an edit, before the file is looked at.
///
/// # Errors
///
/// `invalid_argument`, at the request's path, where there is no replacement, or one of them has an empty `old` or an `old`
/// that equals its `new`.
pub fn check(request: &EditRequest) -> Result<()> {
    let refuse = |message: &'static str| Err(Error::invalid_argument(message).with_path(&request.path));
    if request.replacements.is_empty() {
        return refuse("there is nothing to replace; give at least one replacement");
    }
    for (replacement, Replacement { old, new, .. }) in request.replacements.iter().enumerate() {
        if old.is_empty() {
            let refused = refuse("`old` is empty; give the text that is to be replaced");
            return refused.map_err(|error| error.with_detail(ErrorDetail::EmptyOld { replacement }));
        }
        if old == new {
            return refuse("`old` and `new` are the same; nothing would change");
        }
    }
    Ok(())
}

/// Makes `replacements` in `content`, in order, all or none; the result is at most `max_size` bytes.
///
/// # Behaviour
///
/// * What a read shows can be edited. UTF-8, and everything that is not text, is edited as bytes, so that bytes beside the
///   replaced places stay as they are, whatever they are. UTF-16 and legacy text stay in their encoding.
/// * An `old` without `\r` matches as if every `\r\n` in the file were `\n`. An `old` with a `\r` is matched byte for byte;
///   where one with `\r\n` is not there, every `\r\n` of both texts counts as `\n`.
/// * The line endings of `new`, be they `\n` or `\r\n`, become those of the file if all its lines end alike. In a file of
///   mixed line endings each `\n` of `new` becomes the line ending of its place, where `old` is matched as if every `\r\n`
///   were `\n`; `\r\n` stays. In a file without line endings, and by [`NewLineEndings::Exact`], `new` is written as given.
/// * MatchPositions are counted with overlap, and replaced from the left without.
/// * Time is linear in the size of the content, whatever is looked for. Nothing is allocated for a result over `max_size`.
///
/// # Errors
///
/// * `no_match` and `not_unique`, with their details.
/// * `too_large`: the content or the result is over `max_size`.
/// * `not_text`: the content is text that its own encoding would not write back as it is.
/// * `invalid_argument`: `new` has a character that the file's encoding has not; or nothing would change, as `new` is `old`
///   with other line endings, which are not those of the file.
///
/// None of them names a path.
///
/// ```
/// use vfs_core::{Replacement, edit};
///
/// let edited = edit::apply(b"one\r\ntwo\r\n", &[Replacement::new("one\ntwo", "1\n2\n3")], 1 << 20)?;
/// assert_eq!(edited.content, b"1\r\n2\r\n3\r\n");
/// # Ok::<(), vfs_core::Error>(())
/// ```
pub fn apply(content: &[u8], replacements: &[Replacement], max_size: u64) -> Result<Edited> {
    check_size(content.len() as u64, max_size)?;
    encoded::apply(content, replacements, max_size)
}

fn check_size(size: u64, max_size: u64) -> Result<()> {
    if size <= max_size { Ok(()) } else { Err(too_large(max_size)) }
}

fn too_large(max_size: u64) -> Error {
    Error::new(ErrorKind::TooLarge, format!("an edit is limited to files of {max_size} bytes, before and after"))
}
