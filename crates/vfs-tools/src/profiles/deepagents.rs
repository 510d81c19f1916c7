//! The tools of LangChain deepagents, whose releases differ in a few tools and words.
//!
//! Names, parameters and result texts are those of deepagents (MIT licence); the descriptions are not.

mod large_text;
mod tools;
mod wording;

pub(crate) use self::large_text::placeholder;
pub(crate) use self::tools::{CLASSIC, CURRENT, JS};
pub(crate) use self::wording::Release;

/// Maximum number of characters of a result: 20,000 tokens of 4 characters.
const MAX_CHARACTERS: usize = 80_000;

/// Maximum number of entries. More of them exceed the number of characters, so that nobody could see them.
const MAX_ENTRIES: u64 = (MAX_CHARACTERS / 2) as u64;
