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
    /// The directory that is the root of the backend; an absolute path in the place.
    pub root: String,
    /// The maximum size of a file that is written, edited or downloaded whole, in bytes. Default: 256 MiB.
    pub max_file_size: u64,
    /// The maximum size of a file that is written in chunks, in bytes. Default: 1 PiB.
    pub max_streamed_size: u64,
    /// The maximum run time of one script of a file operation. Default: 120 seconds.
    pub timeout: Duration,
    /// The time that a change waits for another change of the same file before it fails with `busy`; whole seconds.
    /// Default: 10 seconds.
    pub lock_timeout: Duration,
    /// The maximum number of scripts that run in the place concurrently. Default: 8.
    pub concurrency: NonZeroUsize,
    /// Variables of the environment of every command, in addition to the place's own `PATH`. Default: none.
    pub env: Vec<(String, String)>,
    /// The timeout of commands whose request has none. Default: [`ExecuteRequest::DEFAULT_TIMEOUT`].
    ///
    /// [`ExecuteRequest::DEFAULT_TIMEOUT`]: vfs_core::ExecuteRequest::DEFAULT_TIMEOUT
    pub command_timeout: Duration,
    /// The maximum size of the output in a command's response, even if the request allows more. Default: 16 MiB.
    pub max_output_bytes: u64,
    /// The workers of `glob` and `grep`. Default: a pool of this backend's own, with `concurrency` workers.
    pub search_pool: Option<Pool>,
}

impl RemoteConfig {
    /// Creates the configuration of a backend whose root is `root`, an absolute path in the place.
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

    /// Sets the maximum run time of one script of a file operation.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the time that a change waits for another change of the same file.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Sets the maximum number of scripts that run in the place concurrently.
    #[must_use]
    pub fn concurrency(mut self, scripts: NonZeroUsize) -> Self {
        self.concurrency = scripts;
        self
    }

    /// Adds a variable to the environment of every command.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the timeout of commands whose request has none.
    #[must_use]
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.command_timeout = timeout;
        self
    }

    /// Sets the maximum size of the output in a command's response.
    #[must_use]
    pub fn max_output_bytes(mut self, bytes: u64) -> Self {
        self.max_output_bytes = bytes;
        self
    }

    /// Sets the workers of `glob` and `grep`.
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
            .field("env", &RedactedValues(env))
            .field("command_timeout", command_timeout)
            .field("max_output_bytes", &self.max_output_bytes)
            .field("search_pool", &self.search_pool)
            .finish()
    }
}

/// The names of environment variables, without their values, which may be secrets.
pub(crate) struct RedactedValues<'a>(pub(crate) &'a [(String, String)]);

impl fmt::Debug for RedactedValues<'_> {
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
