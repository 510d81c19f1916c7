//! Confinement under a race: a process swaps directories for links while operations run.
//!
//! The swapped directory is below the root, and the link leads outside, or to hidden files inside. Every operation goes
//! through a confined backend. No file outside may be read, created or changed, and no hidden file inside may be.
//!
//! `VFS_RACE_ATTEMPTS` sets the attempts for each operation; the default is short enough for every run of the tests. A
//! reader that checks first and opens afterwards runs in the same harness, and must be caught: otherwise the test
//! proves nothing.

#![expect(clippy::print_stdout, reason = "the number of attempts is part of the result of this test")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use futures::executor::block_on;
use libtest_mimic::{Arguments, Failed, Trial};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use vfs_core::search::LinkMode;
use vfs_core::{
    Backend, CopyRequest, DeleteRequest, EditRequest, ErrorKind, FileUploadRequest, GlobRequest, GrepRequest,
    LsRequest, OpContext, ReadRequest, RenameRequest, ResolveRequest, StatRequest, VfsPath, WriteMode, WriteRequest,
};
use vfs_local::{Durability, LocalBackend, LocalConfig, PathResolutionMode, ProtectionLevel};

/// Content of every file outside, and of none inside.
const SECRET: &str = "only outside has this";
const INSIDE: &str = "only inside has this\n";

/// The target of the link, in the tree, and the error kind for a path through the link.
type LinkTarget = (&'static str, ErrorKind);

const OUTSIDE: LinkTarget = ("outside", ErrorKind::PathEscape);

const HIDDEN: LinkTarget = ("root/protected/hidden", ErrorKind::PolicyDenied);

/// Names that exist both inside and outside, so that an operation that leaves the root finds a file to damage.
const FILES: [&str; 4] = ["a", "b", "deep/a", "deep/er/a"];

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "swap-forever") {
        let root = PathBuf::from(arguments.next().expect("the root to swap in"));
        return swap_forever(&root);
    }
    let attempts = std::env::var("VFS_RACE_ATTEMPTS").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000);
    let mut trials = vec![Trial::test("race::a_check_before_the_open_is_caught", check_then_open_is_caught)];
    for (resolver, resolution) in
        [("kernel", PathResolutionMode::Automatic), ("portable", PathResolutionMode::Portable)]
    {
        // Portable resolution is several times slower, so it gets fewer attempts.
        let attempts = if resolution == PathResolutionMode::Portable { attempts / 10 } else { attempts };
        for (prefix, target) in [("", OUTSIDE), ("hidden::", HIDDEN)] {
            trials.extend(OPERATIONS.iter().map(|(name, operation)| {
                Trial::test(format!("race::{resolver}::{prefix}{name}"), move || {
                    nothing_outside_is_touched(name, *operation, resolution, target, attempts)
                })
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Maximum time until an operation finds both the directory and the link. It bounds a hang, and is no expectation of
/// speed.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// Exchanges `d`, a directory, and `l`, a link to the outside, until it is killed or the tree is removed. Prints a line
/// when it begins.
fn swap_forever(root: &Path) -> ExitCode {
    let (directory, link) = (root.join("d"), root.join("l"));
    println!("it swaps");
    while renameat_with(CWD, &directory, CWD, &link, RenameFlags::EXCHANGE).is_ok() {}
    ExitCode::SUCCESS
}

/// The root, the directory outside and the process that swaps the entries.
struct Race {
    tree: tempfile::TempDir,
    target: &'static str,
    swapper: Child,
}

impl Race {
    fn start(target: &'static str) -> Self {
        let tree = tempfile::tempdir().expect("a temporary directory");
        for (base, content) in [("root/d", INSIDE.to_owned()), (target, format!("{SECRET}\n"))] {
            for file in FILES {
                let path = tree.path().join(base).join(file);
                fs::create_dir_all(path.parent().expect("it is below the tree")).expect("directories are made");
                fs::write(path, &content).expect("files are written");
            }
        }
        symlink(target.strip_prefix("root/").unwrap_or("../outside"), tree.path().join("root/l"))
            .expect("the link is made");
        let mut swapper = Command::new(std::env::current_exe().expect("this program has a path"))
            .arg("swap-forever")
            .arg(tree.path().join("root"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the swapper starts");
        // Wait until the swapping begins: operations before that would race nothing.
        let mut line = String::new();
        BufReader::new(swapper.stdout.take().expect("it is piped"))
            .read_line(&mut line)
            .expect("it says that it swaps");
        Self { tree, target, swapper }
    }

    fn root(&self) -> PathBuf {
        self.tree.path().join("root")
    }

    /// Returns every entry outside with its inode, times and content.
    fn outside(&self) -> BTreeMap<PathBuf, (u64, i64, i64, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut pending = vec![self.tree.path().join(self.target)];
        while let Some(path) = pending.pop() {
            let metadata = fs::symlink_metadata(&path).expect("the outside stays");
            let content = if metadata.is_dir() {
                pending.extend(fs::read_dir(&path).expect("it lists").map(|entry| entry.expect("it lists").path()));
                Vec::new()
            } else {
                fs::read(&path).expect("it reads")
            };
            found.insert(path, (metadata.ino(), metadata.mtime_nsec(), metadata.ctime_nsec(), content));
        }
        found
    }
}

impl Drop for Race {
    fn drop(&mut self) {
        self.swapper.kill().expect("the swapper is ours to kill");
        self.swapper.wait().expect("the swapper ends");
    }
}

type Operation = fn(&LocalBackend, &OpContext) -> Result<String, vfs_core::Error>;

/// Each operation once, on paths that lead through the swapped directory. It returns its result as text, which is
/// searched for the secret.
const OPERATIONS: &[(&str, Operation)] = &[
    ("read", |files, cx| show(block_on(files.read(cx, ReadRequest::new(path("/d/deep/a")))))),
    ("download", |files, cx| {
        let responses = block_on(files.download_files(cx, vec![path("/d/a"), path("/d/deep/er/a")]));
        let text = format!("{responses:?}");
        responses.into_iter().find_map(|response| response.cause).map_or(Ok(text), Err)
    }),
    ("stat_and_resolve", |files, cx| {
        show(block_on(Backend::resolve(files, cx, ResolveRequest::new(path("/d/deep/a")))))?;
        show(block_on(files.stat(cx, StatRequest::new(path("/d/deep/a")))))
    }),
    ("ls", |files, cx| show(block_on(files.ls(cx, LsRequest::new(path("/d/deep")))))),
    ("write_new", |files, cx| {
        let written = show(block_on(files.write(cx, WriteRequest::new(path("/d/new"), INSIDE))));
        block_on(files.delete(cx, DeleteRequest::new(path("/d/new"))))?;
        written
    }),
    ("write_over", |files, cx| {
        show(block_on(files.write(cx, WriteRequest::new(path("/d/a"), INSIDE).mode(WriteMode::Overwrite))))
    }),
    ("write_new_with_parents", |files, cx| {
        let written = show(block_on(files.write(cx, WriteRequest::new(path("/d/p/q/new"), INSIDE))));
        block_on(files.delete(cx, DeleteRequest::new(path("/d/p")).recursive()))?;
        written
    }),
    ("upload", |files, cx| {
        let responses = block_on(files.upload_files(cx, vec![FileUploadRequest::new(path("/d/deep/er/a"), INSIDE)]));
        let text = format!("{responses:?}");
        responses.into_iter().find_map(|response| response.cause).map_or(Ok(text), Err)
    }),
    ("edit", |files, cx| {
        let request = EditRequest::new(path("/d/deep/a"), "this", "this too").and("this too", "this");
        show(block_on(files.edit(cx, request)))?;
        // The file outside has this word, too: an edit that leaves the root would find it.
        match block_on(files.edit(cx, EditRequest::new(path("/d/b"), "outside", "stolen"))) {
            Err(error) if error.kind() == ErrorKind::NoMatch => Ok(String::new()),
            edited => show(edited),
        }
    }),
    ("append", |files, cx| {
        show(block_on(files.write(cx, WriteRequest::new(path("/d/deep/b"), "x").mode(WriteMode::Append))))?;
        show(block_on(files.delete(cx, DeleteRequest::new(path("/d/deep/b")))))
    }),
    ("delete", |files, cx| {
        show(block_on(files.delete(cx, DeleteRequest::new(path("/d/deep/er")).recursive())))?;
        show(block_on(files.write(cx, WriteRequest::new(path("/d/deep/er/a"), INSIDE))))
    }),
    ("rename", |files, cx| {
        show(block_on(files.rename(cx, RenameRequest::new(path("/d/a"), path("/d/deep/moved")).overwrite())))?;
        show(block_on(files.rename(cx, RenameRequest::new(path("/d/deep/moved"), path("/d/a")).overwrite())))
    }),
    ("copy", |files, cx| {
        // An earlier attempt may have left an incomplete copy.
        let _cleared = block_on(files.delete(cx, DeleteRequest::new(path("/d/copied")).recursive()));
        show(block_on(files.copy(cx, CopyRequest::new(path("/d/deep"), path("/d/copied")))))?;
        let text = show(block_on(files.read(cx, ReadRequest::new(path("/d/copied/a")))));
        show(block_on(files.delete(cx, DeleteRequest::new(path("/d/copied")).recursive())))?;
        text
    }),
    ("glob", |files, cx| {
        show(block_on(files.glob(cx, GlobRequest::new("a").links(LinkMode::Follow).path(path("/d")))))?;
        show(block_on(files.glob(cx, GlobRequest::new("**/er/*").links(LinkMode::Follow))))
    }),
    ("grep", |files, cx| {
        show(block_on(files.grep(cx, GrepRequest::literal("only").links(LinkMode::Follow))))?;
        show(block_on(files.grep(cx, GrepRequest::literal("only").path(path("/d/deep")))))
    }),
];

fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("the paths of this test are valid")
}

fn show<T: std::fmt::Debug>(result: vfs_core::Result<T>) -> vfs_core::Result<String> {
    result.map(|answer| format!("{answer:?}"))
}

fn nothing_outside_is_touched(
    name: &str,
    operation: Operation,
    resolution: PathResolutionMode,
    (target, refusal): LinkTarget,
    attempts: u64,
) -> Result<(), Failed> {
    let race = Race::start(target);
    let config = LocalConfig::new(race.root())
        .durability(Durability::Atomic)
        .resolution(resolution)
        .protect(path("/protected/hidden"), ProtectionLevel::Hidden);
    let files = config.open()?;
    let before = race.outside();
    let cx = OpContext::new();
    let (mut answered, mut refused) = (0_u64, BTreeMap::<ErrorKind, u64>::new());
    let mut done = 0_u64;
    let start = Instant::now();
    // A run that found only the directory, or only the link, raced nothing, so it continues until it has found both: on
    // a busy machine the swapper may have to wait for the processor.
    while done < attempts || ((answered == 0 || !refused.contains_key(&refusal)) && start.elapsed() < HANG_TIMEOUT) {
        done += 1;
        // Without a pause of varying length, the two processes can synchronise.
        (0..done * 7919 % 4_001).for_each(|_| std::hint::spin_loop());
        match operation(&files, &cx) {
            Ok(answer) => {
                answered += 1;
                if answer.contains(SECRET) {
                    return Err(format!("{name} returned bytes from outside: {answer}").into());
                }
            }
            Err(error) => {
                *refused.entry(error.kind()).or_default() += 1;
                let message = format!("{error} {}", error.for_model());
                if message.contains(&*race.tree.path().to_string_lossy()) || message.contains(SECRET) {
                    return Err(format!("{name} failed with an error that has text from outside: {message}").into());
                }
            }
        }
        // If one of several calls is refused, the sequence is incomplete: restore the files for the next attempt.
        repair(&race);
    }
    if race.outside() != before {
        return Err(format!("{name} changed the outside").into());
    }
    if answered == 0 || !refused.contains_key(&refusal) {
        return Err(format!("{name} was not raced: {answered} answered, {refused:?} refused of {done}").into());
    }
    println!("{name} ({resolution:?}): {done} attempts, {answered} answered, {refused:?} refused, 0 outside");
    Ok(())
}

/// Restores the files that sequences removed, through the directory itself, by whichever of the two names it has now.
fn repair(race: &Race) {
    for base in ["d", "l"].map(|name| race.root().join(name)) {
        // A link is recognised by its own metadata. If that race is lost, nothing is restored.
        if fs::symlink_metadata(&base).is_ok_and(|metadata| metadata.is_dir()) {
            let Ok(dir) = rustix::fs::openat(
                CWD,
                &base,
                rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC,
                rustix::fs::Mode::empty(),
            ) else {
                continue;
            };
            let dir_path = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&dir)));
            for file in FILES {
                let file = dir_path.join(file);
                if !file.exists() {
                    fs::create_dir_all(file.parent().expect("it has one")).expect("directories are made");
                    fs::write(file, INSIDE).expect("files are written");
                }
            }
        }
    }
}

/// A check before the open, as in Deepagents: resolve the path, check that it is inside, then open it by name.
fn check_then_open(root: &Path, file: &str) -> Option<String> {
    let resolved = root.join(file).canonicalize().ok()?;
    resolved.starts_with(root).then(|| fs::read_to_string(root.join(file)).ok())?
}

fn check_then_open_is_caught() -> Result<(), Failed> {
    let race = Race::start(OUTSIDE.0);
    let root = race.root().canonicalize()?;
    let started = Instant::now();
    let mut attempts = 0_u64;
    while started.elapsed() < HANG_TIMEOUT {
        attempts += 1;
        if check_then_open(&root, "d/deep/a").is_some_and(|text| text.contains(SECRET)) {
            println!("check-then-open leaked after {attempts} attempts and {:?}", started.elapsed());
            return Ok(());
        }
    }
    Err("a reader that checks first was not caught in a minute: the harness races nothing".into())
}
