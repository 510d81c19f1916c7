//! Processes that write to one SQLite file: they are killed at random, and they write at the same time. What they were told is
//! made, is there, and nothing twice.
//!
//! Each process is this program again, told by the environment what to do. `VFS_SQLITE_EDITS` sets how many edits the processes
//! that write at the same time make in all.

#![cfg(feature = "sqlite")]
#![expect(clippy::print_stdout, reason = "a process tells what it did by printing it")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::Utc;
use vfs_core::VfsPath;
use vfs_store::{
    BatchOutcome, BatchStore, ChangePage, ChangeRecord, Condition, Inspect, Key, Namespace, NewValue, Precondition,
    PutOutcome, Sequence, SqliteConfig, SqliteStore, Store, StoreChangeLog, Write,
};

const KILLS: usize = 200;
const PROCESSES: usize = 16;
const SHARED: usize = 100;

/// What a process is to do, the file, and the name that it writes under.
const TASK: &str = "VFS_SQLITE_TASK";
const FILE: &str = "VFS_SQLITE_FILE";
const NAME: &str = "VFS_SQLITE_NAME";
const EDITS: &str = "VFS_SQLITE_EDITS";

/// The largest file that a limited process may write, in bytes, and in what `ulimit -f` counts.
const SIZE_LIMIT: u64 = 4 << 20;
const ULIMIT_BLOCK: u64 = 512;

/// Lines of the test harness begin otherwise.
const MADE: &str = "made ";

fn key(path: &str) -> Key {
    let namespace = Namespace::parse("org/team").expect("a namespace");
    Key::new(namespace, VfsPath::parse(path).expect("a path"))
}

fn value(content: String) -> NewValue {
    NewValue::new(Bytes::from(content), Utc::now())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

async fn open(file: &Path) -> SqliteStore {
    SqliteStore::open(SqliteConfig::new(file).busy_timeout(Duration::from_secs(600))).await.expect("it opens")
}

/// Starts this program again for `task`.
fn start(task: &str, file: &Path, name: &str, edits: usize) -> Child {
    start_by(Command::new(std::env::current_exe().expect("this program has a path")), task, file, name, edits)
}

/// As [`start`], by `command`, which takes the arguments of this program.
fn start_by(mut command: Command, task: &str, file: &Path, name: &str, edits: usize) -> Child {
    command
        .args(["--exact", "a_process_of_its_own", "--nocapture", "--test-threads=1"])
        .env(TASK, task)
        .env(FILE, file)
        .env(NAME, name)
        .env(EDITS, edits.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// What a process says that it made. The last line may be cut where it was killed.
fn made(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines =
        BufReader::new(child.stdout.take().expect("it is piped")).split(b'\n').map(|line| line.expect("it reads"));
    lines.filter_map(|line| {
        let line = String::from_utf8_lossy(&line).into_owned();
        line.strip_prefix(MADE)?.strip_suffix(" .").map(str::to_owned)
    })
}

/// The part of a process; nothing where this is the test itself.
#[test]
fn a_process_of_its_own() {
    let Ok(task) = std::env::var(TASK) else { return };
    let file = std::env::var(FILE).expect("it is told which file");
    let name = std::env::var(NAME).expect("it is told its name");
    let edits = std::env::var(EDITS).expect("it is told how many").parse().expect("a number");
    runtime().block_on(async {
        let store = open(Path::new(&file)).await;
        // A line of the harness may stand unfinished before.
        println!("\n{MADE}{name} opened .");
        match task.as_str() {
            "too-much" => write_too_much(store).await,
            "until-killed" => write_until_killed(&store, &name).await,
            _ => edit_shared(&store, &name, edits).await,
        }
    });
}

/// Adds lines to a file, by what it holds; puts and moves others, large ones too, and says what was made.
async fn write_until_killed(store: &SqliteStore, name: &str) {
    for number in 0_u64.. {
        let line = format!("{name}-{number}");
        append(store, &key("/log"), &line).await;
        println!("{MADE}append {line} .");
        if number % 3 == 0 {
            let (at, content) = (key(&format!("/put/{line}")), value(format!("{line}\n").repeat(300)));
            let put = store.put(&at, content, &Precondition::Absent).await.expect("it answers");
            assert!(matches!(put, PutOutcome::Applied(_)), "nothing was there");
            println!("{MADE}put {line} .");
        }
        if number % 7 == 0 {
            let (large, to) = (key("/large").path, key(&format!("/large-{}", number % 2)).path);
            let content = value(format!("{line}\n").repeat(200_000));
            let writes = vec![Write::Put(large.clone(), content), Write::Move { from: large, to }];
            let conditions = [Condition::NothingBelow(key("/log").path)];
            let batch = store.batch(&key("/large").namespace, &conditions, writes).await.expect("it answers");
            assert!(matches!(batch, BatchOutcome::Applied(_)), "nothing is below a file");
        }
    }
}

/// Writes until the file would be larger than this process may write, and says how that ended.
async fn write_too_much(store: SqliteStore) {
    let large = || value("x".repeat(SIZE_LIMIT as usize / 4));
    let mut error = None;
    for number in 0..8 {
        error = error.or(store.put(&key(&format!("/{number}")), large(), &Precondition::Absent).await.err());
    }
    let error = error.expect("it is over the limit");
    println!("{MADE}{} {} .", error.kind(), error.message());
    assert!(store.get(&key("/0"), None).await.expect("it reads").is_some());
    drop(store);
    println!("{MADE}closed .");
}

#[test]
fn a_write_beyond_the_size_of_files_is_an_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("store.db");
    runtime().block_on(async { drop(open(&file).await) });
    let program = std::env::current_exe().expect("this program has a path");
    let limited = format!("ulimit -f {}; exec \"$0\" \"$@\"", SIZE_LIMIT / ULIMIT_BLOCK);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(limited).arg(program);
    let mut child = start_by(shell, "too-much", &file, "limited", 0);
    let made: Vec<_> = made(&mut child).collect();
    assert!(child.wait().expect("it ends").success(), "{made:?}");
    let [_opened, error, closed] = &made[..] else { panic!("it tells three things: {made:?}") };
    assert!(error.starts_with("too_large") && error.contains("ulimit -f"), "{error}");
    assert_eq!(closed, "closed");
    // Without the limit it goes on, and nothing is damaged.
    runtime().block_on(async {
        let store = open(&file).await;
        assert!(store.check().await.expect("it checks").problems.is_empty());
        assert!(store.get(&key("/0"), None).await.expect("it reads").is_some());
        let put = store.put(&key("/after"), value("x".repeat(SIZE_LIMIT as usize)), &Precondition::Absent).await;
        assert!(matches!(put, Ok(PutOutcome::Applied(_))), "{put:?}");
    });
}

/// Adds `line` to the file at `key`, again and again until nobody came in between.
async fn append(store: &SqliteStore, key: &Key, line: &str) {
    loop {
        let (before, expected) = match store.get(key, None).await.expect("it reads") {
            Some(value) => (
                String::from_utf8(value.content.into()).expect("it is text"),
                Precondition::Version(value.stored.version),
            ),
            None => (String::new(), Precondition::Absent),
        };
        let put = store.put(key, value(format!("{before}{line}\n")), &expected);
        if matches!(put.await.expect("it answers"), PutOutcome::Applied(_)) {
            return;
        }
    }
}

async fn edit_shared(store: &SqliteStore, name: &str, edits: usize) {
    for number in 0..edits {
        let line = format!("{name}-{number}");
        let at = format!("/shared/{}", fastrand::usize(..SHARED));
        append(store, &key(&at), &line).await;
        println!("{MADE}{at} {line} .");
    }
}

/// The lines of a file.
async fn lines(store: &SqliteStore, path: &str) -> Vec<String> {
    let Some(value) = store.get(&key(path), None).await.expect("it reads") else { return Vec::new() };
    let text = String::from_utf8(value.content.into()).expect("it is text");
    text.lines().map(str::to_owned).collect()
}

async fn assert_clean(store: &SqliteStore) {
    assert_eq!(store.check().await.expect("it checks").problems, []);
}

/// How often the log tells of each path that it was made, and that it was made or changed.
async fn told(store: &SqliteStore) -> BTreeMap<String, usize> {
    let namespace = key("/log").namespace;
    let last = store.last_sequence(&namespace).await.expect("it reads");
    let seen = Sequence(last.0.saturating_sub(4096));
    let page = store.since(&namespace, seen, usize::MAX).await.expect("it reads");
    let ChangePage::Changes { changes, .. } = page else { panic!("they are forgotten") };
    let mut told = BTreeMap::new();
    for (_, tell) in changes {
        if let ChangeRecord::Created(path, _) = tell {
            *told.entry(path.as_str().to_owned()).or_default() += 1;
        }
    }
    told
}

#[test]
fn a_killed_process_loses_nothing_that_it_was_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("store.db");
    let (mut appended, mut put) = (BTreeSet::new(), BTreeSet::new());
    let mut acknowledged = 0;
    for kill in 0..KILLS {
        // Where each is killed depends on how much it made, so that even a slow machine gets into its writes.
        let (count, moment) = (fastrand::usize(0..12), Duration::from_micros(fastrand::u64(0..4000)));
        let mut child = start("until-killed", &file, &kill.to_string(), 0);
        let mut said = made(&mut child);
        let mut note = |line: String| {
            acknowledged += 1;
            if let Some(("append", line)) = line.split_once(' ') {
                appended.insert(line.to_owned());
            } else if let Some(("put", line)) = line.split_once(' ') {
                put.insert(line.to_owned());
            }
        };
        said.by_ref().take(count).for_each(&mut note);
        let start = Instant::now();
        while start.elapsed() < moment {
            std::hint::spin_loop();
        }
        child.kill().expect("it is killed");
        said.for_each(note);
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!stderr.contains("panicked"), "{stderr}");
        // Opening is what repairs the file; a whole look is taken now and then, and at the end.
        if kill % 20 == 19 || kill + 1 == KILLS {
            runtime().block_on(async {
                let store = open(&file).await;
                assert_clean(&store).await;
                let lines = lines(&store, "/log").await;
                let found: BTreeSet<_> = lines.iter().cloned().collect();
                assert_eq!(found.len(), lines.len(), "a line is there twice");
                assert!(found.is_superset(&appended), "missing: {:?}", appended.difference(&found));
                for line in &put {
                    let value = store.get(&key(&format!("/put/{line}")), None).await.expect("it reads");
                    assert_eq!(value.expect("it is there").content, format!("{line}\n").repeat(300));
                }
                assert!(
                    told(&store).await.values().filter(|times| **times > 1).count() <= 1,
                    "only /large is made again"
                );
            });
        }
    }
    println!("{KILLS} kills, {acknowledged} lines of what was made, {} appended, {} put", appended.len(), put.len());
    assert!(appended.len() > KILLS / 2, "hardly any of them came to write");
}

#[test]
fn edits_of_many_processes_are_all_there() {
    let edits: usize = std::env::var(EDITS).ok().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("store.db");
    let start_time = Instant::now();
    let each = edits.div_ceil(PROCESSES);
    // None makes the file first: all of them open it at once.
    let children: Vec<_> =
        (0..PROCESSES).map(|number| start("edit-shared", &file, &format!("p{number}"), each)).collect();
    let reading: Vec<_> = children
        .into_iter()
        .map(|mut child| {
            std::thread::spawn(move || {
                let said: Vec<String> = made(&mut child).collect();
                let output = child.wait_with_output().expect("it ends");
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                said
            })
        })
        .collect();
    let said: Vec<String> = reading.into_iter().flat_map(|thread| thread.join().expect("it ends")).collect();
    println!("{edits} edits by {PROCESSES} processes in {:?}", start_time.elapsed());
    let acknowledged: Vec<(&str, &str)> =
        said.iter().filter(|line| line.starts_with('/')).filter_map(|line| line.split_once(' ')).collect();
    assert_eq!(acknowledged.len(), each * PROCESSES);
    runtime().block_on(async {
        let store = open(&file).await;
        assert_clean(&store).await;
        let mut found = Vec::new();
        for number in 0..SHARED {
            let at = format!("/shared/{number}");
            found.extend(lines(&store, &at).await.into_iter().map(|line| (at.clone(), line)));
        }
        let mut expected: Vec<_> =
            acknowledged.iter().map(|(at, line)| ((*at).to_owned(), (*line).to_owned())).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "what is there is what was acknowledged, each once");
        let position = store.last_sequence(&key("/log").namespace).await.expect("it reads");
        assert_eq!(position, Sequence(expected.len() as u64));
    });
}
