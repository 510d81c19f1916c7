//! Replaced tools of a place, which simulate another process or a poorer tool.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use vfs_remote::{LocalProcess, RemoteConfig, SandboxBackend};

use crate::places::{directory, found};

/// Longest that a test waits for one event. Only a test that fails waits as long, however busy the machine is.
pub(crate) const HANG_TIMEOUT: Duration = Duration::from_secs(60);

/// A place whose root is empty, where some tools are scripts; the real tool is `$real` in each.
pub(crate) struct Lab {
    pub(crate) root: TempDir,
    tools: TempDir,
    process: LocalProcess,
}

impl Lab {
    /// With these tools in place of the system's.
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

    /// One more client, which shares nothing with the others but the place.
    pub(crate) fn client(&self) -> SandboxBackend<LocalProcess> {
        let root = self.root.path().to_str().expect("it is UTF-8");
        // However busy the machine is, each gets its turn.
        let config = RemoteConfig::new(root).lock_timeout(HANG_TIMEOUT);
        SandboxBackend::new(self.process.clone(), config)
    }

    /// A file beside the tools, `$0.NAME` for a tool.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.tools.path().join(name)
    }

    /// The names in the root that changes leave behind.
    pub(crate) fn litter(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.path()).expect("it can be listed");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(".vfs-tmp-")).collect()
    }
}
