//! All that a command printed, for the file that was asked for.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use vfs_core::{Backend, OpContext, Result, VfsPath, WriteRequest};

use crate::run::Output;

/// How much was printed, and all of it where that is wanted. The interpreter bounds it.
#[derive(Debug)]
pub(crate) struct Record {
    standard: usize,
    error: usize,
    all: Option<Vec<u8>>,
}

impl Record {
    pub(crate) fn new(wants_all: bool) -> Self {
        Self { standard: 0, error: 0, all: wants_all.then(Vec::new) }
    }

    pub(crate) fn push(&mut self, output: Output, bytes: &[u8]) {
        match output {
            Output::Standard => self.standard += bytes.len(),
            Output::Error => self.error += bytes.len(),
        }
        if let Some(all) = &mut self.all {
            all.extend_from_slice(bytes);
        }
    }

    /// How many bytes of each output there were.
    pub(crate) fn told(&self) -> (usize, usize) {
        (self.standard, self.error)
    }

    /// All of it, where that is wanted.
    pub(crate) fn take(&mut self) -> Option<All> {
        self.all.take().map(All)
    }
}

/// All that a command printed.
pub(crate) struct All(Vec<u8>);

impl All {
    /// Writes it to a new file in `directory`.
    pub(crate) async fn write(self, backend: &dyn Backend, cx: &OpContext, directory: &VfsPath) -> Result<VfsPath> {
        let mark = RandomState::new().build_hasher().finish();
        let path = directory.child(&format!("{mark:016x}.txt"))?;
        backend.write(cx, WriteRequest::new(path.clone(), self.0)).await?;
        Ok(path)
    }
}
