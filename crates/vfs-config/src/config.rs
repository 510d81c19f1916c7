//! A file that was read, and what can be made of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs_composite::RecoveryObserver;
use vfs_layers::BackendSink;
use vfs_policy::Approver;

use crate::build::{audit_logs, build};
use crate::built::{Built, Placed};
use crate::check;
use crate::error::ConfigError;
use crate::host;
use crate::parse;
use crate::source::Source;
use crate::tables::FileTable;

/// A description of a namespace: what is where, and the layers around it.
///
/// # Behaviour
///
/// * Every key and every value is checked when it is read; what is on the disk is looked at when it is built.
/// * Paths of the host are relative to a base directory, which is that of the file. Nothing in them is expanded.
/// * Where a store or an audit log lies in a directory that is shown, a policy next to the directory hides it from everything
///   above: it is not listed, searched, read or changed. The file itself, and files of rules, can be read there and not
///   changed, so that nobody rewrites the rules that hold for it.
///
/// ```
/// # async fn example() -> Result<(), vfs_config::ConfigError> {
/// use vfs_config::Config;
///
/// let config = Config::parse(r#"
///     [default]
///     type = "memory"
///     layers = [{ type = "quota", max_bytes = "10 MiB" }]
/// "#)?;
/// let built = config.build(std::path::Path::new(".")).await?;
/// # let _ = built;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) source: Source,
    pub(crate) tables: FileTable,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) recovery_observer: Option<Arc<dyn RecoveryObserver>>,
}

impl Config {
    /// 1 MiB, the longest file that is read.
    pub const MAX_LEN: u64 = 1 << 20;

    /// Reads `text`.
    ///
    /// # Errors
    ///
    /// What is not TOML, an unknown or missing key and a wrong value, with the line and the column.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::of(Source::new(None, text))
    }

    /// Reads the file `path`.
    ///
    /// # Errors
    ///
    /// Where it cannot be read, is not UTF-8 or is over [`Config::MAX_LEN`], and those of [`Config::parse`].
    pub async fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::of(host::source(path.as_ref()).await?)
    }

    fn of(source: Source) -> Result<Self, ConfigError> {
        let tables = parse::file(&source)?;
        check::file(&source, &tables)?;
        Ok(Self { source, tables, approver: None, recovery_observer: None })
    }

    /// Lets `approver` answer what rules with the effect `ask` ask. Default: nobody does, and the operation is
    /// `approval_required`.
    #[must_use]
    pub fn with_approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Sends a notice to `observer` if the recovery of an interrupted move copies files or takes long while it is built.
    #[must_use]
    pub fn with_recovery_observer(mut self, observer: Arc<dyn RecoveryObserver>) -> Self {
        self.recovery_observer = Some(observer);
        self
    }

    /// The file that it was read from.
    pub fn file(&self) -> Option<&Path> {
        self.source.file()
    }

    /// The directory of that file, which its paths are relative to.
    pub fn directory(&self) -> Option<PathBuf> {
        self.file().map(host::directory_of)
    }

    /// Opens what the file describes, with relative paths under `base`.
    ///
    /// # Behaviour
    ///
    /// Stores that are not there yet are made, and so is the journal of moves. Moves across mounts that a crash interrupted are
    /// recovered from the journal, unless one is under way in another process: after five seconds no further file is begun, and a
    /// file that takes longer is given up after a minute. Those that cannot be recovered are in [`Built::warnings`], and tried
    /// again the next time. If the default directory of the journal cannot be used, that is a warning, and moves go without a
    /// journal. Nothing else is changed.
    ///
    /// # Errors
    ///
    /// A directory that cannot be opened, a store that is no store, two layers with one store, a store around a directory
    /// that is shown, a place that is mounted twice, and what else does not go together; with the line and the column.
    pub async fn build(&self, base: &Path) -> Result<Built, ConfigError> {
        build(self, base).await
    }

    /// The audit logs that the file describes, to be read, also where one is damaged and can no longer be written to. No place
    /// is opened. They are in the order of [`Built::audits`].
    ///
    /// # Errors
    ///
    /// Those of [`Config::build`] about where layers keep what they keep.
    pub async fn audit_logs(&self, base: &Path) -> Result<Vec<Placed<BackendSink>>, ConfigError> {
        audit_logs(self, base).await
    }
}

/// Reads the file `path`, and opens what it describes.
///
/// # Errors
///
/// Those of [`Config::load`] and [`Config::build`].
pub async fn open(path: impl AsRef<Path>) -> Result<Built, ConfigError> {
    let config = Config::load(path).await?;
    config.build(&config.directory().unwrap_or_default()).await
}
