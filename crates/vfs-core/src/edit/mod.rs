//! Text replacement in the bytes of a file, and unified diffs.

mod diff;
mod encoded_text;
mod line_endings;
mod occurrence_lines;
mod replace;
mod replacement_errors;
mod similar_lines;

pub(crate) use self::diff::rename_in_diff;

pub use self::diff::{diff, diff_files};
pub use crate::requests::{ApplyMode, DiffInclusion, NewLineEndings, Replacement, ReplacementScope};

use crate::error::{Error, ErrorDetail, ErrorKind, Result};
use crate::requests::EditRequest;

/// The result of replacements in the bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edited {
    /// The new content.
    pub content: Vec<u8>,
    /// The number of replaced occurrences.
    pub occurrences: u64,
}

/// Validates an edit independently of the file.
///
/// # Errors
///
/// `invalid_argument` at the path of the request if it has no replacement, or one of them has an empty `old` or equal `old` and
/// `new`.
pub fn check(request: &EditRequest) -> Result<()> {
    let refuse = |message: &'static str| Err(Error::invalid_argument(message).with_path(&request.path));
    if request.replacements.is_empty() {
        return refuse("the edit has no replacements; give at least one");
    }
    for (replacement, Replacement { old, new, .. }) in request.replacements.iter().enumerate() {
        if old.is_empty() {
            let refused = refuse("`old` is empty; give the text to replace");
            return refused.map_err(|error| error.with_detail(ErrorDetail::EmptyOld { replacement }));
        }
        if old == new {
            return refuse("`old` and `new` are equal, so that nothing would change; give a different `new`");
        }
    }
    Ok(())
}

/// Applies `replacements` to `content` in order, all or none. The result has at most `max_size` bytes.
///
/// # Behaviour
///
/// * Text as a read returns it can be replaced. UTF-8 and binary content are edited as bytes, so that all other bytes are
///   unchanged. UTF-16 and legacy text keep their encoding.
/// * An `old` without `\r` matches as if every `\r\n` of the file were `\n`. An `old` with a `\r` is matched byte for byte; if an
///   `old` with `\r\n` does not occur, every `\r\n` of file and `old` is treated as `\n`.
/// * Line endings of `new` become those of the file, if all its lines end alike. In a file with mixed line endings, each `\n` of
///   `new` becomes the line ending at its position, if `old` is matched with `\r\n` as `\n`; `\r\n` is unchanged. In a file without
///   line endings, and with [`NewLineEndings::Exact`], `new` is written as given.
/// * Occurrences are counted with overlap, and replaced from the left without overlap.
/// * Time is linear in the size of the content. No memory is allocated for a result over `max_size`.
///
/// # Errors
///
/// Errors name no path.
///
/// * `no_match` and `not_unique`, with their details.
/// * `too_large`: the content or the result is over `max_size`.
/// * `not_text`: decoding and encoding the content does not reproduce its bytes.
/// * `invalid_argument`: the encoding of the file lacks a character of `new`; or `old` and `new` differ only in line endings, which
///   would become those of the file.
///
/// ```
/// use vfs_core::edit::Replacement;
/// use vfs_core::edit;
///
/// let edited = edit::apply(b"one\r\ntwo\r\n", &[Replacement::new("one\ntwo", "1\n2\n3")], 1 << 20)?;
/// assert_eq!(edited.content, b"1\r\n2\r\n3\r\n");
/// # Ok::<(), vfs_core::Error>(())
/// ```
pub fn apply(content: &[u8], replacements: &[Replacement], max_size: u64) -> Result<Edited> {
    check_size(content.len() as u64, max_size)?;
    encoded_text::apply(content, replacements, max_size)
}

fn check_size(size: u64, max_size: u64) -> Result<()> {
    if size <= max_size { Ok(()) } else { Err(too_large(max_size)) }
}

fn too_large(max_size: u64) -> Error {
    Error::new(
        ErrorKind::TooLarge,
        format!("the file is over {max_size} bytes before or after the edit; edit a smaller file"),
    )
}
