//! Long work on another thread that ends when nobody waits for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vfs_core::{Error, ErrorKind, Result};

/// Held by who waits; its end asks the work to stop.
#[derive(Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

/// Held by the work.
#[derive(Debug)]
pub(super) struct Asked(Arc<AtomicBool>);

impl Stop {
    pub(super) fn asked(&self) -> Asked {
        Asked(Arc::clone(&self.0))
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Asked {
    /// `cancelled` where it is asked to stop.
    pub(super) fn go_on(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(Error::of(ErrorKind::Cancelled)) } else { Ok(()) }
    }
}
