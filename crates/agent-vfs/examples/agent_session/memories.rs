//! What an agent remembers from one session to the next.

use std::process::Command;
use std::sync::Arc;

use agent_vfs::store::{Namespace, Store};
use agent_vfs::{BackendExt, Result, StoreBackend, StoreConfig, StoreUrl, open_store};
use tempfile::TempDir;

use super::{answer, call, say};

/// Prints what is remembered at the URL that follows it, and does nothing else.
pub(super) const RECALL: &str = "--recall";

/// A store for memories, and where it is.
pub(super) struct Memories {
    url: StoreUrl,
    store: Arc<dyn Store>,
    /// Where it is gone with the session.
    _directory: Option<TempDir>,
}

impl Memories {
    /// The store at `url`, or a SQLite file of this session.
    pub(super) async fn open(url: Option<&str>) -> std::result::Result<Self, Box<dyn std::error::Error>> {
        let (url, directory) = match url {
            Some(url) => (StoreUrl::parse(url)?, None),
            None => {
                let directory = tempfile::tempdir()?;
                (StoreUrl::parse("sqlite:memories.db")?.in_directory(directory.path())?, Some(directory))
            }
        };
        let store = open_store(&url).await?;
        Ok(Self { url, store, _directory: directory })
    }

    /// The files of one agent; no other agent's are among them.
    pub(super) fn files(&self) -> Result<StoreBackend<Arc<dyn Store>>> {
        let namespace = Namespace::parse("example/agent")?;
        Ok(StoreBackend::with_config(Arc::clone(&self.store), StoreConfig::new().namespace(namespace)))
    }

    /// Lets another process say what it finds.
    pub(super) fn recall_elsewhere(&self) -> std::result::Result<(), Box<dyn std::error::Error>> {
        say("Its memories outlive it: another process opens the same store.");
        call(&format!("agent_session {RECALL} {}", self.url));
        let told = Command::new(std::env::current_exe()?).arg(RECALL).arg(self.url.expose().as_str()).output()?;
        if !told.status.success() {
            return Err(String::from_utf8_lossy(&told.stderr).into());
        }
        answer(String::from_utf8_lossy(&told.stdout).trim_end());
        Ok(())
    }

    /// What is remembered, file by file.
    pub(super) async fn recall(&self) -> Result<String> {
        let files = self.files()?;
        let mut told = String::new();
        for file in files.glob_files("*.md").await? {
            told += &format!("{}:\n{}", file.path, files.read_text(file.path.as_str()).await?);
        }
        Ok(told)
    }
}
