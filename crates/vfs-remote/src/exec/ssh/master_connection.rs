//! Master connection of OpenSSH multiplexing, with its control socket.

use std::ffi::OsString;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::ChildStdin;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use vfs_core::{Error, ErrorKind, Result};

use super::config::SshConfig;
use super::error;
use crate::exec::client_process::{ChildStreams, ClientProcess};
use crate::exec::diagnostics::ClientDiagnostics;
use crate::exec::script_bootstrap::random_marker;

/// Maximum number of bytes that are retained of the messages of `ssh` while it connects.
const MAX_MESSAGE_BYTES: usize = 8 * 1024;

/// An open connection, whose control socket serves the sessions.
///
/// The connection is an `ssh` with a session of its own, which waits for the end of its standard input. So the
/// connection ends when this value is dropped, and when this process dies.
#[derive(Debug)]
pub(super) struct MasterConnection {
    /// The standard input, whose end closes the connection.
    _stdin: ChildStdin,
    /// The task that owns the process, drains its outputs, and ends with the process.
    watch: JoinHandle<()>,
    /// Directory of the control socket, which no other user may enter.
    directory: TempDir,
}

impl MasterConnection {
    /// Connects and logs in.
    pub(super) async fn connect(config: &SshConfig) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("vfs-ssh-").tempdir().map_err(|error| {
            Error::new(ErrorKind::Internal, "no directory could be made for the control socket").with_source(error)
        })?;
        let marker = random_marker()?;
        let mut arguments = config.arguments();
        arguments.extend(["-M".into(), "-S".into(), socket(&directory)]);
        let command = format!("exec sh -c 'echo {marker}; read x'");
        arguments.extend(["--".into(), config.host.clone().into(), command.into()]);
        let (mut running, streams) = ClientProcess::start(&config.program, &arguments)?;
        let ChildStreams { stdin, mut stdout, mut stderr } = streams;
        let (mut messages, mut noise) = (Vec::new(), Vec::new());
        let greeting = async {
            tokio::select! {
                is_open = wait_for_marker(&mut stdout, &mut noise, marker.as_bytes()) => is_open,
                () = read_messages(&mut stderr, &mut messages) => false,
            }
        };
        let is_open = match timeout(connect_timeout(config), greeting).await {
            Ok(true) => true,
            Ok(false) => {
                // The rest of the messages may not have arrived yet.
                let _ = timeout(Duration::from_secs(1), read_messages(&mut stderr, &mut messages)).await;
                false
            }
            Err(_) => return Err(error::classify(&ClientDiagnostics::new(&messages, &noise, false, true))),
        };
        if !is_open {
            return Err(error::classify(&ClientDiagnostics::new(&messages, &noise, false, false)));
        }
        let watch = tokio::spawn(async move {
            // The master must always be able to write. The sessions print its messages about a lost connection, too.
            let mut sink = (tokio::io::sink(), tokio::io::sink());
            let _ = tokio::join!(tokio::io::copy(&mut stdout, &mut sink.0), tokio::io::copy(&mut stderr, &mut sink.1));
            running.wait().await;
        });
        Ok(Self { _stdin: stdin, watch, directory })
    }

    /// Returns whether the connection is still open.
    pub(super) fn is_alive(&self) -> bool {
        !self.watch.is_finished()
    }

    /// Returns the argument that names the control socket, for sessions of the connection.
    pub(super) fn socket(&self) -> OsString {
        socket(&self.directory)
    }
}

impl Drop for MasterConnection {
    fn drop(&mut self) {
        // Aborting the task kills the process that it owns. A running script loses its connection, and the bootstrap
        // ends it.
        self.watch.abort();
    }
}

/// Returns the path of the control socket in the syntax of `ssh`, for which a single `%` starts a token.
fn socket(directory: &TempDir) -> OsString {
    directory.path().join("s").to_string_lossy().replace('%', "%%").into()
}

/// Returns the timeout of all steps up to the first session: resolving the host, connecting, logging in.
fn connect_timeout(config: &SshConfig) -> Duration {
    config.connect_timeout.saturating_mul(2).saturating_add(Duration::from_secs(5))
}

/// Reads until `marker` arrives. Returns `false` if the output ends before.
async fn wait_for_marker(stdout: &mut (impl AsyncRead + Unpin), seen: &mut Vec<u8>, marker: &[u8]) -> bool {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stdout.read(&mut buffer).await {
        seen.extend_from_slice(&buffer[..count]);
        if memchr::memmem::find(seen, marker).is_some() {
            return true;
        }
        // Start-up files may print much.
        if seen.len() > MAX_MESSAGE_BYTES {
            seen.drain(..seen.len() - marker.len());
        }
    }
    false
}

/// Reads `stderr` to its end, and retains the beginning in `messages`.
async fn read_messages(stderr: &mut (impl AsyncRead + Unpin), messages: &mut Vec<u8>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let room = MAX_MESSAGE_BYTES.saturating_sub(messages.len());
        messages.extend_from_slice(&buffer[..count.min(room)]);
    }
}
