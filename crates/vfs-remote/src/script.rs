//! Script builder: quoting, binary-safe encoding, and the random marker that frames a reply.

pub(crate) mod error;
pub(crate) mod facts;
pub(crate) mod functions;
pub(crate) mod output;
pub(crate) mod probe;
pub(crate) mod reply;

use std::any::Any;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;
use vfs_core::VfsPath;

/// Random prefix of every field of one response, which is in no file and which no login shell prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marker(String);

impl Marker {
    /// A marker that was never used before.
    pub(crate) fn random() -> Self {
        Self(format!("vfs:{}:", Uuid::new_v4().simple()))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The marker as a script has it: in two halves, so that an echo of the script does not hold it.
    fn in_script(&self) -> String {
        let (left, right) = self.0.split_at(self.0.len() / 2);
        format!("'{left}''{right}'")
    }
}

/// A script on the way.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) marker: Marker,
    pub(crate) text: String,
    /// How many bytes of the text are what other scripts begin with, too.
    pub(crate) beginning: usize,
    pub(crate) stdin: Bytes,
    /// Whether the beginning of its answer is of use where no more fits through.
    pub(crate) counts_in_part: bool,
    /// A resource of the place that is released when the script has ended.
    pub(crate) keep_alive: Option<Arc<dyn Any + Send + Sync>>,
}

impl Script {
    /// A script with these functions, in the directory `root`.
    pub(crate) fn new(root: &str, functions: &str) -> Self {
        let marker = Marker::random();
        let mut text = String::with_capacity(functions::BEGIN.len() + functions.len() + 1024);
        text.push_str(functions::BEGIN);
        text.push_str(functions);
        let beginning = text.len();
        let (root, id) = (quoted(root), Uuid::new_v4().simple());
        _ = writeln!(text, "M={}\nT=$M.$M\nR={root}\nID={id}", marker.in_script());
        Self { marker, text, beginning, stdin: Bytes::new(), counts_in_part: false, keep_alive: None }
    }

    /// Adds lines of shell.
    pub(crate) fn push(&mut self, lines: &str) -> &mut Self {
        self.text.push_str(lines);
        self.text.push('\n');
        self
    }

    /// Goes to the entry that `path` leads to, as `how` says.
    pub(crate) fn walk(&mut self, how: Walk, path: &VfsPath) -> &mut Self {
        self.text.push_str("walk ");
        self.text.push_str(how.word());
        for name in path.components() {
            self.text.push(' ');
            self.text.push_str(&quoted(name));
        }
        self.text.push('\n');
        self
    }

    /// Gives the script something to read.
    pub(crate) fn stdin(&mut self, content: Bytes) -> &mut Self {
        self.stdin = content;
        self
    }
}

/// How a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// To what it names, through a link at its end.
    Followed,
    /// To the entry itself, also where that is a link.
    Entry,
    /// As `Followed`, and directories on the way are made.
    MakingFollowed,
    /// As `Entry`, and directories on the way are made.
    MakingEntry,
    /// As `Followed`, and nothing need be there.
    Wherever,
}

impl Walk {
    fn word(self) -> &'static str {
        match self {
            Walk::Followed => "f",
            Walk::Entry => "e",
            Walk::MakingFollowed => "mf",
            Walk::MakingEntry => "me",
            Walk::Wherever => "x",
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

/// `content` as one word that `printf` of any shell prints as it is.
pub(crate) fn printable(content: &[u8]) -> String {
    let mut word = String::with_capacity(content.len() + content.len() / 8 + 8);
    word.push('\'');
    for (index, byte) in content.iter().enumerate() {
        match byte {
            b'\'' => word.push_str("'\\''"),
            b'\\' => word.push_str("\\\\"),
            b'%' => word.push_str("%%"),
            // At the beginning it would be an option.
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
    fn words_are_quoted_whatever_they_hold() {
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
    fn bytes_are_spelled_so_that_printf_prints_them() {
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
    fn a_script_does_not_hold_its_marker() {
        let script = Script::new("/", "");
        let marker = String::from_utf8(script.marker.as_bytes().to_vec()).expect("it is ASCII");
        assert!(!script.text.contains(&marker));
        assert_ne!(Script::new("/", "").marker, script.marker);
    }
}
