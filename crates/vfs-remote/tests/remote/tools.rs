//! Replaced tools of a place, which simulate another process or a poorer tool.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use vfs_remote::{LocalProcess, RemoteConfig, SandboxBackend};

use crate::places::{directory, found};

/// Time that a test waits for one event, so long that only a failing test reaches it, even on a busy machine.
pub(crate) const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// A place with an empty root, where some tools are scripts; in each, `$real` is the real tool.
pub(crate) struct Lab {
    pub(crate) root: TempDir,
    tools: TempDir,
    process: LocalProcess,
}

impl Lab {
    /// Creates a place in which these scripts replace tools of the system.
    pub(crate) fn new(scripts: &[(&str, &str)]) -> Self {
        let tools = directory();
        for (tool, script) in scripts {
            let real = found(tool).expect("the system has its base tools");
            let file = tools.path().join(tool);
            fs::write(&file, format!("#!/bin/sh\nreal={}\n{script}", real.display())).expect("it can be written");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
        }
        let path = std::env::var("PATH").expect("there is a PATH");
        let process = LocalProcess::new().env("PATH", format!("{}:{path}", tools.path().display()));
        Self { root: directory(), tools, process }
    }

    /// Creates a client, which shares only the place with the others.
    pub(crate) fn client(&self) -> SandboxBackend<LocalProcess> {
        let root = self.root.path().to_str().expect("it is UTF-8");
        // The timeout is long enough for each client to get the lock, even on a busy machine.
        let config = RemoteConfig::new(root).lock_timeout(HANG_TIMEOUT);
        SandboxBackend::new(self.process.clone(), config)
    }

    /// Returns the path of a file beside the tools, `$0.NAME` for a tool.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.tools.path().join(name)
    }

    /// Returns the reserved names in the root, which changes should not leave behind.
    pub(crate) fn litter(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.path()).expect("it can be listed");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(".vfs-tmp-")).collect()
    }
}
