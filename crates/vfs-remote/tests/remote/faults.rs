//! Transport faults: every operation returns the right answer or an error, never a wrong answer.

use std::path::Path;

use libtest_mimic::Trial;
use tempfile::TempDir;
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, ExecuteRequest, FileUploadRequest,
    GlobRequest, GrepRequest, LsRequest, OpContext, ReadRequest, RenameRequest, ResolveRequest, Result, Shell,
    StatRequest, VfsPath, WriteMode, WriteRequest,
};
use vfs_remote::{LocalProcess, RemoteConfig, SandboxBackend};

use crate::fault_injector::{Fault, FaultInjector};
use crate::places::directory;
use crate::runtime::trials;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        "faults":
        reads_are_right_or_errors,
        changes_are_made_or_not,
        banners_are_no_answers,
        a_content_that_arrives_in_part_is_not_written,
        operations_take_few_scripts,
        a_command_cannot_ask_for_endless_output,
        what_is_missing_is_named,
    ]
}

struct Files {
    root: TempDir,
    transport: FaultInjector,
    backend: SandboxBackend<FaultInjector>,
}

impl Files {
    async fn new() -> Result<Self> {
        let root = directory();
        let transport = FaultInjector::new(LocalProcess::new());
        let config = RemoteConfig::new(root.path().to_str().expect("it is UTF-8"));
        let backend = SandboxBackend::connect(transport.clone(), config).await?;
        Ok(Self { root, transport, backend })
    }

    fn disk(&self, path: &str) -> Option<Vec<u8>> {
        std::fs::read(self.root.path().join(path)).ok()
    }
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

/// Returns all faults that break a response, at many offsets.
fn faults() -> Vec<Fault> {
    let cuts = (0..1000).step_by(37).chain([990, 995, 998, 999]).map(Fault::Cut);
    cuts.chain([Fault::AnswerLost, Fault::NotRun, Fault::Mixed, Fault::Killed]).collect()
}

/// Returns the result of each read-only operation, as text.
async fn answers(files: &SandboxBackend<FaultInjector>) -> Vec<(&'static str, Result<String>)> {
    let cx = OpContext::new();
    let shown = |answer: Result<String>| answer;
    let downloads = files.download_files(&cx, vec![path("/a"), path("/d/b")]).await;
    let downloaded = downloads.into_iter().map(|answer| match answer.cause {
        Some(cause) => Err(cause),
        None => Ok(format!("{:?}", answer.content)),
    });
    vec![
        ("stat", shown(files.stat(&cx, StatRequest::new(path("/a"))).await.map(|info| format!("{info:?}")))),
        ("resolve", files.resolve(&cx, ResolveRequest::new(path("/d/b"))).await.map(|real| format!("{real:?}"))),
        ("ls", files.ls(&cx, LsRequest::new(path("/")).recursive()).await.map(|found| format!("{found:?}"))),
        ("read", files.read(&cx, ReadRequest::new(path("/a"))).await.map(|found| format!("{found:?}"))),
        ("glob", files.glob(&cx, GlobRequest::new("*")).await.map(|found| format!("{found:?}"))),
        (
            "grep",
            files.grep(&cx, GrepRequest::literal("text")).await.map(|found| match &found.problems[..] {
                // A file that could not be read is a problem of the result.
                [] => format!("{:?}", found.matches),
                _ => "problems".into(),
            }),
        ),
        (
            "missing",
            match files.stat(&cx, StatRequest::new(path("/missing"))).await {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok("not found".into()),
                other => other.map(|info| format!("{info:?}")),
            },
        ),
        (
            "no match",
            files.grep(&cx, GrepRequest::literal("nowhere")).await.map(|found| match &found.problems[..] {
                [] => format!("{} searched, {:?}", found.files_searched, found.matches),
                _ => "problems".into(),
            }),
        ),
        ("download", downloaded.collect::<Result<Vec<_>>>().map(|all| all.join(" "))),
        ("execute", {
            let request = ExecuteRequest::new("cat a; cat d/b >&2; exit 3");
            files
                .execute(&cx, request)
                .await
                .map(|ended| format!("{:?} {:?} {:?} {:?}", ended.stdout, ended.stderr, ended.exit_code, ended.signal))
        }),
    ]
}

async fn reads_are_right_or_errors() -> Result<()> {
    let files = Files::new().await?;
    for (at, text) in [("/a", "some text\n"), ("/d/b", "other text\n"), ("/d/e/c", "none\n")] {
        files.backend.create_text(at, text).await?;
    }
    let right = answers(&files.backend).await;
    for (operation, answer) in &right {
        assert!(answer.is_ok(), "{operation}: {answer:?}");
    }
    for fault in faults() {
        files.transport.set(fault);
        let seen = answers(&files.backend).await;
        for ((operation, answer), (_, expected)) in seen.iter().zip(&right) {
            // The output of a command is returned as far as it arrived, without the exit, which only the transport knows.
            if *operation == "execute" && matches!(fault, Fault::Cut(_)) {
                continue;
            }
            match answer {
                Ok(answer) if answer == "problems" => {}
                Ok(answer) => assert_eq!(Ok(answer), expected.as_ref(), "{operation} with {fault:?}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{operation} with {fault:?}: {error:?}");
                    assert!(!error.for_model().contains("vfs-laws-"), "{}", error.for_model());
                }
            }
        }
    }
    Ok(())
}

async fn changes_are_made_or_not() -> Result<()> {
    let files = Files::new().await?;
    let cx = OpContext::new();
    for fault in faults() {
        files.transport.set(Fault::None);
        files.backend.delete(&cx, DeleteRequest::new(path("/w")).recursive()).await.ok();
        files.backend.create_text("/w/a", "old text\n").await?;
        files.backend.create_text("/w/gone", "gone\n").await?;
        files.transport.set(fault);
        let b = &files.backend;
        let done = [
            b.write(&cx, WriteRequest::new(path("/w/new"), "new\n")).await.map(drop),
            b.write(&cx, WriteRequest::new(path("/w/a"), "new text\n").mode(WriteMode::Overwrite)).await.map(drop),
            b.edit(&cx, EditRequest::new(path("/w/a"), "text", "words")).await.map(drop),
            b.copy(&cx, CopyRequest::new(path("/w/gone"), path("/w/copied"))).await.map(drop),
            b.rename(&cx, RenameRequest::new(path("/w/copied"), path("/w/moved"))).await.map(drop),
            b.delete(&cx, DeleteRequest::new(path("/w/gone"))).await.map(drop),
            b.upload_files(&cx, vec![FileUploadRequest::new(path("/w/up"), "up\n")])
                .await
                .remove(0)
                .cause
                .map_or(Ok(()), Err),
        ];
        for (index, done) in done.iter().enumerate() {
            let error = done.as_ref().expect_err("an answer that is broken says nothing");
            let kinds = [ErrorKind::Unavailable, ErrorKind::NotFound, ErrorKind::AlreadyExists, ErrorKind::Conflict];
            assert!(kinds.contains(&error.kind()), "{index} with {fault:?}: {error:?}");
        }
        let now = files.disk("w/a").expect("it was there all the time");
        assert!([&b"old text\n"[..], b"new text\n", b"new words\n", b"old words\n"].contains(&&now[..]), "{now:?}");
        for (at, content) in
            [("w/new", &b"new\n"[..]), ("w/copied", b"gone\n"), ("w/moved", b"gone\n"), ("w/up", b"up\n")]
        {
            assert!(files.disk(at).is_none_or(|now| now == content), "{at} with {fault:?}");
        }
        assert_no_litter(files.root.path());
    }
    Ok(())
}

fn assert_no_litter(directory: &Path) {
    for entry in std::fs::read_dir(directory).expect("it can be listed") {
        let entry = entry.expect("an entry");
        let name = entry.file_name();
        assert!(!name.to_string_lossy().starts_with(".vfs-tmp-"), "{name:?} was left");
        if entry.path().is_dir() && !entry.path().is_symlink() {
            assert_no_litter(&entry.path());
        }
    }
}

async fn banners_are_no_answers() -> Result<()> {
    let files = Files::new().await?;
    let expected = answers_after_writing(&files).await?;
    files.transport.set(Fault::Banners);
    assert_eq!(answers_after_writing(&files).await?, expected);
    Ok(())
}

async fn answers_after_writing(files: &Files) -> Result<Vec<String>> {
    let cx = OpContext::new();
    files.backend.delete(&cx, DeleteRequest::new(path("/d")).recursive()).await.ok();
    files.backend.write_text("/a", "some text\n").await?;
    files.backend.write_text("/d/b", "other text\n").await?;
    files.backend.edit(&cx, EditRequest::new(path("/a"), "some", "much")).await?;
    let mut lines = Vec::new();
    for (operation, answer) in answers(&files.backend).await {
        // Times and inodes differ.
        if !["stat", "ls", "glob", "read"].contains(&operation) {
            lines.push(format!("{operation}: {}", answer?));
        }
    }
    Ok(lines)
}

async fn a_content_that_arrives_in_part_is_not_written() -> Result<()> {
    let files = Files::new().await?;
    let cx = OpContext::new();
    files.backend.create_text("/a", "old\n").await?;
    files.transport.set(Fault::InputCut);
    let large = "x".repeat(200_000);
    for mode in [WriteMode::Overwrite, WriteMode::Append] {
        let error = files.backend.write(&cx, WriteRequest::new(path("/a"), large.clone()).mode(mode)).await;
        assert_eq!(error.expect_err("half of it is missing").kind(), ErrorKind::Unavailable);
    }
    let error = files.backend.write(&cx, WriteRequest::new(path("/d/new"), large)).await;
    assert_eq!(error.expect_err("half of it is missing").kind(), ErrorKind::Unavailable);
    assert_eq!(files.disk("a").as_deref(), Some(&b"old\n"[..]));
    assert!(!files.root.path().join("d").is_dir(), "not even a directory was made");
    assert_no_litter(files.root.path());
    Ok(())
}

async fn a_command_cannot_ask_for_endless_output() -> Result<()> {
    let root = directory();
    let config = RemoteConfig::new(root.path().to_str().expect("it is UTF-8")).max_output_bytes(1000);
    let files = SandboxBackend::new(LocalProcess::new(), config);
    let request = ExecuteRequest::new("head -c 100000 /dev/zero").max_output_bytes(u64::MAX);
    let ended = files.execute(&OpContext::new(), request).await?;
    assert!(ended.truncated && ended.stdout.len() < 1100, "{} bytes", ended.stdout.len());
    assert_eq!(ended.output_bytes, 100_000);
    Ok(())
}

async fn operations_take_few_scripts() -> Result<()> {
    let files = Files::new().await?;
    let (b, cx) = (&files.backend, OpContext::new());
    let calls = |operation: &str, expected: usize| assert_eq!(files.transport.calls(), expected, "{operation}");
    files.transport.calls();
    b.create_text("/d/a", "some text\n").await?;
    calls("write", 1);
    b.stat(&cx, StatRequest::new(path("/d/a"))).await?;
    calls("stat", 1);
    b.read_text("/d/a").await?;
    calls("read", 1);
    b.ls(&cx, LsRequest::new(path("/d"))).await?;
    calls("ls", 1);
    b.edit(&cx, EditRequest::new(path("/d/a"), "some", "much")).await?;
    calls("edit", 1);
    std::fs::write(files.root.path().join("d/a"), "all text\n").expect("it can be written");
    b.edit(&cx, EditRequest::new(path("/d/a"), "all text", "all words")).await?;
    calls("edit of what somebody else wrote", 2);
    assert_eq!(files.disk("d/a").as_deref(), Some(&b"all words\n"[..]));
    std::fs::write(files.root.path().join("d/a"), "much words\n").expect("it can be written");
    b.edit(&cx, EditRequest::new(path("/d/a"), "words", "text")).await?;
    calls("edit of what was read and is no more", 3);
    assert_eq!(files.disk("d/a").as_deref(), Some(&b"much text\n"[..]));
    b.write(&cx, WriteRequest::new(path("/d/a"), "other\n").mode(WriteMode::Overwrite)).await?;
    calls("overwrite", 1);
    let uploads =
        (0..300).map(|n| FileUploadRequest::new(path(&format!("/many/{n}")), format!("number {n}\n"))).collect();
    let answers = b.upload_files(&cx, uploads).await;
    assert!(answers.iter().all(|answer| answer.error.is_none()));
    calls("upload", 3);
    let answers = b.download_files(&cx, (0..300).map(|n| path(&format!("/many/{n}"))).collect()).await;
    assert!(answers.iter().all(|answer| answer.error.is_none()));
    calls("download", 6);
    assert_eq!(b.glob(&cx, GlobRequest::new("*7")).await?.entries.len(), 30);
    calls("glob", 1);
    assert_eq!(b.grep(&cx, GrepRequest::literal("number 17")).await?.matches.len(), 11);
    let scripts = files.transport.calls();
    assert!(scripts <= 30, "{scripts} scripts search 301 files");
    b.copy(&cx, CopyRequest::new(path("/many"), path("/more"))).await?;
    calls("copy", 1);
    b.rename(&cx, RenameRequest::new(path("/more"), path("/moved"))).await?;
    calls("rename", 1);
    assert_eq!(b.delete(&cx, DeleteRequest::new(path("/moved")).recursive()).await?.files, 300);
    calls("delete", 1);
    Ok(())
}

async fn what_is_missing_is_named() -> Result<()> {
    let tools = directory();
    let base = "cat chmod cp dd env find ln mkdir mv readlink rm rmdir sh sleep touch wc";
    for tool in base.split(' ') {
        let place = crate::places::found(tool).expect("the system has its base tools");
        std::os::unix::fs::symlink(place, tools.path().join(tool)).expect("a link can be made");
    }
    let shell = crate::places::found("sh").expect("there is a shell");
    let shell = shell.to_str().expect("it is UTF-8").to_owned();
    let path = tools.path().to_str().expect("it is UTF-8").to_owned();
    let connect = || {
        let process = LocalProcess::command([shell.clone(), "-c".into()]).env("PATH", path.clone());
        SandboxBackend::connect(process, RemoteConfig::new("/"))
    };
    let error = connect().await.expect_err("there is no stat");
    assert_eq!((error.kind(), error.message().contains("stat")), (ErrorKind::Unsupported, true), "{error:?}");
    let stat = crate::places::found("stat").expect("the system has its base tools");
    std::os::unix::fs::symlink(stat, tools.path().join("stat")).expect("a link can be made");
    connect().await?;
    std::fs::remove_file(tools.path().join("dd")).expect("it was made");
    let error = connect().await.expect_err("there is no dd");
    assert_eq!((error.kind(), error.message().contains("dd")), (ErrorKind::Unsupported, true), "{error:?}");
    let nowhere = SandboxBackend::connect(LocalProcess::command(["/no/such/shell"]), RemoteConfig::new("/")).await;
    assert_eq!(nowhere.expect_err("there is no shell").kind(), ErrorKind::Unavailable);
    let gone = SandboxBackend::connect(LocalProcess::new(), RemoteConfig::new("/no/such/root")).await;
    assert_eq!(gone.expect_err("there is no root").kind(), ErrorKind::Unavailable);
    Ok(())
}
