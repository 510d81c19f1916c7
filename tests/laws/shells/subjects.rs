//! The shells of this workspace.

use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;
use vfs_core::{Backend, Result, VfsPath};
use vfs_local::{Durability, LocalConfig};
use vfs_memory::MemoryBackend;
use vfs_sandbox::{HelperLocation, OsSandbox, SandboxConfig};
use vfs_shell::{LocalShellBackend, ShellConfig};
use vfs_store::{SqliteConfig, SqliteStore, StoreBackend};
use vfs_testkit::ShellFeature::{
    Background, FullOutputMode, InheritedEnvironment, Links, Order, Processes, SamePaths, Sessions, Signals, Streaming,
    Terminal,
};
use vfs_testkit::{ShellFactory, ShellTarget, Target};
use vfs_tests::places::Place;
use vfs_tests::programs::missing_of;
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

/// A part of the names of directories of the host, which no message may show.
const MARKER: &str = "vfs-laws-";

fn directory() -> TempDir {
    tempfile::Builder::new().prefix(MARKER).tempdir().expect("a temporary directory can be made")
}

/// Commands of this machine.
pub(crate) fn local() -> ShellFactory {
    ShellFactory::new("local", async || {
        let root = directory();
        let files = LocalConfig::new(root.path()).durability(Durability::Atomic).open()?;
        let backend = LocalShellBackend::with_files(files, ShellConfig::new());
        let target = Target::new(Arc::new(backend)).with_host_marker(MARKER).with_guard(root);
        // The host's commands see the files at the host's paths.
        Ok(ShellTarget::new(target).without(&[SamePaths]))
    })
}

/// Commands in namespaces of this machine.
pub(crate) fn os_sandbox() -> ShellFactory {
    let factory = ShellFactory::new("os-sandbox", async || {
        let root = directory();
        let backend = open_sandbox(&root).await?.into_backend()?;
        let base = VfsPath::parse(SandboxConfig::WORKSPACE)?;
        let target = Target::new(Arc::new(backend)).below(base).with_host_marker(MARKER).with_guard(root);
        // A command that a signal ended has the exit code by which shells report the signal.
        Ok(ShellTarget::new(target).without(&[Signals]))
    });
    match sandbox_is_absent() {
        Some(reason) => factory.absent(reason),
        None => factory,
    }
}

async fn open_sandbox(root: &TempDir) -> Result<OsSandbox> {
    let mut config = SandboxConfig::new(root.path());
    config.helper = HelperLocation::At(std::env::current_exe().expect("a program knows its file"));
    OsSandbox::open(config).await
}

/// Whether this machine has no namespaces. Where it has, a sandbox that does not open is wrong.
fn sandbox_is_absent() -> Option<String> {
    missing_of(&["bwrap"]).or_else(|| {
        let tried = Command::new("bwrap").args(["--unshare-all", "--ro-bind", "/", "/", "true"]).output();
        let tried = tried.expect("what is installed can be run");
        (!tried.status.success()).then(|| format!("bwrap cannot be used: {}", String::from_utf8_lossy(&tried.stderr)))
    })
}

/// Commands of a place that can do nothing else.
pub(crate) fn place(place: Place) -> ShellFactory {
    let factory = ShellFactory::new(place.name(), move || async move {
        let missing =
            [Streaming, Background, Terminal, FullOutputMode, InheritedEnvironment, Order, SamePaths, Sessions];
        let target = ShellTarget::new(place.target()).without(&missing);
        let target = target.except("XT17", "the answer is there when the time is over, and not later");
        Ok(match place {
            Place::LocalProcess | Place::Busybox => {
                target.except("XT16", "a local process is for tests and ends its commands at once")
            }
            // A command that a signal ended has the exit code by which shells report the signal.
            Place::Ssh => target.without(&[Signals]),
        })
    })
    .tier(place.tier());
    match place.absent() {
        Some(reason) => factory.absent(reason),
        None => factory,
    }
}

fn over(files: Arc<dyn Backend>) -> ShellTarget {
    // What is beyond is dropped uncounted; the laws print 13 MB at most.
    let shell = VirtualShell::new(files, VirtualShellConfig::new().max_output_bytes(16 << 20));
    let missing = [Processes, Sessions, Signals, Links, Terminal, InheritedEnvironment];
    let reason = "names with control characters cannot be reached by its interpreter";
    let target = ShellTarget::new(Target::new(Arc::new(shell))).without(&missing);
    ["XD10", "XF11"].iter().fold(target, |target, law| target.except(law, reason))
}

/// Commands that are interpreted, on files in memory.
pub(crate) fn virtual_over_memory() -> ShellFactory {
    ShellFactory::new("virtual", async || Ok(over(Arc::new(MemoryBackend::new()))))
}

/// Commands that are interpreted, on files in a database.
pub(crate) fn virtual_over_sqlite() -> ShellFactory {
    ShellFactory::new("virtual-sqlite", async || {
        let store = SqliteStore::open(SqliteConfig::in_memory()).await?;
        Ok(over(Arc::new(StoreBackend::new(store))))
    })
}
