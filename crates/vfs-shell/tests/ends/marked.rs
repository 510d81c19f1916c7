//! Search for the processes of one run by a variable in their environment.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use crate::HANG_TIMEOUT;

/// Variable that only the processes of one run have.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(format!("VFS_MARK_{}_{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Returns the living processes of the run. Zombies have no environment and are not included.
    pub(crate) fn living(&self) -> Vec<String> {
        let mut living = Vec::new();
        for entry in fs::read_dir("/proc").expect("processes are listed").flatten() {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.windows(self.0.len()).any(|window| window == self.0.as_bytes()) {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                living.push(format!(
                    "{} {}",
                    entry.file_name().display(),
                    String::from_utf8_lossy(&line).replace('\0', " ")
                ));
            }
        }
        living
    }

    pub(crate) fn wait_until_gone(&self) -> Result<(), Failed> {
        wait_until("processes are left", || self.living())
    }

    /// Waits until at least this many processes of the run live.
    pub(crate) fn wait_until_there(&self, count: usize) -> Result<(), Failed> {
        let missing = || if self.living().len() < count { vec![format!("{count} in all")] } else { Vec::new() };
        wait_until("processes are missing", missing)
    }
}

/// Waits until this process has no children, zombies included.
pub(crate) fn wait_until_childless() -> Result<(), Failed> {
    let children = || children_of(std::process::id()).iter().map(u32::to_string).collect();
    wait_until("children are left", children)
}

/// Returns the children of a process.
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let parent = parent.to_string();
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc").expect("processes are listed").flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let found = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        if found == Some(&parent) {
            children.extend(entry.file_name().to_string_lossy().parse::<u32>());
        }
    }
    children
}

/// Returns whether a process lives. A zombie does not.
pub(crate) fn lives(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Waits until `left` returns no process.
pub(crate) fn wait_until(what: &str, left: impl Fn() -> Vec<String>) -> Result<(), Failed> {
    let end = Instant::now() + HANG_TIMEOUT;
    loop {
        let found = left();
        if found.is_empty() {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(format!("{what} after {HANG_TIMEOUT:?}: {found:?}").into());
        }
        thread::sleep(Duration::from_millis(5));
    }
}
