//! Places that can only run commands: a shell of this machine, busybox and nothing else, and a host behind SSH.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;
use vfs_core::{Backend, VfsPath};
use vfs_remote::{LocalProcess, RemoteConfig, RemoteExec, SandboxBackend};
use vfs_testkit::{LawTier, Target, TargetFactory};

use crate::programs::{found, missing_of};
use crate::sshd::Sshd;
use crate::{HostLinks, directory};

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The shell and the tools of this system.
    LocalProcess,
    /// Busybox, and nothing else.
    Busybox,
    /// A host behind SSH, which is this one.
    Ssh,
}

impl Place {
    /// All of them.
    pub const ALL: [Place; 3] = [Place::LocalProcess, Place::Busybox, Place::Ssh];

    /// Returns the name of the place, with which its trials begin.
    pub fn name(self) -> &'static str {
        match self {
            Place::LocalProcess => "remote-local",
            Place::Busybox => "remote-busybox",
            Place::Ssh => "remote-ssh",
        }
    }

    /// Returns the reason for which the place is unavailable here, or `None` if it is available.
    pub fn absent(self) -> Option<String> {
        match self {
            Place::LocalProcess => None,
            Place::Busybox => missing_of(&["busybox"]),
            Place::Ssh => Sshd::missing(),
        }
    }

    /// The files of a fresh directory, reached through the place.
    pub fn target(self) -> Target {
        let root = directory();
        let tools = (self == Place::Busybox).then(Tools::new);
        let backend = match (self, &tools) {
            (Place::Ssh, _) => backend(Sshd::running().connect(), root.path()),
            (_, Some(tools)) => backend(tools.process(), root.path()),
            (_, None) => backend(LocalProcess::new(), root.path()),
        };
        let links = HostLinks { root: root.path().into(), at: VfsPath::root() };
        Target::new(backend).with_host_marker("vfs-laws-").with_links(Arc::new(links)).with_guard((root, tools))
    }

    /// Which laws concern it: all places share their scripts, other tools decide what the place decides, and behind SSH are
    /// the tools of this system.
    pub fn tier(self) -> LawTier {
        match self {
            Place::LocalProcess => LawTier::Semantics,
            Place::Busybox => LawTier::Storage,
            Place::Ssh => LawTier::Wrapper,
        }
    }

    /// Such files for each law.
    pub fn files(self) -> TargetFactory {
        TargetFactory::new(self.name(), move || self.target()).tier(self.tier())
    }
}

fn backend(execute: impl RemoteExec, root: &Path) -> Arc<dyn Backend> {
    Arc::new(SandboxBackend::new(execute, RemoteConfig::new(root.to_str().expect("its name is UTF-8"))))
}

/// A directory with busybox under the names of all that it can do.
struct Tools(TempDir);

impl Tools {
    fn new() -> Self {
        let directory = directory();
        let busybox = fs::canonicalize(found("busybox").expect("it was looked for")).expect("it is there");
        let listed = Command::new(&busybox).arg("--list").output().expect("it can be run");
        for applet in String::from_utf8(listed.stdout).expect("names are ASCII").lines() {
            symlink(&busybox, directory.path().join(applet)).expect("a link can be made");
        }
        Self(directory)
    }

    fn process(&self) -> LocalProcess {
        let tools = self.0.path().to_str().expect("its name is UTF-8");
        LocalProcess::command([format!("{tools}/sh"), "-c".to_owned()]).env("PATH", tools)
    }
}
