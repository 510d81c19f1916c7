//! Detection of processes that remain, on this machine or another.
//!
//! Each process holds the same FIFO open, and a command that reads the FIFO ends with the last of them.

use tokio::task::JoinHandle;
use vfs_core::{ExecuteResponse, Result};

use super::ShellTarget;
use super::law_helpers::{assert_success, cx, patiently};
use crate::laws::LawResult;

/// First words of a command whose processes are to be detected. All of them inherit descriptor 9.
pub(super) const HOLD_PREFIX: &str = "exec 9>hold;";

/// Waits for the end of all processes that were started by a command which began with [`HOLD_PREFIX`]. Serves one such command:
/// the wait also ends with a command that is ended early, and the next would find no reader.
pub(super) struct OrphanDetector(JoinHandle<Result<ExecuteResponse>>);

impl ShellTarget {
    /// Begins to wait for a command that has not started yet.
    pub(super) async fn hold(&self) -> Result<OrphanDetector> {
        assert_success(&self.run("rm -f hold started; mkfifo hold").await?);
        Ok(OrphanDetector(self.begin(cx(), self.command("cat hold"))))
    }
}

impl OrphanDetector {
    /// Asserts that the processes end.
    pub(super) async fn released(self) -> LawResult {
        let ended = patiently("a process lives on", self.0).await.expect("no panic")?;
        assert_success(&ended);
        Ok(())
    }

    /// Stops waiting, for a command that was ended before it came far enough.
    pub(super) fn give_up(self) {
        self.0.abort();
    }
}
