//! Loading, validation and opening of a configuration file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs_composite::RecoveryObserver;
use vfs_layers::BackendSink;
use vfs_policy::Approver;

use crate::build;
use crate::config_text::ConfigText;
use crate::config_validator;
use crate::configured_backend::ConfiguredBackend;
use crate::error::ConfigError;
use crate::host_paths;
use crate::layer_handle::LayerHandle;
use crate::namespace_spec::NamespaceSpec;
use crate::parse;

/// A validated configuration of a namespace: its backends, its mounts and the layers around them.
///
/// # Behaviour
///
/// * Parsing checks every key and every value. Only [`Config::build`] accesses files, directories and stores.
/// * Host paths are relative to a base directory, by default the directory of the file. `~` and variables are not expanded.
/// * If a layer store or an audit log is inside a mounted directory, a policy around that directory hides it: layers further
///   out and callers cannot list, search, read or change it. The configuration file and rules files inside a mounted directory
///   can be read but not changed, so that agents cannot rewrite the rules that apply to them.
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
/// let configured = config.build(std::path::Path::new(".")).await?;
/// # let _ = configured;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Config {
    spec: NamespaceSpec,
}

impl Config {
    /// Maximum length of a configuration file in bytes, 1 MiB.
    pub const MAX_LEN: u64 = ConfigText::MAX_LEN;

    /// Parses and validates `text`.
    ///
    /// # Errors
    ///
    /// Returns an error with line and column if `text` is not TOML, if a key is unknown or missing, or if a value is invalid.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::from_source(ConfigText::new(None, text))
    }

    /// Reads, parses and validates the file `path`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is not UTF-8 or is longer than [`Config::MAX_LEN`], and those of
    /// [`Config::parse`].
    pub async fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::from_source(ConfigText::read(path.as_ref()).await?)
    }

    fn from_source(source: ConfigText) -> Result<Self, ConfigError> {
        let tables = parse::parse_config(&source)?;
        config_validator::check_config(&source, &tables)?;
        Ok(Self { spec: NamespaceSpec { source, tables, approver: None, recovery_observer: None } })
    }

    /// Sets the approver that decides about operations for which a rule has the effect `ask`. Without an approver, such
    /// operations fail with `approval_required`.
    #[must_use]
    pub fn with_approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.spec.approver = Some(approver);
        self
    }

    /// Sets the observer that is notified if [`Config::build`] recovers an interrupted move by copying files or for long.
    #[must_use]
    pub fn with_recovery_observer(mut self, observer: Arc<dyn RecoveryObserver>) -> Self {
        self.spec.recovery_observer = Some(observer);
        self
    }

    /// Returns the path of the configuration file, or `None` if the text was parsed directly.
    pub fn file(&self) -> Option<&Path> {
        self.spec.source.file()
    }

    /// Returns the directory of the configuration file, which host paths are relative to by default.
    pub fn directory(&self) -> Option<PathBuf> {
        self.file().map(host_paths::directory_of)
    }

    /// Opens the namespace, with relative host paths below `base`.
    ///
    /// # Behaviour
    ///
    /// Creates missing stores and the move journal. Moves across mounts that a crash interrupted are recovered from the
    /// journal, unless one is in progress in another process: after five seconds no further file is started, and a file that
    /// takes longer is aborted after a minute. Moves that cannot be recovered are in [`ConfiguredBackend::warnings`], and the
    /// next call retries them. If the default directory of the journal cannot be used, a warning says so and moves are not
    /// journaled. Nothing else is changed.
    ///
    /// # Errors
    ///
    /// Returns an error with line and column if a directory or store cannot be opened, if two layers use one store, if a
    /// mounted directory is inside a store, or if settings contradict each other.
    pub async fn build(&self, base: &Path) -> Result<ConfiguredBackend, ConfigError> {
        build::build_namespace(&self.spec, base).await
    }

    /// Returns the audit logs of the configuration for reading, in the order of [`ConfiguredBackend::audits`].
    ///
    /// # Behaviour
    ///
    /// Opens no backend, so a log can be read even if it is damaged and can no longer be appended to.
    ///
    /// # Errors
    ///
    /// Those of [`Config::build`] about layer stores.
    pub async fn audit_logs(&self, base: &Path) -> Result<Vec<LayerHandle<BackendSink>>, ConfigError> {
        build::open_audit_logs(&self.spec, base).await
    }
}

/// Reads the configuration file `path` and opens its namespace.
///
/// # Errors
///
/// Those of [`Config::load`] and [`Config::build`].
pub async fn open(path: impl AsRef<Path>) -> Result<ConfiguredBackend, ConfigError> {
    let config = Config::load(path).await?;
    config.build(&config.directory().unwrap_or_default()).await
}
