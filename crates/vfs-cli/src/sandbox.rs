//! The sandbox of `vfs exec --sandbox`: configuration by arguments, and opening.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use vfs_core::{Backend, Error, ErrorKind, Result, VfsPath};
use vfs_sandbox::{
    Guarantee, HelperLocation, Mechanism, Network, OsSandbox, SandboxConfig, SelfTestPolicy, UnixSockets,
};

use crate::args::SandboxArgs;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;

/// Runs as the helper of a sandbox if a sandbox has started this program inside itself, and does not return then.
pub(crate) fn run_if_helper() {
    vfs_sandbox::sandbox_helper_main();
}

/// Returns the path below the workspace of a sandbox, if `path` is in it.
pub(crate) fn below_workspace(path: &VfsPath) -> Option<&str> {
    path.as_str().strip_prefix(SandboxConfig::WORKSPACE)?.strip_prefix('/')
}

/// Returns the path at which commands in the sandbox see the root directory.
pub(crate) fn path_of_root(root: Option<&Path>, args: SandboxArgs) -> Result<VfsPath, Failure> {
    Ok(config(root, args)?.mounts.first().map(|mount| mount.at.clone()).unwrap_or_default())
}

/// Prints what a sandbox with these settings enforces.
pub(crate) async fn check(
    out: &mut StandardOutput,
    root: Option<&Path>,
    args: SandboxArgs,
    json: bool,
) -> Result<Exit, Failure> {
    let report = OsSandbox::check(config(root, args)?).await?;
    if json {
        out.json(&report)?;
    } else {
        write!(out, "{report}")?;
    }
    Ok(if report.missing().next().is_none() { Exit::Success } else { Exit::Refused })
}

/// Opens a sandbox over the root directory.
pub(crate) async fn open(root: Option<&Path>, args: SandboxArgs) -> Result<Arc<dyn Backend>, Failure> {
    let sandbox = open_sandbox(config(root, args)?).await?;
    Ok(Arc::new(sandbox.into_backend()?))
}

fn config(root: Option<&Path>, args: SandboxArgs) -> Result<SandboxConfig, Failure> {
    let directory = std::path::absolute(root.unwrap_or(Path::new(".")))
        .map_err(|error| Failure::Environment("working directory", error))?;
    // `main` calls `run_if_helper` first, so this program is its own helper.
    let helper = std::env::current_exe().map_err(|error| Failure::Environment("file of this program", error))?;
    let config = if args.landlock {
        let mechanisms = [Mechanism::Landlock, Mechanism::Seccomp];
        SandboxConfig::in_place(directory)?.only(mechanisms).require(Guarantee::WITHOUT_NAMESPACES.iter().copied())
    } else {
        SandboxConfig::new(directory)
    };
    let mut config = config.helper(HelperLocation::At(helper));
    if args.network {
        config = config.network(Network::Host);
    }
    if args.unix_sockets {
        config = config.unix_sockets(UnixSockets::Allow);
    }
    if args.allow_visible_processes {
        config.required.remove(&Guarantee::HiddenProcesses);
    }
    if args.allow_unprotected_names {
        config.required.remove(&Guarantee::ProtectedNames);
    }
    if let Some(entries) = args.max_scanned_entries {
        config = config.max_scanned_entries(entries);
    }
    if args.self_test {
        config = config.self_test(SelfTestPolicy::Always);
    }
    Ok(config)
}

/// Opens a sandbox. If only the protection of names is unavailable, the error names the option that permits that.
async fn open_sandbox(config: SandboxConfig) -> Result<OsSandbox> {
    let error = match OsSandbox::open(config.clone()).await {
        Err(error) if error.kind() == ErrorKind::Unsupported => error,
        opened => return opened,
    };
    let report = OsSandbox::check(config).await?;
    let missing: Vec<Guarantee> = report.missing().map(|result| result.guarantee).collect();
    if missing != [Guarantee::ProtectedNames] {
        return Err(error);
    }
    let advice =
        "'--allow-unprotected-names' runs the command without that protection, and reports such names afterwards";
    Err(Error::new(ErrorKind::Unsupported, format!("{}; {advice}", error.message())))
}
