//! Golden tests of the wire format: requests and results with all fields set, against the files in `golden/`.
//!
//! Default fields and enum values are tested inline. A failure means that front ends and stored requests would break.

use std::fmt::Debug;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use vfs_core::backend::*;
use vfs_core::chunks::*;
use vfs_core::edit::*;
use vfs_core::error::*;
use vfs_core::multi_modal::*;
use vfs_core::operation::*;
use vfs_core::search::*;
use vfs_core::shell::*;
use vfs_core::snapshots::*;
use vfs_core::state::*;
use vfs_core::text::*;
use vfs_core::transfer::*;
use vfs_core::tree::*;
use vfs_core::watch::*;
use vfs_core::*;

macro_rules! golden {
    ($($name:literal => $value:expr,)+) => {
        $(check($name, include_str!(concat!("golden/", $name, ".json")), &$value);)+
    };
}

#[track_caller]
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(name: &str, golden: &str, value: &T) {
    let json = serde_json::to_string_pretty(value).expect("serialises") + "\n";
    assert_eq!(json, golden, "tests/golden/{name}.json should be:\n{json}");
    assert_eq!(&serde_json::from_str::<T>(golden).expect("deserialises"), value, "{name}");
}

/// Each value is its line of JSON, and comes back from it equal.
macro_rules! lines {
    ($($json:literal => $value:expr,)+) => {
        $(check_line($json, &$value);)+
    };
}

#[track_caller]
fn check_line<T: Serialize + DeserializeOwned + PartialEq + Debug>(json: &str, value: &T) {
    assert_eq!(serde_json::to_string(value).expect("serialises"), json);
    assert_eq!(&serde_json::from_str::<T>(json).expect("deserialises"), value, "{json}");
}

/// Checks that the JSON of `values` is a list of `words`, and that they come back from it equal.
#[track_caller]
fn check_words<T: Serialize + DeserializeOwned + PartialEq + Debug>(values: &[T], words: &[&str]) {
    let json = serde_json::to_string(words).expect("serialises");
    assert_eq!(serde_json::to_string(values).expect("serialises"), json);
    assert_eq!(serde_json::from_str::<Vec<T>>(&json).expect("deserialises"), values);
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("valid")
}

fn at() -> DateTime<Utc> {
    "2025-01-15T10:30:00.123456Z".parse().expect("a time")
}

fn version() -> Version {
    Version::new("v1")
}

fn file() -> FileInfo {
    FileInfo::file(path("/src/main.rs"), 120, version()).modified_at(at()).created_at(at())
}

fn problem() -> Problem {
    Problem::from(Error::at(ErrorKind::PermissionDenied, &path("/secret")))
}

fn update() -> FilesUpdate {
    FilesUpdate::from([(path("/a"), Some(FileData::text(b"x", at(), at()))), (path("/b"), None)])
}

fn skipped() -> Skipped {
    let mut skipped = Skipped::default();
    (skipped.hidden, skipped.ignored, skipped.binary, skipped.too_large, skipped.links) = (1, 2, 3, 4, 5);
    skipped
}

#[test]
fn requests() {
    let mut execute = ExecuteRequest::new("make test");
    execute.cwd = path("/src");
    execute.env.insert("LANG".into(), "C".into());
    execute.timeout = Some(Duration::from_millis(1_500));
    execute.stdin = Some("y\n".into());
    execute.max_output_bytes = Some(1_000);
    execute.terminal = Some(TerminalSize { rows: 50, columns: 120 });
    execute.run = RunMode::Background;
    let mut pages = MultiModalReadRequest::new(ReadRequest::new(path("/a.pdf")));
    pages.pages = Some("1-5".into());
    let mut grep = GrepRequest::regex("fn \\w+")
        .path(path("/src"))
        .glob("*.rs")
        .glob("!gen.rs")
        .file_type("rust")
        .case(CaseMode::Smart)
        .whole_word()
        .multiline()
        .invert()
        .context(1, 2)
        .output(GrepOutput::Counts)
        .limit(10)
        .limit_per_file(5)
        .hidden()
        .no_ignore()
        .binary(BinaryMode::Text)
        .links(LinkMode::Follow)
        .max_file_size(1_000)
        .max_line_bytes(200);
    grep.max_result_bytes = Some(3_000);
    golden! {
        "stat_request" => StatRequest::new(path("/a")),
        "ls_request" => LsRequest::new(path("/src")).recursive().max_depth(3).limit(100),
        "read_request" => ReadRequest::new(path("/a")).lines(10, 20).max_bytes(1_000),
        "read_request_bytes" => ReadRequest::new(path("/a")).bytes(5, Some(9)),
        "read_request_raw" => ReadRequest::new(path("/a")).raw(),
        "write_request" => WriteRequest::new(path("/a"), "text\n").mode(WriteMode::IfVersion(version())).modified_at(at()),
        "open_writer_request" => OpenWriterRequest::new(path("/a")).mode(WriteMode::Overwrite).modified_at(at()),
        "write_request_bytes" => WriteRequest::new(path("/a"), &b"\xFF\0"[..]).mode(WriteMode::Append),
        "edit_request" => EditRequest::new(path("/a"), "x", "y")
            .replace_all()
            .exact_line_endings()
            .and("p", "q")
            .expected_version(version())
            .dry_run()
            .with_diff(),
        "delete_request" => DeleteRequest::new(path("/a")).recursive().expected_version(version()),
        "delete_request_empty" => DeleteRequest::new(path("/d")).only_empty(),
        "rename_request" => RenameRequest::new(path("/a"), path("/b")).overwrite(),
        "copy_request" => CopyRequest::new(path("/a"), path("/b")),
        "glob_request" => GlobRequest::new("**/*.rs")
            .path(path("/src"))
            .kinds(EntryKinds::All)
            .hidden()
            .no_ignore()
            .links(LinkMode::Follow)
            .limit(7),
        "grep_request" => grep,
        "file_upload" => FileUploadRequest::new(path("/a"), "text").modified_at(at()),
        "execute_request" => execute,
        "multi_modal_read_request" => pages,
    }
}

#[test]
fn files_and_listings() {
    let mut listing = LsResult::new(vec![file(), FileInfo::directory(path("/src"))]);
    (listing.truncated, listing.problems) = (Some(TruncationReason::Depth), vec![problem()]);
    let mut glob = GlobResult::default();
    (glob.entries, glob.truncated, glob.skipped, glob.problems) =
        (vec![file()], Some(TruncationReason::Limit), skipped(), vec![problem()]);
    golden! {
        "file_info" => file(),
        "ls_result" => listing,
        "glob_result" => glob,
        "file_data_lines" => FileData::lines(b"a\nb", at(), at()),
        "file_data_base64" => FileData::text(b"\xFF", at(), at()),
        "capabilities" => Capabilities::new(1 << 20),
    }
}

#[test]
fn contents() {
    let read = |content: &'static [u8], request| {
        window::read_bytes(&bytes::Bytes::from_static(content), &request, version()).expect("reads")
    };
    let text = read(b"a\r\nb\r\nc", ReadRequest::new(path("/a")).lines(1, 1));
    let picture = read(b"\x89PNG\r\n\x1a\n\0", ReadRequest::new(path("/a.png")).max_bytes(8));
    let parts = vec![FilePart::new(PartKind::Image, "image/png", bytes::Bytes::from_static(b"\x89PNG"))];
    golden! {
        "read_result_text" => text,
        "read_result_binary" => picture,
        "multi_modal_content" => MultiModalReadResult::Content(text.clone()),
        "multi_modal_parts" => MultiModalReadResult::Parts(parts),
        "file_download" => FileDownloadResponse::ok(path("/a"), "text".into(), version()),
        "file_download_failed" => FileDownloadResponse::failed(path("/a"), Error::not_found(&path("/a"))),
    }
}

#[test]
fn mutations() {
    let mut write = WriteResult::new(path("/a"), true, version(), 5);
    write.files_update = Some(update());
    let mut edit = EditResult::new(path("/a"), 2, version(), 5).with_diff(Some("--- a/a\n+++ b/a\n".into()));
    edit.files_update = Some(update());
    let mut delete = DeleteResult::new(path("/a"), 3);
    delete.files_update = Some(update());
    let mut rename = RenameResult::new(path("/a"), path("/b"), true);
    rename.files_update = Some(update());
    let mut copy = CopyResult::new(path("/a"), path("/b"), false, 2, 10);
    copy.files_update = Some(update());
    let mut upload = FileUploadResponse::ok(path("/a"), version());
    upload.files_update = Some(update());
    golden! {
        "write_result" => write,
        "edit_result" => edit,
        "delete_result" => delete,
        "rename_result" => rename,
        "copy_result" => copy,
        "file_upload_response" => upload,
        "file_upload_failed" => FileUploadResponse::failed(path("/a"), Error::at(ErrorKind::IsADirectory, &path("/a"))),
    }
}

#[test]
fn searches() {
    let mut matched = GrepMatch::new(path("/a"), 3, "fn main()");
    (matched.column, matched.submatches, matched.byte_offset) = (4, [Submatch { start: 3, end: 7 }].into(), 40);
    matched.cut = true;
    let mut context = GrepMatch::new(path("/a"), 4, "{");
    context.kind = LineKind::Context;
    let mut result = GrepResult::default();
    result.matches = vec![matched.clone(), context];
    result.files = vec![MatchedFile::new(path("/a"), Some(2))];
    (result.truncated, result.skipped) = (Some(TruncationReason::MaxBytes), skipped());
    (result.problems, result.files_searched) = (vec![problem()], 9);
    let mut summary = GrepSummary::default();
    (summary.files_searched, summary.matches, summary.files_matched) = (9, 1, 1);
    (summary.skipped, summary.truncated) = (skipped(), Some(TruncationReason::Limit));
    golden! {
        "grep_result" => result,
        "grep_events" => vec![
            GrepEvent::Match(matched),
            GrepEvent::File(MatchedFile::new(path("/a"), None)),
            GrepEvent::Problem(problem()),
            GrepEvent::End(summary),
        ],
    }
}

#[test]
fn commands_and_events() {
    let mut response = ExecuteResponse::default();
    (response.output, response.stdout, response.stderr) = ("ab".into(), "a".into(), "b".into());
    (response.exit_code, response.signal) = (Some(1), Some(9));
    (response.truncated, response.timed_out, response.duration) = (true, true, Duration::from_millis(1_500));
    (response.output_bytes, response.full_output, response.job) = (2, Some(path("/out")), Some(JobId::new("j1")));
    response.problems = vec![Error::new(ErrorKind::PolicyDenied, "new").with_path(&path("/a/.git")).into()];
    let mut running = JobInfo::new(JobId::new("j1"), "make", at());
    let mut more = JobOutputRequest::new(JobId::new("j1")).from(10).wait(Duration::from_millis(1_500));
    more.max_bytes = Some(1_000);
    let mut printed = JobOutputResult::default();
    (printed.output, printed.cursor, printed.missed_bytes) = ("ab".into(), 12, 10);
    let mut exit = CommandExit::default();
    (exit.exit_code, exit.duration) = (Some(0), Duration::from_millis(250));
    (running.exit, printed.exit) = (Some(exit), Some(exit));
    golden! {
        "execute_response" => response,
        "jobs_request" => JobsRequest::new(),
        "jobs" => vec![JobInfo::new(JobId::new("j0"), "make watch", at()), running],
        "job_output_request" => more,
        "job_output" => printed,
        "stop_job_request" => StopJobRequest::new(JobId::new("j1")),
        "execute_events" => vec![
            ExecuteEvent::Stdout("a".into()),
            ExecuteEvent::Stderr("b".into()),
            ExecuteEvent::Exit(ExecuteResponse::default()),
        ],
    }
}

#[test]
fn states_and_changes() {
    let event = |change| WatchEvent::new(WatchCursor::new("c1"), change);
    let change =
        SnapshotDiffEntry::new(path("/a"), SnapshotDiffKind::Changed).versions(Some(version()), Some(version()));
    golden! {
        "watch_request" => WatchRequest::new(path("/d")).since(WatchCursor::new("c1")),
        "watch_events" => vec![
            event(Change::Created { path: path("/a"), version: Some(version()) }),
            event(Change::Changed { path: path("/a"), version: None }),
            event(Change::Removed { path: path("/a") }),
            event(Change::Renamed { from: path("/a"), to: path("/b"), version: Some(version()) }),
            event(Change::Overflow),
        ],
        "snapshot_request" => SnapshotRequest::new().label("before"),
        "snapshot_info" => SnapshotInfo::new(SnapshotId::new("s1"), at()).label(Some("before".into())).holding(2, 10),
        "restore_request" => RestoreRequest::new(SnapshotId::new("s1")),
        "forget_request" => ForgetRequest::new(SnapshotId::new("s1")),
        "diff_request" => SnapshotDiffRequest::between(SnapshotId::new("s1"), SnapshotId::new("s2")),
        "change_set" => SnapshotDiffResult::new(vec![change.diff("--- a/a\n".into())]),
        "resolve_request" => ResolveRequest::new(path("/a")),
        "resolved" => ResolveResult::at(path("/a")).names(2),
        "lend_request" => OpenTreeRequest::new(path("/d"), TreeUse::Grep),
        "lend_request_for_grep" => OpenTreeRequest::for_grep(&GrepRequest::literal("x")).at(path("/d")),
        "download_request" => FileDownloadRequest::new(path("/a")),
        "call" => WriteRequest::new(path("/a"), "text").into_any(),
    }
}

#[test]
fn errors() {
    let edit = |content: &[u8], old| {
        edit::apply(content, &[Replacement::new(old, "new")], 1_000).expect_err("fails").with_path(&path("/a"))
    };
    let past_end = window::read_bytes(&"a\n".into(), &ReadRequest::new(path("/a")).offset(9), version());
    golden! {
        "error" => Error::not_found(&path("/a")),
        "error_no_match" => edit(b"let x = 1;\n", "let x  = 1;"),
        "error_not_unique" => edit(b"x\nx\n", "x"),
        "error_past_end" => past_end.expect_err("fails"),
        "error_conflict" => Error::conflict(&path("/a"), Some(version())),
        "error_operation_id_reused" => Error::at(ErrorKind::Conflict, &path("/a")).with_detail(ErrorDetail::OperationIdReused),
        "error_rate_limited" =>
            Error::at(ErrorKind::QuotaExceeded, &path("/a")).with_detail(ErrorDetail::RateLimited { retry_after_ms: 250 }),
        "error_missing_feature" => Error::of(ErrorKind::Unsupported)
            .with_detail(ErrorDetail::MissingFeature { feature: "sqlite".into() }),
    }
}

#[test]
fn requests_leave_out_optional_fields_that_are_not_set() {
    lines! {
        r#"{"path":"/a","recursive":false}"# => LsRequest::new(path("/a")),
        r#"{"path":"/a","offset":0}"# => ReadRequest::new(path("/a")),
        r#"{"path":"/a","offset":0,"bytes":{"start":5}}"# => ReadRequest::new(path("/a")).bytes(5, None),
        r#"{"path":"/a","content":"x","mode":"create_new"}"# => WriteRequest::new(path("/a"), "x"),
        r#"{"path":"/a","mode":"apply","diff":"on_dry_run"}"# => EditRequest::list(path("/a"), Vec::new()),
        r#"{"old":"x","new":"y","occurrences":"unique","line_endings":"match"}"# => Replacement::new("x", "y"),
        r#"{"path":"/a","recursive":false}"# => DeleteRequest::new(path("/a")),
        r#"{"pattern":"*","path":"/","kinds":"files","hidden":false,"no_ignore":false,"links":"skip"}"# =>
            GlobRequest::new("*"),
        r#"{"path":"/a","content":"x"}"# => FileUploadRequest::new(path("/a"), "x"),
        r#"{"path":"/a","content_base64":"/w=="}"# => FileUploadRequest::new(path("/a"), &b"\xFF"[..]),
        r#"{"read":{"path":"/a","offset":0}}"# => MultiModalReadRequest::new(ReadRequest::new(path("/a"))),
        r#"{"command":"ls","cwd":"/","base_env":"clean","full_output":"dropped","run":"foreground"}"# =>
            ExecuteRequest::new("ls"),
        r#"{"id":"j1","cursor":0}"# => JobOutputRequest::new(JobId::new("j1")),
        r#"{}"# => SnapshotRequest::new(),
        r#"{"from":"s1"}"# => SnapshotDiffRequest::since(SnapshotId::new("s1")),
        r#"{"path":"/"}"# => WatchRequest::default(),
    }
}

#[test]
fn results_leave_out_optional_fields_that_are_not_set() {
    lines! {
        r#"{"entries":[]}"# => LsResult::default(),
        r#"{"entries":[]}"# => GlobResult::default(),
        r#"{"matches":[],"files_searched":0}"# => GrepResult::default(),
        r#"{"hidden":0,"ignored":0,"binary":0,"too_large":0,"links":0}"# => Skipped::default(),
        r#"{"path":"/a","created":false,"version":"v1","size":5}"# => WriteResult::new(path("/a"), false, version(), 5),
        r#"{"path":"/a","occurrences":2,"version":"v1","size":5}"# => EditResult::new(path("/a"), 2, version(), 5),
        r#"{"path":"/a","files":3}"# => DeleteResult::new(path("/a"), 3),
        r#"{"from":"/a","to":"/b","replaced":false}"# => RenameResult::new(path("/a"), path("/b"), false),
        r#"{"from":"/a","to":"/b","replaced":true,"files":2,"bytes":10}"# =>
            CopyResult::new(path("/a"), path("/b"), true, 2, 10),
        r#"{"path":"/a","version":"v1"}"# => FileUploadResponse::ok(path("/a"), version()),
        r#"{"path":"/a","content_base64":"/w==","version":"v1"}"# =>
            FileDownloadResponse::ok(path("/a"), bytes::Bytes::from_static(b"\xFF"), version()),
        r#"{"output":"","cursor":0,"missed_bytes":0}"# => JobOutputResult::default(),
        r#"{"exit_code":null,"signal":null,"timed_out":false,"duration":0.0}"# => CommandExit::default(),
        r#"{"path":"/a","names":1,"leads_nowhere":true}"# => ResolveResult::at(path("/a")).leads_nowhere(true),
        r#"{"id":"s1","taken_at":"2025-01-15T10:30:00.123456Z","files":0,"bytes":0}"# =>
            SnapshotInfo::new(SnapshotId::new("s1"), at()),
        r#"{"changes":[]}"# => SnapshotDiffResult::default(),
        r#"{"path":"/a","kind":"removed"}"# => SnapshotDiffEntry::new(path("/a"), SnapshotDiffKind::Removed),
        r#"{"code":"internal","message":"Error: fault"}"# => Error::new(ErrorKind::Internal, "fault"),
    }
}

#[test]
fn details_of_errors_are_tagged_with_their_kind() {
    lines! {
        r#"{"no_match":{"replacement":1,"nearest":[],"hint":"line_endings"}}"# =>
            ErrorDetail::NoMatch { replacement: 1, nearest: Vec::new(), hint: Some(NoMatchHint::LineEndings) },
        r#"{"empty_old":{"replacement":1}}"# => ErrorDetail::EmptyOld { replacement: 1 },
        r#"{"invalid_path":{"fault":"link_loop"}}"# => ErrorDetail::InvalidPath { fault: PathFault::LinkLoop },
        r#"{"conflict":{"actual":null}}"# => ErrorDetail::Conflict { actual: None },
        r#"{"partial_delete":{"files":3}}"# => ErrorDetail::PartialDelete { files: 3 },
    }
}

#[test]
fn options_of_requests_are_words() {
    check_words(
        &[WriteMode::CreateNew, WriteMode::Overwrite, WriteMode::Append],
        &["create_new", "overwrite", "append"],
    );
    check_words(&[ReplacementScope::Unique, ReplacementScope::All], &["unique", "all"]);
    check_words(&[NewLineEndings::Match, NewLineEndings::Exact], &["match", "exact"]);
    check_words(&[ApplyMode::Apply, ApplyMode::DryRun], &["apply", "dry_run"]);
    check_words(&[DiffInclusion::OnDryRun, DiffInclusion::Always], &["on_dry_run", "always"]);
    check_words(&[DeleteScope::Anything, DeleteScope::EmptyDirectory], &["anything", "empty_directory"]);
    check_words(&[TransferTargetMode::CreateNew, TransferTargetMode::Overwrite], &["create_new", "overwrite"]);
    check_words(&[EntryKinds::Files, EntryKinds::Directories, EntryKinds::All], &["files", "directories", "all"]);
    check_words(&[LinkMode::Skip, LinkMode::Follow], &["skip", "follow"]);
    check_words(&[CaseMode::Sensitive, CaseMode::Insensitive, CaseMode::Smart], &["sensitive", "insensitive", "smart"]);
    check_words(&[GrepOutput::Matches, GrepOutput::Files, GrepOutput::Counts], &["matches", "files", "counts"]);
    check_words(&[BinaryMode::Skip, BinaryMode::Text], &["skip", "text"]);
    check_words(&[TreeUse::List, TreeUse::Glob, TreeUse::Grep], &["list", "glob", "grep"]);
    check_words(&[BaseEnvironment::Clean, BaseEnvironment::Inherited], &["clean", "inherited"]);
    check_words(&[FullOutputMode::Dropped, FullOutputMode::File], &["dropped", "file"]);
    check_words(&[RunMode::Foreground, RunMode::Background], &["foreground", "background"]);
}

#[test]
fn enums_of_results_are_words() {
    check_words(&[AccessMode::ReadWrite, AccessMode::ReadOnly], &["read_write", "read_only"]);
    check_words(&[MutationMode::InPlace, MutationMode::Returned], &["in_place", "returned"]);
    check_words(
        &[
            TruncationReason::Limit,
            TruncationReason::MaxBytes,
            TruncationReason::LongLine,
            TruncationReason::Depth,
            TruncationReason::MaxEntries,
            TruncationReason::Memory,
        ],
        &["limit", "max_bytes", "long_line", "depth", "max_entries", "memory"],
    );
    check_words(
        &[LineEnding::None, LineEnding::Lf, LineEnding::Crlf, LineEnding::Mixed],
        &["none", "lf", "crlf", "mixed"],
    );
    let legacy = Encoding::Legacy(encoding_rs::SHIFT_JIS);
    check_words(
        &[Encoding::Utf8, Encoding::Utf8Bom, Encoding::Utf16Le, Encoding::Utf16Be, legacy],
        &["utf-8", "utf-8-bom", "utf-16le", "utf-16be", "shift_jis"],
    );
    check_words(&[LineKind::Match, LineKind::Context], &["match", "context"]);
    check_words(&[PartKind::Image, PartKind::Pdf], &["image", "pdf"]);
    check_words(
        &[SnapshotDiffKind::Added, SnapshotDiffKind::Changed, SnapshotDiffKind::Removed],
        &["added", "changed", "removed"],
    );
    check_words(
        &[
            FileOperationError::FileNotFound,
            FileOperationError::PermissionDenied,
            FileOperationError::IsDirectory,
            FileOperationError::InvalidPath,
        ],
        &["file_not_found", "permission_denied", "is_directory", "invalid_path"],
    );
    check_words(&[OperationClass::Read, OperationClass::Write, OperationClass::Execute], &["looks", "changes", "runs"]);
}

#[test]
fn kinds_and_faults_of_errors_are_words() {
    check_words(
        ErrorKind::ALL,
        &[
            "not_found",
            "already_exists",
            "is_a_directory",
            "not_a_directory",
            "not_empty",
            "permission_denied",
            "policy_denied",
            "approval_required",
            "path_escape",
            "invalid_path",
            "invalid_pattern",
            "invalid_argument",
            "no_match",
            "not_unique",
            "conflict",
            "cross_backend",
            "too_large",
            "quota_exceeded",
            "storage_full",
            "busy",
            "timeout",
            "cancelled",
            "unsupported",
            "not_text",
            "unavailable",
            "internal",
        ],
    );
    check_words(
        &[
            PathFault::ParentComponent,
            PathFault::Nul,
            PathFault::HomeDirectory,
            PathFault::DriveLetter,
            PathFault::Unc,
            PathFault::LongName,
            PathFault::LongPath,
            PathFault::NotOneName,
            PathFault::LinkLoop,
        ],
        &[
            "parent_component",
            "nul",
            "home_directory",
            "drive_letter",
            "unc",
            "long_name",
            "long_path",
            "not_one_name",
            "link_loop",
        ],
    );
    check_words(&[NoMatchHint::FinalLineBreak, NoMatchHint::LineEndings], &["final_line_break", "line_endings"]);
}

#[test]
fn operations_are_words() {
    check_words(
        Operation::ALL,
        &[
            "stat",
            "resolve",
            "ls",
            "read",
            "write",
            "open_writer",
            "commit_writer",
            "edit",
            "delete",
            "rename",
            "copy",
            "glob",
            "grep",
            "grep_stream",
            "upload",
            "download",
            "multi_modal_read",
            "lend",
            "execute",
            "execute_stream",
            "jobs",
            "job_output",
            "stop_job",
            "snapshot",
            "snapshots",
            "restore",
            "forget",
            "diff",
            "watch",
        ],
    );
}

/// Returns `request` as a call, and the JSON of the request itself.
fn call_and_json<Q: Request + Serialize>(request: Q) -> (AnyRequest, String) {
    let json = serde_json::to_string(&request).expect("serialises");
    (request.into_any(), json)
}

#[test]
fn calls_have_the_word_of_their_operation_and_the_fields_of_their_request() {
    let (grep, execute, read) = (GrepRequest::literal("x"), ExecuteRequest::new("ls"), ReadRequest::new(path("/a")));
    let (job, snapshot) = (JobId::new("j1"), SnapshotId::new("s1"));
    let commit = r#"{"path":"/a","mode":"create_new","size":3}"#;
    let commit: CommitWriterRequest = serde_json::from_str(commit).expect("deserialises");
    let calls = [
        call_and_json(StatRequest::new(path("/a"))),
        call_and_json(ResolveRequest::new(path("/a"))),
        call_and_json(LsRequest::new(path("/a"))),
        call_and_json(read.clone()),
        call_and_json(WriteRequest::new(path("/a"), "x")),
        call_and_json(OpenWriterRequest::new(path("/a"))),
        call_and_json(commit),
        call_and_json(EditRequest::new(path("/a"), "x", "y")),
        call_and_json(DeleteRequest::new(path("/a"))),
        call_and_json(RenameRequest::new(path("/a"), path("/b"))),
        call_and_json(CopyRequest::new(path("/a"), path("/b"))),
        call_and_json(GlobRequest::new("*")),
        call_and_json(grep.clone()),
        call_and_json(GrepStreamRequest(grep.clone())),
        call_and_json(FileUploadRequest::new(path("/a"), "x")),
        call_and_json(FileDownloadRequest::new(path("/a"))),
        call_and_json(MultiModalReadRequest::new(read)),
        call_and_json(OpenTreeRequest::new(path("/a"), TreeUse::List)),
        call_and_json(execute.clone()),
        call_and_json(ExecuteStreamRequest(execute.clone())),
        call_and_json(JobsRequest::new()),
        call_and_json(JobOutputRequest::new(job.clone())),
        call_and_json(StopJobRequest::new(job)),
        call_and_json(SnapshotRequest::new()),
        call_and_json(ListSnapshotsRequest::new()),
        call_and_json(RestoreRequest::new(snapshot.clone())),
        call_and_json(ForgetRequest::new(snapshot.clone())),
        call_and_json(SnapshotDiffRequest::since(snapshot)),
        call_and_json(WatchRequest::default()),
    ];
    assert_eq!(calls.len(), Operation::ALL.len());
    for ((call, request), operation) in calls.iter().zip(Operation::ALL) {
        check_line(&format!(r#"{{"operation":"{operation}","request":{request}}}"#), call);
    }
    check_line("null", &ListSnapshotsRequest::new());
    check_line(&call_and_json(grep.clone()).1, &GrepStreamRequest(grep));
    check_line(&call_and_json(execute.clone()).1, &ExecuteStreamRequest(execute));
}
