//! Placeholders of texts that are too long for a model.

use vfs_core::VfsPath;

/// A text of which a model sees only a part, as all of it is stored in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LargeText<'a> {
    pub(crate) source: LargeTextSource<'a>,
    pub(crate) text: &'a str,
    pub(crate) path: &'a VfsPath,
}

/// The source of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LargeTextSource<'a> {
    /// A call, with the id that the model gave it.
    Call(Option<&'a str>),
    /// A message of a person.
    Message,
}

impl<'a> LargeTextSource<'a> {
    /// Returns the id of the call.
    pub(crate) fn id(self) -> Option<&'a str> {
        match self {
            Self::Call(id) => id,
            Self::Message => None,
        }
    }

    /// Returns the noun for the text.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Call(_) => "result",
            Self::Message => "message",
        }
    }
}

impl LargeText<'_> {
    /// Returns the id of the call, or the name of the file if the call has none.
    pub(crate) fn id(&self) -> &str {
        self.source.id().or(self.path.name()).unwrap_or_default()
    }
}

/// Returns the start of `text` within `start` bytes and its end within `end` bytes. They are whole lines if these fill at least half of
/// the bytes.
pub(crate) fn start_and_end(text: &str, start: usize, end: usize) -> (&str, &str) {
    if text.len() <= start + end {
        return (text, "");
    }
    let first = &text[..text.floor_char_boundary(start)];
    let first = &first[..first.rfind('\n').filter(|at| *at >= first.len() / 2).unwrap_or(first.len())];
    let last = &text[text.ceil_char_boundary(text.len() - end)..];
    let line = last.find('\n').map(|at| at + 1).filter(|at| *at <= last.len() / 2);
    (first, &last[line.unwrap_or(0)..])
}

/// Returns whether `text` has over `max` characters.
pub(crate) fn is_longer(text: &str, max: usize) -> bool {
    text.len() > max && text.chars().count() > max
}

/// Returns the first `max` characters of `text`, followed by `mark` if there are more.
pub(crate) fn shortened(text: &str, max: usize, mark: &str) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}{mark}", &text[..end]),
        None => text.to_owned(),
    }
}

/// Cuts `text` to `max` characters, of which the last ones are `note`. Returns whether it was longer.
pub(crate) fn cut(text: &mut String, max: usize, note: &str) -> bool {
    if !is_longer(text, max) {
        return false;
    }
    let length = max.saturating_sub(note.chars().count());
    let end = text.char_indices().nth(length).map_or(text.len(), |(end, _)| end);
    text.truncate(end);
    text.push_str(note);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_and_end_are_whole_lines_where_lines_are_short() {
        let lines = "one\ntwo\nthree\nfour\nfive\n";
        assert_eq!(start_and_end(lines, 9, 9), ("one\ntwo", "five\n"));
        assert_eq!(start_and_end(lines, 20, 20), (lines, ""));
        assert_eq!(start_and_end("ééééé", 3, 3), ("é", "é"));
        let long = format!("a\n{}\n", "x".repeat(100));
        assert_eq!(start_and_end(&long, 10, 5), ("a\nxxxxxxxx", "xxxx\n"));
    }

    #[test]
    fn a_text_is_cut_to_characters_with_its_note() {
        let mut text = "ééééé".to_owned();
        assert!(!cut(&mut text, 5, "[cut]"));
        assert!(cut(&mut text, 4, "!") && text == "ééé!");
        assert_eq!([shortened("ééé", 3, "…"), shortened("ééé", 2, "…")], ["ééé", "éé…"]);
    }
}
