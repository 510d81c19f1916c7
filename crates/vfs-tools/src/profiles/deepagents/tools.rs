//! Names, parameters and descriptions.

use std::time::Duration;

use vfs_core::search::HiddenNames;
use vfs_core::{
    DeleteRequest, EditRequest, ExecuteRequest, GlobRequest, GrepOutput, GrepRequest, LsRequest, ReadRequest,
    WriteMode, WriteRequest,
};

use super::wording::{DeepagentsWording, Release};
use super::{MAX_CHARACTERS, MAX_ENTRIES};
use crate::annotations::Annotations;
use crate::argument_error::ArgumentError;
use crate::arguments::Arguments;
use crate::parameter::{Parameter, ParameterKind};
use crate::request_action::{MultiModalReadAction, RequestAction};
use crate::result_store::MAX_STORED_OUTPUT;
use crate::tool_definition::{Needs, ToolDefinition};

/// The tools of release 0.4.
pub(crate) const CLASSIC: &[ToolDefinition] = &[
    ls::<ClassicRelease>(),
    read_file::<ClassicRelease>(),
    WRITE_NEW_FILE,
    edit_file::<ClassicRelease>(),
    GLOB_FROM_ROOT,
    GREP_WITHOUT_LIMIT,
    execute::<ClassicRelease>(),
];

/// The tools of release 0.7.
pub(crate) const CURRENT: &[ToolDefinition] = &[
    ls::<CurrentRelease>(),
    read_file::<CurrentRelease>(),
    write_file::<CurrentRelease>(),
    edit_file::<CurrentRelease>(),
    DELETE,
    glob::<CurrentRelease>(),
    GREP,
    execute::<CurrentRelease>(),
];

/// The tools of release 1.14 of the package for JavaScript.
pub(crate) const JS: &[ToolDefinition] = &[
    LS_OF_ROOT,
    read_file::<JsRelease>(),
    write_file::<JsRelease>(),
    edit_file::<JsRelease>(),
    DELETE,
    GLOB_FROM_PATH,
    GREP_CONTENT,
    EXECUTE_WITHOUT_TIMEOUT,
];

/// A release, for the definitions that several of them share.
trait ReleaseMarker {
    const WORDS: DeepagentsWording;
}

struct ClassicRelease;

impl ReleaseMarker for ClassicRelease {
    const WORDS: DeepagentsWording = CLASSIC_WORDS;
}

struct CurrentRelease;

impl ReleaseMarker for CurrentRelease {
    const WORDS: DeepagentsWording = CURRENT_WORDS;
}

struct JsRelease;

impl ReleaseMarker for JsRelease {
    const WORDS: DeepagentsWording = JS_WORDS;
}

const CLASSIC_WORDS: DeepagentsWording = DeepagentsWording(Release::Classic);
const CURRENT_WORDS: DeepagentsWording = DeepagentsWording(Release::Current);
const JS_WORDS: DeepagentsWording = DeepagentsWording(Release::Js);

/// Number of lines of a window, unless the call says otherwise.
const DEFAULT_LINES: u64 = 100;

/// Maximum number of matches of a search, unless the call says otherwise.
const DEFAULT_MATCHES: u64 = 1000;

/// Maximum size of the matches of a search, several times what is shown.
const MAX_MATCHED_BYTES: u64 = 1 << 20;

const FROM_0: ParameterKind = ParameterKind::Integer { min: 0, max: i64::MAX };
const FROM_1: ParameterKind = ParameterKind::Integer { min: 1, max: i64::MAX };
const SECONDS: ParameterKind = ParameterKind::Integer { min: 0, max: MAX_TIMEOUT.as_secs() as i64 };
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

const FILE_PATH: Parameter =
    Parameter::required("file_path", ParameterKind::Path, "Absolute path of the file.").aliases(&["path", "file"]);
const CONTENT: Parameter = Parameter::required("content", ParameterKind::Text, "Content of the file.").aliases(&[
    "text",
    "contents",
    "file_text",
]);
const SEARCH_PATH: Parameter = Parameter::optional("path", ParameterKind::Path, "Directory to search in. Default '/'.")
    .aliases(&["directory", "dir_path"]);

const fn ls<R: ReleaseMarker>() -> ToolDefinition {
    ToolDefinition {
        name: "ls",
        parameters: const {
            &[Parameter::required("path", ParameterKind::Path, "Absolute path of the directory.")
                .aliases(&["directory", "dir_path"])]
        },
        annotations: Annotations::read_only("List a directory"),
        needs: Needs::Files,
        anthropic_type: None,
        description: |_| {
            "Lists the files and directories in a directory; the path of a directory ends in '/'. Use it to find the file to read."
                .to_owned()
        },
        action: |arguments| {
            let request = LsRequest::new(arguments.required_path("path")?).limit(MAX_ENTRIES);
            Ok(RequestAction::new(request, R::WORDS, DeepagentsWording::listing).boxed())
        },
    }
}

const LS_OF_ROOT: ToolDefinition = ToolDefinition {
    parameters: &[Parameter::optional("path", ParameterKind::Path, "Absolute path of the directory. Default '/'.")
        .aliases(&["directory", "dir_path"])],
    description: |_| {
        "Lists the files and directories in a directory, with the sizes of files. Use it to find the file to read."
            .to_owned()
    },
    action: |arguments| {
        let request = LsRequest::new(arguments.path_or_root("path")).limit(MAX_ENTRIES);
        Ok(RequestAction::new(request, JS_WORDS, DeepagentsWording::listing).boxed())
    },
    ..ls::<JsRelease>()
};

const fn read_file<R: ReleaseMarker>() -> ToolDefinition {
    ToolDefinition {
        name: "read_file",
        parameters: const {
            &[
                FILE_PATH,
                Parameter::optional("offset", FROM_0, "Number of lines to skip. Default 0."),
                Parameter::optional("limit", FROM_1, "Maximum number of lines. Default 100."),
            ]
        },
        annotations: Annotations::read_only("Read a file"),
        needs: Needs::Files,
        anthropic_type: None,
        description: |offered| {
            let edit = if offered.changes { " Read a file before you edit it." } else { "" };
            format!(
                "Reads a file, by default its first 100 lines. For more, call again with `offset` and `limit`: offset=100, limit=200 \
                 shows the lines 101 to 300. An image is shown as an image. Read several files by calls in parallel.{edit}"
            )
        },
        action: |arguments| {
            let (offset, limit) =
                (arguments.count("offset").unwrap_or(0), arguments.count("limit").unwrap_or(DEFAULT_LINES));
            let window = ReadRequest::new(arguments.required_path("file_path")?).lines(offset, limit);
            let request = window.max_bytes(MAX_CHARACTERS as u64);
            Ok(Box::new(MultiModalReadAction { request, words: R::WORDS, show: DeepagentsWording::window }))
        },
    }
}

const WRITE_NEW_FILE: ToolDefinition = ToolDefinition {
    name: "write_file",
    parameters: &[FILE_PATH, CONTENT],
    annotations: Annotations::destructive("Write a new file").additive(),
    needs: Needs::WritableFiles,
    anthropic_type: None,
    description: |_| {
        "Creates a file, and the directories above it. A file that exists is not replaced: change it with edit_file."
            .to_owned()
    },
    action: |arguments| Ok(RequestAction::new(written(arguments)?, CLASSIC_WORDS, DeepagentsWording::written).boxed()),
};

const fn write_file<R: ReleaseMarker>() -> ToolDefinition {
    ToolDefinition {
        name: "write_file",
        parameters: const { &[FILE_PATH, CONTENT] },
        annotations: Annotations::destructive("Write a file"),
        needs: Needs::WritableFiles,
        anthropic_type: None,
        description: |_| {
            "Writes a file, and creates the directories above it. A file that exists is replaced as a whole: prefer edit_file for a \
             change."
                .to_owned()
        },
        action: |arguments| {
            let request = written(arguments)?.mode(WriteMode::Overwrite);
            Ok(RequestAction::new(request, R::WORDS, DeepagentsWording::written).boxed())
        },
    }
}

const fn edit_file<R: ReleaseMarker>() -> ToolDefinition {
    ToolDefinition {
        name: "edit_file",
        parameters: const {
            &[
                FILE_PATH,
                Parameter::required(
                    "old_string",
                    ParameterKind::Text,
                    "Text to replace, exactly as it is in the file.",
                )
                .aliases(&["old_str", "oldText", "old"]),
                Parameter::required("new_string", ParameterKind::Text, "Text in its place.")
                    .aliases(&["new_str", "newText", "new"]),
                Parameter::optional(
                    "replace_all",
                    ParameterKind::Boolean,
                    "Whether to replace every occurrence. Default false.",
                ),
            ]
        },
        annotations: Annotations::destructive("Edit a file"),
        needs: Needs::WritableFiles,
        anthropic_type: None,
        description: |_| {
            "Replaces a text in a file by another one. `old_string` has to be in the file exactly once, with its indentation and \
             without anything that read_file adds, unless `replace_all` is true."
                .to_owned()
        },
        action: |arguments| {
            let (old, new) = (arguments.required_text("old_string")?, arguments.required_text("new_string")?);
            let edit = EditRequest::new(arguments.required_path("file_path")?, old, new);
            let edit = if arguments.boolean("replace_all") == Some(true) { edit.replace_all() } else { edit };
            let action = RequestAction::new(edit, R::WORDS, DeepagentsWording::edited);
            Ok(action.explain(DeepagentsWording::edit_error).boxed())
        },
    }
}

const DELETE: ToolDefinition = ToolDefinition {
    name: "delete",
    parameters: &[FILE_PATH],
    annotations: Annotations::destructive("Delete a file or directory"),
    needs: Needs::WritableFiles,
    anthropic_type: None,
    description: |_| "Deletes a file, or a directory with everything below it.".to_owned(),
    action: |arguments| {
        let request = DeleteRequest::new(arguments.required_path("file_path")?).recursive();
        Ok(RequestAction::new(request, CURRENT_WORDS, DeepagentsWording::deleted).boxed())
    },
};

const GLOB_PATTERN: Parameter = Parameter::required(
    "pattern",
    ParameterKind::Glob,
    "Pattern such as '**/*.py': `*` for any characters of a name, `**` for any directories, `?` for one character.",
)
.aliases(&["glob"]);

const GLOB_FROM_ROOT: ToolDefinition = ToolDefinition {
    name: "glob",
    parameters: &[GLOB_PATTERN, SEARCH_PATH],
    annotations: Annotations::read_only("Find files by name"),
    needs: Needs::Files,
    anthropic_type: None,
    description: |_| {
        "Finds files by a pattern, and returns absolute paths. '*.txt' finds the files of the directory itself, '**/*.txt' also \
         those below."
            .to_owned()
    },
    // In this release, a pattern without '/' is one of the directory itself.
    action: |arguments| {
        let pattern = arguments.required_text("pattern")?;
        let request = found(arguments, format!("/{}", pattern.trim_start_matches('/')));
        Ok(RequestAction::new(request, CLASSIC_WORDS, DeepagentsWording::found).boxed())
    },
};

const fn glob<R: ReleaseMarker>() -> ToolDefinition {
    ToolDefinition {
        name: "glob",
        parameters: const { &[GLOB_PATTERN, SEARCH_PATH] },
        annotations: Annotations::read_only("Find files by name"),
        needs: Needs::Files,
        anthropic_type: None,
        description: |_| {
            "Finds files by a pattern, and returns absolute paths. A pattern without '/' is one of names at any depth, one with '/' of \
             paths below `path`; '/*.py' finds the files of the directory itself. A leading dot has to be in the pattern."
                .to_owned()
        },
        action: |arguments| {
            let request = found(arguments, arguments.required_text("pattern")?);
            Ok(RequestAction::new(request, R::WORDS, DeepagentsWording::found).boxed())
        },
    }
}

const GLOB_FROM_PATH: ToolDefinition = ToolDefinition {
    name: "glob",
    parameters: &[GLOB_PATTERN, SEARCH_PATH],
    annotations: Annotations::read_only("Find files by name"),
    needs: Needs::Files,
    anthropic_type: None,
    description: |_| {
        "Finds files by a pattern, and returns absolute paths. '*.ts' finds the files of the directory itself, '**/*.ts' also those below."
            .to_owned()
    },
    // The pattern is one of paths below `path`, hidden ones included.
    action: |arguments| {
        let pattern = arguments.required_text("pattern")?;
        let request = found(arguments, format!("/{}", pattern.trim_start_matches('/'))).hidden();
        Ok(RequestAction::new(request, JsRelease::WORDS, DeepagentsWording::found).boxed())
    },
};

const GREP_PATTERN: Parameter =
    Parameter::required("pattern", ParameterKind::Text, "Literal text, not a regular expression.")
        .aliases(&["query", "text"]);
const GREP_GLOB: Parameter =
    Parameter::optional("glob", ParameterKind::Glob, "Pattern of the files to search, such as '*.py'.")
        .aliases(&["include"]);
const OUTPUT_MODE: Parameter = Parameter::optional(
    "output_mode",
    ParameterKind::Choice(&["files_with_matches", "content", "count"]),
    "'files_with_matches' (default): paths; 'content': matching lines with numbers; 'count': number of matches of each file.",
);

const OUTPUT_MODE_CONTENT: Parameter = Parameter::optional(
    "output_mode",
    ParameterKind::Choice(&["files_with_matches", "content", "count"]),
    "'content' (default): matching lines with numbers; 'files_with_matches': paths; 'count': number of matches of each file.",
);
const MAX_COUNT: Parameter = Parameter::optional(
    "max_count",
    FROM_1,
    "Maximum number of results: of matching lines, or of files. Default 1000.",
);

const GREP_WITHOUT_LIMIT: ToolDefinition = ToolDefinition {
    name: "grep",
    parameters: &[GREP_PATTERN, SEARCH_PATH, GREP_GLOB, OUTPUT_MODE],
    annotations: Annotations::read_only("Search in files"),
    needs: Needs::Files,
    anthropic_type: None,
    description: |_| "Searches files for a literal text. Hidden and ignored files are left out.".to_owned(),
    action: |arguments| {
        let request = searched(arguments, GrepOutput::Files)?.limit(MAX_ENTRIES);
        Ok(RequestAction::new(request, CLASSIC_WORDS, DeepagentsWording::matches).boxed())
    },
};

const GREP: ToolDefinition = ToolDefinition {
    name: "grep",
    parameters: &[GREP_PATTERN, SEARCH_PATH, GREP_GLOB, OUTPUT_MODE, MAX_COUNT],
    annotations: Annotations::read_only("Search in files"),
    needs: Needs::Files,
    anthropic_type: None,
    description: |offered| {
        let regex = if offered.shell { " For a regular expression, run `rg` by execute." } else { "" };
        format!("Searches files for a literal text. Hidden and ignored files are left out.{regex}")
    },
    action: |arguments| {
        let limit = arguments.count("max_count").unwrap_or(DEFAULT_MATCHES);
        let request = searched(arguments, GrepOutput::Files)?.limit(limit);
        Ok(RequestAction::new(request, CURRENT_WORDS, DeepagentsWording::matches).boxed())
    },
};

const GREP_CONTENT: ToolDefinition = ToolDefinition {
    parameters: &[GREP_PATTERN, SEARCH_PATH, GREP_GLOB, OUTPUT_MODE_CONTENT, MAX_COUNT],
    action: |arguments| {
        let limit = arguments.count("max_count").unwrap_or(DEFAULT_MATCHES);
        let request = searched(arguments, GrepOutput::Matches)?.limit(limit);
        Ok(RequestAction::new(request, JS_WORDS, DeepagentsWording::matches).boxed())
    },
    ..GREP
};

const COMMAND: Parameter = Parameter::required("command", ParameterKind::Text, "Command line.").aliases(&["cmd"]);

const EXECUTE_WITHOUT_TIMEOUT: ToolDefinition = ToolDefinition { parameters: &[COMMAND], ..execute::<JsRelease>() };

const fn execute<R: ReleaseMarker>() -> ToolDefinition {
    ToolDefinition {
        name: "execute",
        parameters: const {
            &[
                COMMAND,
                Parameter::optional("timeout", SECONDS, "Seconds after which the command is stopped; 0 for an hour."),
            ]
        },
        annotations: Annotations::destructive("Run a command"),
        needs: Needs::Shell,
        anthropic_type: None,
        description: |offered| {
            let edit = if offered.changes { ", edit_file" } else { "" };
            format!(
                "Runs a command in a shell, and returns its standard output and standard error with the exit code. Quote paths with spaces. \
                 Prefer read_file{edit}, glob and grep to commands such as cat, sed, find and grep."
            )
        },
        action: |arguments| {
            let request =
                ExecuteRequest::new(arguments.required_text("command")?).max_output_bytes(MAX_CHARACTERS as u64);
            let request = match arguments.count("timeout") {
                None => request,
                Some(0) => request.timeout(MAX_TIMEOUT),
                Some(seconds) => request.timeout(Duration::from_secs(seconds)),
            };
            let action = RequestAction::new(request, R::WORDS, DeepagentsWording::output);
            Ok(action.if_stored(|request| request.max_output_bytes(MAX_STORED_OUTPUT)).boxed())
        },
    }
}

fn written(arguments: &Arguments) -> Result<WriteRequest, ArgumentError> {
    Ok(WriteRequest::new(arguments.required_path("file_path")?, arguments.required_text("content")?))
}

fn found(arguments: &Arguments, pattern: String) -> GlobRequest {
    let request = GlobRequest::new(pattern).path(arguments.path_or_root("path"));
    request.hidden_names(HiddenNames::Spelled).no_ignore().limit(MAX_ENTRIES)
}

fn searched(arguments: &Arguments, default: GrepOutput) -> Result<GrepRequest, ArgumentError> {
    let output = match arguments.text("output_mode") {
        Some("content") => GrepOutput::Matches,
        Some("count") => GrepOutput::Counts,
        Some("files_with_matches") => GrepOutput::Files,
        _ => default,
    };
    let request = GrepRequest::literal(arguments.required_text("pattern")?);
    let request = request.path(arguments.path_or_root("path")).output(output).max_result_bytes(MAX_MATCHED_BYTES);
    Ok(match arguments.text("glob") {
        None | Some("") => request,
        Some(glob) => request.glob(glob),
    })
}
