//! Background commands that may still change files.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vfs_core::shell::JobsRequest;
use vfs_core::{Backend, OpContext};

/// Number of background commands by caller that may still run.
#[derive(Debug, Default)]
pub(super) struct BackgroundCommandTracker(Mutex<HashMap<JobOwner, u64>>);

/// Actor and session, the only callers that see their jobs.
type JobOwner = (Option<String>, Option<String>);

impl BackgroundCommandTracker {
    fn lock(&self) -> MutexGuard<'_, HashMap<JobOwner, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a command of the caller begins, or has begun.
    pub(super) fn record_start(&self, cx: &OpContext) {
        let owner = (cx.actor().map(str::to_owned), cx.session().map(str::to_owned));
        *self.lock().entry(owner).or_default() += 1;
    }

    /// Returns whether commands may have changed files since the last call.
    pub(super) async fn may_have_changed(&self, inner: &dyn Backend) -> bool {
        let owners: Vec<_> = self.lock().iter().map(|(owner, count)| (owner.clone(), *count)).collect();
        for (owner, count) in &owners {
            if has_ended(inner, owner).await {
                let mut owners = self.lock();
                // Another command may have begun since the check.
                if owners.get(owner) == Some(count) {
                    owners.remove(owner);
                }
            }
        }
        !owners.is_empty()
    }
}

/// Returns whether all commands of `owner` have ended; `false` if that is unknown.
async fn has_ended(inner: &dyn Backend, (actor, session): &JobOwner) -> bool {
    let mut cx = OpContext::new();
    if let Some(actor) = actor {
        cx = cx.with_actor(actor.as_str());
    }
    if let Some(session) = session {
        cx = cx.with_session(session.as_str());
    }
    match inner.as_shell() {
        Some(shell) => {
            shell.jobs(&cx, JobsRequest::new()).await.is_ok_and(|jobs| jobs.iter().all(|job| job.exit.is_some()))
        }
        None => true,
    }
}
