//! Concurrent and interrupted changes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use futures::future::{join, join_all};
use libtest_mimic::Trial;
use tokio::time::sleep;
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, GrepRequest, LsRequest,
    OpContext, ReadRequest, Result, StatRequest, VfsPath, WriteMode, WriteRequest,
};

use crate::runtime::trials;
use crate::tools::{HANG_TIMEOUT, Lab};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        "overtaken":
        what_was_made_is_not_made_again,
        one_client_takes_over_a_dead_lock,
        a_clock_that_is_behind_breaks_no_lock,
        who_lost_a_lock_changes_nothing,
        a_file_that_changes_before_it_is_put_stays,
        a_lock_that_is_anothers_by_now_stays,
        what_others_wrote_in_place_is_not_edited_away,
        an_edit_of_what_is_gone_finds_nothing,
        steps_that_fail_at_once_are_made_one_by_one,
        a_version_is_that_of_ones_own_content,
        a_delete_that_breaks_off_hides_nothing,
        uploads_that_break_off_leave_no_lock,
        the_later_of_two_uploads_stays,
        what_died_long_ago_is_removed,
        a_short_read_is_no_end,
        sizes_that_cannot_be_are_not_relied_on,
        a_file_that_vanishes_is_not_listed,
    ]
}

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

fn cx() -> OpContext {
    OpContext::new()
}

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

async fn what_was_made_is_not_made_again() -> Result<()> {
    // As soon as a file is renamed to its path, another process removes it.
    let lab = Lab::new(&[(
        "mv",
        r#""$real" "$@" || exit
for last do :; done
case $last in ./a) echo made >>"$0.made"; rm -f ./a ;; esac
"#,
    )]);
    let (files, at) = (lab.client(), path("/a"));
    let made = || fs::read_to_string(lab.beside("mv.made")).map_or(0, |lines| lines.lines().count());
    for (round, mode) in [WriteMode::CreateNew, WriteMode::Overwrite, WriteMode::Append].into_iter().enumerate() {
        let written = files.write(&cx(), WriteRequest::new(at.clone(), "new\n").mode(mode)).await;
        assert_eq!((kind(written), made()), (Some(ErrorKind::Conflict), round + 1));
    }
    fs::write(lab.root.path().join("a"), "old\n").expect("it can be written");
    let edited = files.edit(&cx(), EditRequest::new(at.clone(), "old", "new")).await;
    assert_eq!((kind(edited), made()), (Some(ErrorKind::Conflict), 4));
    fs::write(lab.root.path().join("b"), "old\n").expect("it can be written");
    let copied = files.copy(&cx(), CopyRequest::new(path("/b"), at.clone())).await;
    assert_eq!((kind(copied), made()), (Some(ErrorKind::Conflict), 5));
    let uploaded = files.upload_files(&cx(), vec![FileUploadRequest::new(at, "up\n")]).await.remove(0);
    assert_eq!((uploaded.cause.map(|error| error.kind()), made()), (Some(ErrorKind::Conflict), 6));
    assert_eq!(lab.litter(), [""; 0]);
    Ok(())
}

/// Appends a line by each of some clients at once, all of which are acknowledged, and returns the lines.
async fn appended(lab: &Lab, clients: usize) -> Result<Vec<String>> {
    let clients: Vec<_> = (0..clients).map(|_| lab.client()).collect();
    let appends = clients.iter().enumerate().map(|(n, files)| async move {
        let line = format!("line {n}\n");
        let request = WriteRequest::new(path("/a"), line.clone()).mode(WriteMode::Append);
        files.write(&cx(), request).await.map(|_| line)
    });
    join_all(appends).await.into_iter().collect()
}

fn leave_lock(lab: &Lab, age: Duration) {
    let file = fs::File::create(lab.root.path().join(".vfs-tmp-r-a")).expect("it can be made");
    file.set_modified(SystemTime::now() - age).expect("its time can be set");
}

fn assert_all_there(lab: &Lab, acknowledged: &[String]) {
    let content = fs::read_to_string(lab.root.path().join("a")).expect("it is there");
    assert_eq!(content.lines().count(), acknowledged.len(), "{content}{acknowledged:?}");
    assert!(acknowledged.iter().all(|line| content.contains(line.as_str())), "{content}{acknowledged:?}");
}

async fn one_client_takes_over_a_dead_lock() -> Result<()> {
    // Other clients have time to run between the check of a lock and its removal.
    let lab = Lab::new(&[("find", "\"$real\" \"$@\"\nsleep 0.0$(($$ % 7))\n")]);
    for _ in 0..8 {
        fs::write(lab.root.path().join("a"), "").expect("it can be written");
        leave_lock(&lab, Duration::from_secs(600));
        let acknowledged = appended(&lab, 6).await?;
        assert_all_there(&lab, &acknowledged);
        assert_eq!(lab.litter(), [""; 0]);
    }
    Ok(())
}

async fn a_clock_that_is_behind_breaks_no_lock() -> Result<()> {
    // Every file appears ten minutes older than it is.
    let lab = Lab::new(&[(
        "find",
        r#"was=
for word do
  shift
  if [ "$was" = -mmin ]; then
    minutes=$((${word#+} - 10))
    if [ "$minutes" -lt 0 ]; then set -- "$@" -1000; else set -- "$@" "+$minutes"; fi
  else set -- "$@" "$word"
  fi
  was=$word
done
exec "$real" "$@"
"#,
    )]);
    fs::write(lab.root.path().join("a"), "").expect("it can be written");
    let acknowledged = appended(&lab, 8).await?;
    assert_all_there(&lab, &acknowledged);
    fs::write(lab.root.path().join("a"), "").expect("it can be written");
    leave_lock(&lab, Duration::from_secs(3600));
    let acknowledged = appended(&lab, 2).await?;
    assert_all_there(&lab, &acknowledged);
    Ok(())
}

async fn who_lost_a_lock_changes_nothing() -> Result<()> {
    // After the first `stat` of the file another process takes over the lock and writes. Then a client that waits for
    // the lock sleeps.
    let lab = Lab::new(&[
        STEPS,
        ("sleep", ": >\"$0.waits\"\nexec \"$real\" \"$@\"\n"),
        (
            "stat",
            r#"case "$*" in
*./a)
  if [ -e .vfs-tmp-r-a ] && [ ! -e "$0.slow" ]; then
    : >"$0.slow"
    "$real" "$@"
    echo another >.vfs-tmp-r-a
    echo theirs >./a
    exit
  fi ;;
esac
exec "$real" "$@"
"#,
        ),
    ]);
    let files = lab.client();
    fs::write(lab.root.path().join("a"), "old\n").expect("it can be written");
    let version = files.stat(&cx(), StatRequest::new(path("/a"))).await?.version.expect("a file has one");
    let request = WriteRequest::new(path("/a"), "ours\n").mode(WriteMode::IfVersion(version));
    let (context, lock) = (cx(), lab.root.path().join(".vfs-tmp-r-a"));
    let is_over = AtomicBool::new(false);
    let ours = async {
        let written = files.write(&context, request).await;
        is_over.store(true, Ordering::Relaxed);
        written
    };
    let theirs = async {
        let end = Instant::now() + HANG_TIMEOUT;
        while !is_over.load(Ordering::Relaxed) && !lab.beside("sleep.waits").exists() {
            assert!(Instant::now() < end, "no caller waits for the lock");
            sleep(Duration::from_millis(5)).await;
        }
        fs::remove_file(lock).expect("it is theirs, and no other caller removes it");
    };
    let (written, ()) = join(ours, theirs).await;
    assert_eq!(kind(written), Some(ErrorKind::Conflict));
    assert_eq!(files.read_text("/a").await?, "theirs\n");
    assert_eq!(lab.litter(), [""; 0]);
    Ok(())
}

/// A `find` that cannot print metadata, as on other systems.
const STEPS: (&str, &str) = ("find", "case \"$*\" in *-printf*) exit 1 ;; esac\nexec \"$real\" \"$@\"\n");

async fn a_file_that_changes_before_it_is_put_stays() -> Result<()> {
    // Right before the content is renamed to its path, another process takes the lock and writes the file, with the
    // same length.
    let lab = Lab::new(&[(
        "find",
        r#"case "$*" in
*-exec*./a*)
  if [ ! -e "$0.once" ]; then
    : >"$0.once"
    echo another >.vfs-tmp-r-a
    touch -r ./a "$0.time"
    echo new >./a
    touch -r "$0.time" ./a
  fi ;;
esac
exec "$real" "$@"
"#,
    )]);
    let (files, lock) = (lab.client(), lab.root.path().join(".vfs-tmp-r-a"));
    let old = files.write(&cx(), WriteRequest::new(path("/a"), "old\n")).await?.version;
    let request = WriteRequest::new(path("/a"), "ours\n").mode(WriteMode::IfVersion(old));
    assert_eq!(kind(files.write(&cx(), request).await), Some(ErrorKind::Conflict));
    assert_eq!(fs::read_to_string(lab.root.path().join("a")).expect("it is there"), "new\n");
    assert!(lab.beside("find.once").exists(), "it was to be put at once");
    fs::remove_file(lock).expect("it is theirs, and no other caller removes it");
    assert_eq!(lab.litter(), [""; 0]);
    Ok(())
}

async fn a_lock_that_is_anothers_by_now_stays() -> Result<()> {
    // Right after the content is renamed to its path, its lock is broken, and another process writes under a lock of
    // its own.
    let lab = Lab::new(&[(
        "mv",
        r#""$real" "$@" || exit
for last do :; done
if [ "$last" = ./a ] && [ ! -e "$0.off" ]; then
  for name in a .vfs-tmp-r-a; do
    echo another >.vfs-tmp-x
    "$real" -f .vfs-tmp-x "$name"
  done
fi
"#,
    )]);
    let (files, lock) = (lab.client(), lab.root.path().join(".vfs-tmp-r-a"));
    for round in 0..2 {
        let request = WriteRequest::new(path("/a"), "ours\n").mode(WriteMode::Overwrite);
        assert_eq!(kind(files.write(&cx(), request).await), Some(ErrorKind::Conflict), "{round}");
        assert_eq!(fs::read_to_string(&lock).expect("it is theirs, and no other caller removes it"), "another\n");
        fs::remove_file(&lock).expect("it is there");
        // The next write uses `put_at_once`.
        fs::write(lab.beside("mv.off"), "").expect("it can be written");
        files.write(&cx(), WriteRequest::new(path("/a"), "old\n").mode(WriteMode::Overwrite)).await?;
        fs::remove_file(lab.beside("mv.off")).expect("it is there");
    }
    assert_eq!(lab.litter(), [""; 0]);
    Ok(())
}

async fn what_others_wrote_in_place_is_not_edited_away() -> Result<()> {
    let plain = || vec![];
    for (theirs, tools) in
        [("formatted", plain()), ("four", plain()), ("formatted", vec![STEPS]), ("four", vec![STEPS])]
    {
        // As soon as a file is renamed to its path, a program that does not use locks writes to it.
        let hook = format!(
            "\"$real\" \"$@\" || exit\nfor last do :; done\ncase $last in ./a) sleep 0.02; echo {theirs} >./a ;; esac\n"
        );
        let lab = Lab::new(&[tools, vec![("mv", &hook)]].concat());
        let files = lab.client();
        for _ in 0..3 {
            let request = WriteRequest::new(path("/a"), "ours\n").mode(WriteMode::Overwrite);
            files.write(&cx(), request).await?;
            let edit = EditRequest::new(path("/a"), "ours", "edited");
            assert_eq!(kind(files.edit(&cx(), edit).await), Some(ErrorKind::NoMatch), "{theirs} is there");
            assert_eq!(files.read_text("/a").await?, format!("{theirs}\n"));
        }
    }
    Ok(())
}

async fn an_edit_of_what_is_gone_finds_nothing() -> Result<()> {
    let lab = Lab::new(&[]);
    let files = lab.client();
    fs::write(lab.root.path().join("a"), "text\n").expect("it can be written");
    let version = files.stat(&cx(), StatRequest::new(path("/a"))).await?.version.expect("a file has one");
    assert_eq!(files.read_text("/a").await?, "text\n");
    fs::remove_file(lab.root.path().join("a")).expect("it is there");
    for edit in [
        EditRequest::new(path("/a"), "text", "words"),
        EditRequest::new(path("/a"), "text", "words").expected_version(version),
    ] {
        assert_eq!(kind(files.edit(&cx(), edit).await), Some(ErrorKind::NotFound));
    }
    Ok(())
}

async fn steps_that_fail_at_once_are_made_one_by_one() -> Result<()> {
    // The tool of `put_at_once` reports a version that is not newer than the previous one, or fails in the middle.
    for fault in [
        r#"for word do shift; case $word in @*) set -- "$@" @9999999999 ;; *) set -- "$@" "$word" ;; esac; done; exec "$real" "$@""#,
        r#"for word do shift; [ "$word" = mv ] && word=false; set -- "$@" "$word"; done; exec "$real" "$@""#,
        r#"exit 1"#,
        r#""$real" "$@"; exit 1"#,
    ] {
        let lab =
            Lab::new(&[("find", &format!("case \"$*\" in *-newerct*) {fault} ;; esac\nexec \"$real\" \"$@\"\n"))]);
        let files = lab.client();
        let mut versions = vec![files.write(&cx(), WriteRequest::new(path("/a {}"), "0\n")).await?.version];
        versions.push(files.write(&cx(), WriteRequest::new(path("/a"), "0\n")).await?.version);
        for round in 1..4 {
            let request = WriteRequest::new(path("/a"), format!("{round}\n")).mode(WriteMode::Overwrite);
            versions.push(files.write(&cx(), request).await?.version);
            let edit = EditRequest::new(path("/a {}"), (round - 1).to_string(), round.to_string());
            versions.push(files.edit(&cx(), edit).await?.version);
        }
        let now = [
            files.stat(&cx(), StatRequest::new(path("/a"))).await?,
            files.stat(&cx(), StatRequest::new(path("/a {}"))).await?,
        ];
        assert_eq!(now.map(|info| info.version), [versions.get(6).cloned(), versions.get(7).cloned()], "{fault}");
        assert_eq!(files.read_text("/a").await? + &files.read_text("/a {}").await?, "3\n3\n", "{fault}");
        assert!((1..8).all(|at| !versions[..at].contains(&versions[at])), "{fault}: {versions:?}");
        assert_eq!(lab.litter(), [""; 0], "{fault}");
    }
    Ok(())
}

async fn a_version_is_that_of_ones_own_content() -> Result<()> {
    // Every `stat` of a file reports a later time.
    let lab = Lab::new(&[("stat", "sleep 0.05\nexec \"$real\" \"$@\"\n")]);
    let clients: Vec<_> = (0..5).map(|_| lab.client()).collect();
    fs::write(lab.root.path().join("from"), "x".repeat(100)).expect("it can be written");
    let done = join_all(clients.iter().enumerate().map(|(n, files)| write_and_copy(files, n + 1))).await;
    done.into_iter().collect()
}

async fn write_and_copy(files: &dyn Backend, length: usize) -> Result<()> {
    let request = WriteRequest::new(path("/a"), "x".repeat(length)).mode(WriteMode::Overwrite);
    assert_eq!(files.write(&cx(), request).await?.size, length as u64, "the result is that of another change");
    let copied = files.copy(&cx(), CopyRequest::new(path("/from"), path("/a")).overwrite()).await?;
    assert_eq!(copied.bytes, 100, "the result is that of another change");
    Ok(())
}

async fn a_delete_that_breaks_off_hides_nothing() -> Result<()> {
    let lab = Lab::new(&[(
        "rm",
        r#"case "$*" in *.vfs-tmp-d-*) kill -TERM 0; sleep 5 ;; esac
exec "$real" "$@"
"#,
    )]);
    let files = lab.client();
    files.create_text("/d/e/a", "text\n").await?;
    let deleted = files.delete(&cx(), DeleteRequest::new(path("/d")).recursive()).await;
    assert_eq!(kind(deleted), Some(ErrorKind::Unavailable));
    assert_eq!(files.read_text("/d/e/a").await?, "text\n");
    assert_eq!(lab.litter(), [""; 0]);
    Ok(())
}

async fn uploads_that_break_off_leave_no_lock() -> Result<()> {
    let lab = Lab::new(&[(
        "mv",
        r#"case "$*" in *" ./b") kill -TERM 0; sleep 5 ;; esac
exec "$real" "$@"
"#,
    )]);
    let uploads = ["/a", "/b", "/c"].map(|at| FileUploadRequest::new(path(at), "up\n"));
    let answers = lab.client().upload_files(&cx(), uploads.into()).await;
    assert!(answers.iter().all(|answer| answer.cause.is_some()), "{answers:?}");
    assert_eq!(lab.litter(), [""; 0]);
    Ok(())
}

async fn the_later_of_two_uploads_stays() -> Result<()> {
    // The first attempt fails, and a second one would succeed.
    let lab = Lab::new(&[(
        "mv",
        r#"[ $# -gt 2 ] && [ ! -e "$0.failed" ] && { : >"$0.failed"; echo 'mv: Input/output error' >&2; exit 1; }
exec "$real" "$@"
"#,
    )]);
    let files = lab.client();
    let uploads = ["one\n", "two\n"].map(|content| FileUploadRequest::new(path("/a"), content));
    let answers = files.upload_files(&cx(), uploads.into()).await;
    assert!(answers.iter().all(|answer| answer.cause.is_none()), "{answers:?}");
    assert!(lab.beside("mv.failed").is_file());
    assert_eq!(files.read_text("/a").await?, "two\n");
    Ok(())
}

async fn what_died_long_ago_is_removed() -> Result<()> {
    let lab = Lab::new(&[]);
    let at = |name: &str| lab.root.path().join(name);
    fs::create_dir(at(".vfs-tmp-d-old")).expect("it can be made");
    for (name, hours) in [(".vfs-tmp-d-old/x", 2), (".vfs-tmp-u-old", 2), (".vfs-tmp-u-new", 0), ("old", 2)] {
        fs::write(at(name), "text\n").expect("it can be written");
        let then = SystemTime::now() - Duration::from_secs(hours * 3600);
        let file = fs::File::options().write(true).open(at(name)).expect("it is there");
        file.set_modified(then).expect("its time can be set");
    }
    let old = fs::File::open(at(".vfs-tmp-d-old")).expect("it is there");
    old.set_modified(SystemTime::now() - Duration::from_secs(7200)).expect("its time can be set");
    lab.client().ls(&cx(), LsRequest::new(path("/"))).await?;
    assert_eq!(lab.litter(), [".vfs-tmp-u-new"]);
    assert!(at("old").is_file(), "no clean-up removes it");
    Ok(())
}

async fn a_short_read_is_no_end() -> Result<()> {
    // One `dd` reads only a few bytes at a time, and the other does not support full blocks either.
    let short =
        "case \"$*\" in *count=0*) exec \"$real\" \"$@\" ;; esac\n\"$real\" bs=50001 2>/dev/null | \"$real\" \"$@\"\n";
    let poor = format!("case \"$*\" in *iflag=*) echo 'dd: unknown operand' >&2; exit 1 ;; esac\n{short}");
    for script in [short, &poor] {
        let lab = Lab::new(&[("dd", script)]);
        let (files, at) = (lab.client(), path("/large"));
        let content: String = (0..300_000).map(|n| format!("line {n}\n")).collect();
        fs::write(lab.root.path().join("large"), &content).expect("it can be written");
        let whole = files.download_files(&cx(), vec![at.clone()]).await.remove(0);
        assert!(whole.content.as_deref() == Some(content.as_bytes()), "a part is not the whole");
        let window = files.read(&cx(), ReadRequest::new(at.clone()).lines(299_998, 5)).await?;
        assert_eq!(window.content.as_text(), Some("line 299998\nline 299999\n"));
        let found = files.grep(&cx(), GrepRequest::literal("line 299999")).await?;
        assert_eq!((found.matches.len(), found.problems.len()), (1, 0));
        files.create_text("/empty", "").await?;
        for beyond in [1 << 30, 1 << 62, u64::MAX - 1] {
            for at in [at.clone(), path("/empty")] {
                let window = files.read(&cx(), ReadRequest::new(at).bytes(beyond, Some(u64::MAX))).await;
                assert_eq!(kind(window), Some(ErrorKind::InvalidArgument), "{beyond} is behind the end, and no fault");
            }
        }
    }
    Ok(())
}

async fn sizes_that_cannot_be_are_not_relied_on() -> Result<()> {
    let lab = Lab::new(&[("stat", "\"$real\" \"$@\" | sed 's/ 5 / 18446744073709551615 /'\n")]);
    let files = lab.client();
    for name in ["a", "b", "c"] {
        fs::write(lab.root.path().join(name), "text\n").expect("it can be written");
    }
    let found = files.grep(&cx(), GrepRequest::literal("text")).await?;
    assert_eq!((found.matches.len(), found.problems.len()), (3, 0), "{found:?}");
    Ok(())
}

async fn a_file_that_vanishes_is_not_listed() -> Result<()> {
    // A `stat` with whole seconds, to which one file never exists.
    let lab = Lab::new(&[(
        "stat",
        r#"case "$*" in *gone) echo "stat: ./gone: No such file or directory" >&2; exit 1 ;; esac
"$real" "$@" | sed 's/\.[0-9]\{9\}/.000000000/g'
"#,
    )]);
    for name in ["a", "gone", "z"] {
        fs::write(lab.root.path().join(name), "text\n").expect("it can be written");
    }
    fs::set_permissions(lab.root.path().join("z"), fs::Permissions::from_mode(0o600)).expect("its mode can be set");
    let listed = lab.client().ls(&cx(), LsRequest::new(path("/"))).await?;
    let names: Vec<_> = listed.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(names, ["/a", "/z"]);
    Ok(())
}
