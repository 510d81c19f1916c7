//! Built-in policies that hide layer stores and make configuration files read-only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vfs_core::path::PathMapping;
use vfs_core::{Backend, ErrorKind, Layer as _, VfsPath};
use vfs_policy::{HardLinks, Policy, Rule, RuleEffect, RuleSet};

use super::host_storage_paths::{HostStoragePaths, StorageForm};
use crate::error::{ConfigError, ConfigErrorKind};
use crate::host_paths;
use crate::layer_handle::{LayerHandle, LayerScope};
use crate::namespace_spec::NamespaceSpec;
use crate::tables::LayerTable;

/// The host files that agents must not see or change, wherever they are mounted.
#[derive(Debug)]
pub(super) struct ProtectedHostFiles {
    /// Stores of layers, which are hidden.
    hidden: Vec<(PathBuf, StorageForm)>,
    /// Configuration and rules files, which are read-only.
    read_only: Vec<PathBuf>,
    read_only_scope: LayerScope,
    /// Namespace paths of the read-only files that are mounted.
    read_only_paths: Vec<VfsPath>,
}

impl ProtectedHostFiles {
    pub(super) async fn new(
        spec: &NamespaceSpec,
        base: &Path,
        storage: &HostStoragePaths,
    ) -> Result<Self, ConfigError> {
        let mut files: Vec<PathBuf> = spec.source.file().map(Path::to_owned).into_iter().collect();
        let rules_files = spec.tables.all_layers().filter_map(|layer| layer.get_ref().rules_file());
        files.extend(rules_files.map(|file| base.join(file.get_ref())));
        let mut read_only = Vec::new();
        for file in files {
            match host_paths::real_names(&file).await {
                Ok(names) => read_only.extend(names),
                // Reading the rules reports a missing file.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                // Without the real path, the file could be changed under another name.
                Err(error) => {
                    let message = format!("the real path of '{}' cannot be determined", file.display());
                    return Err(ConfigError::new(ConfigErrorKind::Open, message).with_cause(error));
                }
            }
        }
        // With an overlay, a policy below it would accept a change at first and fail its commit later.
        let has_overlay = spec.tables.all_layers().any(|layer| matches!(layer.get_ref(), LayerTable::Overlay(_)));
        Ok(Self {
            hidden: storage.real_paths().map(|(real, kind)| (real.to_owned(), kind)).collect(),
            read_only,
            read_only_scope: if has_overlay { LayerScope::Namespace } else { LayerScope::Mount },
            read_only_paths: Vec::new(),
        })
    }

    /// Wraps `files`, the host directory `directory` mounted by `mapping`, with a policy for the protected files in it.
    pub(super) fn protect_mount(
        &mut self,
        files: Arc<dyn Backend>,
        directory: &Path,
        mapping: &PathMapping,
        policies: &mut Vec<LayerHandle<RuleSet>>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let mut rules = Vec::new();
        for (path, kind) in self.hidden.iter().filter_map(|(real, kind)| Some((path_in(directory, real)?, kind))) {
            rules.push(hide(&path?, *kind));
        }
        for path in self.read_only.iter().filter_map(|real| path_in(directory, real)) {
            let path = path?;
            if self.read_only_scope == LayerScope::Mount {
                rules.push(make_read_only(&path));
            }
            // A file outside the scope of the mount has no path in the namespace.
            self.read_only_paths.extend(mapping.to_outer(&path));
        }
        add_policy(files, rules, LayerHandle::new((), LayerScope::Mount, mapping.clone()), policies)
    }

    /// Wraps `files`, the whole namespace, with a policy for the read-only files.
    pub(super) fn protect_namespace(
        &self,
        files: Arc<dyn Backend>,
        policies: &mut Vec<LayerHandle<RuleSet>>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let mapping = PathMapping::new(VfsPath::root(), VfsPath::root());
        let rules = match self.read_only_scope {
            LayerScope::Mount => Vec::new(),
            LayerScope::Namespace => self.read_only_paths.iter().map(make_read_only).collect(),
        };
        add_policy(files, rules, LayerHandle::new((), LayerScope::Namespace, mapping), policies)
    }

    /// Returns the namespace paths of read-only files in the mounts that are open so far.
    pub(super) fn read_only_paths(&self) -> &[VfsPath] {
        &self.read_only_paths
    }
}

/// Returns the path of the host file `real` in the directory `directory`, or `None` if the file is elsewhere.
fn path_in(directory: &Path, real: &Path) -> Option<Result<VfsPath, ConfigError>> {
    let relative = real.strip_prefix(directory).ok()?;
    let parsed = match relative.to_str() {
        Some(relative) => VfsPath::root().join(relative),
        None => Err(vfs_core::Error::of(ErrorKind::InvalidPath)),
    };
    Some(parsed.map_err(|error| {
        let message =
            format!("'{}' is in a mounted directory and cannot be hidden; move it out of there", real.display());
        ConfigError::new(ConfigErrorKind::Conflict, message).with_cause(error)
    }))
}

fn hide(path: &VfsPath, kind: StorageForm) -> Rule {
    let rule = Rule::new(RuleEffect::Deny).path(escape_glob(path));
    let rule = match kind {
        // Rotated parts of the log, and damaged parts that were set aside.
        StorageForm::AuditLog => rule.path(format!("{}.*", escape_glob(path))),
        StorageForm::Directory | StorageForm::Database => rule,
    };
    rule.name("store").reason("this path belongs to the storage of the file system")
}

fn make_read_only(path: &VfsPath) -> Rule {
    let rule = Rule::new(RuleEffect::Deny).path(escape_glob(path)).operation("write").operation("delete");
    rule.name("configuration").reason("this file configures the permissions; only an operator can change it")
}

/// Returns a rule that leaves commands to the policies of the configuration. A policy denies every command that no rule allows.
fn allow_commands() -> Rule {
    Rule::new(RuleEffect::Allow).operation("execute").name("commands")
}

/// Returns a glob that matches `path` and nothing else.
fn escape_glob(path: &VfsPath) -> String {
    let mut glob = String::new();
    for character in path.as_str().chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '!' | '\\' | ',') {
            glob.push('\\');
        }
        glob.push(character);
    }
    glob
}

fn add_policy(
    files: Arc<dyn Backend>,
    mut rules: Vec<Rule>,
    position: LayerHandle<()>,
    policies: &mut Vec<LayerHandle<RuleSet>>,
) -> Result<Arc<dyn Backend>, ConfigError> {
    if rules.is_empty() {
        return Ok(files);
    }
    rules.push(allow_commands());
    let rules = RuleSet::new(rules).map_err(|error| {
        let message = "the stores are in a mounted directory and cannot be hidden; move them out of there";
        ConfigError::new(ConfigErrorKind::Conflict, message).with_cause(error)
    })?;
    // Agents cannot create hard links, so no link leads them into a store.
    let rules = rules.with_hard_links(HardLinks::Allow);
    let protected = Policy::new(Arc::new(rules.clone())).with_name("protection").layer(files);
    let mut handle = position.with_layer(rules);
    handle.is_protection = true;
    policies.push(handle);
    Ok(protected)
}
