//! How commands are run, decided once when a shell is opened.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use vfs_core::{ExecuteRequest, VfsPath};

use crate::Limits;

/// What becomes of the processes that a command leaves running when it ends by itself.
///
/// A timeout, a cancelled or dropped call, and [`stop_job`](vfs_core::Shell::stop_job) end all of them either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Leftovers {
    /// They are ended, too: nothing of a command outlives its call. Those that end by themselves within 50 milliseconds
    /// are not disturbed.
    #[default]
    End,
    /// They go on, and nobody watches over them any longer. What they print from then on meets a closed pipe.
    Keep,
}

/// The settings of [`Commands`](crate::Commands).
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
    /// How long a command may run where its request does not say. Default 120 seconds.
    pub default_timeout: Duration,
    /// How long a command has between being asked to end (`SIGTERM`) and being ended (`SIGKILL`). Default 200
    /// milliseconds. A call returns at most a quarter of a second after that.
    pub grace: Duration,
    /// What the environment of every command begins with. Default: `PATH` with the usual directories, and
    /// `LANG=C.UTF-8`. With [`Inherited`](vfs_core::BaseEnvironment::Inherited) the variables of the serving process come
    /// over these, and those of the request always do. A command in a terminal has `TERM`, too, unless one of them sets it.
    pub environment: BTreeMap<OsString, OsString>,
    /// Names of variables that no command inherits, with `*` for any characters, regardless of case. Default
    /// [`ShellConfig::SECRETS`]. A value that holds a password in a URL is never inherited, whatever its name.
    pub secrets: Vec<String>,
    /// What each command may use, where its launcher does not say. Default: what the serving process may.
    pub limits: Limits,
    /// How many commands run in the background at a time. Default 16.
    pub max_jobs: usize,
    /// How many jobs that have ended are still known, of each actor and session. Default 32.
    pub kept_jobs: usize,
    /// How many bytes of a job's output are kept: the last ones. Default 1 MiB.
    pub job_output_bytes: usize,
    /// The most that a request may raise [`max_output_bytes`](ExecuteRequest::max_output_bytes) to. Default 16 MiB.
    pub max_output_bytes: u64,
    /// The directory for the files that have [all output](vfs_core::FullOutput::File). Default `/.outputs`.
    pub full_output_directory: VfsPath,
    /// The most that is written to one of these files; a command that prints more is ended. Default 1 GiB.
    pub max_full_output_bytes: u64,
    /// What becomes of processes that a command leaves running. Default: they are ended.
    pub leftovers: Leftovers,
}

impl ShellConfig {
    /// Names of variables that look like secrets.
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

    /// The defaults.
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
            kept_jobs: 32,
            job_output_bytes: 1 << 20,
            max_output_bytes: 16 << 20,
            full_output_directory: VfsPath::root().join(".outputs").unwrap_or_default(),
            max_full_output_bytes: 1 << 30,
            leftovers: Leftovers::default(),
        }
    }

    /// Ends a command whose request has no timeout after `timeout`.
    #[must_use]
    pub fn default_timeout(mut self, timeout: Duration) -> Self {
        self.default_timeout = timeout;
        self
    }

    /// Gives a command `grace` between `SIGTERM` and `SIGKILL`.
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

    /// Begins every command's environment with `environment` only.
    #[must_use]
    pub fn environment(mut self, environment: BTreeMap<OsString, OsString>) -> Self {
        self.environment = environment;
        self
    }

    /// Never lets a command inherit a variable whose name is like `pattern`, beside those that are set already.
    #[must_use]
    pub fn secret(mut self, pattern: impl Into<String>) -> Self {
        self.secrets.push(pattern.into());
        self
    }

    /// Bounds what each command may use.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Runs at most `jobs` commands in the background at a time.
    #[must_use]
    pub fn max_jobs(mut self, jobs: usize) -> Self {
        self.max_jobs = jobs;
        self
    }

    /// Remembers at most `jobs` jobs of each actor and session that have ended.
    #[must_use]
    pub fn kept_jobs(mut self, jobs: usize) -> Self {
        self.kept_jobs = jobs;
        self
    }

    /// Keeps the last `bytes` of a job's output.
    #[must_use]
    pub fn job_output_bytes(mut self, bytes: usize) -> Self {
        self.job_output_bytes = bytes;
        self
    }

    /// Lets a request ask for at most `bytes` of each output.
    #[must_use]
    pub fn max_output_bytes(mut self, bytes: u64) -> Self {
        self.max_output_bytes = bytes;
        self
    }

    /// Puts the files that have all output into `directory`.
    #[must_use]
    pub fn full_output_directory(mut self, directory: VfsPath) -> Self {
        self.full_output_directory = directory;
        self
    }

    /// Writes at most `bytes` into one of these files.
    #[must_use]
    pub fn max_full_output_bytes(mut self, bytes: u64) -> Self {
        self.max_full_output_bytes = bytes;
        self
    }

    /// Decides what becomes of processes that a command leaves running.
    #[must_use]
    pub fn leftovers(mut self, leftovers: Leftovers) -> Self {
        self.leftovers = leftovers;
        self
    }
}

impl Default for ShellConfig {
    fn default() -> Self {
        Self::new()
    }
}
