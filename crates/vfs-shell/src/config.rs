//! Settings of commands, fixed when a shell is opened.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use vfs_core::{ExecuteRequest, VfsPath};

use crate::Limits;

/// Treatment of processes that a command leaves running when it exits.
///
/// A timeout, a cancelled or dropped call, and [`stop_job`](vfs_core::Shell::stop_job) kill all of them under either policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OrphanPolicy {
    /// Kills orphans, so that no process outlives the call. Those that exit by themselves within 50 milliseconds are not
    /// disturbed.
    #[default]
    Kill,
    /// Lets orphans run without supervision. Their further output meets a closed pipe.
    Detach,
}

/// Settings of [`CommandRunner`](crate::CommandRunner).
///
/// ```
/// use std::time::Duration;
/// use vfs_shell::{Limits, ShellConfig};
///
/// let config = ShellConfig::new()
///     .default_timeout(Duration::from_secs(30))
///     .env("TZ", "UTC")
///     .limits(Limits::default().cpu_seconds(60).file_bytes(1 << 30));
/// assert_eq!(config.max_jobs, 16);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ShellConfig {
    /// Time limit of a command whose request has no timeout. Default 120 seconds.
    pub default_timeout: Duration,
    /// Time between `SIGTERM` and `SIGKILL` when a command is terminated. Default 200 milliseconds. A call returns at most a
    /// quarter of a second after that.
    pub grace: Duration,
    /// Base environment of every command. Default: `PATH` with the usual directories, and `LANG=C.UTF-8`. With
    /// [`Inherited`](vfs_core::shell::BaseEnvironment::Inherited), variables of the serving process override these; variables of
    /// the request override both. A command in a terminal also has `TERM`, unless one of them sets it.
    pub environment: BTreeMap<OsString, OsString>,
    /// Name patterns of variables that no command inherits, with `*` for any characters, ignoring case. Default
    /// [`ShellConfig::SECRETS`]. A value with a password in a URL is never inherited, whatever its name.
    pub secrets: Vec<String>,
    /// Resource limits of each command, where its spawner sets none. Default: the limits of the serving process.
    pub limits: Limits,
    /// Upper bound on the commands that run in the background at a time. Default 16.
    pub max_jobs: usize,
    /// Upper bound on the ended jobs that are remembered for each actor and session. Default 32.
    pub max_ended_jobs: usize,
    /// Capacity in bytes of a job's output log, which keeps the last bytes. Default 1 MiB.
    pub job_output_bytes: usize,
    /// Upper bound on [`max_output_bytes`](ExecuteRequest::max_output_bytes) of a request. Default 16 MiB.
    pub max_output_bytes: u64,
    /// Directory of the files with the [full output](vfs_core::shell::FullOutputMode::File). Default `/.outputs`.
    pub full_output_directory: VfsPath,
    /// Upper bound on the bytes of one of these files; a command that prints more is terminated. Default 1 GiB.
    pub max_full_output_bytes: u64,
    /// Treatment of processes that a command leaves running. Default: they are killed.
    pub orphan_policy: OrphanPolicy,
}

impl ShellConfig {
    /// Name patterns of variables that usually hold secrets.
    pub const SECRETS: &[&str] = &[
        "*KEY*",
        "*TOKEN*",
        "*SECRET*",
        "*PASSWORD*",
        "*PASSWD*",
        "*_PASS",
        "*_PWD",
        "PGPASS*",
        "*_PAT",
        "*PASSPHRASE*",
        "*CRED*",
        "*AUTH*",
        "*COOKIE*",
        "*PRIVATE*",
        "*CONNECTION_STRING*",
        "*DATABASE_URL*",
        "*_DSN",
        "AWS_*",
        "AZURE_*",
        "GOOGLE_*",
    ];

    /// Returns the defaults.
    pub fn new() -> Self {
        Self {
            default_timeout: ExecuteRequest::DEFAULT_TIMEOUT,
            grace: Duration::from_millis(200),
            environment: [
                ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
                ("LANG", "C.UTF-8"),
            ]
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
            secrets: Self::SECRETS.iter().map(|&pattern| pattern.to_owned()).collect(),
            limits: Limits::default(),
            max_jobs: 16,
            max_ended_jobs: 32,
            job_output_bytes: 1 << 20,
            max_output_bytes: 16 << 20,
            full_output_directory: VfsPath::root().join(".outputs").unwrap_or_default(),
            max_full_output_bytes: 1 << 30,
            orphan_policy: OrphanPolicy::default(),
        }
    }

    /// Sets the time limit of a command whose request has no timeout.
    #[must_use]
    pub fn default_timeout(mut self, timeout: Duration) -> Self {
        self.default_timeout = timeout;
        self
    }

    /// Sets the time between `SIGTERM` and `SIGKILL`.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets a variable of every command's environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Replaces the base environment of every command.
    #[must_use]
    pub fn environment(mut self, environment: BTreeMap<OsString, OsString>) -> Self {
        self.environment = environment;
        self
    }

    /// Adds a name pattern of variables that no command inherits.
    #[must_use]
    pub fn secret(mut self, pattern: impl Into<String>) -> Self {
        self.secrets.push(pattern.into());
        self
    }

    /// Sets the resource limits of each command.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how many commands may run in the background at a time.
    #[must_use]
    pub fn max_jobs(mut self, jobs: usize) -> Self {
        self.max_jobs = jobs;
        self
    }

    /// Sets how many ended jobs of each actor and session are remembered.
    #[must_use]
    pub fn max_ended_jobs(mut self, jobs: usize) -> Self {
        self.max_ended_jobs = jobs;
        self
    }

    /// Sets the capacity in bytes of a job's output log.
    #[must_use]
    pub fn job_output_bytes(mut self, bytes: usize) -> Self {
        self.job_output_bytes = bytes;
        self
    }

    /// Sets the upper bound on the output bytes that a request may ask for.
    #[must_use]
    pub fn max_output_bytes(mut self, bytes: u64) -> Self {
        self.max_output_bytes = bytes;
        self
    }

    /// Sets the directory of the files with the full output.
    #[must_use]
    pub fn full_output_directory(mut self, directory: VfsPath) -> Self {
        self.full_output_directory = directory;
        self
    }

    /// Sets the upper bound on the bytes of one of these files.
    #[must_use]
    pub fn max_full_output_bytes(mut self, bytes: u64) -> Self {
        self.max_full_output_bytes = bytes;
        self
    }

    /// Sets the treatment of processes that a command leaves running.
    #[must_use]
    pub fn orphan_policy(mut self, orphan_policy: OrphanPolicy) -> Self {
        self.orphan_policy = orphan_policy;
        self
    }
}

impl Default for ShellConfig {
    fn default() -> Self {
        Self::new()
    }
}
