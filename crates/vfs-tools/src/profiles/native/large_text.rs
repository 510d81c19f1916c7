//! Placeholder of a text that is too long for the model.

use crate::large_text::{LargeText, start_and_end};
use crate::with_count::with_count;

/// Maximum size in bytes of the start that is shown, and of the end.
const START_BYTES: usize = 1_000;
const END_BYTES: usize = 1_000;

/// Returns the start and the end of a text, and the path of the whole, which the model can `read`.
pub(crate) fn placeholder(large: &LargeText<'_>, read: &str) -> String {
    let LargeText { text, path, source } = large;
    let (start, end) = start_and_end(text, START_BYTES, END_BYTES);
    let subject = source.noun();
    let left_out = text.len() - start.len() - end.len();
    let lines = with_count(text.lines().count() as u64, "line");
    format!("{start}\n[... {left_out} bytes left out: the {subject} has {lines}, all in {path}; {read}]\n{end}")
}
