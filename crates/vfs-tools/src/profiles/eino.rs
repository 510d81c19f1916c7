//! The tools of CloudWeGo eino's filesystem middleware, described in English or in Chinese.
//!
//! Names, parameters and result texts are those of eino (Apache licence 2.0); the descriptions are not. A result of eino is in English,
//! and only the message about one that is too long is in Chinese. So are here the notes on what a result leaves out.

mod grep;
mod language;
mod large_text;
mod read_file;
mod tools;
mod words;

pub(crate) use self::language::Language;
pub(crate) use self::large_text::placeholder;

use self::language::{Chinese, English};
use crate::tool_definition::ToolDefinition;

/// The tools, described in English.
pub(crate) const ENGLISH: &[ToolDefinition] = &tools::definitions::<English>();

/// The tools, described in Chinese.
pub(crate) const CHINESE: &[ToolDefinition] = &tools::definitions::<Chinese>();

/// Maximum number of characters of a result: 20,000 tokens of 4 characters, as in eino's offloading of large results.
const MAX_CHARACTERS: usize = 80_000;

/// Number of those characters that are left for notes.
const NOTE_CHARACTERS: usize = 300;

/// Maximum number of entries. More of them exceed the number of characters, so that nobody could see them.
const MAX_ENTRIES: u64 = (MAX_CHARACTERS / 2) as u64;
