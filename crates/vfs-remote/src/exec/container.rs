//! Container transport: `docker exec` or `podman exec`.

use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;

use async_trait::async_trait;
use vfs_core::{Error, ErrorKind, Result};

use super::client_process::ClientProgram;
use super::diagnostics::ClientDiagnostics;
use super::script_bootstrap::ScriptBootstrap;
use crate::exec::{RemoteExec, RemoteOutput, ScriptInvocation, TransportLimits};

/// Configuration of a [`ContainerExec`]: the container, and the client of its engine.
///
/// ```
/// use vfs_remote::{ContainerExec, ContainerExecConfig};
///
/// let config = ContainerExecConfig::podman("builder").user("1000:1000").argument("--env=LANG=C.UTF-8");
/// let transport = ContainerExec::new(config)?;
/// assert_eq!(transport.to_string(), "podman:builder");
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ContainerExecConfig {
    /// The name or id of a running container.
    pub container: String,
    /// The engine's client: a name to look up in `PATH`, or a path.
    pub program: OsString,
    /// The user in the container, as `name`, `uid` or `uid:gid`. Default: the container's own.
    pub user: Option<String>,
    /// Arguments before `exec`, such as `--context=build`. Default: nothing.
    pub engine_arguments: Vec<OsString>,
    /// Arguments after `exec`, such as `--env=A=B`. Default: nothing.
    pub arguments: Vec<OsString>,
}

impl ContainerExecConfig {
    /// Creates the configuration of a container of Docker.
    pub fn docker(container: impl Into<String>) -> Self {
        Self::with_program("docker", container)
    }

    /// Creates the configuration of a container of Podman.
    pub fn podman(container: impl Into<String>) -> Self {
        Self::with_program("podman", container)
    }

    /// Creates the configuration of a container of an engine whose client accepts Docker's arguments.
    pub fn with_program(program: impl Into<OsString>, container: impl Into<String>) -> Self {
        Self {
            container: container.into(),
            program: program.into(),
            user: None,
            engine_arguments: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// Sets the [`user`](Self::user) in the container.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Adds one of the [`engine_arguments`](Self::engine_arguments).
    #[must_use]
    pub fn engine_argument(mut self, argument: impl Into<OsString>) -> Self {
        self.engine_arguments.push(argument.into());
        self
    }

    /// Adds one of the [`arguments`](Self::arguments).
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }
}

impl fmt::Debug for ContainerExecConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { container, program, user, engine_arguments, arguments } = self;
        f.debug_struct("ContainerExecConfig")
            .field("container", container)
            .field("program", program)
            .field("user", user)
            .field("engine_arguments", &RedactedArguments(engine_arguments))
            .field("arguments", &RedactedArguments(arguments))
            .finish()
    }
}

/// Arguments without the text after the first `=` of each, such as the secret of `--env=TOKEN=SECRET`.
struct RedactedArguments<'a>(&'a [OsString]);

impl fmt::Debug for RedactedArguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.iter().map(|argument| {
            let argument = argument.to_string_lossy();
            match argument.split_once('=') {
                Some((name, _)) => format!("{name}=…"),
                None => argument.into_owned(),
            }
        });
        f.debug_list().entries(shown).finish()
    }
}

/// Runs scripts in a container, with `docker exec -i` or `podman exec -i`.
///
/// # Behaviour
///
/// * The container has to be running, and needs `sh`; see [the crate](crate) for its other requirements.
/// * The client is a process of this machine for each script. The client inherits the environment of this process,
///   which may include variables such as `DOCKER_HOST`.
/// * Exit codes of the client itself, such as 125, 126 and 127, are errors and never returned as the script's.
///
/// # Errors
///
/// `unavailable` if the client is missing, no engine answers, or the container is missing, stopped or without `sh`;
/// `permission_denied` if the engine refuses access to this user; `invalid_argument` for a script with a NUL byte, and
/// for a user that does not exist in the container. A missing container is not `not_found`, which is for files.
#[derive(Debug, Clone)]
pub struct ContainerExec {
    config: ContainerExecConfig,
}

impl ContainerExec {
    /// Creates a transport to the container of `config`, without starting a process yet.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for an invalid name of a container or user.
    pub fn new(config: ContainerExecConfig) -> Result<Self> {
        let is_name = |text: &str, more: &[char]| {
            text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(&c))
        };
        if !is_name(&config.container, &['_', '.', '-']) {
            return Err(Error::invalid_argument(
                "a container's name has letters, digits, `_`, `.` and `-`, and begins with a letter or a digit",
            ));
        }
        if config.user.as_deref().is_some_and(|user| !is_name(user, &['_', '.', '-', ':', '@', '$'])) {
            return Err(Error::invalid_argument("a user is a name, a number, or two of them with `:` between"));
        }
        Ok(Self { config })
    }

    fn client(&self, bootstrap: &ScriptBootstrap) -> ClientProgram {
        let config = &self.config;
        let mut arguments = config.engine_arguments.clone();
        arguments.extend(["exec".into(), "--interactive".into()]);
        arguments.extend(config.user.iter().map(|user| format!("--user={user}").into()));
        arguments.extend(config.arguments.iter().cloned());
        arguments.extend([config.container.clone().into(), "sh".into(), "-c".into()]);
        arguments.extend(bootstrap.words.iter().map(OsString::from));
        ClientProgram { program: config.program.clone(), arguments, classify }
    }
}

impl fmt::Display for ContainerExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = std::path::Path::new(&self.config.program).file_name().unwrap_or(&self.config.program);
        write!(f, "{}:{}", program.to_string_lossy(), self.config.container)
    }
}

#[async_trait]
impl RemoteExec for ContainerExec {
    fn transport(&self) -> TransportLimits {
        TransportLimits::default()
    }

    async fn run(&self, invocation: ScriptInvocation) -> Result<RemoteOutput> {
        let bootstrap = ScriptBootstrap::new(&invocation)?;
        self.client(&bootstrap).run(bootstrap, invocation, ()).await
    }
}

/// The exit codes with which an engine's client reports that a signal ended the process in the container: 128 and the
/// signal's number.
const KILLED: RangeInclusive<i32> = 129..=192;

/// Classifies the diagnostics of the client of an engine.
fn classify(diagnostics: &ClientDiagnostics) -> Error {
    use ErrorKind::{InvalidArgument, PermissionDenied, Unavailable};
    // Podman can lose all output of a process that is killed soon after its start; its exit code still shows that.
    if diagnostics.started || diagnostics.exit_code.is_some_and(|code| KILLED.contains(&code)) {
        return diagnostics.incomplete();
    }
    let (kind, meaning) = if diagnostics.has(&["no such container", "no container with name or id"]) {
        (Unavailable, "there is no such container: create it, or name another; the command was not run")
    } else if diagnostics.has(&["is not running", "is paused", "state improper", "container is stopped"]) {
        (Unavailable, "the container does not run: start it; the command was not run")
    } else if diagnostics.has(&["permission denied while trying to connect", "dial unix", "access denied"])
        && diagnostics.has(&["permission denied", "access denied"])
    {
        (PermissionDenied, "the container engine does not let this user in; the command was not run")
    } else if diagnostics.has(&[
        "cannot connect to",
        "is the docker daemon running",
        "connection refused",
        "unable to connect",
    ]) {
        (Unavailable, "no container engine answers: start it; the command was not run")
    } else if diagnostics.has(&["unable to find user", "no matching entries in passwd", "unable to find group"]) {
        (InvalidArgument, "the container does not have this user; the command was not run")
    } else if diagnostics.has(&["executable file not found", "no such file or directory", "oci runtime"]) {
        (Unavailable, "the container could not start `sh`: it needs a POSIX shell; the command was not run")
    } else if diagnostics.late {
        (Unavailable, "the container engine did not start the command in time")
    } else {
        (Unavailable, "the container engine's client gave no answer; whether the command was run is unknown")
    };
    diagnostics.error(kind, meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_command_whose_output_was_lost_is_reported_as_killed() {
        let classified =
            |exit_code| classify(&ClientDiagnostics::new(b"", b"", false, false).with_exit_code(exit_code));
        let killed = classified(Some(137));
        assert_eq!(killed.kind(), ErrorKind::Unavailable);
        assert!(killed.message().contains("killed"), "{killed}");
        for exit_code in [None, Some(0), Some(125), Some(255)] {
            let error = classified(exit_code);
            assert!(error.message().contains("gave no answer"), "{exit_code:?}: {error}");
        }
    }

    #[test]
    fn values_of_arguments_are_not_shown() {
        let config = ContainerExecConfig::docker("box").argument("--env=TOKEN=hunter2").argument("--tty");
        let config = config.argument("-e").argument("TOKEN=hunter2");
        let shown = format!("{:?}", ContainerExec::new(config).expect("a transport"));
        assert!(shown.contains("--env=…") && shown.contains("--tty") && !shown.contains("hunter2"), "{shown}");
    }
}
