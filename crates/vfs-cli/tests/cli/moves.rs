//! Moves across mounts that are killed: the next command finds each file at one end, and settles the move.
//!
//! A lock of the file that a move changes next makes it wait there, so that each kill comes at a defined step.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::*;

/// Number of files that are moved.
const FILES: usize = 24;

const DISKS: &str = "[default]\ntype = 'local'\nroot = 'one'\ndurability = 'atomic'\nlock_timeout = '10m'\n\
    [[mounts]]\npath = '/m'\ntype = 'local'\nroot = 'two'\ndurability = 'atomic'\nlock_timeout = '10m'\n";

const DATABASE: &str = "[default]\ntype = 'local'\nroot = 'one'\ndurability = 'atomic'\nlock_timeout = '10m'\n\
    [[mounts]]\npath = '/m'\ntype = 'store'\nurl = 'sqlite:team.db'\n";

/// Number of kills of each test, from the variable `VFS_MOVE_KILLS`.
fn kills() -> usize {
    std::env::var("VFS_MOVE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// The namespace of `config`, with files in `/d` to be moved.
fn namespace(config: &str) -> TempDir {
    let root = tempfile::tempdir().expect("a temporary directory");
    for directory in ["one/d/deeper", "one/d/empty", "two"] {
        fs::create_dir_all(root.path().join(directory)).expect("a directory");
    }
    for index in 0..FILES {
        fs::write(root.path().join("one").join(name(index)), text(index)).expect("a file");
    }
    fs::write(root.path().join("vfs.toml"), config).expect("a file");
    root
}

fn name(index: usize) -> PathBuf {
    let directory = if index.is_multiple_of(3) { "d/deeper" } else { "d" };
    Path::new(directory).join(format!("f{index:02}"))
}

fn text(index: usize) -> String {
    format!("content of {index:02}\n")
}

/// Runs a command that recovers a move, without the notice that it prints first if that takes long.
fn recovering(root: &TempDir, args: &[&str]) -> Run {
    let mut run = with_config(root, args);
    run.err =
        run.err.split_inclusive('\n').filter(|line| !line.starts_with("vfs: finishing the interrupted")).collect();
    run
}

/// The files of the namespace that hold a text, as `vfs grep` prints them, each with the line.
fn found(root: &TempDir) -> Vec<String> {
    let run = recovering(root, &["grep", "content", "/"]);
    run.success().lines().map(str::to_owned).collect()
}

/// What `found` finds when all files are below `directory`.
fn all_below(directory: &str) -> Vec<String> {
    let line = |index: usize| {
        let name = name(index).strip_prefix("d").expect("it is in it").display().to_string();
        format!("{directory}/{name}:1:{}", text(index).trim_end())
    };
    let mut lines: Vec<_> = (0..FILES).map(line).collect();
    lines.sort_unstable();
    lines
}

fn records(root: &TempDir) -> usize {
    let Ok(entries) = fs::read_dir(root.path().join(".vfs/moves")) else { return 0 };
    entries.filter_map(Result::ok).filter(|entry| entry.file_name().to_string_lossy().starts_with("move-")).count()
}

/// The files at the source, in the order in which they are deleted.
fn sources() -> Vec<PathBuf> {
    let mut sources: Vec<_> = (0..FILES).map(name).collect();
    sources.sort_unstable();
    sources
}

/// Begins the move `args`, and kills it when it waits for `locked`, a file that is locked here, after `is_reached` holds.
fn kill_move(root: &TempDir, args: &[&str], locked: &str, is_reached: impl Fn() -> bool) {
    let file = fs::File::open(root.path().join(locked)).expect("it is there");
    file.lock().expect("it is free");
    let mut command = configured(root);
    command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary runs");
    let until = Instant::now() + HANG_TIMEOUT;
    while records(root) == 0 || !is_reached() {
        assert_eq!(child.try_wait().expect("it can be waited for"), None, "it waits for the lock");
        assert!(Instant::now() < until, "the step is never reached");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("it is a child");
    child.wait().expect("it ends");
    assert_eq!(records(root), 1);
}

/// Moves `/d` to `/m/d`, and kills the command when all files are copied and `step` of them deleted.
fn kill_at(root: &TempDir, step: usize) {
    let sources = sources();
    let is_gone = |source: &PathBuf| !root.path().join("one").join(source).exists();
    let last = root.path().join("two").join(&sources[FILES - 1]);
    let locked = Path::new("one").join(&sources[step]);
    let locked = locked.to_str().expect("it is text");
    kill_move(root, &["mv", "/d", "/m/d"], locked, || match step {
        0 => last.exists(),
        step => is_gone(&sources[step - 1]),
    });
    assert_eq!(sources.iter().filter(|source| is_gone(source)).count(), step);
}

/// Kills moves at steps that are spread over all steps from `first`, and checks that the next command finishes each.
fn check_kills(config: &str, first: usize) {
    let kills = kills();
    let (source, target) = (all_below("/d"), all_below("/m/d"));
    for kill in 0..kills {
        let root = namespace(config);
        let step = first + kill * (FILES - first) / kills;
        kill_at(&root, step);
        assert_eq!(found(&root), target, "killed at step {step}");
        assert_eq!((records(&root), root.path().join("one/d").exists()), (0, false), "killed at step {step}");
        let again = with_config(&root, &["mv", "/d", "/m/d"]);
        assert!(again.code == Some(2) && again.err.starts_with("vfs: not_found: /d"), "{again:?}");
        with_config(&root, &["mv", "/m/d", "/d"]).success();
        assert_eq!(found(&root), source, "killed at step {step}");
    }
}

#[test]
fn a_killed_move_between_directories_is_finished_by_the_next_command() {
    check_kills(DISKS, 0);
}

/// Files in the database cannot be seen from outside, so the first step is the one after the first deletion.
#[test]
fn a_killed_move_into_a_database_is_finished_by_the_next_command() {
    check_kills(DATABASE, 1);
}

#[test]
fn a_move_that_was_killed_before_anything_was_written_is_rolled_back_by_the_next_command() {
    let root = namespace(DISKS);
    for (file, content) in [("one/f", "content of f\n"), ("two/f", "replaced\n")] {
        fs::write(root.path().join(file), content).expect("a file");
    }
    kill_move(&root, &["mv", "--force", "/f", "/m/f"], "two/f", || true);
    assert_eq!(found(&root).iter().filter(|line| line.starts_with("/f:")).count(), 1);
    let replaced = fs::read_to_string(root.path().join("two/f")).expect("it is there");
    assert_eq!((records(&root), replaced.as_str()), (0, "replaced\n"));
    with_config(&root, &["mv", "--force", "/f", "/m/f"]).success();
    assert_eq!(fs::read_to_string(root.path().join("two/f")).expect("it is there"), "content of f\n");
}

#[test]
fn a_recovery_that_copies_prints_a_notice_first() {
    let root = namespace(DISKS);
    kill_at(&root, 0);
    fs::remove_file(root.path().join("two/d/f01")).expect("it is copied");
    let run = with_config(&root, &["grep", "content", "/"]);
    assert_eq!(
        (run.code, run.err.as_str()),
        (Some(0), "vfs: finishing the interrupted move of '/d' to '/m/d' first\n")
    );
    assert_eq!(run.out().lines().collect::<Vec<_>>(), all_below("/m/d"));
    assert_eq!(records(&root), 0);
}

#[test]
fn a_move_that_cannot_be_recovered_is_a_warning() {
    let root = namespace(DISKS);
    let step = FILES / 2;
    kill_at(&root, step);
    let file = &sources()[step];
    let (source, target) = (root.path().join("one").join(file), root.path().join("two").join(file));
    let moved = format!("/m/{}", file.display());
    fs::write(&source, "changed at the source\n").expect("it is there");
    fs::write(&target, "changed at the target\n").expect("it is there");
    for _ in 0..2 {
        let run = recovering(&root, &["read", &moved]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.out().contains("changed at the target"), "{run:?}");
        assert!(run.err.contains("warning: the move of '/d' to '/m/d'") && run.err.lines().count() == 1, "{run:?}");
    }
    assert_eq!(fs::read_to_string(&source).expect("the source still exists"), "changed at the source\n");
    fs::remove_file(&source).expect("it is there");
    assert!(recovering(&root, &["read", &moved]).success().contains("changed at the target"));
    assert_eq!((records(&root), root.path().join("one/d").exists()), (0, false));
}
