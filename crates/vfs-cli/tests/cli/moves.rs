//! Moves across mounts that are killed: the next command finds each file at one end, and settles the move.

use std::path::{Path, PathBuf};

use crate::*;

/// Number of files that are moved.
const FILES: usize = 24;

const DISKS: &str = "[default]\ntype = 'local'\nroot = 'one'\ndurability = 'atomic'\n\
    [[mounts]]\npath = '/m'\ntype = 'local'\nroot = 'two'\ndurability = 'atomic'\n";

const DATABASE: &str = "[default]\ntype = 'local'\nroot = 'one'\ndurability = 'atomic'\n\
    [[mounts]]\npath = '/m'\ntype = 'store'\nurl = 'sqlite:team.db'\n";

/// Number of kills of each test, from the variable `VFS_MOVE_KILLS`.
fn kills() -> usize {
    std::env::var("VFS_MOVE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10)
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

/// The files of the namespace that hold a text, as `vfs grep` prints them, each with the line.
fn found(root: &TempDir) -> Vec<String> {
    let run = with_config(root, &["grep", "content", "/"]);
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

/// The number of changes of files that a move has made: those at the target, and those that are gone from the source.
fn progress(root: &TempDir) -> usize {
    let is_at = |end: &str, file: PathBuf| root.path().join(end).join(file).exists();
    let there = (0..FILES).filter(|index| is_at("two", name(*index))).count();
    let gone = (0..FILES).filter(|index| !is_at("one", name(*index))).count();
    there + gone
}

/// Moves, and kills the command once `progress` is at least `step` and the move is recorded. Returns whether it was killed in
/// the middle.
fn kill_at(root: &TempDir, step: usize) -> bool {
    let mut command = configured(root);
    command.args(["mv", "/d", "/m/d"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary runs");
    while child.try_wait().expect("it can be waited for").is_none() && (records(root) == 0 || progress(root) < step) {
        std::thread::yield_now();
    }
    child.kill().expect("it is a child");
    child.wait().expect("it ends");
    records(root) > 0
}

/// Kills moves at steps that are spread over all steps but the first `steps.start`, and checks what each leaves.
fn killed(config: &str, steps: std::ops::Range<usize>) {
    let kills = kills();
    let mut interrupted = 0;
    for kill in 0..kills {
        let root = namespace(config);
        let step = steps.start + kill * (steps.end - steps.start) / kills;
        interrupted += usize::from(kill_at(&root, step));
        let (source, target) = (all_below("/d"), all_below("/m/d"));
        let is_moved = match found(&root) {
            lines if lines == target => true,
            lines => {
                assert_eq!(lines, source, "killed at step {step}");
                false
            }
        };
        assert_eq!(records(&root), 0, "killed at step {step}");
        assert_eq!(root.path().join("one/d").exists(), !is_moved, "killed at step {step}");
        if is_moved {
            let again = with_config(&root, &["mv", "/d", "/m/d"]);
            assert!(again.code == Some(2) && again.err.starts_with("vfs: not_found: /d"), "{again:?}");
        } else {
            with_config(&root, &["mv", "/d", "/m/d"]).success();
        }
        assert_eq!(found(&root), target, "killed at step {step}");
        with_config(&root, &["mv", "/m/d", "/d"]).success();
        assert_eq!(found(&root), source, "killed at step {step}");
    }
    assert!(interrupted * 2 >= kills, "only {interrupted} of {kills} kills were in the middle of a move");
}

#[test]
fn a_killed_move_between_directories_is_settled_by_the_next_command() {
    killed(DISKS, 0..2 * FILES);
}

/// What is in the database cannot be seen from outside, so the steps are those of the source: before its first file goes, and
/// after each.
#[test]
fn a_killed_move_into_a_database_is_settled_by_the_next_command() {
    killed(DATABASE, 0..FILES);
}

#[test]
fn a_move_that_cannot_be_settled_is_a_warning_and_no_failure() {
    let root = namespace(DISKS);
    while !kill_at(&root, FILES / 2) {
        with_config(&root, &["mv", "/m/d", "/d"]).success();
    }
    let (source, target) = (root.path().join("one/d/f01"), root.path().join("two/d/f01"));
    assert!(target.exists(), "files are moved in order");
    fs::write(&source, "changed at the source\n").expect("it is there");
    fs::write(&target, "changed at the target\n").expect("it is there");
    for _ in 0..2 {
        let run = with_config(&root, &["read", "/m/d/f01"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.out().contains("changed at the target"), "{run:?}");
        assert!(run.err.contains("warning: the move of '/d' to '/m/d'") && run.err.lines().count() == 1, "{run:?}");
    }
    assert_eq!(fs::read_to_string(&source).expect("it is kept"), "changed at the source\n");
    fs::remove_file(&source).expect("it is there");
    assert!(with_config(&root, &["read", "/m/d/f01"]).success().contains("changed at the target"));
    assert_eq!((records(&root), root.path().join("one/d").exists()), (0, false));
}
