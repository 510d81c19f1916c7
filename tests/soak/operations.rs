//! Random calls of every operation, each of which checks its answer.

use std::fmt::Debug;

use fastrand::Rng;
use futures::{Stream, StreamExt as _};
use vfs_core::search::LineKind;
use vfs_core::snapshots::{ForgetRequest, RestoreRequest, SnapshotRequest};
use vfs_core::{
    Backend, CaseMode, Content, CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, GlobRequest,
    GrepEvent, GrepMatch, GrepOutput, GrepRequest, LsRequest, OpContext, Problem, ReadRequest, RenameRequest, Result,
    StatRequest, WriteMode, WriteRequest,
};

use super::content::{LARGE, LINE, WORDS, directory, file, is_whole, mark, text};
use super::judge::{Interruption, assert_expected};

/// Operations that [`perform`] accepts.
pub(crate) const NAMES: [&str; 16] = [
    "stat",
    "ls",
    "read",
    "lines",
    "bytes",
    "write",
    "append",
    "edit",
    "delete",
    "rename",
    "copy",
    "glob",
    "grep",
    "grep_stream",
    "transfer",
    "snapshot",
];

/// Makes one call of the operation `name`, checks the answer, and passes its failure on.
pub(crate) async fn perform(
    files: &dyn Backend,
    name: &str,
    random: &mut Rng,
    cx: &OpContext,
    interruption: Interruption,
) -> Result<()> {
    match name {
        "stat" => stat(files, random, cx).await,
        "ls" => ls(files, random, cx).await,
        "read" | "lines" | "bytes" => read(files, name, random, cx).await,
        "write" | "append" => write(files, name, random, cx).await,
        "edit" => edit(files, random, cx).await,
        "delete" => delete(files, random, cx).await,
        "rename" | "copy" => transfer(files, name, random, cx).await,
        "glob" => glob(files, random, cx).await,
        "grep" => grep(files, random, cx).await,
        "grep_stream" => grep_stream(files, random, cx).await,
        "transfer" => up_and_down(files, random, cx, interruption).await,
        "snapshot" => snapshot(files, random, cx).await,
        _ => panic!("{name} is not an operation"),
    }
}

async fn stat(files: &dyn Backend, random: &mut Rng, cx: &OpContext) -> Result<()> {
    let path = file(random);
    let info = files.stat(cx, StatRequest::new(path.clone())).await?;
    assert_eq!(info.path, path);
    assert!(!info.is_dir && info.size.is_multiple_of(LINE as u64) && info.version.is_some(), "{info:?}");
    Ok(())
}

async fn ls(files: &dyn Backend, random: &mut Rng, cx: &OpContext) -> Result<()> {
    let mut request = LsRequest::new(directory(random));
    request.recursive = random.bool();
    let below = format!("{}/", request.path);
    let listing = files.ls(cx, request).await?;
    assert_sorted(listing.entries.iter().map(|entry| &entry.path));
    assert!(listing.entries.iter().all(|entry| entry.path.as_str().starts_with(&below)));
    assert_harmless(&listing.problems);
    Ok(())
}

async fn read(files: &dyn Backend, name: &str, random: &mut Rng, cx: &OpContext) -> Result<()> {
    let request = ReadRequest::new(file(random));
    let (request, most) = match name {
        "lines" => (request.lines(random.u64(..40), 20), 20 * LINE),
        "bytes" => (request.bytes(0, Some(1_000)), 1_000),
        _ => (request, usize::MAX),
    };
    let content = files.read(cx, request).await?.content;
    assert!(content.as_bytes().len() <= most);
    assert!(matches!(content, Content::Text(_)), "all files hold text");
    assert!(name == "bytes" || is_whole(content.as_bytes()), "half a line was read");
    Ok(())
}

async fn write(files: &dyn Backend, name: &str, random: &mut Rng, cx: &OpContext) -> Result<()> {
    let request = WriteRequest::new(file(random), text(random));
    let size = request.content.len() as u64;
    let now = files.stat(cx, StatRequest::new(request.path.clone())).await;
    let mode = match (name, random.u8(..3), now) {
        ("append", _, Ok(info)) if info.size < LARGE => WriteMode::Append,
        ("write", 0, _) => WriteMode::CreateNew,
        ("write", 1, Ok(info)) => info.version.map_or(WriteMode::Overwrite, WriteMode::IfVersion),
        _ => WriteMode::Overwrite,
    };
    let written = files.write(cx, request.mode(mode.clone())).await?;
    assert!(if mode == WriteMode::Append { written.size >= size } else { written.size == size }, "{written:?}");
    Ok(())
}

async fn edit(files: &dyn Backend, random: &mut Rng, cx: &OpContext) -> Result<()> {
    let (old, new) = (mark(random), mark(random));
    let mut request = EditRequest::new(file(random), old, new);
    if random.bool() {
        request = request.replace_all();
    }
    if random.u8(..4) == 0 {
        request = request.dry_run();
    }
    let edited = files.edit(cx, request).await?;
    assert!(edited.occurrences > 0 && edited.size.is_multiple_of(LINE as u64), "{edited:?}");
    Ok(())
}

async fn delete(files: &dyn Backend, random: &mut Rng, cx: &OpContext) -> Result<()> {
    let request = match random.u8(..20) {
        0 => DeleteRequest::new(directory(random)).recursive(),
        1 => DeleteRequest::new(directory(random)),
        _ => DeleteRequest::new(file(random)),
    };
    files.delete(cx, request).await.map(drop)
}

/// Files go to files and directories to directories, so that no name grows.
async fn transfer(files: &dyn Backend, name: &str, random: &mut Rng, cx: &OpContext) -> Result<()> {
    let (from, to) = match random.u8(..4) {
        0 => (directory(random), directory(random)),
        _ => (file(random), file(random)),
    };
    if name == "copy" {
        let request = CopyRequest::new(from, to);
        files.copy(cx, if random.bool() { request.overwrite() } else { request }).await.map(drop)
    } else {
        let request = RenameRequest::new(from, to);
        files.rename(cx, if random.bool() { request.overwrite() } else { request }).await.map(drop)
    }
}

async fn glob(files: &dyn Backend, random: &mut Rng, cx: &OpContext) -> Result<()> {
    let pattern = ["*", "*1", "d1/*", "/d[2-4]/**/f?", "**/below/*"][random.usize(..5)];
    let found = files.glob(cx, GlobRequest::new(pattern).limit(random.u64(1..100))).await?;
    assert_sorted(found.entries.iter().map(|entry| &entry.path));
    assert_harmless(&found.problems);
    Ok(())
}

fn grep_request(random: &mut Rng) -> GrepRequest {
    let word = WORDS[random.usize(..WORDS.len())];
    let mut request = match random.u8(..4) {
        0 => GrepRequest::literal(mark(random)),
        1 => GrepRequest::regex(format!("^{word} +0+[1-9]{{2}}")),
        2 => GrepRequest::literal(word.to_uppercase()).case(CaseMode::Insensitive),
        _ => GrepRequest::literal(word),
    };
    request.output =
        [GrepOutput::Matches, GrepOutput::Matches, GrepOutput::Files, GrepOutput::Counts][random.usize(..4)];
    request.limit = random.bool().then(|| random.u64(1..50));
    request.limit_per_file = (random.u8(..4) == 0).then_some(2);
    request.context(random.u32(..2), random.u32(..3))
}

async fn grep(files: &dyn Backend, random: &mut Rng, cx: &OpContext) -> Result<()> {
    let request = grep_request(random);
    let limit = request.limit.unwrap_or(u64::MAX);
    let found = files.grep(cx, request).await?;
    found.matches.iter().for_each(assert_whole_line);
    assert_sorted(found.matches.iter().map(|found| (&found.path, found.line)));
    assert_sorted(found.files.iter().map(|file| &file.path));
    let matches = found.matches.iter().filter(|found| found.kind == LineKind::Match).count();
    assert!(matches.max(found.files.len()) as u64 <= limit);
    assert_harmless(&found.problems);
    Ok(())
}

/// Takes all events, or some of them and leaves.
async fn grep_stream(files: &dyn Backend, random: &mut Rng, cx: &OpContext) -> Result<()> {
    let events = files.grep_stream(cx.clone(), grep_request(random));
    if random.bool() {
        let some = random.usize(..200);
        return follow(events.take(some)).await.map(drop);
    }
    let ended = follow(events).await?;
    assert!(ended, "a stream ends with its end");
    Ok(())
}

/// Checks a stream to its end; whether the search was over.
async fn follow(mut events: impl Stream<Item = Result<GrepEvent>> + Unpin) -> Result<bool> {
    let mut last = None;
    let mut is_over = false;
    while let Some(event) = events.next().await {
        assert!(!is_over, "an event follows the end");
        match event? {
            GrepEvent::Match(found) => {
                assert_whole_line(&found);
                let place = Some((found.path, found.line));
                assert!(last < place, "{place:?} follows {last:?}");
                last = place;
            }
            GrepEvent::Problem(problem) => assert_harmless(&[problem]),
            GrepEvent::End(_) => is_over = true,
            _ => {}
        }
    }
    Ok(is_over)
}

/// Uploads some files and downloads some; each answers for itself.
async fn up_and_down(files: &dyn Backend, random: &mut Rng, cx: &OpContext, interruption: Interruption) -> Result<()> {
    let uploads: Vec<_> = (0..random.usize(1..4)).map(|_| FileUploadRequest::new(file(random), text(random))).collect();
    let paths: Vec<_> = uploads.iter().map(|upload| upload.path.clone()).collect();
    let uploaded = files.upload_files(cx, uploads).await;
    assert_eq!(uploaded.iter().map(|response| response.path.clone()).collect::<Vec<_>>(), paths);
    for error in uploaded.iter().filter_map(|response| response.cause.as_ref()) {
        assert_expected("upload", error, interruption);
    }
    for response in files.download_files(cx, paths).await {
        match (&response.content, &response.cause) {
            (Some(content), None) => assert!(is_whole(content), "half a line was downloaded"),
            (None, Some(error)) => assert_expected("download", error, interruption),
            _ => panic!("neither content nor a cause: {response:?}"),
        }
    }
    Ok(())
}

/// Remembers the state of all files, sometimes goes back to it, and forgets it.
async fn snapshot(files: &dyn Backend, random: &mut Rng, cx: &OpContext) -> Result<()> {
    let Some(snapshots) = files.as_snapshots() else {
        return stat(files, random, cx).await;
    };
    let id = snapshots.snapshot(cx, SnapshotRequest::new()).await?.id;
    let restored =
        if random.u8(..10) == 0 { snapshots.restore(cx, RestoreRequest::new(id.clone())).await } else { Ok(()) };
    // Whatever came between: what is not forgotten stays.
    snapshots.forget(&OpContext::new(), ForgetRequest::new(id)).await?;
    restored
}

fn assert_whole_line(found: &GrepMatch) {
    assert!(found.line > 0 && found.text.len() == LINE - 1, "half a line was found: {found:?}");
}

#[track_caller]
fn assert_sorted<T: PartialOrd + Debug>(items: impl Iterator<Item = T>) {
    let items: Vec<_> = items.collect();
    assert!(items.is_sorted_by(|a, b| a < b), "not in order: {items:?}");
}

/// Asserts that all problems can be due to entries that other tasks remove during the walk.
#[track_caller]
fn assert_harmless(problems: &[Problem]) {
    for problem in problems {
        let expected = [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::IsADirectory, ErrorKind::Busy];
        assert!(expected.contains(&problem.code), "{problem:?}");
    }
}
