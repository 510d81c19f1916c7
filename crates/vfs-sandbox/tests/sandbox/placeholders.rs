//! Tests of placeholders for missing protected paths: their removal, also on FUSE, and git, which lists none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::Failed;
use vfs_sandbox::{HelperLocation, OsSandbox, OsSandboxBackend, SandboxConfig};

use super::{Outcome, config, names, own, run, until};

/// Does `work` on the host while a command runs, after its placeholders were created, and returns the output of the
/// command.
async fn beside_a_command(
    sandbox: &OsSandboxBackend,
    directory: &tempfile::TempDir,
    command: &str,
    work: impl AsyncFnOnce() -> Outcome,
) -> Result<String, Failed> {
    let waits = async {
        let ended = run(sandbox, &format!("until [ -e ended ]; do sleep 0.01; done; {command}")).await;
        ended.map(|ended| ended.output)
    };
    let ends = async {
        until("the placeholders are there", || Ok(names(directory)?.contains(&".env".to_owned()))).await?;
        let worked = work().await;
        fs::write(directory.path().join("ended"), "")?;
        worked
    };
    let (waited, ended) = tokio::join!(waits, ends);
    ended?;
    Ok(waited?)
}

pub(crate) async fn last_command() -> Outcome {
    let directory = tempfile::tempdir()?;
    let (one, other) = (OsSandbox::open(config(&directory)).await?, OsSandbox::open(config(&directory)).await?);
    assert_eq!(names(&directory)?, [""; 0], "a trial leaves nothing");
    let (one, other) = (one.into_backend()?, other.into_backend()?);
    for _ in 0..20 {
        run(&one, "true").await?;
        assert_eq!(names(&directory)?, [""; 0]);
    }
    // When a command of one sandbox ends, a command of the other still has its covers.
    let printed = beside_a_command(&one, &directory, "mkdir .git 2>/dev/null || ls -A", async || {
        for sandbox in [&other, &one] {
            run(sandbox, "true").await?;
        }
        Ok(())
    });
    assert_eq!(printed.await?, ".env\n.git\nended\n");
    assert_eq!(names(&directory)?, ["ended"]);
    Ok(())
}

pub(crate) async fn git() -> Outcome {
    const STATUS: &str = "git -c safe.directory='*' status --porcelain";
    let directory = tempfile::tempdir()?;
    fs::create_dir(directory.path().join("below"))?;
    checked(Command::new("git").args(["init", "--quiet"]).current_dir(directory.path()))?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    let printed = beside_a_command(&sandbox, &directory, STATUS, async || {
        let host = checked(Command::new("sh").args(["-c", STATUS]).current_dir(directory.path()))?;
        assert_eq!(String::from_utf8_lossy(&host.stdout), "");
        Ok(())
    });
    assert_eq!(printed.await?, "?? ended\n");
    Ok(())
}

pub(crate) async fn fuse() -> Outcome {
    placeholders_go(&FuseMount::new(&[])?).await?;
    // Some file systems do not store modes.
    placeholders_go(&FuseMount::new(&["--perms=0755"])?).await
}

async fn placeholders_go(mount: &FuseMount) -> Outcome {
    let config = || SandboxConfig::new(&mount.at).helper(HelperLocation::At(own()));
    let sandboxes =
        [OsSandbox::open(config()).await?.into_backend()?, OsSandbox::open(config()).await?.into_backend()?];
    for sandbox in &sandboxes {
        for _ in 0..2 {
            let ended = run(sandbox, "ls -A; echo x > .env; mkdir .git/hooks").await?;
            assert_eq!(ended.stdout, ".env\n.git\n", "{ended:?}");
            assert_eq!(fs::read_dir(&mount.at)?.count(), 0);
        }
    }
    Ok(())
}

/// A mount of `bindfs`, which does not store the sticky bit.
#[derive(Debug)]
pub(crate) struct FuseMount {
    at: PathBuf,
    _directory: tempfile::TempDir,
}

impl FuseMount {
    /// Mounts a new directory.
    ///
    /// # Errors
    ///
    /// Errors of mounting, if `bindfs` is missing or this process may not use FUSE.
    pub(crate) fn new(options: &[&str]) -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let [source, at] = ["source", "mount"].map(|name| directory.path().join(name));
        fs::create_dir(&source)?;
        fs::create_dir(&at)?;
        checked(Command::new("bindfs").args(options).args([&source, &at]))?;
        Ok(Self { at, _directory: directory })
    }
}

impl Drop for FuseMount {
    fn drop(&mut self) {
        if let Err(error) = unmount(&self.at) {
            assert!(std::thread::panicking(), "{error}");
        }
    }
}

fn unmount(at: &Path) -> io::Result<Output> {
    checked(Command::new("fusermount3").args(["-u", "-z"]).arg(at))
}

/// Runs a program, and returns an error if it fails.
fn checked(command: &mut Command) -> io::Result<Output> {
    let output = command.output().map_err(|error| io::Error::other(format!("{command:?}: {error}")))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(io::Error::other(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))))
}
