//! Placeholder of a text that is too long for the model.

use super::wording::Release;
use crate::large_text::{LargeText, LargeTextSource, shortened};

/// Number of lines that are shown at the start, and at the end.
const HEAD_LINES: usize = 5;
const TAIL_LINES: usize = 5;

/// Number of characters that are shown of a line.
const MAX_LINE_CHARACTERS: usize = 1_000;

/// Maximum number of characters of the id of a call that are shown.
const MAX_ID_CHARACTERS: usize = 32;

/// Returns the placeholder, with the first and last lines of the text.
pub(crate) fn placeholder(release: Release, large: &LargeText<'_>) -> String {
    let LargeText { text, path, source } = large;
    let preview = Preview::of(release, text);
    let sample = &preview.text;
    match source {
        LargeTextSource::Call(_) => {
            let id = shortened(large.id(), MAX_ID_CHARACTERS, "...");
            let saved = format!(
                "Tool result too large, the result of this tool call {id} was saved in the filesystem at this path: {path}"
            );
            if release == Release::Js {
                return format!(
                    "{saved}\nYou can read the result from the filesystem by using the read_file tool, but make sure to only read \
                     part of the result at a time.\nYou can do this by specifying an offset and limit in the read_file tool \
                     call.\nFor example, to read the first 100 lines, you can use the read_file tool with offset=0 and \
                     limit=100.\n\nHere is a preview showing the head and tail of the result (lines of the form\n... [N lines \
                     truncated] ...\nindicate omitted lines in the middle of the content):\n\n{sample}"
                );
            }
            let note = preview.note(release, "result");
            format!(
                "{saved}\n\nYou can read the result from the filesystem by using the read_file tool, but make sure to only read part \
                 of the result at a time.\n\nYou can do this by specifying an offset and limit in the read_file tool call. For \
                 example, to read the first 100 lines, you can use the read_file tool with offset=0 and limit=100.\n\n{note}\n\n\
                 {sample}\n"
            )
        }
        LargeTextSource::Message => {
            let note = match release {
                Release::Current => preview.note(release, "content"),
                Release::Classic | Release::Js => {
                    "Here is a preview showing the head and tail of the content:".to_owned()
                }
            };
            let end = if release == Release::Js { "" } else { "\n" };
            format!(
                "Message content too large and was saved to the filesystem at: {path}\n\nYou can read the full content using the \
                 read_file tool with pagination (offset and limit parameters).\n\n{note}\n\n{sample}{end}"
            )
        }
    }
}

/// The first and last lines of a text, and what they leave out.
struct Preview {
    text: String,
    are_lines_omitted: bool,
    are_lines_clipped: bool,
}

impl Preview {
    fn of(release: Release, text: &str) -> Self {
        match release {
            Release::Js => Self::of_lines(release, text.split('\n')),
            Release::Classic | Release::Current => Self::of_lines(release, text.lines()),
        }
    }

    fn of_lines<'a>(release: Release, lines: impl DoubleEndedIterator<Item = &'a str> + Clone) -> Self {
        let count = lines.clone().count();
        let omitted = count.saturating_sub(HEAD_LINES + TAIL_LINES);
        let head: Vec<&str> = lines.clone().take(if omitted > 0 { HEAD_LINES } else { count }).collect();
        let mut tail: Vec<&str> = lines.rev().take(if omitted > 0 { TAIL_LINES } else { 0 }).collect();
        tail.reverse();
        let mut text = numbered(release, &head, 1);
        if omitted > 0 {
            text.push_str(&format!("\n... [{omitted} lines truncated] ...\n"));
            text.push_str(&numbered(release, &tail, count - TAIL_LINES + 1));
        }
        let is_clipped = |line: &&str| line.chars().nth(MAX_LINE_CHARACTERS).is_some();
        Self { text, are_lines_omitted: omitted > 0, are_lines_clipped: head.iter().chain(&tail).any(is_clipped) }
    }

    /// Returns the sentence before the lines. That of a release before 0.7 is always the same.
    fn note(&self, release: Release, subject: &str) -> String {
        let omitted =
            "lines of the form `... [N lines truncated] ...` indicate omitted lines in the middle of the content";
        if release == Release::Classic {
            return format!("Here is a preview showing the head and tail of the {subject} ({omitted}):");
        }
        let clipped = format!(
            "the output contains lines longer than {MAX_LINE_CHARACTERS} characters; this preview shows only their first \
             {MAX_LINE_CHARACTERS} characters"
        );
        let mut caveats = Vec::new();
        let shown = if self.are_lines_omitted {
            caveats.push(omitted);
            "showing the head and tail of"
        } else {
            "of"
        };
        if self.are_lines_clipped {
            caveats.push(&clipped);
        }
        let caveats = if caveats.is_empty() { String::new() } else { format!(" ({})", caveats.join("; ")) };
        format!("Here is a preview {shown} the {subject}{caveats}:")
    }
}

/// Returns lines with their numbers, as the release shows them.
fn numbered(release: Release, lines: &[&str], first: usize) -> String {
    let width = match release {
        Release::Current => (first + lines.len()).saturating_sub(1).to_string().len(),
        Release::Classic | Release::Js => 6,
    };
    let gap = if release == Release::Current { "  " } else { "\t" };
    let lines = (first..).zip(lines).map(|(number, line)| {
        let line: String = line.chars().take(MAX_LINE_CHARACTERS).collect();
        format!("{number:>width$}{gap}{line}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use vfs_core::VfsPath;

    use super::*;

    #[test]
    fn what_a_preview_leaves_out_is_in_its_note() {
        let lines = |count: usize| (1..=count).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
        let path = VfsPath::parse("/large_tool_results/a").expect("a valid path");
        let shown = |release, source, text: &str| placeholder(release, &LargeText { source, text, path: &path });
        let omitted =
            "(lines of the form `... [N lines truncated] ...` indicate omitted lines in the middle of the content)";
        for (release, text, expected) in [
            (Release::Current, lines(2), "Here is a preview of the result:\n\n1  line 1\n2  line 2\n".to_owned()),
            (
                Release::Current,
                lines(12),
                format!(
                    "Here is a preview showing the head and tail of the result {omitted}:\n\n1  line 1\n2  line 2\n3  line 3\n4  line 4\n\
                     5  line 5\n... [2 lines truncated] ...\n 8  line 8\n 9  line 9\n10  line 10\n11  line 11\n12  line 12\n"
                ),
            ),
            (
                Release::Classic,
                lines(1),
                format!("Here is a preview showing the head and tail of the result {omitted}:\n\n     1\tline 1\n"),
            ),
            (
                Release::Current,
                "x".repeat(2_000),
                format!(
                    "Here is a preview of the result (the output contains lines longer than 1000 characters; this preview shows only \
                     their first 1000 characters):\n\n1  {}\n",
                    "x".repeat(1_000)
                ),
            ),
        ] {
            let shown = shown(release, LargeTextSource::Call(Some("id")), &text);
            assert!(shown.contains("of this tool call id was saved"), "{shown}");
            assert!(shown.ends_with(&expected), "{shown}");
        }
        let id = "x".repeat(40);
        assert!(
            shown(Release::Js, LargeTextSource::Call(Some(&id)), "a\n")
                .contains(&format!("call {}... was saved", "x".repeat(32)))
        );
        let message = shown(Release::Js, LargeTextSource::Message, "a");
        assert!(
            message.ends_with("Here is a preview showing the head and tail of the content:\n\n     1\ta"),
            "{message}"
        );
    }
}
