//! Command `vfs mounts`: lists mounts.

use std::io::Write;
use std::sync::Arc;

use vfs_composite::{CompositeBackend, MountInfo};
use vfs_core::Backend;
use vfs_core::backend::AccessMode;

use crate::args::MountsArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;

pub(super) fn run(session: &BackendSession, out: &mut StandardOutput, args: MountsArgs) -> Result<Exit, Failure> {
    let mut mounts = match session.configured() {
        Ok(configured) => configured.composite.mounts(),
        Err(_) => CompositeBackend::new(Arc::clone(&session.backend)).mounts(),
    };
    for mount in &mut mounts {
        // Include the effect of the layers around the namespace.
        mount.capabilities = session.backend.capabilities(&mount.path);
    }
    if args.json {
        mounts.iter().try_for_each(|mount| out.json(mount))?;
        return Ok(Exit::Success);
    }
    let width = |cell: fn(&MountInfo) -> &str, min: usize| {
        mounts.iter().map(|mount| escape(cell(mount)).chars().count()).max().unwrap_or_default().max(min)
    };
    let (path, backend) = (width(|mount| mount.path.as_str(), 4), width(|mount| &mount.backend, 7));
    writeln!(out, "{:path$}  {:backend$}  {:10}  EXECUTOR", "PATH", "BACKEND", "ACCESS")?;
    for mount in &mounts {
        let executor = if mount.is_executor { "yes" } else { "no" };
        let access = access(mount.capabilities.access);
        writeln!(
            out,
            "{:path$}  {:backend$}  {access:10}  {executor}",
            escape(mount.path.as_str()),
            escape(&mount.backend)
        )?;
    }
    Ok(Exit::Success)
}

fn access(access: AccessMode) -> &'static str {
    match access {
        AccessMode::ReadOnly => "read-only",
        _ => "read-write",
    }
}
