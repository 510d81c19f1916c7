//! Hostile and unusual contents of a place: links, special files, odd names, large directories.

use std::fs;
use std::future::Future;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use libtest_mimic::{Completion, Failed, Trial};
use tempfile::TempDir;
use vfs_core::error::ErrorDetail;
use vfs_core::search::LinkMode;
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, Error, ErrorKind, ExecuteRequest, FileUploadRequest,
    GlobRequest, GrepRequest, LsRequest, OpContext, ReadRequest, RenameRequest, Result, Shell as _, StatRequest,
    VfsPath, WriteMode, WriteRequest,
};
use vfs_remote::{LocalProcess, RemoteConfig, SandboxBackend};

use crate::narrow::Narrow;
use crate::places::{Place, all, directory, found};
use crate::runtime::on_runtime;

type Files = SandboxBackend<Narrow>;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for place in all() {
        trials.push(trial(&place, "links_that_lead_out_lead_nowhere", links_that_lead_out_lead_nowhere));
        trials.push(trial(&place, "what_is_no_file_is_never_opened", what_is_no_file_is_never_opened));
        trials.push(trial(&place, "names_that_are_not_utf8_are_problems", names_that_are_not_utf8_are_problems));
        trials.push(trial(&place, "what_is_on_the_way_is_not_shown", what_is_on_the_way_is_not_shown));
        trials.push(trial(&place, "a_lock_of_a_dead_process_is_not_in_the_way", dead_locks_are_not_in_the_way));
        trials.push(trial(&place, "modes_are_preserved", modes_are_preserved));
        if place.name == "remote-narrow" {
            trials.push(trial(
                &place,
                "what_does_not_fit_is_searched_in_parts",
                what_does_not_fit_is_searched_in_parts,
            ));
            trials.push(trial(&place, "of_too_many_entries_some_are_listed", of_too_many_entries_some_are_listed));
            trials.push(trial(&place, "input_of_commands_arrives_in_scripts", input_of_commands_arrives_in_scripts));
        }
        trials.push(trial(&place, "two_backends_lose_no_edit", two_backends_lose_no_edit));
        // With a hash of each content, these tests would take a minute.
        if place.name != "remote-coarse" {
            trials.push(trial(&place, "many_entries_are_listed", many_entries_are_listed));
        }
        trials.push(trial(&place, "deep_trees_can_be_removed", deep_trees_can_be_removed));
        trials.push(trial(&place, "windows_of_large_files_are_right", windows_of_large_files_are_right));
        trials.push(trial(&place, "hashes_tell_contents_apart", contents_of_one_moment_have_different_versions));
    }
    trials.push(Trial::ignorable_test("remote-nobody::gaps_are_reported", gaps_are_reported));
    trials.push(Trial::ignorable_test("remote-nobody::a_delete_says_how_far_it_came", a_delete_says_how_far_it_came));
    trials
}

fn trial<F>(place: &Place, name: &str, test: fn(Files, TempDir) -> F) -> Trial
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let place = place.clone();
    Trial::ignorable_test(format!("{}-hostile::{name}", place.name), move || {
        let root = directory();
        let Some(files) = place.files(root.path()) else {
            return Ok(Completion::ignored_with("its programs are not installed"));
        };
        on_runtime(test(files, root))?;
        Ok(Completion::Completed)
    })
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

fn cx() -> OpContext {
    OpContext::new()
}

/// Returns the error of every operation on the path.
async fn every_error(files: &Files, at: &str) -> Vec<(&'static str, Option<Error>)> {
    let (b, cx, at) = (files, cx(), path(at));
    let upload = b.upload_files(&cx, vec![FileUploadRequest::new(at.clone(), "x")]).await.remove(0);
    let download = b.download_files(&cx, vec![at.clone()]).await.remove(0);
    vec![
        ("stat", b.stat(&cx, StatRequest::new(at.clone())).await.err()),
        ("ls", b.ls(&cx, LsRequest::new(at.clone())).await.err()),
        ("read", b.read(&cx, ReadRequest::new(at.clone())).await.err()),
        ("overwrite", b.write(&cx, WriteRequest::new(at.clone(), "x").mode(WriteMode::Overwrite)).await.err()),
        ("append", b.write(&cx, WriteRequest::new(at.clone(), "x").mode(WriteMode::Append)).await.err()),
        ("if version", {
            let mode = WriteMode::IfVersion("1.1.1.1.1.1.1".into());
            b.write(&cx, WriteRequest::new(at.clone(), "x").mode(mode)).await.err()
        }),
        ("edit", b.edit(&cx, EditRequest::new(at.clone(), "secret", "x")).await.err()),
        ("copy", b.copy(&cx, CopyRequest::new(at.clone(), path("/copied"))).await.err()),
        ("glob", b.glob(&cx, GlobRequest::new("*").path(at.clone())).await.err()),
        ("grep", b.grep(&cx, GrepRequest::literal("secret").path(at.clone())).await.err()),
        ("upload", upload.cause),
        ("download", download.cause),
    ]
}

async fn links_that_lead_out_lead_nowhere(files: Files, root: TempDir) -> Result<()> {
    let outside = directory();
    fs::write(outside.path().join("file"), "secret\n").expect("it can be written");
    let sibling = format!("{}-sibling", root.path().display());
    fs::create_dir(&sibling).expect("it can be made");
    fs::write(format!("{sibling}/file"), "secret\n").expect("it can be written");
    let name = root.path().file_name().expect("it has a name").to_string_lossy().into_owned();
    let out = outside.path().to_str().expect("it is UTF-8").to_owned();
    files.create_text("/d/file", "inside\n").await?;
    let links = [
        ("absolute", format!("{out}/file")),
        ("directory", out.clone()),
        ("up", "../../../../../../../../etc/passwd".into()),
        ("sibling", format!("../{name}-sibling/file")),
        ("round", format!("../{name}/d/file")),
        ("inside-absolute", format!("{}/d/file", root.path().display())),
        ("d/deep", "../../x".into()),
        ("chain", "absolute".into()),
        ("trailing", format!("../{name}-sibling/")),
        ("environ", "/proc/self/environ".into()),
        ("descriptor", "/proc/self/fd/0".into()),
        ("zero", "/dev/zero".into()),
    ];
    for (link, to) in &links {
        symlink(to, root.path().join(link)).expect("a link can be made");
    }
    for (link, _) in &links {
        for at in [format!("/{link}"), format!("/{link}/file"), format!("/{link}/new")] {
            for (operation, error) in every_error(&files, &at).await {
                let error = error.unwrap_or_else(|| panic!("{operation} went through {at}"));
                assert_eq!(error.kind(), ErrorKind::PathEscape, "{operation} of {at}: {error:?}");
                assert!(!error.for_model().contains("vfs-laws-"), "{}", error.for_model());
            }
        }
    }
    let listed = files.ls(&cx(), LsRequest::new(path("/")).recursive()).await?;
    assert_eq!(listed.entries.len(), 2, "{:?}", listed.entries);
    assert_eq!(listed.problems.len(), links.len());
    for mode in [LinkMode::Skip, LinkMode::Follow] {
        let found = files.grep(&cx(), GrepRequest::literal("secret").links(mode).hidden().no_ignore()).await?;
        assert!(found.matches.is_empty(), "{:?}", found.matches);
    }
    for (link, _) in &links {
        files.rename(&cx(), RenameRequest::new(path(&format!("/{link}")), path("/moved"))).await?;
        files.delete(&cx(), DeleteRequest::new(path("/moved")).recursive()).await?;
    }
    assert_eq!(fs::read(outside.path().join("file")).expect("it is there"), b"secret\n");
    assert_eq!(fs::read(format!("{sibling}/file")).expect("it is there"), b"secret\n");
    fs::remove_dir_all(sibling).expect("it was made");
    assert_eq!(files.read_text("/d/file").await?, "inside\n");
    Ok(())
}

async fn what_is_no_file_is_never_opened(files: Files, root: TempDir) -> Result<()> {
    files.create_text("/a", "secret\n").await?;
    let made = Command::new("mkfifo").arg(root.path().join("fifo")).status().expect("there is mkfifo");
    assert!(made.success());
    symlink("fifo", root.path().join("to-fifo")).expect("a link can be made");
    let _socket = std::os::unix::net::UnixListener::bind(root.path().join("socket")).expect("a socket");
    for at in ["/fifo", "/to-fifo", "/socket"] {
        for (operation, error) in every_error(&files, at).await {
            let error = error.unwrap_or_else(|| panic!("{operation} opened {at}"));
            assert!(
                [ErrorKind::Unsupported, ErrorKind::NotADirectory].contains(&error.kind()),
                "{operation} of {at}: {error:?}"
            );
        }
    }
    let listed = files.ls(&cx(), LsRequest::new(path("/"))).await?;
    assert_eq!((listed.entries.len(), listed.problems.len()), (1, 3), "{listed:?}");
    let found = files.grep(&cx(), GrepRequest::literal("secret").links(LinkMode::Follow)).await?;
    assert_eq!(found.matches.len(), 1);
    Ok(())
}

async fn names_that_are_not_utf8_are_problems(files: Files, root: TempDir) -> Result<()> {
    files.create_text("/d/a", "text\n").await?;
    let name = std::ffi::OsStr::from_bytes(b"bad\xff\nname");
    fs::write(root.path().join("d").join(name), "text\n").expect("it can be written");
    fs::create_dir_all(root.path().join(name).join("below")).expect("it can be made");
    let listed = files.ls(&cx(), LsRequest::new(path("/")).recursive()).await?;
    let names: Vec<_> = listed.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(names, ["/d", "/d/a"]);
    let problems: Vec<_> = listed.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(problems, ["/bad\u{fffd}\nname", "/d/bad\u{fffd}\nname"]);
    let found = files.grep(&cx(), GrepRequest::literal("text")).await?;
    assert_eq!((found.matches.len(), found.problems.len()), (1, 2), "{:?}", found.problems);
    symlink(name, root.path().join("to-bad")).expect("a link can be made");
    assert!(files.stat(&cx(), StatRequest::new(path("/to-bad"))).await?.is_dir, "what it leads to is there");
    files.delete(&cx(), DeleteRequest::new(path("/d")).recursive()).await?;
    assert!(!root.path().join("d").is_dir());
    Ok(())
}

async fn what_is_on_the_way_is_not_shown(files: Files, root: TempDir) -> Result<()> {
    files.create_text("/d/a", "text\n").await?;
    fs::write(root.path().join("d/.vfs-tmp-u-1"), "text\n").expect("it can be written");
    fs::create_dir(root.path().join("d/.vfs-tmp-d-1")).expect("it can be made");
    fs::write(root.path().join("d/.vfs-tmp-d-1/x"), "text\n").expect("it can be written");
    symlink("d/.vfs-tmp-u-1", root.path().join("link")).expect("a link can be made");
    let all = files.ls(&cx(), LsRequest::new(path("/")).recursive()).await?;
    let names: Vec<_> = all.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(names, ["/d", "/d/a"]);
    assert_eq!(files.grep(&cx(), GrepRequest::literal("text").hidden()).await?.matches.len(), 1);
    for (operation, error) in every_error(&files, "/d/.vfs-tmp-u-1").await {
        let error = error.unwrap_or_else(|| panic!("{operation} took a reserved name"));
        assert_eq!(error.kind(), ErrorKind::InvalidPath, "{operation}: {error:?}");
    }
    let error = files.read_text("/link").await.expect_err("it leads to what is on the way");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    Ok(())
}

async fn dead_locks_are_not_in_the_way(files: Files, root: TempDir) -> Result<()> {
    files.create_text("/a", "text\n").await?;
    let lock = root.path().join(".vfs-tmp-r-a");
    let file = fs::File::create_new(&lock).expect("it can be made");
    file.set_modified(SystemTime::now() - Duration::from_secs(600)).expect("its time can be set");
    files.edit(&cx(), EditRequest::new(path("/a"), "text", "words")).await?;
    assert_eq!(files.read_text("/a").await?, "words\n");
    assert!(!lock.is_file(), "it was taken away");
    Ok(())
}

async fn modes_are_preserved(files: Files, root: TempDir) -> Result<()> {
    for mode in [0o755, 0o600, 0o644, 0o4750, 0o444] {
        let place = root.path().join(format!("{mode:o}"));
        fs::write(&place, "text\n").expect("it can be written");
        fs::set_permissions(&place, fs::Permissions::from_mode(mode)).expect("its mode can be set");
        let at = path(&format!("/{mode:o}"));
        let edited = files.edit(&cx(), EditRequest::new(at.clone(), "text", "words")).await;
        if mode == 0o444 && edited.is_err() {
            continue;
        }
        files.write(&cx(), WriteRequest::new(at.clone(), "more\n").mode(WriteMode::Append)).await?;
        let now = fs::metadata(&place).expect("it is there");
        assert_eq!(now.permissions().mode() & 0o7777, mode, "{mode:o}");
        assert_eq!(fs::read(&place).expect("it is there"), b"words\nmore\n");
        let copy = root.path().join("copy");
        fs::write(&copy, "text\n").expect("it can be written");
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).expect("its mode can be set");
        files.copy(&cx(), CopyRequest::new(at, path("/copy")).overwrite()).await?;
        assert_eq!(fs::read(&copy).expect("it is there"), b"words\nmore\n");
        let now = fs::metadata(&copy).expect("it is there");
        assert_eq!(now.permissions().mode() & 0o7777, 0o644, "its mode is its own, not that of {mode:o}");
    }
    Ok(())
}

async fn what_does_not_fit_is_searched_in_parts(files: Files, root: TempDir) -> Result<()> {
    // Two contents would fit into a response without the metadata beside them.
    for n in 0..40 {
        let content = format!("{}\nneedle\n", "x".repeat((100 << 10) + n * 1000));
        fs::write(root.path().join(format!("{n:02}")), content).expect("it can be written");
    }
    let found = files.grep(&cx(), GrepRequest::literal("needle")).await?;
    assert_eq!((found.matches.len(), found.problems.len()), (40, 0), "{:?}", found.problems);
    Ok(())
}

async fn of_too_many_entries_some_are_listed(files: Files, root: TempDir) -> Result<()> {
    fs::create_dir(root.path().join("many")).expect("it can be made");
    for n in 0..12_000 {
        fs::write(root.path().join(format!("many/{n:060}")), "").expect("it can be written");
    }
    fs::write(root.path().join("other"), "text\n").expect("it can be written");
    let listed = files.ls(&cx(), LsRequest::new(path("/many")).limit(20_000)).await?;
    assert!((2_000..12_000).contains(&listed.entries.len()), "{} entries", listed.entries.len());
    let problems: Vec<_> = listed.problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
    assert_eq!(problems, [("/many", ErrorKind::TooLarge)]);
    let found = files.grep(&cx(), GrepRequest::literal("text")).await?;
    assert_eq!((found.matches.len(), found.problems.len()), (1, 1), "the gap is reported");
    Ok(())
}

async fn input_of_commands_arrives_in_scripts(files: Files, _root: TempDir) -> Result<()> {
    let input = "a line of input\n".repeat(20_000);
    let ended = files.execute(&cx(), ExecuteRequest::new("wc -c | tr -d ' '").stdin(input.clone())).await?;
    assert_eq!(ended.stdout, format!("{}\n", input.len()));
    Ok(())
}

async fn two_backends_lose_no_edit(files: Files, _root: TempDir) -> Result<()> {
    // Another backend shares only the lock files in the place with the first.
    let other = SandboxBackend::new(files.executor().clone(), files.config().clone());
    let lines: String = (0..32).map(|n| format!("line {n:02}\n")).collect();
    files.create_text("/a", &lines).await?;
    let edits = (0..32).map(|n| {
        let backend = if n % 2 == 0 { files.clone() } else { other.clone() };
        tokio::spawn(async move {
            let request = EditRequest::new(path("/a"), format!("line {n:02}"), format!("edit {n:02}"));
            backend.edit(&cx(), request).await
        })
    });
    let mut expected = lines;
    for (n, edit) in join_all(edits).await.into_iter().enumerate() {
        match edit.expect("the task did not panic") {
            Ok(_) => expected = expected.replace(&format!("line {n:02}"), &format!("edit {n:02}")),
            Err(error) => assert!([ErrorKind::Busy, ErrorKind::Conflict].contains(&error.kind()), "{error:?}"),
        }
    }
    assert_eq!(files.read_text("/a").await?, expected, "every acknowledged edit is there, and no other");
    let creators = (0..16).map(|n| {
        let backend = if n % 2 == 0 { files.clone() } else { other.clone() };
        tokio::spawn(async move { backend.create_text("/new", &n.to_string()).await })
    });
    let made: Vec<_> = join_all(creators).await.into_iter().map(|made| made.expect("no panic")).collect();
    assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1, "{made:?}");
    Ok(())
}

async fn many_entries_are_listed(files: Files, root: TempDir) -> Result<()> {
    let count = if files.executor().is_narrow() { 2_000 } else { 20_000 };
    fs::create_dir(root.path().join("d")).expect("it can be made");
    for n in 0..count {
        fs::write(root.path().join(format!("d/{n:05} \n'{n}'")), "").expect("it can be written");
    }
    let listed = files.ls(&cx(), LsRequest::new(path("/d"))).await?;
    assert_eq!((listed.entries.len(), listed.problems.len()), (count, 0));
    assert_eq!(listed.entries[17].path.as_str(), "/d/00017 \n'17'");
    let deleted = files.delete(&cx(), DeleteRequest::new(path("/d")).recursive()).await?;
    assert_eq!(deleted.files, count as u64);
    Ok(())
}

async fn deep_trees_can_be_removed(files: Files, root: TempDir) -> Result<()> {
    // The tree is deeper than a path can express.
    let script =
        "i=0; while [ $i -lt 60 ]; do mkdir -p ./d/$1/$1; : >./d/file; cd -P ./d/$1/$1 || exit 1; i=$((i + 1)); done";
    let made = Command::new("sh")
        .args(["-c", script, "sh", &"x".repeat(100)])
        .current_dir(root.path())
        .status()
        .expect("there is a shell");
    assert!(made.success());
    let deleted = files.delete(&cx(), DeleteRequest::new(path("/d")).recursive()).await?;
    assert_eq!(deleted.files, 60);
    assert!(files.ls(&cx(), LsRequest::new(path("/"))).await?.entries.is_empty());
    Ok(())
}

async fn windows_of_large_files_are_right(files: Files, root: TempDir) -> Result<()> {
    let text: String = (0..600_000).map(|n| format!("line {n}\n")).collect();
    fs::write(root.path().join("large"), &text).expect("it can be written");
    let at = path("/large");
    for (offset, limit) in [(0, 3), (99_999, 5), (599_998, 10), (300_000, 1)] {
        let window = files.read(&cx(), ReadRequest::new(at.clone()).lines(offset, limit)).await?;
        let expected: String =
            text.lines().skip(offset as usize).take(limit as usize).map(|l| format!("{l}\n")).collect();
        assert_eq!(window.content.as_text(), Some(expected.as_str()), "{offset}");
    }
    for (start, end) in [(0, 10), (65_530, 65_550), (4_000_000, 4_000_001), (text.len() as u64 - 3, u64::MAX)] {
        let window = files.read(&cx(), ReadRequest::new(at.clone()).bytes(start, Some(end))).await?;
        let end = (end as usize).min(text.len());
        assert_eq!(window.content.as_bytes(), &text.as_bytes()[start as usize..end], "{start}");
    }
    let found = files.grep(&cx(), GrepRequest::literal("line 599999")).await?;
    assert_eq!(found.matches[0].line, 600_000);
    Ok(())
}

async fn contents_of_one_moment_have_different_versions(files: Files, _root: TempDir) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for n in 0..20 {
        let (at, content) = (path("/d/a"), format!("{n:02}"));
        let written = files.write(&cx(), WriteRequest::new(at.clone(), content)).await?;
        assert!(seen.insert(written.version), "equal versions mean equal content");
        files.delete(&cx(), DeleteRequest::new(at)).await?;
    }
    Ok(())
}

/// Returns a backend over `root` whose shells run as an ordinary user, or the reason for which there is none.
fn as_nobody(root: &Path) -> std::result::Result<SandboxBackend<LocalProcess>, &'static str> {
    let (Some(setpriv), Some(shell)) = (found("setpriv"), found("sh")) else {
        return Err("setpriv is not installed");
    };
    let is_able = Command::new(&setpriv).args(["--reuid", "65534", "--clear-groups", "true"]).status();
    if !is_able.is_ok_and(|status| status.success()) {
        return Err("this user cannot become another one");
    }
    let text = |path: &Path| path.to_str().expect("it is UTF-8").to_owned();
    let process = LocalProcess::command([
        text(&setpriv),
        "--reuid".into(),
        "65534".into(),
        "--clear-groups".into(),
        text(&shell),
        "-c".into(),
    ]);
    Ok(SandboxBackend::new(process, RemoteConfig::new(text(root))))
}

fn a_delete_says_how_far_it_came() -> std::result::Result<Completion, Failed> {
    let root = directory();
    let files = match as_nobody(root.path()) {
        Ok(files) => files,
        Err(reason) => return Ok(Completion::ignored_with(reason)),
    };
    for name in ["d/a", "d/b/c", "d/m/n/kept", "d/m/z", "d/y/c", "e/empty/f", "e/two\nlines/directory/f"] {
        let at = root.path().join(name);
        fs::create_dir_all(at.parent().expect("it is below the root")).expect("it can be made");
        fs::write(at, "text\n").expect("it can be written");
    }
    let set = |name: &str, mode, owner| {
        let at = root.path().join(name);
        chown(&at, Some(owner), None).expect("it can be given away");
        fs::set_permissions(at, fs::Permissions::from_mode(mode)).expect("its mode can be set");
    };
    for name in ["", "d", "d/b", "d/m", "d/y"] {
        set(name, 0o755, 65534);
    }
    let delete = async || files.delete(&cx(), DeleteRequest::new(path("/d")).recursive()).await;
    on_runtime(async {
        // The modes are checked before anything is removed.
        set("d/m/n", 0o555, 65534);
        let error = delete().await.expect_err("nothing may be removed there");
        assert_eq!((error.kind(), error.path()), (ErrorKind::PermissionDenied, Some("/d/m/n")), "{error:?}");
        assert!(error.for_model().contains("nothing was deleted") && error.detail().is_none(), "{error:?}");
        assert!(["d/a", "d/b/c", "d/m/z", "d/y/c"].iter().all(|name| root.path().join(name).exists()));
        // A file of another user in a sticky directory fails only during the removal.
        set("d/m/n", 0o1777, 0);
        let error = delete().await.expect_err("it is another's");
        assert_eq!((error.kind(), error.path()), (ErrorKind::PermissionDenied, Some("/d/m/n/kept")), "{error:?}");
        assert_eq!(error.detail(), Some(&ErrorDetail::PartialDelete { files: 4 }), "{error:?}");
        assert!(root.path().join("d/m/n/kept").exists() && !root.path().join("d/a").exists());
        // An empty directory is removed with any mode.
        set("d/m/n", 0o555, 65534);
        fs::remove_file(root.path().join("d/m/n/kept")).expect("it can be removed");
        assert_eq!(delete().await?.files, 0);
        // Removed directories count even without a removed file, and a name may have two lines.
        for name in ["e/empty/f", "e/two\nlines/directory/f"] {
            fs::remove_file(root.path().join(name)).expect("it can be removed");
        }
        ["e", "e/empty"].iter().for_each(|name| set(name, 0o755, 65534));
        set("e/two\nlines/directory", 0o755, 0);
        set("e/two\nlines", 0o1777, 0);
        let delete = async || files.delete(&cx(), DeleteRequest::new(path("/e")).recursive()).await;
        let error = delete().await.expect_err("it is another's");
        assert_eq!(error.path(), Some("/e/two\nlines/directory"), "{error:?}");
        assert_eq!(error.detail(), Some(&ErrorDetail::PartialDelete { files: 0 }), "{error:?}");
        set("e/two\nlines", 0o555, 65534);
        let error = delete().await.expect_err("nothing may be removed there");
        assert_eq!((error.path(), error.detail()), (Some("/e/two\nlines"), None), "{error:?}");
        Ok(())
    })?;
    Ok(Completion::Completed)
}

/// As an unprivileged user: unreadable entries are problems, and all others are returned.
fn gaps_are_reported() -> std::result::Result<Completion, Failed> {
    let root = directory();
    let files = match as_nobody(root.path()) {
        Ok(files) => files,
        Err(reason) => return Ok(Completion::ignored_with(reason)),
    };
    for directory in ["open", "closed", "listed"] {
        fs::create_dir(root.path().join(directory)).expect("it can be made");
        fs::write(root.path().join(directory).join("file"), "text\n").expect("it can be written");
    }
    let mode = |name: &str, mode| {
        fs::set_permissions(root.path().join(name), fs::Permissions::from_mode(mode)).expect("its mode can be set");
    };
    fs::write(root.path().join("open/private"), "text\n").expect("it can be written");
    mode("", 0o755);
    mode("closed", 0o700);
    mode("listed", 0o744);
    mode("open", 0o777);
    mode("open/private", 0o600);
    mode("open/file", 0o666);
    on_runtime(async move {
        let refused = |result: Result<()>| assert_eq!(result.map_err(|e| e.kind()), Err(ErrorKind::PermissionDenied));
        refused(files.read_text("/closed/file").await.map(drop));
        refused(files.read_text("/open/private").await.map(drop));
        refused(files.write_text("/new", "x").await.map(drop));
        refused(files.write_text("/closed/new", "x").await.map(drop));
        refused(files.ls(&cx(), LsRequest::new(path("/closed"))).await.map(drop));
        refused(files.delete(&cx(), DeleteRequest::new(path("/listed/file"))).await.map(drop));
        refused(files.edit(&cx(), EditRequest::new(path("/open/private"), "a", "b")).await.map(drop));
        let found = files.grep(&cx(), GrepRequest::literal("text")).await?;
        let matched: Vec<_> = found.matches.iter().map(|hit| hit.path.as_str()).collect();
        assert_eq!(matched, ["/open/file"]);
        assert_eq!(found.problems.len(), 3, "{:?}", found.problems);
        let listed = files.ls(&cx(), LsRequest::new(path("/")).recursive()).await?;
        assert!(listed.entries.iter().any(|entry| entry.path.as_str() == "/open/private"), "{listed:?}");
        assert!(!listed.problems.is_empty(), "the gap is reported");
        files.write_text("/open/file", "new\n").await?;
        files.write_text("/open/made", "new\n").await?;
        Ok(())
    })?;
    assert_eq!(fs::read(root.path().join("open/file")).expect("it is there"), b"new\n");
    Ok(Completion::Completed)
}
