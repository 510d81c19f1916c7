//! Settings of a remote backend: root, limits, timeouts, concurrency.

use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

use vfs_search::Pool;

/// The settings of a [`SandboxBackend`](super::SandboxBackend).
///
/// ```
/// use std::time::Duration;
/// use vfs_remote::RemoteConfig;
///
/// let config = RemoteConfig::new("/workspace").timeout(Duration::from_secs(30));
/// assert_eq!(config.max_file_size, 256 << 20);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct RemoteConfig {
    /// The directory of the place whose files these are; an absolute path there.
    pub root: String,
    /// The largest file that is written, edited or downloaded whole, in bytes. Default 256 MiB.
    pub max_file_size: u64,
    /// Maximum size of a file that is written in chunks, in bytes. Default: 1 PiB.
    pub max_streamed_size: u64,
    /// How long one script of a file operation may run. Default 120 seconds.
    pub timeout: Duration,
    /// How long a change waits for another change of the same file before it is `busy`; whole seconds. Default 10 s.
    pub lock_timeout: Duration,
    /// Most scripts that run in the place at once. Default 8.
    pub concurrency: NonZeroUsize,
    /// The environment that every command of the shell begins with, over the place's own `PATH`. Default: nothing.
    pub env: Vec<(String, String)>,
    /// How long a command may run that says nothing else. Default [`ExecuteRequest::DEFAULT_TIMEOUT`].
    ///
    /// [`ExecuteRequest::DEFAULT_TIMEOUT`]: vfs_core::ExecuteRequest::DEFAULT_TIMEOUT
    pub command_timeout: Duration,
    /// Most bytes of its output that a command's response may have, also if the request allows more. Default 16 MiB.
    pub max_output_bytes: u64,
    /// The workers that `glob` and `grep` take. Default: a pool of this backend's own, of as many as `concurrency`.
    pub search_pool: Option<Pool>,
}

impl RemoteConfig {
    /// The files below `root`, an absolute path in the place.
    pub fn new(root: impl Into<String>) -> Self {
        Self {
            root: root.into(),
            max_file_size: 256 << 20,
            max_streamed_size: 1 << 50,
            timeout: Duration::from_secs(120),
            lock_timeout: Duration::from_secs(10),
            concurrency: NonZeroUsize::new(8).unwrap_or(NonZeroUsize::MIN),
            env: Vec::new(),
            command_timeout: vfs_core::ExecuteRequest::DEFAULT_TIMEOUT,
            max_output_bytes: 16 << 20,
            search_pool: None,
        }
    }

    /// Sets the maximum size of a file that is written, edited or downloaded whole, in bytes, and of one that is written in chunks.
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = bytes;
        self.max_streamed_size = bytes;
        self
    }

    /// Sets the maximum size of a file that is written in chunks, in bytes.
    #[must_use]
    pub fn max_streamed_size(mut self, bytes: u64) -> Self {
        self.max_streamed_size = bytes;
        self
    }

    /// Sets how long one script of a file operation may run.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long a change waits for another change of the same file.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Sets how many scripts may run in the place at once.
    #[must_use]
    pub fn concurrency(mut self, scripts: NonZeroUsize) -> Self {
        self.concurrency = scripts;
        self
    }

    /// Gives a variable to every command of the shell.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets how long a command may run that says nothing else.
    #[must_use]
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// Sets how many bytes of its output a command's answer may have.
    #[must_use]
    pub fn max_output_bytes(mut self, bytes: u64) -> Self {
        self.max_output_bytes = bytes;
        self
    }

    /// Sets the workers that `glob` and `grep` take.
    #[must_use]
    pub fn search_pool(mut self, pool: Pool) -> Self {
        self.search_pool = Some(pool);
        self
    }
}

impl fmt::Debug for RemoteConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { root, max_file_size, timeout, lock_timeout, concurrency, env, command_timeout, .. } = self;
        f.debug_struct("RemoteConfig")
            .field("root", root)
            .field("max_file_size", max_file_size)
            .field("max_streamed_size", &self.max_streamed_size)
            .field("timeout", timeout)
            .field("lock_timeout", lock_timeout)
            .field("concurrency", concurrency)
            .field("env", &Names(env))
            .field("command_timeout", command_timeout)
            .field("max_output_bytes", &self.max_output_bytes)
            .field("search_pool", &self.search_pool)
            .finish()
    }
}

/// Variables of an environment by name: their values may be secrets.
pub(crate) struct Names<'a>(pub(crate) &'a [(String, String)]);

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_are_not_shown() {
        let config = RemoteConfig::new("/workspace").env("TOKEN", "hunter2");
        let shown = format!("{config:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
    }
}
