//! A window of a file, its time, and the memory that it took.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use vfs_core::{Backend, Content, OpContext, ReadRequest, VfsPath};
use vfs_local::LocalBackend;

use super::memory::measured_with_memory;
use crate::timing::{Answer, Sample};

/// Which window.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Window {
    /// The directory that the backend is confined to
    #[arg(long)]
    pub(crate) root: PathBuf,
    /// A small file that is read first, so that threads and tables are there
    #[arg(long)]
    pub(crate) warm_up: String,
    /// The file
    #[arg(long)]
    pub(crate) file: String,
    /// Lines to skip
    #[arg(long)]
    pub(crate) offset: u64,
    /// Most lines
    #[arg(long)]
    pub(crate) limit: u64,
}

impl Window {
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut arguments = vec!["--root".into(), self.root.clone().into_os_string()];
        let flags = [
            ("--warm-up", self.warm_up.clone()),
            ("--file", self.file.clone()),
            ("--offset", self.offset.to_string()),
            ("--limit", self.limit.to_string()),
        ];
        arguments.extend(flags.into_iter().flat_map(|(flag, value)| [flag.into(), value.into()]));
        arguments
    }

    pub(super) fn measure(&self) -> Result<Sample> {
        let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
        let files = LocalBackend::open(&self.root)?;
        let cx = OpContext::new();
        let file = |name: &str| VfsPath::root().join(name);
        runtime.block_on(files.read(&cx, ReadRequest::new(file(&self.warm_up)?)))?;
        let request = ReadRequest::new(file(&self.file)?).lines(self.offset, self.limit);
        measured_with_memory(|| {
            let read = runtime.block_on(files.read(&cx, request.clone()))?;
            let lines = match &read.content {
                Content::Text(text) => text.lines().count(),
                Content::Binary { .. } => 0,
            };
            Ok(Answer::complete(lines))
        })
    }
}
