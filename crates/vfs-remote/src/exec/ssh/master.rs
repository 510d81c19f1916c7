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
use crate::exec::bootstrap::random_marker;
use crate::exec::client::{ClientProcess, Streams};
use crate::exec::diagnostics::ClientDiagnostics;

/// Most bytes that are retained of the messages of `ssh` while it connects.
const MAX_WORDS: usize = 8 * 1024;

/// A connection that is there.
///
/// It is an `ssh` with a session of its own, which waits for the end of its standard input. So it ends with this value,
/// and when this process dies.
#[derive(Debug)]
pub(super) struct Master {
    /// Keeps the connection.
    _stdin: ChildStdin,
    /// Owns the process, reads what it says, and ends with it.
    watch: JoinHandle<()>,
    /// Directory of the control socket, which no other user may enter.
    directory: TempDir,
}

impl Master {
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
        let Streams { stdin, mut stdout, mut stderr } = streams;
        let (mut words, mut noise) = (Vec::new(), Vec::new());
        let greeting = async {
            tokio::select! {
                is_there = greeted(&mut stdout, &mut noise, marker.as_bytes()) => is_there,
                () = gather(&mut stderr, &mut words) => false,
            }
        };
        let is_there = match timeout(connect_timeout(config), greeting).await {
            Ok(true) => true,
            Ok(false) => {
                // The rest of its words may still be on the way.
                let _ = timeout(Duration::from_secs(1), gather(&mut stderr, &mut words)).await;
                false
            }
            Err(_) => return Err(error::classify(&ClientDiagnostics::new(&words, &noise, false, true))),
        };
        if !is_there {
            return Err(error::classify(&ClientDiagnostics::new(&words, &noise, false, false)));
        }
        let watch = tokio::spawn(async move {
            // The master must always be able to write. The sessions print its messages about a lost connection, too.
            let mut sink = (tokio::io::sink(), tokio::io::sink());
            let _ = tokio::join!(tokio::io::copy(&mut stdout, &mut sink.0), tokio::io::copy(&mut stderr, &mut sink.1));
            running.ended().await;
        });
        Ok(Self { _stdin: stdin, watch, directory })
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&self) -> bool {
        !self.watch.is_finished()
    }

    /// Arguments that its sessions need.
    pub(super) fn socket(&self) -> OsString {
        socket(&self.directory)
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        // Kills the process with its owner; a script that is running loses its connection and is ended by the
        // bootstrap.
        self.watch.abort();
    }
}

/// The control socket's path, as `ssh` wants it: it would take a single `%` for a token.
fn socket(directory: &TempDir) -> OsString {
    directory.path().join("s").to_string_lossy().replace('%', "%%").into()
}

/// How long everything until the first session may take: to find the host, to connect, to log in.
fn connect_timeout(config: &SshConfig) -> Duration {
    config.connect_timeout.saturating_mul(2).saturating_add(Duration::from_secs(5))
}

/// Reads until `marker` is there; `false` where the output ends before.
async fn greeted(stdout: &mut (impl AsyncRead + Unpin), seen: &mut Vec<u8>, marker: &[u8]) -> bool {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stdout.read(&mut buffer).await {
        seen.extend_from_slice(&buffer[..count]);
        if memchr::memmem::find(seen, marker).is_some() {
            return true;
        }
        // Start-up files may print much.
        if seen.len() > MAX_WORDS {
            seen.drain(..seen.len() - marker.len());
        }
    }
    false
}

/// Reads to the end, and keeps the beginning.
async fn gather(stderr: &mut (impl AsyncRead + Unpin), words: &mut Vec<u8>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let room = MAX_WORDS.saturating_sub(words.len());
        words.extend_from_slice(&buffer[..count.min(room)]);
    }
}
