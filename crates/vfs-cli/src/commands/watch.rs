//! `vfs watch`.

use std::io::{self, Write};

use futures::{FutureExt as _, StreamExt as _, stream};
use vfs_composite::MountInfo;
use vfs_core::{Backend, Change, Cursor, Error, ErrorKind, StatRequest, VfsPath, WatchRequest};

use crate::args::WatchArgs;
use crate::escape::escaped;
use crate::exit::{self, Exit, Failure};
use crate::near;
use crate::output::Output;
use crate::session::Session;

pub(super) async fn run(session: &Session, out: &mut Output, args: WatchArgs) -> Result<Exit, Failure> {
    let path = session.path_or_root(args.path.as_deref())?;
    let none = || Error::new(ErrorKind::Unsupported, "this backend has no change feed").with_path(&path);
    let watch = session.backend.as_watch().ok_or_else(none)?;
    warn_without_feed(session, &path);
    let mut request = WatchRequest::new(path.clone());
    request.since = args.since.map(Cursor::new);
    let mut events = watch.watch(session.cx.clone(), request).fuse();
    // A refusal that is known at once says more than that nothing is there.
    let first = events.next().now_or_never().flatten();
    // A feed may begin before its file exists; for a misspelt path it would be silent for ever.
    if !matches!(first, Some(Err(_)))
        && let Err(error) = session.backend.stat(&session.cx, StatRequest::new(path.clone())).await
        && error.is_absence()
    {
        exit::tell(format_args!("nothing is at {path} yet; changes are reported once something is"));
        near::hints(session, &error).await.iter().for_each(exit::tell);
    }
    let mut events = stream::iter(first).chain(events);
    while let Some(event) = events.next().await {
        let event = event?;
        if args.json {
            out.json(&event)?
        } else {
            print(out, &event.change)?
        }
        // Whoever waits for this line has it now.
        out.flush()?;
    }
    Ok(Exit::Success)
}

/// Warns of the mounts below `path` whose changes are not reported.
fn warn_without_feed(session: &Session, path: &VfsPath) {
    let Ok(built) = session.built() else { return };
    let is_silent = |mount: &MountInfo| !mount.has_feed && mount.path != *path && mount.path.starts_with(path);
    for mount in built.composite.mounts().into_iter().filter(is_silent) {
        exit::tell(format_args!(
            "warning: the mount at '{}' has no change feed; its changes are not reported",
            mount.path
        ));
    }
}

fn print(out: &mut Output, change: &Change) -> io::Result<()> {
    match change {
        Change::Created { path, .. } => writeln!(out, "created {}", escaped(path.as_str())),
        Change::Changed { path, .. } => writeln!(out, "changed {}", escaped(path.as_str())),
        Change::Removed { path } => writeln!(out, "removed {}", escaped(path.as_str())),
        Change::Renamed { from, to, .. } => {
            writeln!(out, "renamed {} to {}", escaped(from.as_str()), escaped(to.as_str()))
        }
        _ => writeln!(out, "overflow"),
    }
}
