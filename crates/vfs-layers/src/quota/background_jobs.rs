//! Commands that go on when the call that began them has its answer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vfs_core::{Backend, JobsRequest, OpContext};

/// Who has begun some that may still run, and how many each.
#[derive(Debug, Default)]
pub(super) struct Background(Mutex<HashMap<Owner, u64>>);

/// An actor and a session, who alone know of their jobs.
type Owner = (Option<String>, Option<String>);

impl Background {
    fn lock(&self) -> MutexGuard<'_, HashMap<Owner, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that a command of the caller's begins, or has begun.
    pub(super) fn begins(&self, cx: &OpContext) {
        let owner = (cx.actor().map(str::to_owned), cx.session().map(str::to_owned));
        *self.lock().entry(owner).or_default() += 1;
    }

    /// Whether some may have changed files since this was asked last.
    pub(super) async fn may_have_changed(&self, inner: &dyn Backend) -> bool {
        let owners: Vec<_> = self.lock().iter().map(|(owner, begun)| (owner.clone(), *begun)).collect();
        for (owner, begun) in &owners {
            if has_ended(inner, owner).await {
                let mut owners = self.lock();
                // Another may have begun since it was looked.
                if owners.get(owner) == Some(begun) {
                    owners.remove(owner);
                }
            }
        }
        !owners.is_empty()
    }
}

/// Whether no command of `owner` runs any more. What cannot be known is not taken for an end.
async fn has_ended(inner: &dyn Backend, (actor, session): &Owner) -> bool {
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
