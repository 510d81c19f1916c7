//! Tests of unix sockets of the host and of commands.

use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;

use vfs_sandbox::{Guarantee, OsSandbox, SandboxConfig, UnixSockets};

use super::{Outcome, config, own, run};

/// Option with which this program uses sockets, in a sandbox.
pub(crate) const OPTION: &str = "--socket";

/// Performs the action that the arguments name, and prints its outcome.
pub(crate) fn act(arguments: &[String]) -> ExitCode {
    let [action, path] = arguments else { return ExitCode::FAILURE };
    let done = match action.as_str() {
        "connect" => UnixStream::connect(path).map(drop),
        "pair" => UnixStream::pair().map(drop),
        "serve" => UnixListener::bind(path).and_then(|listener| {
            let client = UnixStream::connect(path)?;
            listener.accept()?;
            drop(client);
            Ok(())
        }),
        _ => return ExitCode::FAILURE,
    };
    let outcome = match done {
        Ok(()) => "done".to_owned(),
        Err(error) => format!("{:?}", error.kind()),
    };
    writeln!(std::io::stdout(), "{action}: {outcome}").expect("written");
    ExitCode::SUCCESS
}

pub(crate) fn shown(directory: &tempfile::TempDir) -> SandboxConfig {
    config(directory).tool(own())
}

pub(crate) async fn act_in(sandbox: &vfs_sandbox::OsSandboxBackend, actions: &[&str]) -> vfs_core::Result<String> {
    let lines = actions.iter().map(|action| format!("'{}' {OPTION} {action}\n", own().display()));
    Ok(run(sandbox, &lines.collect::<String>()).await?.output)
}

pub(crate) async fn denied() -> Outcome {
    let directory = tempfile::tempdir()?;
    std::fs::create_dir(directory.path().join("run"))?;
    let listener = UnixListener::bind(directory.path().join("run/socket"))?;
    listener.set_nonblocking(true)?;
    let sandbox = OsSandbox::open(shown(&directory)).await?;
    assert!(sandbox.report().enforces(Guarantee::UnixSockets), "{}", sandbox.report());
    let sandbox = sandbox.into_backend()?;
    let output = act_in(&sandbox, &["connect run/socket", "serve own", "pair -"]).await?;
    assert_eq!(output, "connect: PermissionDenied\nserve: PermissionDenied\npair: done\n");
    assert_eq!(listener.accept().expect_err("nobody came").kind(), std::io::ErrorKind::WouldBlock);
    Ok(())
}

pub(crate) async fn many() -> Outcome {
    let directory = tempfile::tempdir()?;
    std::fs::create_dir(directory.path().join(".git"))?;
    let sandbox = OsSandbox::open(shown(&directory)).await?.into_backend()?;
    for number in 0..4_200 {
        drop(UnixListener::bind(directory.path().join(format!("{number}")))?);
    }
    std::fs::create_dir_all(directory.path().join("zzz/.git"))?;
    let output = run(&sandbox, "touch zzz/.git/config || echo refused").await?.output;
    assert!(output.ends_with("refused\n"), "{output}");
    Ok(())
}

pub(crate) async fn allowed() -> Outcome {
    let directory = tempfile::tempdir()?;
    std::fs::create_dir(directory.path().join("run"))?;
    let listener = UnixListener::bind(directory.path().join("run/socket"))?;
    listener.set_nonblocking(true)?;
    let config = shown(&directory).unix_sockets(UnixSockets::Allow);
    // The report says that the host can create a socket later, unless the kernel forbids connecting to it.
    let report = OsSandbox::check(config.clone()).await?;
    let result = report.result(Guarantee::UnixSockets).ok_or("a result")?;
    assert!(!result.required && (report.enforces(Guarantee::UnixSockets) || report.to_string().contains("Linux 7.1")));
    let denied = OsSandbox::check(config.clone().unix_sockets(UnixSockets::Deny)).await?;
    assert!(denied.result(Guarantee::UnixSockets).is_some_and(|result| result.required), "{denied}");
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    let output = act_in(&sandbox, &["connect run/socket", "serve own", "pair -"]).await?;
    assert!(
        ["connect: ConnectionRefused\n", "connect: PermissionDenied\n"].iter().any(|line| output.starts_with(line))
    );
    assert!(output.ends_with("serve: done\npair: done\n"), "{output}");
    assert_eq!(listener.accept().expect_err("nobody came").kind(), std::io::ErrorKind::WouldBlock);
    Ok(())
}
