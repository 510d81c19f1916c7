//! Tests of when the self-test runs, and of access to the cache of its results.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use vfs_core::backend::AccessMode;
use vfs_core::{BackendExt as _, ErrorKind, VfsPath};
use vfs_sandbox::{Guarantee, HelperLocation, Mount, OsSandbox, SandboxConfig, SelfTestPolicy};

use super::{Outcome, own, run};

/// A bubblewrap that records each start.
struct CountedBubblewrap {
    directory: tempfile::TempDir,
}

impl CountedBubblewrap {
    fn new() -> std::io::Result<Self> {
        let counted = Self { directory: tempfile::tempdir()? };
        let script = format!("#!/bin/sh\necho >>{}\nexec bwrap \"$@\"\n", counted.starts_file().display());
        fs::write(counted.program(), script)?;
        fs::set_permissions(counted.program(), fs::Permissions::from_mode(0o755))?;
        Ok(counted)
    }

    fn program(&self) -> PathBuf {
        self.directory.path().join("bwrap")
    }

    fn starts_file(&self) -> PathBuf {
        self.directory.path().join("starts")
    }

    fn take_starts(&self) -> usize {
        let starts = fs::read(self.starts_file()).map_or(0, |bytes| bytes.len());
        let _ = fs::remove_file(self.starts_file());
        starts
    }
}

/// Returns whether this process is under a filter of system calls, so that no results are cached.
fn is_filtered() -> std::io::Result<bool> {
    Ok(!fs::read_to_string("/proc/self/status")?.contains("\nSeccomp:\t0\n"))
}

pub(crate) async fn recorded() -> Outcome {
    let (bubblewrap, directory) = (CountedBubblewrap::new()?, tempfile::tempdir()?);
    let config =
        || SandboxConfig::new(directory.path()).helper(HelperLocation::At(own())).bubblewrap(bubblewrap.program());
    let first = OsSandbox::open(config()).await?;
    // Bubblewrap starts once for its options, and once for the self-test.
    assert_eq!(bubblewrap.take_starts(), 2);
    if is_filtered()? {
        return Ok(());
    }
    let second = OsSandbox::open(config()).await?;
    assert_eq!((bubblewrap.take_starts(), second.report()), (0, first.report()));
    OsSandbox::open(config().self_test(SelfTestPolicy::Always)).await?;
    assert_eq!(bubblewrap.take_starts(), 2, "it is forced");
    OsSandbox::check(config()).await?;
    assert_eq!(bubblewrap.take_starts(), 2, "a check always runs it");
    OsSandbox::open(config().tmp_bytes(1 << 20)).await?;
    assert_eq!(bubblewrap.take_starts(), 1, "these are other settings");
    fs::write(bubblewrap.program(), fs::read(bubblewrap.program())?)?;
    OsSandbox::open(config()).await?;
    assert_eq!(bubblewrap.take_starts(), 2, "bubblewrap was replaced");
    let sandbox = OsSandbox::open(config()).await?.into_backend()?;
    assert_eq!(run(&sandbox, "echo x").await?.stdout, "x\n");
    Ok(())
}

pub(crate) async fn failed() -> Outcome {
    let (bubblewrap, directory) = (CountedBubblewrap::new()?, tempfile::tempdir()?);
    let config = SandboxConfig::new(directory.path()).helper(HelperLocation::Unused).unprotected();
    let config = config.bubblewrap(bubblewrap.program()).require([Guarantee::LandlockFiles]);
    for starts in [2, 1] {
        OsSandbox::open(config.clone()).await.expect_err("Landlock is missing");
        assert!(bubblewrap.take_starts() >= starts, "a failed self-test is run again");
    }
    Ok(())
}

/// Returns the directories that may contain the self-test cache of this user, each as a parent and a name.
fn places() -> Vec<(PathBuf, String)> {
    match rustix::process::geteuid().as_raw() {
        0 => vec![("/run".into(), "vfs-sandbox".to_owned())],
        user => vec![
            (format!("/run/user/{user}").into(), "vfs-sandbox".to_owned()),
            ("/tmp".into(), format!("vfs-sandbox-{user}")),
        ],
    }
}

pub(crate) async fn hidden() -> Outcome {
    for (parent, name) in places().into_iter().filter(|(parent, _)| parent.exists()) {
        for access in [AccessMode::ReadWrite, AccessMode::ReadOnly] {
            hidden_below(&parent, Path::new(&name), access).await?;
        }
        let inside = SandboxConfig::new(parent.join(&name));
        if parent.join(&name).exists() {
            assert_eq!(OsSandbox::open(inside).await.expect_err("it is shown").kind(), ErrorKind::InvalidArgument);
        }
        let beside = tempfile::tempdir()?;
        let refused = OsSandbox::open(SandboxConfig::new(beside.path()).tool(&parent)).await.expect_err("it is shown");
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    }
    // The root of the host contains bubblewrap, which commands could change.
    let root = Mount::read_only(VfsPath::parse("/workspace")?, "/");
    let refused = OsSandbox::open(SandboxConfig::with_mount(root).unprotected()).await.expect_err("all is shown");
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    Ok(())
}

/// Runs commands that see `directory` and try to read, forge and replace the cached results at `name` below it.
async fn hidden_below(directory: &Path, name: &Path, access: AccessMode) -> Outcome {
    let at = VfsPath::parse("/workspace")?;
    let mount = match access {
        AccessMode::ReadWrite => Mount::writable(at, directory),
        _ => Mount::read_only(at, directory),
    };
    let config = SandboxConfig::with_mount(mount).unprotected().helper(HelperLocation::Unused);
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    let cache = format!("/workspace/{}", name.display());
    for command in [
        format!("test -n \"$(ls -A {cache})\""),
        format!("cat {cache}/*"),
        format!("echo x > {cache}/forged"),
        format!("mkdir {cache}/forged"),
        format!("chmod 700 {cache} && echo x > {cache}/forged"),
        format!("rmdir {cache}"),
        format!("mv -T {cache} {cache}-moved"),
        format!("mkdir {cache}-forged && mv -T {cache}-forged {cache}"),
        format!("umount {cache}"),
    ] {
        let ended = run(&sandbox, &format!("({command}) 2>/dev/null && echo done")).await?;
        assert_eq!(ended.stdout, "", "{command} below {}: {ended:?}", directory.display());
    }
    let refused = sandbox.create_text(&format!("{cache}/forged"), "x").await.expect_err("it is hidden");
    assert!(matches!(refused.kind(), ErrorKind::PolicyDenied | ErrorKind::PermissionDenied), "{refused}");
    let refused = sandbox.list_dir(&cache).await.expect_err("it is hidden");
    assert_eq!(refused.kind(), ErrorKind::PolicyDenied, "{refused}");
    drop(sandbox);
    let real = directory.join(name);
    assert!(!real.join("forged").exists());
    let _ = fs::remove_dir(format!("{}-forged", real.display()));
    if let Ok(metadata) = fs::metadata(&real) {
        assert_eq!(metadata.permissions().mode() & 0o7777, 0o700, "{}", real.display());
    }
    Ok(())
}

/// Variable with the path of another mount of the directory of the cache.
const ALIAS: &str = "VFS_TEST_SELF_TEST_CACHE_ALIAS";

/// Runs this trial again in a process for which the parent directory is mounted a second time.
pub(crate) async fn hidden_alias() -> Outcome {
    let (parent, name) = places().swap_remove(0);
    if let Some(alias) = std::env::var_os(ALIAS) {
        hidden_below(Path::new(&alias), Path::new(&name), AccessMode::ReadWrite).await?;
        let above = Path::new(&alias).parent().ok_or("it has one")?;
        let below = Path::new(&alias).file_name().ok_or("it has one")?;
        return hidden_below(above, &Path::new(below).join(&name), AccessMode::ReadWrite).await;
    }
    let directory = tempfile::tempdir()?;
    let alias = directory.path().join("alias");
    fs::create_dir(&alias)?;
    let script = format!("mount --bind {} {} && exec \"$0\" --exact \"$1\"", parent.display(), alias.display());
    let trial = "sandbox::cached_results_are_hidden_through_other_mounts";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).arg(own()).arg(trial).env(ALIAS, &alias);
    // Only root can mount.
    if let Ok(ended) = command.output().map_err(drop).and_then(|ended| {
        let stdout = String::from_utf8_lossy(&ended.stdout).into_owned();
        if stdout.contains("running") { Ok((ended.status.success(), stdout)) } else { Err(()) }
    }) {
        assert!(ended.0 && ended.1.contains("1 passed"), "{}", ended.1);
    }
    Ok(())
}
