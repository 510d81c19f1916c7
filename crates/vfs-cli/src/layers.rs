//! Which of the layers that a `vfs.toml` describes a command is about.

use vfs_config::{Place, Placed};
use vfs_core::{Error, VfsPath};

use crate::exit::Failure;

/// Those of `layers` that are meant: all of the mount `mount`, or all; an error with `missing` where there are none.
pub(crate) fn meant<'a, T>(
    layers: &'a [Placed<T>],
    mount: Option<&str>,
    missing: &'static str,
) -> Result<Vec<&'a Placed<T>>, Failure> {
    let mount = mount.map(VfsPath::parse).transpose()?;
    let is_meant = |layer: &&Placed<T>| {
        mount.as_ref().is_none_or(|mount| layer.place == Place::Mount && layer.rebase.outer() == mount)
    };
    let meant: Vec<_> = layers.iter().filter(is_meant).collect();
    match mount {
        _ if !meant.is_empty() => Ok(meant),
        Some(mount) if !layers.is_empty() => Err(none_at(&mount, layers)),
        _ => Err(Failure::Usage(missing)),
    }
}

/// Returns the error that none of `layers` is at `mount`, with the mounts that have one.
fn none_at<T>(mount: &VfsPath, layers: &[Placed<T>]) -> Failure {
    let mounted = layers.iter().filter(|layer| layer.place == Place::Mount);
    let mut mounts: Vec<_> = mounted.map(|layer| layer.rebase.outer().as_str()).collect();
    mounts.dedup();
    let advice = match &mounts[..] {
        [] => "leave out --mount for the one around all files".to_owned(),
        mounts => format!("name {}", mounts.join(" or ")),
    };
    Error::invalid_argument(format!("no layer of this type is at the mount '{mount}'; {advice}")).into()
}

/// The one of them that is meant: the outermost around everything, or of one mount.
pub(crate) fn outermost<'a, T>(
    all: &'a [Placed<T>],
    mount: Option<&str>,
    missing: &'static str,
) -> Result<&'a Placed<T>, Failure> {
    let mut meant = self::meant(all, mount, missing)?;
    let last = meant.pop().ok_or(Failure::Usage(missing))?;
    // Those around everything are the last ones; of two mounts neither is further out.
    let elsewhere = |other: &&Placed<T>| other.rebase.outer() != last.rebase.outer();
    if last.place == Place::Mount && meant.iter().any(elsewhere) {
        return Err(Failure::Usage("several mounts have such a layer; say which one is meant with --mount"));
    }
    Ok(last)
}
