//! A search by the native tool, its time, and the memory that it took.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use vfs_core::OpContext;
use vfs_local::LocalBackend;
use vfs_tools::{Profile, ToolOutcome, ToolSet};

use super::memory::measured_with_memory;
use crate::timing::{Answer, Sample};

/// Which search.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ToolSearch {
    /// The directory that the backend is confined to
    #[arg(long)]
    pub(crate) root: PathBuf,
    /// A small directory that is searched first, so that threads and tables are there
    #[arg(long)]
    pub(crate) warm_up: String,
    /// The literal to find
    #[arg(long)]
    pub(crate) pattern: String,
}

impl ToolSearch {
    pub(super) fn arguments(&self) -> Vec<OsString> {
        vec![
            "--root".into(),
            self.root.clone().into_os_string(),
            "--warm-up".into(),
            self.warm_up.clone().into(),
            "--pattern".into(),
            self.pattern.clone().into(),
        ]
    }

    pub(super) fn measure(&self) -> Result<Sample> {
        let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
        let tools = ToolSet::new(Arc::new(LocalBackend::open(&self.root)?), Profile::Native);
        let search = |path: &str| {
            let arguments = json!({ "pattern": self.pattern, "path": path });
            counted_matches(&runtime.block_on(tools.call(&OpContext::new(), "search", &arguments)))
        };
        search(&self.warm_up)?;
        measured_with_memory(|| search("/"))
    }
}

/// Returns the number of matches in the header of a result.
pub(crate) fn counted_matches(outcome: &ToolOutcome) -> Result<Answer> {
    let text = outcome.to_text();
    ensure!(outcome.failure.is_none(), "the search failed: {text}");
    let header = text.lines().next().unwrap_or_default();
    let count =
        header.split(' ').find_map(|word| word.parse().ok()).with_context(|| format!("no count in {header}"))?;
    Ok(Answer { count, ..Answer::default() })
}
