//! Tests of what commands see: mounts, directories and the environment; and of processes that they leave.

use std::fs;
use std::os::unix::fs::symlink;

use libtest_mimic::Failed;
use vfs_core::{BackendExt as _, ErrorKind, ExecuteRequest, OpContext, Shell as _, VfsPath};
use vfs_sandbox::{Mount, OsSandbox, SandboxConfig};
use vfs_shell::ShellConfig;

use super::{Outcome, config, run, until};

pub(crate) async fn same_paths() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    sandbox.create_text("/workspace/src/main.rs", "fn main() {}\n").await?;
    let ended = run(&sandbox, "cat /workspace/src/main.rs && pwd && echo made > made && ls -A /workspace").await?;
    assert_eq!(ended.output, "fn main() {}\n/workspace\n.env\n.git\nmade\nsrc\n", "{ended:?}");
    assert_eq!(sandbox.read_text("/workspace/made").await?, "made\n");
    assert_eq!(fs::read_to_string(directory.path().join("made"))?, "made\n");
    let refused = sandbox.create_text("/elsewhere", "x").await.expect_err("nothing is there");
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused}");
    let request = ExecuteRequest::new("echo all").cwd(VfsPath::parse("/workspace")?).keep_full_output();
    let path = sandbox.shell().execute(&OpContext::new(), request).await?.full_output.expect("a file");
    assert_eq!(sandbox.read_text(path.as_str()).await?, "all\n", "{path}");
    Ok(())
}

pub(crate) async fn several_mounts() -> Outcome {
    let (one, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    fs::write(other.path().join("given"), "given\n")?;
    let config = config(&one).mount(Mount::read_only(VfsPath::parse("/data/set")?, other.path()));
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    let ended = run(&sandbox, "cat /data/set/given; (echo x > /data/set/new) 2>&1; echo y > new; ls /data").await?;
    assert!(ended.output.starts_with("given\n"), "{ended:?}");
    assert!(ended.output.contains("Read-only file system"), "{ended:?}");
    assert!(ended.output.ends_with("set\n"), "{ended:?}");
    assert_eq!(sandbox.read_text("/workspace/new").await?, "y\n");
    assert_eq!(sandbox.read_text("/data/set/given").await?, "given\n");
    let refused = sandbox.create_text("/data/set/new", "x").await.expect_err("it is read-only");
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused}");
    Ok(())
}

pub(crate) async fn unshowable() -> Outcome {
    let directory = tempfile::tempdir()?;
    for at in ["/", "/usr", "/usr/share/new", "/etc", "/proc/1", "/tmp", "/dev/shm"] {
        let mount = Mount::writable(VfsPath::parse(at)?, directory.path());
        let refused = OsSandbox::open(SandboxConfig::with_mount(mount)).await.expect_err(at);
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{at}");
    }
    let inner = Mount::writable(VfsPath::parse("/workspace/inner")?, directory.path());
    let refused = OsSandbox::open(config(&directory).mount(inner)).await.expect_err("they overlap");
    assert_eq!(refused.path(), Some("/workspace/inner"));
    let missing = SandboxConfig::new(directory.path().join("missing"));
    assert_eq!(OsSandbox::open(missing).await.expect_err("it is not there").kind(), ErrorKind::NotFound);
    Ok(())
}

pub(crate) async fn directories() -> Outcome {
    let directory = tempfile::tempdir()?;
    fs::write(directory.path().join("file"), "")?;
    symlink("/etc", directory.path().join("out"))?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    for (cwd, kind) in [
        ("/workspace/missing", ErrorKind::NotFound),
        ("/workspace/file", ErrorKind::NotADirectory),
        ("/workspace/out", ErrorKind::PathEscape),
        ("/usr", ErrorKind::NotFound),
        ("/root", ErrorKind::NotFound),
    ] {
        let request = ExecuteRequest::new("true").cwd(VfsPath::parse(cwd)?);
        let refused = sandbox.shell().execute(&OpContext::new(), request).await.expect_err(cwd);
        assert_eq!((refused.kind(), refused.path()), (kind, Some(cwd)));
    }
    for cwd in ["/", "/tmp"] {
        let request = ExecuteRequest::new("pwd").cwd(VfsPath::parse(cwd)?);
        assert_eq!(sandbox.shell().execute(&OpContext::new(), request).await?.stdout, format!("{cwd}\n"));
    }
    Ok(())
}

/// Every program that starts with a missing library in `LD_PRELOAD` prints an error, which shows the programs that
/// receive it.
pub(crate) async fn environment() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox =
        OsSandbox::open(config(&directory)).await?.into_backend_with(ShellConfig::new().environment([].into()))?;
    let request = ExecuteRequest::new("echo \"$GIVEN\"").cwd(VfsPath::parse("/workspace")?);
    let request = request.env("GIVEN", "a = b\nc").env("LD_PRELOAD", "/workspace/missing.so");
    let ended = sandbox.shell().execute(&OpContext::new(), request).await?;
    assert_eq!(ended.stdout, "a = b\nc\n");
    assert_eq!(ended.stderr.matches("missing.so").count(), 1, "only the shell is started with it: {}", ended.stderr);
    let ended = run(&sandbox, "/usr/bin/env").await?;
    let names: Vec<&str> = ended.stdout.lines().filter_map(|line| line.split('=').next()).collect();
    assert!(names.iter().all(|name| ["PWD", "_", "OLDPWD", "SHLVL"].contains(name)), "{names:?}");
    Ok(())
}

pub(crate) async fn leftovers() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    // The call waits for the processes that it killed, but only briefly, which may be too short on a busy machine.
    for attempt in 0..20 {
        // Outside, the process has another number and is identified by its arguments.
        let seconds = format!("1000.{}{attempt}", std::process::id());
        let command = format!("setsid sleep {seconds} & until [ -e seen ]; do sleep 0.01; done; rm seen; echo out");
        let runs = || -> std::io::Result<bool> {
            let named = |process: fs::DirEntry| fs::read(process.path().join("cmdline")).unwrap_or_default();
            let sleeps = |line: Vec<u8>| line == format!("sleep\0{seconds}\0").into_bytes();
            Ok(fs::read_dir("/proc")?.flatten().any(|process| sleeps(named(process))))
        };
        let watching = async {
            until("it runs", runs).await?;
            fs::write(directory.path().join("seen"), "").map_err(Failed::from)
        };
        let (ended, seen) = tokio::join!(run(&sandbox, &command), watching);
        seen?;
        assert_eq!(ended?.stdout, "out\n");
        if !runs()? {
            return Ok(());
        }
        until("the process has ended", || Ok(!runs()?)).await?;
    }
    Err("the call returns before the process has ended".into())
}
