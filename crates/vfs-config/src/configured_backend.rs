//! An opened namespace, with handles to its layers.

use std::sync::Arc;

use vfs_composite::{CompositeBackend, RecoveryReport};
use vfs_core::{Backend, ExecuteRequest, Layer as _, Result, VfsPath};
use vfs_layers::QuotaUsageReader;
use vfs_policy::{Explanation, Policy, RuleEffect, RuleSet};
use vfs_versions::{CheckpointedBackend, OverlayBackend};

use crate::error::ConfigError;
use crate::layer_handle::{AuditLog, LayerHandle, LayerScope};

/// An opened namespace and handles to its layers.
///
/// # Behaviour
///
/// * Give agents only [`backend`](Self::backend). The handles are for operators: policies do not apply to operations on them.
///   Methods of [`LayerHandle`] that change files, such as [`LayerHandle::commit`], are recorded in the audit logs further out;
///   operations on [`LayerHandle::layer`] itself are not recorded.
/// * Handles have the order of the file; those of mounts come before those of the namespace.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConfiguredBackend {
    /// The namespace with all layers.
    pub backend: Arc<dyn Backend>,
    /// The mounts, without the layers around the namespace.
    pub composite: CompositeBackend,
    /// The overlays.
    pub overlays: Vec<LayerHandle<OverlayBackend>>,
    /// The rules of each policy, and the built-in rules that hide stores.
    pub policies: Vec<LayerHandle<RuleSet>>,
    /// The configured policies of the whole namespace, with their approver.
    pub(crate) command_policies: Vec<Policy>,
    /// The audit logs.
    pub audits: Vec<LayerHandle<AuditLog>>,
    /// The checkpoint layers, which can also undo operations.
    pub checkpoints: Vec<LayerHandle<CheckpointedBackend>>,
    /// The usage meter of each quota.
    pub quotas: Vec<LayerHandle<QuotaUsageReader>>,
    /// The outcome of each move across mounts that a crash had interrupted.
    pub recovery: RecoveryReport,
    /// Likely mistakes and weakened guarantees: host directories that are reachable through two mounts, directories in which
    /// [concurrent changes by several processes](vfs_local::weakness_between_processes) may be lost, and interrupted moves
    /// that were not recovered completely.
    pub warnings: Vec<ConfigError>,
}

impl ConfiguredBackend {
    /// Writes all pending audit records to their logs, including those of dropped operations. Await this before the process
    /// exits.
    ///
    /// # Errors
    ///
    /// Those of the logs.
    pub async fn flush(&self) -> Result<()> {
        for log in &self.audits {
            log.layer.audit.flush().await?;
        }
        Ok(())
    }

    /// Wraps `shell`, which runs commands over [`backend`](Self::backend), with the policies and audit logs of the namespace.
    ///
    /// # Behaviour
    ///
    /// Every policy has to allow a command; questions go to the approver of the configuration. Every audit log
    /// records the command. Use the returned backend for commands only: file operations through it would be
    /// checked and recorded twice.
    pub fn with_commands(&self, shell: Arc<dyn Backend>) -> Arc<dyn Backend> {
        let with_policies = self.command_policies.iter().fold(shell, |shell, policy| policy.layer(shell));
        let audits = self.audits.iter().filter(|log| log.scope == LayerScope::Namespace);
        audits.fold(with_policies, |shell, log| log.layer.audit.layer(shell))
    }

    /// Returns what each applicable policy decides about `operation` of `actor` at `path`.
    ///
    /// # Behaviour
    ///
    /// `operation` is the name of a permission or an operation. Explanations have the order of
    /// [`policies`](Self::policies), and all of these policies have to allow an operation. Links are not followed. Paths in
    /// explanations are paths of the namespace. Built-in rules that hide stores are included only if they deny.
    ///
    /// # Errors
    ///
    /// `invalid_argument` if `operation` is neither a permission nor an operation.
    pub fn explain(&self, actor: Option<&str>, operation: &str, path: &VfsPath) -> Result<Vec<Explanation>> {
        // Refuse an unknown operation even if no policy applies.
        RuleSet::default().explain(actor, operation, path)?;
        self.collect_explanations(path, |rules, path| rules.explain(actor, operation, path))
    }

    /// Returns what each applicable policy decides about the command of `request`, run by `actor`.
    ///
    /// # Behaviour
    ///
    /// As [`explain`](Self::explain), with the working directory of the command as the path.
    ///
    /// # Errors
    ///
    /// Those of paths that do not fit into a mount.
    pub fn explain_command(&self, actor: Option<&str>, request: &ExecuteRequest) -> Result<Vec<Explanation>> {
        self.collect_explanations(&request.cwd, |rules, path| {
            Ok(vec![rules.explain_command(actor, &request.clone().cwd(path.clone()))])
        })
    }

    fn collect_explanations(
        &self,
        path: &VfsPath,
        explain: impl Fn(&RuleSet, &VfsPath) -> Result<Vec<Explanation>>,
    ) -> Result<Vec<Explanation>> {
        let mut explanations = Vec::new();
        for policy in self.policies.iter().filter(|policy| self.applies_to(policy, path)) {
            for mut explanation in explain(&policy.layer, &policy.mapping.to_inner(path)?)? {
                if policy.is_protection {
                    // Built-in rules only deny, so their default says nothing about the decision.
                    if explanation.effect == RuleEffect::Allow {
                        continue;
                    }
                    explanation.rule = None;
                }
                if policy.scope == LayerScope::Mount {
                    explanation.mount = Some(policy.mapping.outer().clone());
                }
                explanation.path = path.clone();
                explanations.push(explanation);
            }
        }
        Ok(explanations)
    }

    /// Returns whether `handle` wraps the backend that serves `path`.
    fn applies_to<T>(&self, handle: &LayerHandle<T>, path: &VfsPath) -> bool {
        if handle.scope == LayerScope::Namespace {
            return true;
        }
        let mounts = self.composite.mounts();
        let nearest =
            mounts.iter().filter(|mount| path.starts_with(&mount.path)).max_by_key(|mount| mount.path.as_str().len());
        nearest.is_some_and(|mount| mount.path == *handle.mapping.outer())
    }
}
