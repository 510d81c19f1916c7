//! Pool of prestarted shells that have already read the common prefix of scripts.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Handle, Id};

/// Maximum number of beginnings of scripts in the pool, each with at most one shell.
const MAX_READY_SHELLS: usize = 4;

/// Maximum size of the rest of a script that a ready shell runs, in bytes: the shell reads them one by one.
const MAX_REST_BYTES: usize = 4 << 10;

/// End of the script of a ready shell, which reads the rest from standard input, and runs nothing before the rest is
/// complete.
const REST: &str = "\nB=\nwhile IFS= read -r l; do B=$B$l$nl; done\neval \"$B$l\"\n";

/// Prestarted shells of type `S`, each with the beginning that it has read and the runtime that started it.
pub(crate) struct ShellPool<S>(Mutex<VecDeque<ShellPoolSlot<S>>>);

/// An entry of the pool: the beginning of scripts, and a shell that has read it, unless the shell was taken.
struct ShellPoolSlot<S> {
    beginning: String,
    runtime: Option<Id>,
    shell: Option<S>,
}

/// A shell that was started before, or the permission to start one.
pub(crate) enum PooledOrNewShell<'a, S> {
    /// Write the rest of the script to this shell, which has read its beginning.
    Rest(S, &'a str),
    /// Start a shell with the whole script.
    Whole,
}

impl<S> ShellPool<S> {
    /// Takes a shell for `script`, whose first `beginning` bytes are definitions. `alive` returns the shell only if it
    /// is still running.
    pub(crate) fn take<'a>(
        &self,
        script: &'a str,
        beginning: usize,
        alive: impl FnOnce(S) -> Option<S>,
    ) -> PooledOrNewShell<'a, S> {
        let Some((beginning, rest)) = parts(script, beginning) else { return PooledOrNewShell::Whole };
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ready = pool.iter_mut().find(|ready| ready.beginning == beginning);
        let Some(ready) = ready.filter(|ready| ready.runtime == runtime()) else { return PooledOrNewShell::Whole };
        match ready.shell.take().and_then(alive) {
            Some(shell) => PooledOrNewShell::Rest(shell, rest),
            None => PooledOrNewShell::Whole,
        }
    }

    /// Returns the script of a shell to [add](Self::add) for the next script with the same beginning. Returns `None`
    /// for the first script of its kind, which may stay the only one, and if a shell is ready.
    pub(crate) fn refill_script(&self, script: &str, beginning: usize) -> Option<String> {
        let (beginning, _) = parts(script, beginning)?;
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = pool.iter().position(|ready| ready.beginning == beginning);
        let Some(mut ready) = index.and_then(|index| pool.remove(index)) else {
            if pool.len() == MAX_READY_SHELLS {
                pool.pop_front();
            }
            pool.push_back(ShellPoolSlot { beginning: beginning.to_owned(), runtime: None, shell: None });
            return None;
        };
        let is_there = ready.shell.is_some() && ready.runtime == runtime();
        if !is_there {
            ready.shell = None;
        }
        pool.push_back(ready);
        (!is_there).then(|| format!("{beginning}{REST}"))
    }

    /// Adds a shell that was started with the [refill script](Self::refill_script) of `script`.
    pub(crate) fn add(&self, script: &str, beginning: usize, shell: S) {
        let Some((beginning, _)) = parts(script, beginning) else { return };
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = pool.iter_mut().find(|ready| ready.beginning == beginning) {
            (ready.shell, ready.runtime) = (Some(shell), runtime());
        }
    }
}

fn runtime() -> Option<Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

/// Splits a script into its beginning and its rest. Returns `None` if a ready shell cannot run the script.
fn parts(script: &str, beginning: usize) -> Option<(&str, &str)> {
    let parts = script.split_at_checked(beginning).filter(|(beginning, _)| !beginning.is_empty());
    parts.filter(|(_, rest)| rest.len() <= MAX_REST_BYTES)
}

impl<S> Default for ShellPool<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S> fmt::Debug for ShellPool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("ShellPool").field("kinds", &pool.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(shells: &ShellPool<u32>, script: &str, alive: bool) -> Option<(u32, String)> {
        match shells.take(script, 1, |shell| alive.then_some(shell)) {
            PooledOrNewShell::Rest(shell, rest) => Some((shell, rest.to_owned())),
            PooledOrNewShell::Whole => None,
        }
    }

    #[test]
    fn a_shell_is_ready_for_a_beginning_that_was_used_twice() {
        let shells = ShellPool::default();
        assert_eq!(taken(&shells, "a1", true), None);
        assert_eq!(shells.refill_script("a1", 1), None, "it may stay the only one");
        assert_eq!(shells.refill_script("a2", 1), Some(format!("a{REST}")));
        shells.add("a2", 1, 7);
        assert_eq!(shells.refill_script("a3", 1), None, "there is one");
        assert_eq!(taken(&shells, "b3", true), None, "it has read another beginning");
        assert_eq!(taken(&shells, "a3", true), Some((7, "3".into())));
        assert_eq!(taken(&shells, "a4", true), None, "it is for one script");
        shells.add("a4", 1, 8);
        assert_eq!(taken(&shells, "a5", false), None, "it has died");
        assert!(shells.refill_script("a5", 1).is_some());
    }

    #[test]
    fn other_scripts_are_run_as_a_whole() {
        let shells = ShellPool::<u32>::default();
        let long = format!("a{}", "x".repeat(MAX_REST_BYTES + 1));
        for _ in 0..2 {
            assert_eq!(shells.refill_script(&long, 1), None);
            assert_eq!(shells.refill_script("a", 0), None);
            assert_eq!(shells.refill_script("a", 2), None);
        }
        for kind in 0..=MAX_READY_SHELLS {
            assert_eq!(shells.refill_script(&format!("{kind}"), 1), None);
        }
        assert_eq!(shells.refill_script("0", 1), None, "it is forgotten");
        assert!(shells.refill_script(&format!("{MAX_READY_SHELLS}"), 1).is_some());
    }
}
