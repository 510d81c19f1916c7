//! Definitions around the matches of a search.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::stream;
use vfs_core::{Content, ReadRequest, VfsPath};

use super::symbol_definitions::{definitions, enclosing, has_definitions};
use crate::action::CallScope;

/// Maximum number of files that are read for the definitions in them.
const MAX_FILES: usize = 40;

/// Maximum size in bytes of such a file. In a longer one, definitions are not looked for.
const MAX_FILE_BYTES: u64 = 256 << 10;

/// Number of files that are read at once.
const PARALLEL_READS: usize = 5;

/// Maximum number of characters of a definition.
const MAX_CHARACTERS: usize = 120;

/// For each file, the first line of the definition around a line, with its number, by the number of the line.
pub(super) type EnclosingDefinitions = BTreeMap<VfsPath, BTreeMap<u64, (u64, String)>>;

/// Returns the definitions around `lines` of the first [`MAX_FILES`] files that may have any, and the number of other such files. A file
/// that cannot be read has no definitions: its lines are shown anyway.
pub(super) async fn enclosing_lines(
    scope: &CallScope<'_>,
    lines: BTreeMap<VfsPath, Vec<u64>>,
) -> (EnclosingDefinitions, usize) {
    let lines = lines.into_iter().filter(|(path, _)| has_definitions(path.name().unwrap_or_default()));
    let lines: Vec<_> = lines.collect();
    let left_out = lines.len().saturating_sub(MAX_FILES);
    let reads = lines.into_iter().take(MAX_FILES).map(|(path, lines)| async move {
        let request = ReadRequest::new(path.clone()).max_bytes(MAX_FILE_BYTES);
        let read = scope.backend.read(scope.cx, request).await.ok()?;
        let Content::Text(text) = &read.content else { return None };
        if read.truncated.is_some() {
            return None;
        }
        let found = definitions(path.name().unwrap_or_default(), text);
        let around = lines.into_iter().filter_map(|line| {
            let definition = enclosing(&found, line)?;
            let text = definition.text.chars().take(MAX_CHARACTERS).collect();
            Some((line, (*definition.lines.start(), text)))
        });
        let around = around.collect();
        Some((path, around))
    });
    (stream::iter(reads).buffered(PARALLEL_READS).filter_map(async |found| found).collect().await, left_out)
}
