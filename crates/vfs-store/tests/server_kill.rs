//! Servers that are killed with all their processes, again and again, while processes write: what was acknowledged is there, and
//! nothing is there twice.
//!
//! Each writing process is this program again; the environment says what it does. `VFS_SERVER_KILLS` sets how often each server
//! is killed.

#![cfg(all(feature = "postgres", feature = "redis", target_os = "linux"))]
#![expect(
    clippy::print_stdout,
    reason = "a process reports its writes on its standard output, and a skipped test says so"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "the files are those of the servers, and of the kernel about their processes"
)]

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use vfs_core::{Result, VfsPath};
use vfs_store::{
    Inspect, Key, Namespace, NewValue, PostgresConfig, PostgresStore, Precondition, PutOutcome, RedisConfig,
    RedisStore, Store,
};

const KILLS: &str = "VFS_SERVER_KILLS";
const DEFAULT_KILLS: usize = 10;
const WRITERS: usize = 6;
/// How many files the writers share.
const FILES: usize = 4;
/// Longer than a server takes to recover, however busy the machine is.
const LONG: Duration = Duration::from_secs(600);

/// The URL of the server that a writing process uses, and its name.
const URL: &str = "VFS_SERVER_KILL_URL";
const NAME: &str = "VFS_SERVER_KILL_NAME";

/// Lines of the test harness begin otherwise.
const ACKNOWLEDGED: &str = "acknowledged ";
/// The line of a writing process that has opened its store.
const OPENED: &str = "opened the store";

fn key(file: usize) -> Key {
    Key::new(Namespace::default(), VfsPath::parse(&format!("/log-{file}")).expect("a path"))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

/// A store that may also be looked at as a whole.
trait Inspected: Store + Inspect {}
impl<S: Store + Inspect> Inspected for S {}

async fn open(url: &str) -> Box<dyn Inspected> {
    if url.starts_with("redis") {
        let config = RedisConfig::new(url).expect("a URL").connect_timeout(LONG).timeout(LONG).patience(LONG);
        return Box::new(RedisStore::open(config).await.expect("it opens"));
    }
    let config = PostgresConfig::new(url).expect("a URL").pool_size(2).connect_timeout(LONG).pool_timeout(LONG);
    let config = config.statement_timeout(LONG).lock_timeout(LONG).retry_for(LONG);
    Box::new(PostgresStore::open(config).await.expect("it opens"))
}

/// A server whose data are in a directory of its own.
enum Server {
    Postgres { directory: TempDir, port: u16 },
    Redis { directory: TempDir, port: u16, process: Option<Child> },
}

impl Server {
    fn postgres() -> Option<Self> {
        if std::env::var_os("VFS_TEST_POSTGRES").is_none() {
            println!("skipped: VFS_TEST_POSTGRES names no server");
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        // The server has a user of its own, who has to get there.
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("it is ours");
        Some(Self::Postgres { directory, port: vfs_testkit::server_port() })
    }

    fn redis() -> Option<Self> {
        if std::env::var_os("VFS_TEST_REDIS").is_none() {
            println!("skipped: VFS_TEST_REDIS names no server");
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        Some(Self::Redis { directory, port: vfs_testkit::server_port(), process: None })
    }

    /// Starts it with what is on its disk; returns its URL.
    fn start(&mut self) -> String {
        match self {
            Self::Postgres { directory, port } => {
                let place = directory.path().join("server");
                let output = Command::new(script()).arg("start").arg(&place).arg(port.to_string()).output();
                let output = output.expect("the script runs");
                let log = || std::fs::read_to_string(place.join("log")).unwrap_or_default();
                assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), log());
                String::from_utf8(output.stdout).expect("text").trim().to_owned()
            }
            Self::Redis { directory, port, process } => {
                let mut command = Command::new("redis-server");
                command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
                command.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]).arg(directory.path());
                let started = process.insert(command.stdout(Stdio::null()).spawn().expect("redis-server is installed"));
                // It takes connections as soon as it listens, and answers when it has loaded its data.
                while TcpStream::connect(("127.0.0.1", *port)).is_err() {
                    let ended = started.try_wait().expect("it is a child");
                    assert!(ended.is_none(), "the server does not start with what is on its disk: {ended:?}");
                    std::thread::yield_now();
                }
                format!("redis://127.0.0.1:{port}")
            }
        }
    }

    /// Kills all its processes, which have no time to write anything.
    fn kill(&mut self) {
        match self {
            Self::Postgres { directory, port } => {
                let data = directory.path().join("server/data");
                let text = std::fs::read_to_string(data.join("postmaster.pid")).expect("it runs");
                let main = text.lines().next().and_then(|line| Pid::from_raw(line.parse().ok()?)).expect("a process");
                // Stopped, it makes no more processes. The signal takes effect later than it is sent.
                kill_process(main, Signal::STOP).expect("it runs");
                while state(main).is_some_and(|(state, _)| state != 'T') {
                    std::thread::yield_now();
                }
                let children = children_of(main);
                kill_process(main, Signal::KILL).expect("it runs");
                for child in &children {
                    // One that has just ended is no failure.
                    let _ = kill_process(*child, Signal::KILL);
                }
                // It does not start while processes of before still have its memory.
                while children
                    .iter()
                    .chain([&main])
                    .any(|process| state(*process).is_some_and(|(state, _)| state != 'Z'))
                {
                    std::thread::yield_now();
                }
                // A dead process that nobody has waited for yet would be taken for a running server.
                let place = directory.path().join("server");
                for lock in [data.join("postmaster.pid"), place.join(format!(".s.PGSQL.{port}.lock"))] {
                    std::fs::remove_file(lock).expect("it was there");
                }
            }
            Self::Redis { process, .. } => {
                let mut process = process.take().expect("it runs");
                process.kill().expect("it is killed");
                process.wait().expect("it ends");
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let is_running = match self {
            Self::Postgres { directory, .. } => directory.path().join("server/data/postmaster.pid").exists(),
            Self::Redis { process, .. } => process.is_some(),
        };
        if is_running {
            self.kill();
        }
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/postgres")
}

/// The state of a process and its parent, from the text of `/proc/PID/stat`: the name before them may hold anything but a last `)`.
fn state(process: Pid) -> Option<(char, i32)> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn children_of(parent: Pid) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").expect("Linux has it").flatten();
    let processes = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    processes.filter(|process| state(*process).is_some_and(|(_, of)| of == parent.as_raw_nonzero().get())).collect()
}

/// Starts a writing process, and returns it once it has opened the store: a server that is down cannot be opened.
fn start_writer(url: &str, name: usize, acknowledged: Sender<String>) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", "a_writing_process", "--nocapture", "--test-threads=1"])
        .env(URL, url)
        .env(NAME, format!("writer-{name}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(|line| line.ok());
    if !lines.any(|line| line == OPENED) {
        let output = child.wait_with_output().expect("it ends");
        panic!("a writing process did not open the store: {}", String::from_utf8_lossy(&output.stderr));
    }
    std::thread::spawn(move || {
        for line in lines {
            let Some(line) = line.strip_prefix(ACKNOWLEDGED) else { continue };
            if acknowledged.send(line.to_owned()).is_err() {
                return;
            }
        }
    });
    child
}

/// The part of a writing process, until its input ends; nothing where this is the test itself.
#[test]
fn a_writing_process() {
    let Ok(url) = std::env::var(URL) else { return };
    let name = std::env::var(NAME).expect("it has a name");
    let (end, ended) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().lines().count();
        drop(end);
    });
    runtime().block_on(async {
        let store = open(&url).await;
        // A line of the harness may stand unfinished before.
        println!("\n{OPENED}");
        for number in 0_u64.. {
            if ended.try_recv() == Err(mpsc::TryRecvError::Disconnected) {
                return;
            }
            let (file, line) = (fastrand::usize(..FILES), format!("{name}-{number}"));
            match append(&*store, file, &line).await {
                Ok(()) => println!("{ACKNOWLEDGED}{file} {line}"),
                // Whether it was made is unknown: it may be there once.
                Err(error) => assert!(error.is_temporary(), "{error:?}"),
            }
        }
    });
}

/// Adds `line` to a file, again and again until nobody came in between.
async fn append(store: &dyn Inspected, file: usize, line: &str) -> Result<()> {
    loop {
        let (before, expected) = match store.get(&key(file), None).await? {
            Some(value) => (value.content, Precondition::Version(value.stored.version)),
            None => (Bytes::new(), Precondition::Absent),
        };
        let content = [&before[..], line.as_bytes(), b"\n"].concat();
        let put = store.put(&key(file), NewValue::new(Bytes::from(content), Utc::now()), &expected).await?;
        if matches!(put, PutOutcome::Applied(_)) {
            return Ok(());
        }
    }
}

/// What is in all files: each file's number and a line of it.
async fn lines(store: &dyn Inspected) -> Vec<String> {
    let mut lines = Vec::new();
    for file in 0..FILES {
        let Some(value) = store.get(&key(file), None).await.expect("it reads") else { continue };
        let text = String::from_utf8(value.content.into()).expect("it is text");
        lines.extend(text.lines().map(|line| format!("{file} {line}")));
    }
    lines
}

fn assert_that_kills_lose_nothing(mut server: Server) {
    let kills = std::env::var(KILLS).map_or(DEFAULT_KILLS, |text| text.parse().expect("a number"));
    let url = server.start();
    // It makes the tables before several do so at once.
    runtime().block_on(async { drop(open(&url).await) });
    let (sender, reported) = mpsc::channel();
    let mut writers: Vec<Child> = (0..WRITERS).map(|name| start_writer(&url, name, sender.clone())).collect();
    drop(sender);
    let mut acknowledged = BTreeSet::new();
    for _ in 0..kills {
        let writes = fastrand::usize(1..100);
        acknowledged.extend(receive(&reported, writes));
        server.kill();
        server.start();
    }
    acknowledged.extend(receive(&reported, 1));
    for writer in &mut writers {
        drop(writer.stdin.take());
    }
    acknowledged.extend(reported);
    for writer in writers {
        let output = writer.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    runtime().block_on(async {
        let store = open(&url).await;
        let found = lines(&*store).await;
        let distinct: BTreeSet<String> = found.iter().cloned().collect();
        assert_eq!(distinct.len(), found.len(), "a line is there twice");
        let lost: Vec<_> = acknowledged.difference(&distinct).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        assert_eq!(store.check().await.expect("it checks").problems, []);
        println!("{kills} kills, {} acknowledged, {} found", acknowledged.len(), found.len());
    });
}

/// The next `count` reports. That a writer ended is seen by its exit status; that all of them hang, by the time.
fn receive(reported: &Receiver<String>, count: usize) -> Vec<String> {
    let next = |_| match reported.recv_timeout(LONG) {
        Err(RecvTimeoutError::Timeout) => panic!("no writer has reported anything for {LONG:?}"),
        report => report.ok(),
    };
    (0..count).map_while(next).collect()
}

#[test]
fn a_postgres_server_that_is_killed_loses_nothing_that_it_acknowledged() {
    if let Some(server) = Server::postgres() {
        assert_that_kills_lose_nothing(server);
    }
}

#[test]
fn a_redis_server_that_is_killed_loses_nothing_that_it_acknowledged() {
    if let Some(server) = Server::redis() {
        assert_that_kills_lose_nothing(server);
    }
}
