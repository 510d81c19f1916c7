//! Setup of moves across mounts with an injected fault.

use std::sync::Arc;
use std::time::{Duration, Instant};

use vfs_core::{Backend, RenameRequest, RenameResult, Result};

use super::super::law_helpers::HANG_TIMEOUT;
use super::law_helpers::{FileTexts, around, path};
use crate::call_counter::CallCounter;
use crate::fault_injector::FaultInjector;
use crate::namespace_factory::NamespaceFactory;
use crate::target::Target;

/// A move from one mount to another: the files of both before it, and after it.
pub(super) struct MoveCase {
    pub(super) rename: fn() -> RenameRequest,
    pub(super) before: [&'static [(&'static str, &'static str)]; 2],
    pub(super) after: [&'static [(&'static str, &'static str)]; 2],
}

/// The mount points.
pub(super) const MOUNTS: [&str; 2] = ["/s", "/t"];

pub(super) const DIRECTORY: MoveCase = MoveCase {
    rename: || RenameRequest::new(path("/s/d"), path("/t/in/d")),
    before: [&[("/d/a", "a\n"), ("/d/b/c", "c\n"), ("/d/e", "e\n"), ("/keep", "keep\n")], &[("/there", "there\n")]],
    after: [
        &[("/keep", "keep\n")],
        &[("/in/d/a", "a\n"), ("/in/d/b/c", "c\n"), ("/in/d/e", "e\n"), ("/there", "there\n")],
    ],
};

pub(super) const OVER_A_FILE: MoveCase = MoveCase {
    rename: || RenameRequest::new(path("/s/f"), path("/t/f")).overwrite(),
    before: [&[("/f", "new\n"), ("/keep", "keep\n")], &[("/f", "old\n")]],
    after: [&[("/keep", "keep\n")], &[("/f", "new\n")]],
};

pub(super) const CASES: [MoveCase; 2] = [DIRECTORY, OVER_A_FILE];

/// More steps than any of these moves has: one that needs more does not end.
pub(super) const MAX_STEPS: u64 = 500;

/// Fewer steps than any of these moves has at either end.
pub(super) const MIN_STEPS: u64 = 2;

pub(super) fn files(list: &[(&str, &str)]) -> FileTexts {
    list.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

/// The mount at which a fault is injected.
#[derive(Debug, Clone, Copy)]
pub(super) enum MoveFaultSide {
    Source,
    Target,
}

/// A namespace of two mounts, one of them with an interceptor.
pub(super) struct CrossMountFixture {
    pub(super) files: Target,
    pub(super) ends: [Target; 2],
    pub(super) counting: Arc<CallCounter>,
}

impl CrossMountFixture {
    pub(super) async fn set(
        n: &NamespaceFactory,
        case: &MoveCase,
        wrap: impl Fn(usize, &Arc<dyn Backend>) -> Arc<dyn Backend>,
    ) -> Result<Self> {
        let ends = [n.backend(), n.backend()];
        for (end, list) in ends.iter().zip(case.before) {
            for (path, text) in list {
                end.put(path, *text).await?;
            }
        }
        let counting = Arc::new(CallCounter::default());
        let wrapped = [0, 1].map(|end| around(&wrap(end, &ends[end].backend), &counting));
        let mounts = [(MOUNTS[0], &wrapped[0]), (MOUNTS[1], &wrapped[1])];
        Ok(Self { files: n.mount(&n.backend().backend, &mounts), ends, counting })
    }

    pub(super) async fn with_faults(
        n: &NamespaceFactory,
        case: &MoveCase,
        end: MoveFaultSide,
        injector: &Arc<FaultInjector>,
    ) -> Result<Self> {
        Self::set(
            n,
            case,
            |place, backend| {
                if place == end as usize { around(backend, injector) } else { Arc::clone(backend) }
            },
        )
        .await
    }

    /// Returns the files of the source and of the target.
    pub(super) async fn state(&self) -> Result<[FileTexts; 2]> {
        Ok([self.ends[0].files().await?, self.ends[1].files().await?])
    }

    /// Returns the state once it no longer changes. While it is none of `whole`, the function waits for background
    /// work, up to [`HANG_TIMEOUT`].
    pub(super) async fn settled(&self, whole: &[[FileTexts; 2]]) -> Result<[FileTexts; 2]> {
        let start = Instant::now();
        loop {
            let calls = self.counting.total();
            // While files move, a listed file may no longer exist when it is read.
            let (before, after) = (self.state().await, {
                tokio::time::sleep(Duration::from_millis(5)).await;
                self.state().await
            });
            let is_still = calls == self.counting.total() && before == after;
            match after {
                Ok(state) if is_still && whole.contains(&state) => return Ok(state),
                state if start.elapsed() > HANG_TIMEOUT => return state,
                _ => {}
            }
        }
    }
}

impl MoveCase {
    pub(super) fn unmoved(&self) -> [FileTexts; 2] {
        self.before.map(files)
    }

    pub(super) fn moved(&self) -> [FileTexts; 2] {
        self.after.map(files)
    }

    /// Asserts that the files are at the source or the target, according to `result`.
    pub(super) fn assert_outcome(&self, what: &str, result: &Result<RenameResult>, state: &[FileTexts; 2]) {
        let expected = if result.is_ok() { self.moved() } else { self.unmoved() };
        assert_eq!(*state, expected, "{what}: {result:?}");
    }
}
