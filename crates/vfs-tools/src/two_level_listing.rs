//! Listings of a directory, two levels deep and without hidden entries.

use vfs_core::operation::UnaryRequest as _;
use vfs_core::search::EntryKinds;
use vfs_core::{FileInfo, GlobRequest, GlobResult, Result, VfsPath};

use crate::action::CallScope;
use crate::outcome::ToolOutcome;
use crate::result_metadata::note_problems;

/// Maximum number of entries. More of them exceed the number of characters, so that nobody could see them.
const MAX_ENTRIES: u64 = 40_000;

/// Maximum number of characters of the lines, which leaves room for a header with a long path and for notes.
const MAX_CHARACTERS: usize = 70_000;

/// Returns the entries of the directory `path` and of its subdirectories, each directory before its entries. A hidden directory is not
/// read.
pub(crate) async fn list_two_levels(scope: &CallScope<'_>, path: &VfsPath) -> Result<GlobResult> {
    let request = GlobRequest::new("/{*,*/*}").path(path.clone()).kinds(EntryKinds::All).no_ignore();
    let mut result = request.limit(MAX_ENTRIES).send(scope.backend, scope.cx).await?;
    // By bytes, `a-b` comes before `a/c`, and so between a directory and its entries.
    result.entries.sort_by(|one, other| one.path.components().cmp(other.path.components()));
    Ok(result)
}

/// Returns an outcome with `header`, a line for each entry and `end`, cut to the maximum number of characters.
pub(crate) fn listing_outcome(
    header: String,
    listing: &GlobResult,
    line: impl Fn(&FileInfo) -> String,
    end: &str,
) -> ToolOutcome {
    let mut text = header;
    let (mut room, mut shown) = (MAX_CHARACTERS, 0);
    for line in listing.entries.iter().map(line) {
        let Some(left) = room.checked_sub(line.chars().count() + 1) else { break };
        (room, shown) = (left, shown + 1);
        text.push('\n');
        text.push_str(&line);
    }
    text.push_str(end);
    let mut outcome = ToolOutcome::text(text);
    let left_out = listing.entries.len() - shown;
    if left_out > 0 || listing.truncated.is_some() {
        let or_more = if listing.truncated.is_some() { " or more" } else { "" };
        outcome.push_note(&format!(
            "truncated: {left_out}{or_more} further entries; view a directory of the list for its entries"
        ));
        outcome.is_truncated = true;
    }
    note_problems(&mut outcome, &listing.problems);
    outcome
}
