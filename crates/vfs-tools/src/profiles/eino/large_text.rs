//! Placeholder of a text that is too long for the model.

use std::fmt::Write as _;

use super::language::Language;
use crate::large_text::{LargeText, LargeTextSource};

/// Number of lines that are shown, and of the characters of each.
const SHOWN_LINES: usize = 10;
const SHOWN_CHARACTERS: usize = 1_000;

/// Maximum number of characters of the id of a call that are shown.
const MAX_ID_CHARACTERS: usize = 100;

/// Returns the placeholder, with the first lines of the text.
pub(crate) fn placeholder(language: Language, large: &LargeText<'_>) -> String {
    let LargeText { text, path, source } = large;
    let id: String = large.id().chars().take(MAX_ID_CHARACTERS).collect();
    let mut sample = String::new();
    for (number, line) in (1..).zip(text.lines().take(SHOWN_LINES)) {
        let line: String = line.chars().take(SHOWN_CHARACTERS).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(sample, "{number}: {line}");
    }
    let saved = match (language, source) {
        (Language::English, LargeTextSource::Call(_)) => {
            format!(
                "Tool result too large, the result of this tool call {id} was saved in the filesystem at this path: {path}"
            )
        }
        (Language::Chinese, LargeTextSource::Call(_)) => {
            format!("工具结果过大，此工具调用 {id} 的结果已保存到文件系统的以下路径：{path}")
        }
        (Language::English, LargeTextSource::Message) => {
            format!("Message content too large and was saved to the filesystem at: {path}")
        }
        (Language::Chinese, LargeTextSource::Message) => format!("消息内容过大，已保存到文件系统的以下路径：{path}"),
    };
    match language {
        Language::English => format!(
            "{saved}\nYou can read the result from the filesystem by using the read_file tool, but make sure to only read part of the \
             result at a time.\nYou can do this by specifying an offset and limit in the read_file tool call.\nFor example, to read the \
             first 100 lines, you can use the read_file tool with offset=0 and limit=100.\n\nHere are the first 10 lines of the \
             result:\n{sample}"
        ),
        Language::Chinese => format!(
            "{saved}\n你可以使用 read_file 工具从文件系统读取结果，但请确保每次只读取部分结果。\n你可以通过在 read_file \
             工具调用中指定 offset 和 limit 来实现。\n例如，要读取前 100 行，你可以使用 read_file 工具，设置 offset=0 和 \
             limit=100。\n\n以下是结果的前 10 行：\n{sample}"
        ),
    }
}
