//! A process ends in the middle of a commit or of a move across mounts, at every step: what is found afterwards is the state
//! before it or the state after it, or becomes that when it is recovered, and nothing is lost.
//!
//! Each run is a process of its own, which aborts before or after one call to one of the backends.

#![expect(clippy::print_stdout, reason = "the attempts are part of the report of this test")]

mod cases;

use std::collections::BTreeMap;
use std::fs;
use std::future::pending;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::pin::pin;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::executor::block_on;
use futures::future::{BoxFuture, Either, select};
use libtest_mimic::{Arguments, Failed, Trial};
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, CancelToken, Interceptor, OpContext, Result};
use vfs_local::{Durability, LocalConfig};

use cases::{CASES, Case};

/// More steps than any case has.
const NEVER: usize = usize::MAX;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, name, root, step] = &arguments[..]
        && word == "perform"
    {
        let case = CASES.iter().find(|case| case.name == name).expect("the parent knows the cases");
        let disk = Disk::new(Path::new(root), step.parse().expect("the parent counts the steps"));
        block_on((case.perform)(&disk)).expect("nothing but the end of the process disturbs it");
        return ExitCode::SUCCESS;
    }
    let trials = CASES.iter().map(|case| Trial::test(format!("crash::{}", case.name), || ended_at_each_step(case)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// The files below a directory of the host, by their paths.
pub(crate) type State = BTreeMap<String, String>;

/// Backends below one directory, on which the process ends at one of their steps.
pub(crate) struct Disk<'a> {
    root: &'a Path,
    fuse: Arc<Fuse>,
}

impl<'a> Disk<'a> {
    pub(crate) fn new(root: &'a Path, step: usize) -> Self {
        Self { root, fuse: Arc::new(Fuse { taken: AtomicUsize::new(0), last: step, stalled: None }) }
    }

    /// Performs `work` up to `part` of its steps, and leaves what it has done by then. `prepare` lays out what it begins with.
    pub(crate) fn interrupt(
        &self,
        (part, parts): (usize, usize),
        prepare: fn(&Disk<'_>),
        work: for<'b> fn(&'b Disk<'b>) -> BoxFuture<'b, Result<()>>,
    ) {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let whole = Disk::new(scratch.path(), NEVER);
        prepare(&whole);
        block_on(work(&whole)).expect("nothing disturbs it");
        let last = whole.fuse.taken.load(Ordering::SeqCst) * part / parts;
        let stalled = CancelToken::new();
        let fuse = Fuse { taken: AtomicUsize::new(0), last, stalled: Some(stalled.clone()) };
        let disk = Disk { root: self.root, fuse: Arc::new(fuse) };
        prepare(&disk);
        let is_stalled = matches!(block_on(select(work(&disk), pin!(stalled.cancelled()))), Either::Right(_));
        assert!(is_stalled, "it stalls before its end");
    }

    /// A backend over the directory `name`.
    pub(crate) fn open(&self, name: &str) -> Arc<dyn Backend> {
        let root = self.root.join(name);
        fs::create_dir_all(&root).expect("a directory can be made");
        let local = LocalConfig::new(root).durability(Durability::Atomic).open().expect("the root can be opened");
        Arc::new(Intercepted::new(Arc::new(local), Arc::clone(&self.fuse)))
    }

    /// The files of the directory `name`.
    pub(crate) fn state(&self, name: &str) -> State {
        let mut state = State::new();
        collect(&self.root.join(name), "", &mut state);
        state
    }

    /// Puts links, each to another name, and empty directories into the directory `name`.
    pub(crate) fn lay_out_others(&self, name: &str, links: &[(&str, &str)], directories: &[&str]) {
        for (path, target) in links {
            symlink(target, self.root.join(name).join(path)).expect("a link can be made");
        }
        for path in directories {
            fs::create_dir_all(self.root.join(name).join(path)).expect("a directory can be made");
        }
    }

    /// Whether a directory is at `path` in the directory `name`.
    pub(crate) fn has_directory(&self, name: &str, path: &str) -> bool {
        self.root.join(name).join(path).is_dir()
    }

    /// Puts `files` into the directory `name`.
    pub(crate) fn lay_out(&self, name: &str, files: &[(&str, &str)]) {
        for (path, text) in files {
            let at = self.root.join(name).join(path);
            fs::create_dir_all(at.parent().expect("it is below the root")).expect("a directory can be made");
            fs::write(at, text).expect("a file can be written");
        }
    }
}

fn collect(directory: &Path, prefix: &str, state: &mut State) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries {
        let entry = entry.expect("the directory can be read");
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("it has a type").is_dir() {
            collect(&entry.path(), &format!("{path}/"), state);
        } else {
            state.insert(path, fs::read_to_string(entry.path()).expect("it is text"));
        }
    }
}

/// Ends the process at a step, or stalls there.
#[derive(Debug)]
struct Fuse {
    taken: AtomicUsize,
    last: usize,
    /// Cancelled at the step, which never ends then.
    stalled: Option<CancelToken>,
}

impl Fuse {
    async fn step(&self) {
        if self.taken.fetch_add(1, Ordering::SeqCst) != self.last {
            return;
        }
        match &self.stalled {
            None => std::process::abort(),
            Some(stalled) => stalled.cancel(),
        }
        pending().await
    }
}

impl Interceptor for Fuse {
    fn name(&self) -> &'static str {
        "fuse"
    }

    async fn call<Q: UnaryRequest>(&self, inner: &dyn Backend, cx: &OpContext, request: Q) -> Result<Q::Output> {
        self.step().await;
        let answer = request.send(inner, cx).await;
        self.step().await;
        answer
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// Lets the case's process end at its first step, its second, and so on, until it comes to its end.
fn ended_at_each_step(case: &Case) -> std::result::Result<(), Failed> {
    let mut ended = 0;
    for step in 0.. {
        let scratch = tempfile::tempdir()?;
        let disk = Disk::new(scratch.path(), NEVER);
        (case.prepare)(&disk);
        let child = Command::new(std::env::current_exe()?)
            .args(["perform", case.name])
            .arg(scratch.path())
            .arg(step.to_string())
            .stderr(Stdio::null())
            .status()?;
        block_on((case.check)(&disk, child.success())).map_err(|failure| format!("ended at step {step}: {failure}"))?;
        if child.success() {
            break;
        }
        ended += 1;
    }
    println!("{}: ended at {ended} steps", case.name);
    if ended < 10 { Err("it has hardly any steps".into()) } else { Ok(()) }
}
