//! Local shells under test, and the tools that each of them has.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use libtest_mimic::{Completion, Trial};
use tempfile::TempDir;
use vfs_core::VfsPath;
use vfs_remote::{LocalProcess, RemoteConfig, SandboxBackend};
use vfs_testkit::{LawTier, LinkMaker, Target, TargetFactory};

use crate::narrow::Narrow;

/// A shell with its tools.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) name: &'static str,
    /// The transport, or the reason for which there is none on this machine.
    process: Result<Narrow, String>,
    /// The directory of the tools, if they are not those of the system.
    _tools: Option<Arc<TempDir>>,
}

/// Returns every kind of place.
pub(crate) fn all() -> Vec<Place> {
    vec![system(), busybox(), narrow(), coarse()]
}

/// Returns the shell and tools of this system.
pub(crate) fn system() -> Place {
    Place { name: "remote-sh", process: Ok(Narrow::wide(LocalProcess::new())), _tools: None }
}

/// Returns a place with the tools of busybox only.
fn busybox() -> Place {
    let name = "remote-busybox";
    let Some(program) = found("busybox") else {
        return Place { name, process: Err("busybox is not installed".into()), _tools: None };
    };
    let tools = directory();
    let listed = Command::new(&program).arg("--list").output().expect("busybox lists its applets");
    for applet in String::from_utf8(listed.stdout).expect("names are ASCII").lines() {
        symlink(&program, tools.path().join(applet)).expect("a link can be made");
    }
    let shell = tools.path().join("sh");
    let process = LocalProcess::command([text(&shell), "-c"]).env("PATH", text(tools.path()));
    Place { name, process: Ok(Narrow::wide(process).with_little_input()), _tools: Some(Arc::new(tools)) }
}

/// Returns a place behind a transport without standard input and with small limits.
pub(crate) fn narrow() -> Place {
    Place { name: "remote-narrow", process: Ok(Narrow::new(LocalProcess::new())), _tools: None }
}

/// Returns a place whose `stat` has whole seconds only, with a small limit of standard input.
pub(crate) fn coarse() -> Place {
    let name = "remote-coarse";
    let Some(stat) = found("stat") else {
        return Place { name, process: Err("stat is not installed".into()), _tools: None };
    };
    let tools = directory();
    let script = tools.path().join("stat");
    let lines = format!("#!/bin/sh\nstat={}\n{WHOLE_SECONDS}", stat.display());
    fs::write(&script, lines).expect("a script can be written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
    let path = std::env::var("PATH").expect("there is a PATH");
    let process = LocalProcess::new().env("PATH", format!("{}:{path}", text(tools.path())));
    Place { name, process: Ok(Narrow::wide(process).with_little_input()), _tools: Some(Arc::new(tools)) }
}

/// Passes a request for fractions on to the real `stat` as one for whole seconds.
const WHOLE_SECONDS: &str = r#"option=$1 format=$2
shift 2
[ "$format" != %z ] || format=%Z
while case $format in *%.9*) : ;; *) false ;; esac; do
  rest=${format#*%.9}
  time=${rest%"${rest#?}"}
  format=${format%%"%.9"*}%$time.000000000${rest#?}
done
exec "$stat" "$option" "$format" "$@"
"#;

fn text(path: &Path) -> &str {
    path.to_str().expect("it is UTF-8")
}

/// Returns the path of a program of this system.
pub(crate) fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|place| place.is_file())
}

/// Creates a temporary directory, whose name must not be shown to a model.
pub(crate) fn directory() -> TempDir {
    tempfile::Builder::new().prefix("vfs-laws-").tempdir().expect("a temporary directory can be made")
}

impl Place {
    /// Returns a backend for the files below `root`, or `None` if the place does not exist on this machine.
    pub(crate) fn files(&self, root: &Path) -> Option<SandboxBackend<Narrow>> {
        let process = self.process.clone().ok()?;
        Some(SandboxBackend::new(process, RemoteConfig::new(text(root))))
    }

    fn target(&self) -> Target {
        let root = directory();
        let links = HostLinks { root: root.path().into() };
        let files = self.files(root.path()).expect("laws are checked where the place is");
        Target::new(Arc::new(files))
            .with_host_marker("vfs-laws-")
            .with_links(Arc::new(links))
            .with_guard((root, self.clone()))
    }

    /// Returns every law of files as a trial.
    pub(crate) fn laws(&self) -> Vec<Trial> {
        let place = self.clone();
        if let Err(reason) = &self.process {
            let reason = reason.clone();
            return vec![Trial::ignorable_test(self.name, move || Ok(Completion::ignored_with(reason)))];
        }
        vfs_testkit::trials(TargetFactory::new(self.name, move || place.target()).tier(LawTier::Storage))
    }
}

/// Creates links on the disk of the host, below `root`.
#[derive(Debug)]
struct HostLinks {
    root: PathBuf,
}

impl LinkMaker for HostLinks {
    fn link(&self, at: &VfsPath, to: &str) -> io::Result<()> {
        symlink(to, self.root.join(at.relative()))
    }

    fn is_link(&self, at: &VfsPath) -> bool {
        self.root.join(at.relative()).is_symlink()
    }
}
