//! Lookup of the layers at the mount that `--mount` names, among the layers of one type.

use vfs_config::{LayerHandle, LayerScope};
use vfs_core::{Error, VfsPath};

use crate::exit::Failure;

/// Returns the `layers` of the mount `mount`, or all without a mount. If there are none, the error has the message `missing`.
pub(crate) fn find<'a, T>(
    layers: &'a [LayerHandle<T>],
    mount: Option<&str>,
    missing: &'static str,
) -> Result<Vec<&'a LayerHandle<T>>, Failure> {
    let mount = mount.map(VfsPath::parse).transpose()?;
    let is_selected = |layer: &&LayerHandle<T>| {
        mount.as_ref().is_none_or(|mount| layer.scope == LayerScope::Mount && layer.mapping.outer() == mount)
    };
    let selected: Vec<_> = layers.iter().filter(is_selected).collect();
    match mount {
        _ if !selected.is_empty() => Ok(selected),
        Some(mount) if !layers.is_empty() => Err(no_layer_at(&mount, layers)),
        _ => Err(Failure::Usage(missing)),
    }
}

/// Creates the error that none of `layers` is at `mount`; it names the mounts that have one.
fn no_layer_at<T>(mount: &VfsPath, layers: &[LayerHandle<T>]) -> Failure {
    let mounted = layers.iter().filter(|layer| layer.scope == LayerScope::Mount);
    let mut mounts: Vec<_> = mounted.map(|layer| layer.mapping.outer().as_str()).collect();
    mounts.dedup();
    let advice = match &mounts[..] {
        [] => "leave out --mount for the layer of the namespace".to_owned(),
        mounts => format!("name {}", mounts.join(" or ")),
    };
    Error::invalid_argument(format!("no layer of this type is at the mount '{mount}'; {advice}")).into()
}

/// Returns the outermost of the selected layers. It is ambiguous if several mounts have such a layer.
pub(crate) fn find_outermost<'a, T>(
    layers: &'a [LayerHandle<T>],
    mount: Option<&str>,
    missing: &'static str,
) -> Result<&'a LayerHandle<T>, Failure> {
    let mut selected = find(layers, mount, missing)?;
    let last = selected.pop().ok_or(Failure::Usage(missing))?;
    // Layers of the namespace come last; of two mounts, neither is further out.
    let is_elsewhere = |other: &&LayerHandle<T>| other.mapping.outer() != last.mapping.outer();
    if last.scope == LayerScope::Mount && selected.iter().any(is_elsewhere) {
        return Err(Failure::Usage("several mounts have such a layer; select one with --mount"));
    }
    Ok(last)
}
