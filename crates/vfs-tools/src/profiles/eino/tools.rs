//! Names, parameters and descriptions.

use vfs_core::search::HiddenNames;
use vfs_core::{EditRequest, ExecuteRequest, GlobRequest, LsRequest, VfsPath, WriteMode, WriteRequest};

use super::grep::grep;
use super::language::{Language, LanguageMarker};
use super::read_file::ReadFileAction;
use super::words::{self, GlobView};
use super::{MAX_CHARACTERS, MAX_ENTRIES};
use crate::annotations::Annotations;
use crate::parameter::{Parameter, ParameterKind};
use crate::request_action::RequestAction;
use crate::result_store::MAX_STORED_OUTPUT;
use crate::tool_definition::{Needs, ToolDefinition};

pub(super) const fn definitions<L: LanguageMarker>() -> [ToolDefinition; 7] {
    [ls::<L>(), read_file::<L>(), write_file::<L>(), edit_file::<L>(), glob::<L>(), grep::<L>(), execute::<L>()]
}

const fn file_path(language: Language) -> Parameter {
    let description = language.choose("Absolute path of the file.", "文件的绝对路径。");
    Parameter::required("file_path", ParameterKind::Path, description).aliases(&["path", "file"])
}

const fn ls<L: LanguageMarker>() -> ToolDefinition {
    ToolDefinition {
        name: "ls",
        parameters: const {
            let description = L::LANGUAGE.choose("Absolute path of the directory.", "目录的绝对路径。");
            &[Parameter::required("path", ParameterKind::Path, description).aliases(&["directory", "dir_path"])]
        },
        annotations: Annotations::read_only("List a directory"),
        needs: Needs::Files,
        anthropic_type: None,
        description: |_| {
            let text = L::LANGUAGE.choose(
                "Lists the names of the files and directories in a directory. Use it to find the file to read.",
                "列出目录中文件和子目录的名称，可用来查找要读取的文件。",
            );
            text.to_owned()
        },
        action: |arguments| {
            let request = LsRequest::new(arguments.required_path("path")?).limit(MAX_ENTRIES);
            let action = RequestAction::new(request, L::LANGUAGE, words::listing);
            Ok(action.explain(|_, _, error| words::error_text(error)).boxed())
        },
    }
}

const fn read_file<L: LanguageMarker>() -> ToolDefinition {
    const ANY_NUMBER: ParameterKind = ParameterKind::Integer { min: i64::MIN, max: i64::MAX };
    ToolDefinition {
        name: "read_file",
        parameters: const {
            let offset = L::LANGUAGE.choose("Number of the first line. Default 1.", "起始行号。默认为 1。");
            let limit = L::LANGUAGE.choose("Maximum number of lines. Default 2000.", "最多返回的行数。默认为 2000。");
            let pages = L::LANGUAGE.choose(
                "Pages of a PDF document, such as '3' or '1-5'; at most 20.",
                "PDF 文档的页码，如 '3' 或 '1-5'；最多 20 页。",
            );
            &[
                file_path(L::LANGUAGE),
                Parameter::optional("offset", ANY_NUMBER, offset),
                Parameter::optional("limit", ANY_NUMBER, limit),
                Parameter::optional("pages", ParameterKind::Text, pages),
            ]
        },
        annotations: Annotations::read_only("Read a file"),
        needs: Needs::Files,
        anthropic_type: None,
        description: |offered| {
            let read = L::LANGUAGE.choose(
                "Reads a file, and returns its lines with their numbers, by default the first 2000. For more, call again: offset=2001, \
                 limit=500 shows the lines 2001 to 2500. Images and PDF documents are shown as they are. Read several files by calls in \
                 parallel.",
                "读取文件，返回带行号的内容，默认为前 2000 行。要读取更多内容，请再次调用：offset=2001、limit=500 返回第 2001 至 2500 \
                 行。图片和 PDF 文档按原样展示。读取多个文件时可并行调用。",
            );
            let edit = L::LANGUAGE.choose(" Read a file before you edit it.", "编辑文件之前请先读取。");
            format!("{read}{}", if offered.changes { edit } else { "" })
        },
        action: |arguments| Ok(Box::new(ReadFileAction::new(L::LANGUAGE, arguments)?)),
    }
}

const fn write_file<L: LanguageMarker>() -> ToolDefinition {
    ToolDefinition {
        name: "write_file",
        parameters: const {
            let content = L::LANGUAGE.choose("Content of the file.", "文件的内容。");
            &[
                file_path(L::LANGUAGE),
                Parameter::required("content", ParameterKind::Text, content).aliases(&[
                    "text",
                    "contents",
                    "file_text",
                ]),
            ]
        },
        annotations: Annotations::destructive("Write a file"),
        needs: Needs::WritableFiles,
        anthropic_type: None,
        description: |_| {
            let text = L::LANGUAGE.choose(
                "Writes a file, and creates the directories above it. A file that exists is replaced as a whole: prefer edit_file for a \
                 change.",
                "写入文件，并创建缺少的上级目录。已有的文件会被整个替换：只改一部分时请用 edit_file。",
            );
            text.to_owned()
        },
        action: |arguments| {
            let request = WriteRequest::new(arguments.required_path("file_path")?, arguments.required_text("content")?);
            let action = RequestAction::new(request.mode(WriteMode::Overwrite), (), words::written);
            Ok(action.explain(|(), _, error| words::error_text(error)).boxed())
        },
    }
}

const fn edit_file<L: LanguageMarker>() -> ToolDefinition {
    ToolDefinition {
        name: "edit_file",
        parameters: const {
            let old = L::LANGUAGE
                .choose("Text to replace, exactly as it is in the file.", "要替换的文本，须与文件中完全一致。");
            let new = L::LANGUAGE.choose("Text in its place.", "替换后的文本。");
            let all = L::LANGUAGE
                .choose("Whether to replace every occurrence. Default false.", "是否替换每一处出现。默认为 false。");
            &[
                file_path(L::LANGUAGE),
                Parameter::required("old_string", ParameterKind::Text, old).aliases(&["old_str", "oldText", "old"]),
                Parameter::required("new_string", ParameterKind::Text, new).aliases(&["new_str", "newText", "new"]),
                Parameter::optional("replace_all", ParameterKind::Boolean, all),
            ]
        },
        annotations: Annotations::destructive("Edit a file"),
        needs: Needs::WritableFiles,
        anthropic_type: None,
        description: |_| {
            let text = L::LANGUAGE.choose(
                "Replaces a text in a file by another one. `old_string` has to be in the file exactly once, unless `replace_all` is true: with \
                 its indentation, and without the line numbers of read_file.",
                "将文件中的一段文本替换为另一段。除非 `replace_all` 为 true，`old_string` 必须在文件中恰好出现一次：保留缩进，不含 \
                 read_file 返回的行号。",
            );
            text.to_owned()
        },
        action: |arguments| {
            let (old, new) = (arguments.required_text("old_string")?, arguments.required_text("new_string")?);
            let edit = EditRequest::new(arguments.required_path("file_path")?, old, new);
            let edit = if arguments.boolean("replace_all") == Some(true) { edit.replace_all() } else { edit };
            Ok(RequestAction::new(edit, (), words::edited).explain(words::edit_error).boxed())
        },
    }
}

const fn glob<L: LanguageMarker>() -> ToolDefinition {
    ToolDefinition {
        name: "glob",
        parameters: const {
            let pattern = L::LANGUAGE.choose(
                "Pattern such as '**/*.py': `*` for any characters of a name, `**` for any directories, `?` for one character.",
                "模式，如 '**/*.py'：`*` 表示名称中的任意字符，`**` 表示任意层目录，`?` 表示一个字符。",
            );
            let path = L::LANGUAGE.choose("Directory to search in. Default '/'.", "要搜索的目录。默认为 '/'。");
            &[
                Parameter::required("pattern", ParameterKind::Glob, pattern).aliases(&["glob"]),
                Parameter::optional("path", ParameterKind::Path, path).aliases(&["directory", "dir_path"]),
            ]
        },
        annotations: Annotations::read_only("Find files by name"),
        needs: Needs::Files,
        anthropic_type: None,
        description: |_| {
            let text = L::LANGUAGE.choose(
                "Finds files by a pattern, and returns paths below `path`. '*.txt' finds the files of the directory itself, '**/*.txt' also \
                 those below. A pattern with '/' at its start is one of absolute paths.",
                "按模式查找文件，返回相对于 `path` 的路径。'*.txt' 只查找该目录中的文件，'**/*.txt' 也查找下级目录中的文件。以 '/' \
                 开头的模式匹配绝对路径。",
            );
            text.to_owned()
        },
        action: |arguments| {
            let pattern = arguments.required_text("pattern")?;
            let is_relative = !pattern.starts_with('/');
            // A pattern without '/' is one of the directory itself.
            let request = match is_relative {
                true => GlobRequest::new(format!("/{pattern}")).path(arguments.path_or_root("path")),
                false => GlobRequest::new(pattern).path(VfsPath::root()),
            };
            let request = request.hidden_names(HiddenNames::Include).no_ignore().limit(MAX_ENTRIES);
            let view = GlobView { language: L::LANGUAGE, is_relative };
            let action = RequestAction::new(request, view, words::found);
            Ok(action.explain(|_, _, error| words::error_text(error)).boxed())
        },
    }
}

const fn execute<L: LanguageMarker>() -> ToolDefinition {
    ToolDefinition {
        name: "execute",
        parameters: const {
            let command = L::LANGUAGE.choose("Command for a POSIX shell.", "POSIX shell 的命令。");
            &[Parameter::required("command", ParameterKind::Text, command).aliases(&["cmd", "script"])]
        },
        annotations: Annotations::destructive("Run a command"),
        needs: Needs::Shell,
        anthropic_type: None,
        description: |offered| match L::LANGUAGE {
            Language::English => {
                let edit = if offered.changes { ", edit_file" } else { "" };
                format!(
                    "Runs a command in a shell, and returns its standard output and standard error, with the exit code if it failed. Quote \
                     paths with spaces. Prefer read_file{edit}, glob and grep to commands such as cat, sed, find and grep."
                )
            }
            Language::Chinese => {
                let edit = if offered.changes { "、edit_file" } else { "" };
                format!(
                    "在 shell 中运行命令，返回标准输出和标准错误；命令失败时还有退出码。含空格的路径须加引号。请优先使用 \
                     read_file{edit}、glob 和 grep，而不是 cat、sed、find、grep 等命令。"
                )
            }
        },
        action: |arguments| {
            let request = ExecuteRequest::new(arguments.required_text("command")?);
            let request = request.max_output_bytes(MAX_CHARACTERS as u64);
            let action = RequestAction::new(request, (), words::output).explain(words::execute_error);
            Ok(action.if_stored(|request| request.max_output_bytes(MAX_STORED_OUTPUT)).boxed())
        },
    }
}
