//! Settings of the SSH transport: host, login, keys, options of `ssh`.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use vfs_core::{Error, Result};

use crate::config::RedactedValues;

/// Configuration of an [`Ssh`](super::Ssh): host, login, keys and options of `ssh`.
///
/// Settings without a value here are those of the user's own configuration of `ssh`.
///
/// ```
/// use vfs_remote::{HostKeyPolicy, Ssh, SshConfig};
///
/// let config = SshConfig::new("build.example.com").user("agent").port(2222).host_keys(HostKeyPolicy::AcceptNew);
/// assert_eq!(Ssh::new(config)?.to_string(), "ssh://agent@build.example.com:2222");
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct SshConfig {
    /// The host's name, address, or alias in the user's configuration.
    pub host: String,
    /// The port.
    pub port: Option<u16>,
    /// The user on the host.
    pub user: Option<String>,
    /// The only private key to log in with.
    pub identity_file: Option<PathBuf>,
    /// Treatment of a host whose key is unknown.
    pub host_keys: HostKeyPolicy,
    /// The timeout of connecting, and of logging in. Default: 10 seconds; at least 1.
    pub connect_timeout: Duration,
    /// The interval of keep-alive messages to a silent host; after three messages without a response the connection is
    /// closed. Default: 15 seconds; at least 1.
    pub keep_alive: Duration,
    /// The maximum number of concurrent calls. Default: 8; a server accepts ten sessions of one connection by default.
    pub sessions: usize,
    /// The client: a name to look up in `PATH`, or a path. Default: `ssh`.
    pub program: OsString,
    /// A configuration file that replaces the user's and the system's; `none` for no file.
    pub config_file: Option<PathBuf>,
    /// More options, as in `ssh -o`. They take precedence over the others.
    pub options: Vec<(String, String)>,
}

impl fmt::Debug for SshConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SshConfig")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user)
            .field("identity_file", &self.identity_file)
            .field("host_keys", &self.host_keys)
            .field("connect_timeout", &self.connect_timeout)
            .field("keep_alive", &self.keep_alive)
            .field("sessions", &self.sessions)
            .field("program", &self.program)
            .field("config_file", &self.config_file)
            // `SetEnv` and `ProxyCommand` may contain secrets.
            .field("options", &RedactedValues(&self.options))
            .finish()
    }
}

/// Treatment of a host whose key is unknown. A key that differs from the recorded one is refused in each
/// case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostKeyPolicy {
    /// The user's configuration decides; if it would prompt, the host is refused. This is the default.
    #[default]
    AsConfigured,
    /// The host is accepted, and its key is recorded.
    AcceptNew,
    /// The host is refused.
    Known,
}

impl SshConfig {
    /// Creates the configuration of a connection to `host`.
    pub fn new(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            port: None,
            user: None,
            identity_file: None,
            host_keys: HostKeyPolicy::default(),
            connect_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            sessions: 8,
            program: "ssh".into(),
            config_file: None,
            options: Vec::new(),
        }
    }

    /// Sets the [`port`](Self::port).
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Sets the [`user`](Self::user).
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets the [`identity_file`](Self::identity_file).
    #[must_use]
    pub fn identity_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.identity_file = Some(path.into());
        self
    }

    /// Sets [`host_keys`](Self::host_keys).
    #[must_use]
    pub fn host_keys(mut self, host_keys: HostKeyPolicy) -> Self {
        self.host_keys = host_keys;
        self
    }

    /// Sets the [`connect_timeout`](Self::connect_timeout).
    #[must_use]
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.connect_timeout = time;
        self
    }

    /// Sets the interval of keep-alive messages; see [`keep_alive`](Self::keep_alive).
    #[must_use]
    pub fn keep_alive(mut self, time: Duration) -> Self {
        self.keep_alive = time;
        self
    }

    /// Sets the number of [`sessions`](Self::sessions); 0 counts as 1.
    #[must_use]
    pub fn sessions(mut self, sessions: usize) -> Self {
        self.sessions = sessions;
        self
    }

    /// Sets the [`program`](Self::program).
    #[must_use]
    pub fn program(mut self, program: impl Into<OsString>) -> Self {
        self.program = program.into();
        self
    }

    /// Sets the [`config_file`](Self::config_file).
    #[must_use]
    pub fn config_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.config_file = Some(path.into());
        self
    }

    /// Adds one of the [`options`](Self::options).
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.push((name.into(), value.into()));
        self
    }

    /// Refuses a host, user or option that `ssh` could misinterpret, such as a host that looks like an option.
    pub(super) fn check(&self) -> Result<()> {
        let is_word = |text: &str| {
            !text.is_empty()
                && !text.starts_with('-')
                && !text.chars().any(|c| c.is_control() || c.is_whitespace() || "'\"`$\\;&<>|(){}".contains(c))
        };
        if !is_word(&self.host) {
            return Err(Error::invalid_argument("a host is a name or an address, without a leading `-`"));
        }
        if self.user.as_deref().is_some_and(|user| !is_word(user)) {
            return Err(Error::invalid_argument("a user is one word, without a leading `-`"));
        }
        let is_option = |(name, value): &(String, String)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()) && !value.contains(['\n', '\r', '\0'])
        };
        if !self.options.iter().all(is_option) {
            return Err(Error::invalid_argument("an option of ssh has a name of letters, and a value of one line"));
        }
        Ok(())
    }

    /// Returns the arguments before the host, for every call of `ssh`.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["-T".into(), "-a".into(), "-x".into()];
        let mut option = |text: String| arguments.extend(["-o".into(), text.into()]);
        for (name, value) in &self.options {
            option(format!("{name}={value}"));
        }
        for fixed in [
            "BatchMode=yes",
            "ClearAllForwardings=yes",
            "PermitLocalCommand=no",
            "RemoteCommand=none",
            "RequestTTY=no",
            "ControlPersist=no",
            "EscapeChar=none",
            "LogLevel=INFO",
            "ServerAliveCountMax=3",
        ] {
            option(fixed.to_owned());
        }
        option(format!("ConnectTimeout={}", self.connect_timeout.as_secs().max(1)));
        option(format!("ServerAliveInterval={}", self.keep_alive.as_secs().max(1)));
        match self.host_keys {
            HostKeyPolicy::AsConfigured => {}
            HostKeyPolicy::AcceptNew => option("StrictHostKeyChecking=accept-new".to_owned()),
            HostKeyPolicy::Known => option("StrictHostKeyChecking=yes".to_owned()),
        }
        if self.identity_file.is_some() {
            option("IdentitiesOnly=yes".to_owned());
        }
        let mut pair = |name: &str, value: OsString| arguments.extend([name.into(), value]);
        if let Some(path) = &self.config_file {
            pair("-F", path.clone().into());
        }
        if let Some(path) = &self.identity_file {
            pair("-i", path.clone().into());
        }
        if let Some(port) = self.port {
            pair("-p", port.to_string().into());
        }
        if let Some(user) = &self.user {
            pair("-l", user.into());
        }
        arguments
    }
}

impl fmt::Display for SshConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ssh://")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        f.write_str(&self.host)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}
