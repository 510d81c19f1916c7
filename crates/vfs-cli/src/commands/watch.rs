//! Command `vfs watch`: prints changes of files.

use std::io::{self, Write};

use futures::{FutureExt as _, StreamExt as _, stream};
use vfs_composite::MountInfo;
use vfs_core::watch::{Change, WatchCursor, WatchRequest};
use vfs_core::{Backend, Error, ErrorKind, StatRequest, VfsPath};

use crate::args::WatchArgs;
use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{self, Exit, Failure};
use crate::path_suggestions;
use crate::standard_output::StandardOutput;

pub(super) async fn run(session: &BackendSession, out: &mut StandardOutput, args: WatchArgs) -> Result<Exit, Failure> {
    let path = session.path_or_root(args.path.as_deref())?;
    let unsupported = || Error::new(ErrorKind::Unsupported, "this backend has no change feed").with_path(&path);
    let watch = session.backend.as_watch().ok_or_else(unsupported)?;
    warn_without_feed(session, &path);
    let mut request = WatchRequest::new(path.clone());
    request.since = args.since.map(WatchCursor::new);
    let mut events = watch.watch(session.cx.clone(), request).fuse();
    // An immediate refusal is more informative than the warning about a missing path.
    let first = events.next().now_or_never().flatten();
    // A watch may start before its file exists, but for a misspelt path it would be silent forever.
    if !matches!(first, Some(Err(_)))
        && let Err(error) = session.backend.stat(&session.cx, StatRequest::new(path.clone())).await
        && error.is_absence()
    {
        exit::print_message(format_args!("{path} does not exist yet; changes are reported once it does"));
        path_suggestions::suggestion_lines(session, &error).await.iter().for_each(exit::print_message);
    }
    let mut events = stream::iter(first).chain(events);
    while let Some(event) = events.next().await {
        let event = event?;
        if args.json {
            out.json(&event)?
        } else {
            print_change(out, &event.change)?
        }
        // Readers wait for single lines.
        out.flush()?;
    }
    Ok(Exit::Success)
}

/// Prints a warning for each mount below `path` whose changes are not reported.
fn warn_without_feed(session: &BackendSession, path: &VfsPath) {
    let Ok(configured) = session.configured() else { return };
    let lacks_feed = |mount: &MountInfo| !mount.has_feed && mount.path != *path && mount.path.starts_with(path);
    for mount in configured.composite.mounts().into_iter().filter(lacks_feed) {
        exit::print_message(format_args!(
            "warning: the mount at '{}' has no change feed; its changes are not reported",
            mount.path
        ));
    }
}

fn print_change(out: &mut StandardOutput, change: &Change) -> io::Result<()> {
    match change {
        Change::Created { path, .. } => writeln!(out, "created {}", escape(path.as_str())),
        Change::Changed { path, .. } => writeln!(out, "changed {}", escape(path.as_str())),
        Change::Removed { path } => writeln!(out, "removed {}", escape(path.as_str())),
        Change::Renamed { from, to, .. } => {
            writeln!(out, "renamed {} to {}", escape(from.as_str()), escape(to.as_str()))
        }
        _ => writeln!(out, "overflow"),
    }
}
