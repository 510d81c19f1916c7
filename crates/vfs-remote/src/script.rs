//! Script builder: quoting, binary-safe encoding, and the random marker that frames a reply.

pub(crate) mod entry_metadata;
pub(crate) mod error;
pub(crate) mod functions;
pub(crate) mod head_tail_output;
pub(crate) mod place_features;
pub(crate) mod reply;

use std::any::Any;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;
use vfs_core::VfsPath;

/// Random prefix of every field of one response, so that no file contains it and no login shell prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplyMarker(String);

impl ReplyMarker {
    /// Creates a marker that was never used before.
    pub(crate) fn random() -> Self {
        Self(format!("vfs:{}:", Uuid::new_v4().simple()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Returns the marker in the syntax of a script: in two halves, so that an echo of the script does not contain the
    /// marker.
    fn in_script(&self) -> String {
        let (left, right) = self.0.split_at(self.0.len() / 2);
        format!("'{left}''{right}'")
    }
}

/// A script under construction.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) marker: ReplyMarker,
    pub(crate) text: String,
    /// Number of bytes at the beginning of the text that other scripts share.
    pub(crate) beginning: usize,
    pub(crate) stdin: Bytes,
    /// Whether the beginning of the response is valid by itself, if the whole response does not fit through the
    /// transport.
    pub(crate) counts_in_part: bool,
    /// A resource of the place that is released when the script has ended.
    pub(crate) keep_alive: Option<Arc<dyn Any + Send + Sync>>,
}

impl Script {
    /// Creates a script with the functions `functions`, for the root directory `root`.
    pub(crate) fn new(root: &str, functions: &str) -> Self {
        let marker = ReplyMarker::random();
        let mut text = String::with_capacity(functions::BEGIN.len() + functions.len() + 1024);
        text.push_str(functions::BEGIN);
        text.push_str(functions);
        let beginning = text.len();
        let (root, id) = (quoted(root), Uuid::new_v4().simple());
        _ = writeln!(text, "M={}\nT=$M.$M\nR={root}\nID={id}", marker.in_script());
        Self { marker, text, beginning, stdin: Bytes::new(), counts_in_part: false, keep_alive: None }
    }

    /// Appends lines of shell code.
    pub(crate) fn push(&mut self, lines: &str) -> &mut Self {
        self.text.push_str(lines);
        self.text.push('\n');
        self
    }

    /// Appends the walk to the entry at `path`.
    pub(crate) fn walk(&mut self, how: PathResolutionMode, path: &VfsPath) -> &mut Self {
        self.text.push_str("walk ");
        self.text.push_str(how.word());
        for name in path.components() {
            self.text.push(' ');
            self.text.push_str(&quoted(name));
        }
        self.text.push('\n');
        self
    }

    /// Sets the standard input.
    pub(crate) fn stdin(&mut self, content: Bytes) -> &mut Self {
        self.stdin = content;
        self
    }
}

/// The way in which a path is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathResolutionMode {
    /// A link at the end of the path is followed.
    Followed,
    /// A link at the end of the path is the result itself.
    Entry,
    /// As `Followed`, and missing parent directories are created.
    MakingFollowed,
    /// As `Entry`, and missing parent directories are created.
    MakingEntry,
    /// As `Followed`, and the path need not exist.
    Wherever,
}

impl PathResolutionMode {
    fn word(self) -> &'static str {
        match self {
            PathResolutionMode::Followed => "f",
            PathResolutionMode::Entry => "e",
            PathResolutionMode::MakingFollowed => "mf",
            PathResolutionMode::MakingEntry => "me",
            PathResolutionMode::Wherever => "x",
        }
    }
}

/// Quotes `text` as one word of a shell, with any content.
pub(crate) fn quoted(text: &str) -> String {
    let mut word = String::with_capacity(text.len() + 2);
    word.push('\'');
    for (index, part) in text.split('\'').enumerate() {
        if index > 0 {
            word.push_str("'\\''");
        }
        word.push_str(part);
    }
    word.push('\'');
    word
}

/// Encodes `content` as one word from which `printf` of any shell prints exactly these bytes.
pub(crate) fn printable(content: &[u8]) -> String {
    let mut word = String::with_capacity(content.len() + content.len() / 8 + 8);
    word.push('\'');
    for (index, byte) in content.iter().enumerate() {
        match byte {
            b'\'' => word.push_str("'\\''"),
            b'\\' => word.push_str("\\\\"),
            b'%' => word.push_str("%%"),
            // At the beginning, a dash would start an option.
            b'-' if index == 0 => word.push_str("\\055"),
            b'\n' | b'\t' | b' '..=b'~' => word.push(char::from(*byte)),
            byte => _ = write!(word, "\\{byte:03o}"),
        }
    }
    word.push('\'');
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_quoted_as_one_word() {
        for (text, word) in [
            ("", "''"),
            ("plain", "'plain'"),
            ("it's", r"'it'\''s'"),
            ("'", r"''\'''"),
            ("$(id) `id` \\ \" \n -", "'$(id) `id` \\ \" \n -'"),
        ] {
            assert_eq!(quoted(text), word);
        }
    }

    #[test]
    fn bytes_are_encoded_for_printf() {
        for (content, word) in [
            (&b""[..], "''"),
            (b"text\n", "'text\n'"),
            (b"100% 'sure' \\n", r"'100%% '\''sure'\'' \\n'"),
            (b"-n", r"'\055n'"),
            (b"\0\x01\xff", r"'\000\001\377'"),
            ("é".as_bytes(), r"'\303\251'"),
        ] {
            assert_eq!(printable(content), word);
        }
    }

    #[test]
    fn a_script_does_not_contain_its_marker() {
        let script = Script::new("/", "");
        let marker = String::from_utf8(script.marker.as_bytes().to_vec()).expect("it is ASCII");
        assert!(!script.text.contains(&marker));
        assert_ne!(Script::new("/", "").marker, script.marker);
    }
}
