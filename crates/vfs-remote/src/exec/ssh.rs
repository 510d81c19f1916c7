//! SSH transport: sessions of one multiplexed OpenSSH connection.

mod config;
mod error;
mod master_connection;

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use tokio::sync::{Mutex, Semaphore};
use vfs_core::{Error, ErrorKind, Result};

use super::client_process::ClientProgram;
use super::script_bootstrap::ScriptBootstrap;
use crate::exec::{RemoteExec, RemoteOutput, ScriptInvocation, TransportLimits};
pub use config::{HostKeyPolicy, SshConfig};
use master_connection::MasterConnection;

/// Runs scripts on a host, with the `ssh` of this system.
///
/// # Behaviour
///
/// * The first call opens a connection, and every call is a session of that connection, so that an operation needs no
///   handshake of its own. A lost connection is replaced by the next call. The connection ends with the last clone of
///   this value, and with this process.
/// * The user's own configuration of `ssh` applies (aliases, jump hosts, agents, known hosts), except that `ssh` never
///   prompts at a terminal, and forwards nothing.
/// * At most [`sessions`](SshConfig::sessions) calls run at a time; others wait for one of them to end.
/// * The user's login shell on the host may be any that supports `exec` and single quotes: the shells of the POSIX family,
///   and also fish and csh. The script itself is run by `sh`. Text that the login shell's start-up files print is not
///   part of the response. See [the crate](crate) for the other requirements of the host.
///
/// # Errors
///
/// `unavailable` if `ssh` is missing, if the host cannot be found or reached or refuses the connection, or if the
/// connection breaks before the response is complete; `permission_denied` if the host does not accept the login, or its
/// key is not the recorded one, with advice in both cases; `invalid_argument` for a script with a NUL byte.
///
/// ```no_run
/// use vfs_remote::{RemoteExec, ScriptInvocation};
/// use vfs_remote::{Ssh, SshConfig};
///
/// # async fn example() -> vfs_core::Result<()> {
/// let host = Ssh::new(SshConfig::new("build.example.com").user("agent").identity_file("/keys/agent"))?;
/// let answer = host.run(ScriptInvocation::new("uname -s")).await?;
/// println!("{}", String::from_utf8_lossy(&answer.stdout));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Ssh {
    shared: Arc<SshState>,
}

/// The connection to a host and its sessions, which clones of an [`Ssh`] share.
#[derive(Debug)]
struct SshState {
    config: SshConfig,
    sessions: Arc<Semaphore>,
    /// Lock of the connection attempt, so that concurrent callers make one connection.
    connection: Mutex<SshConnectionState>,
}

/// The open connection to a host, or its last failed attempt.
#[derive(Debug, Default)]
struct SshConnectionState {
    master: Option<Arc<MasterConnection>>,
    /// The time and error of the last failed attempt, which counts for all callers that waited for it.
    failed: Option<(Instant, Error)>,
}

impl Ssh {
    /// Creates a transport to the host of `config`, without a connection yet.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for an invalid host, user or option.
    pub fn new(config: SshConfig) -> Result<Self> {
        config.check()?;
        let sessions = Arc::new(Semaphore::new(config.sessions.clamp(1, Semaphore::MAX_PERMITS)));
        Ok(Self { shared: Arc::new(SshState { config, sessions, connection: Mutex::default() }) })
    }

    /// Returns the open connection, or opens a new one.
    async fn master(&self) -> Result<Arc<MasterConnection>> {
        let start = Instant::now();
        let mut connection = self.shared.connection.lock().await;
        if let Some(master) = connection.master.as_ref().filter(|master| master.is_alive()) {
            return Ok(Arc::clone(master));
        }
        if let Some((_, error)) = connection.failed.as_ref().filter(|(failed, _)| *failed > start) {
            return Err(error.clone());
        }
        // Remove the directory of the old connection before a new one is created.
        connection.master = None;
        match MasterConnection::connect(&self.shared.config).await {
            Ok(master) => {
                let master = Arc::new(master);
                connection.master = Some(Arc::clone(&master));
                Ok(master)
            }
            Err(error) => {
                connection.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    fn client(&self, master: &MasterConnection, bootstrap: &ScriptBootstrap) -> ClientProgram {
        let config = &self.shared.config;
        let mut arguments = config.arguments();
        arguments.extend(["-o".into(), "ControlMaster=no".into(), "-S".into(), master.socket()]);
        arguments.extend(["--".into(), config.host.clone().into(), OsString::from(bootstrap.command())]);
        ClientProgram { program: config.program.clone(), arguments, classify: error::classify }
    }
}

impl fmt::Display for Ssh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.config.fmt(f)
    }
}

#[async_trait]
impl RemoteExec for Ssh {
    fn transport(&self) -> TransportLimits {
        TransportLimits::default()
    }

    async fn run(&self, invocation: ScriptInvocation) -> Result<RemoteOutput> {
        let bootstrap = ScriptBootstrap::new(&invocation)?;
        let closed = |_| Error::new(ErrorKind::Internal, "the sessions of the connection are closed");
        let session = Arc::clone(&self.shared.sessions).acquire_owned().await.map_err(closed)?;
        let master = self.master().await?;
        self.client(&master, &bootstrap).run(bootstrap, invocation, session).await
    }
}
