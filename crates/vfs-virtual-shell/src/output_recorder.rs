//! Recorder of a script's output, and the file for it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use vfs_core::{Backend, OpContext, Result, VfsPath, WriteRequest};

use crate::output_sink::OutputStream;

/// Counter of the printed bytes, and their record if the full output is requested. The interpreter bounds its size.
#[derive(Debug)]
pub(crate) struct OutputRecorder {
    stdout: usize,
    stderr: usize,
    all: Option<Vec<u8>>,
}

impl OutputRecorder {
    pub(crate) fn new(wants_all: bool) -> Self {
        Self { stdout: 0, stderr: 0, all: wants_all.then(Vec::new) }
    }

    pub(crate) fn push(&mut self, output: OutputStream, bytes: &[u8]) {
        match output {
            OutputStream::Stdout => self.stdout += bytes.len(),
            OutputStream::Stderr => self.stderr += bytes.len(),
        }
        if let Some(all) = &mut self.all {
            all.extend_from_slice(bytes);
        }
    }

    /// Returns the number of bytes printed to each output.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.stdout, self.stderr)
    }

    /// Takes the full output if it was requested.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        self.all.take()
    }
}

/// Writes the full output `bytes` to a new file in `directory` and returns its path.
pub(crate) async fn write_full_output(
    bytes: Vec<u8>,
    backend: &dyn Backend,
    cx: &OpContext,
    directory: &VfsPath,
) -> Result<VfsPath> {
    let suffix = RandomState::new().build_hasher().finish();
    let path = directory.child(&format!("{suffix:016x}.txt"))?;
    backend.write(cx, WriteRequest::new(path.clone(), bytes)).await?;
    Ok(path)
}
