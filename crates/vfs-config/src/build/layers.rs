//! Construction of the layers around mounts and around the namespace.

use std::sync::Arc;

use toml::Spanned;
use vfs_core::path::PathMapping;
use vfs_core::{Backend, Layer, VfsPath};
use vfs_layers::{Audit, Cache, ConcurrencyLimit, Quota, QuotaLimits, ReadOnly, Retry, Scoped, Timeout, Trace};
use vfs_policy::{Policy, RuleSet};
use vfs_versions::{Checkpoints, OverlayBackend};

use super::namespace_builder::NamespaceBuilder;
use crate::config_text::ConfigText;
use crate::config_validator;
use crate::error::{ConfigError, ConfigErrorKind};
use crate::layer_handle::{AuditLog, LayerHandle, LayerScope};
use crate::parse;
use crate::tables::{
    AuditTable, CacheTable, CheckpointsTable, ConcurrencyTable, LayerTable, OverlayTable, PolicyTable, QuotaTable,
    RetryTable, RulesTable, TimeoutTable,
};

/// Returns the directory that `layers` show as the root: the directories of all `scoped` layers, joined.
pub(super) fn combined_scope(layers: &[Spanned<LayerTable>]) -> Result<VfsPath, ConfigError> {
    let mut scope = VfsPath::root();
    for layer in layers {
        if let LayerTable::Scoped(scoped) = layer.get_ref() {
            scope = scope.join(scoped.directory.relative()).map_err(|error| {
                ConfigError::new(
                    ConfigErrorKind::Conflict,
                    "the directories of the `scoped` layers are too deep together",
                )
                .with_cause(error)
            })?;
        }
    }
    Ok(scope)
}

/// Returns the position of a layer at `path` that has the layers `outer` around it.
pub(super) fn layer_position(
    scope: LayerScope,
    path: &VfsPath,
    outer: &[Spanned<LayerTable>],
) -> Result<LayerHandle<()>, ConfigError> {
    Ok(LayerHandle::new((), scope, PathMapping::new(path.clone(), combined_scope(outer)?)))
}

impl NamespaceBuilder<'_> {
    /// Wraps `files`, the backend at `path`, with `layers`, the first one innermost.
    pub(super) async fn add_layers(
        &mut self,
        mut files: Arc<dyn Backend>,
        layers: &[Spanned<LayerTable>],
        scope: LayerScope,
        path: &VfsPath,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        for (index, layer) in layers.iter().enumerate() {
            let outer = &layers[index + 1..];
            let position = layer_position(scope, path, outer)?;
            // Below an overlay only a commit of an operator changes files, and a read-only layer must not refuse that.
            let is_overlaid = outer.iter().any(|layer| matches!(layer.get_ref(), LayerTable::Overlay(_)));
            if !(is_overlaid && matches!(layer.get_ref(), LayerTable::ReadOnly(_))) {
                files = self.add_layer(files, layer, position).await?;
            }
        }
        Ok(files)
    }

    async fn add_layer(
        &mut self,
        files: Arc<dyn Backend>,
        layer: &Spanned<LayerTable>,
        position: LayerHandle<()>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        Ok(match layer.get_ref() {
            LayerTable::Audit(table) => self.add_audit(files, table, position).await?,
            LayerTable::Cache(table) => cache(table).layer(files),
            LayerTable::Checkpoints(table) => self.add_checkpoints(files, table, position)?,
            LayerTable::ConcurrencyLimit(table) => concurrency_limit(table).layer(files),
            LayerTable::Overlay(table) => self.add_overlay(files, table, position).await?,
            LayerTable::Policy(table) => self.add_policy(files, table, position).await?,
            LayerTable::Quota(table) => {
                let (files, meter) = quota(table).metered(files);
                self.handles.quotas.push(position.with_layer(meter));
                files
            }
            LayerTable::ReadOnly(_) => ReadOnly.layer(files),
            LayerTable::Retry(table) => retry(table).layer(files),
            LayerTable::Scoped(table) => Scoped::new(table.directory.clone()).layer(files),
            LayerTable::Timeout(table) => timeout(table).layer(files),
            LayerTable::Trace(_) => Trace::new().layer(files),
        })
    }

    async fn add_audit(
        &mut self,
        files: Arc<dyn Backend>,
        table: &AuditTable,
        position: LayerHandle<()>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let (location, sink) = (self.storage.location(&table.file)?, self.storage.audit_sink(table)?);
        let head = sink.head().await.map_err(|error| {
            let message =
                "the audit log cannot be continued; to start a new one, move its files into another directory";
            self.spec.source.error(ConfigErrorKind::Open, table.file.span(), message).with_cause(error)
        })?;
        let audit = Audit::resuming(sink.clone(), head)
            .scope(table.scope.map(Into::into).unwrap_or_default())
            .on_sink_failure(table.on_failure.map(Into::into).unwrap_or_default());
        self.handles.overlays.iter_mut().for_each(|overlay| overlay.record_in(&audit, &position));
        self.handles.checkpoints.iter_mut().for_each(|checkpoints| checkpoints.record_in(&audit, &position));
        let files = audit.layer(files);
        self.handles.audits.push(position.with_layer(AuditLog { audit, sink, file: location.real.clone() }));
        Ok(files)
    }

    fn add_checkpoints(
        &mut self,
        files: Arc<dyn Backend>,
        table: &CheckpointsTable,
        position: LayerHandle<()>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let store = self.storage.location(&table.store)?;
        let mut checkpoints = Checkpoints::new(store.files(), store.path.clone());
        // A restore cannot write these files, and changes that an operator has made to them must stay.
        for path in self.protection.read_only_paths() {
            if let Some(path) = position.to_inner(path) {
                checkpoints = checkpoints.exclude(path);
            }
        }
        if let Some(operations) = table.max_undo {
            checkpoints = checkpoints.max_undo(operations);
        }
        let files = checkpoints.over(files);
        self.handles.overlays.iter_mut().for_each(|overlay| overlay.keep_undoable_in(&files, &position));
        self.handles.checkpoints.push(position.with_layer(files.clone()));
        Ok(Arc::new(files))
    }

    async fn add_overlay(
        &mut self,
        files: Arc<dyn Backend>,
        table: &OverlayTable,
        position: LayerHandle<()>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let mut overlay = match &table.store {
            None => OverlayBackend::new(files),
            Some(setting) => {
                let store = self.storage.location(setting)?;
                let opened = OverlayBackend::open(files, store.files(), store.path.clone()).await;
                opened.map_err(|error| {
                    let message = format!("the overlay store '{}' cannot be opened", store.real.display());
                    self.spec.source.error(ConfigErrorKind::Open, setting.span(), message).with_cause(error)
                })?
            }
        };
        if let Some(budget) = table.budget {
            overlay = overlay.with_budget(budget.0);
        }
        self.handles.overlays.push(position.with_layer(overlay.clone()));
        Ok(Arc::new(overlay))
    }

    async fn add_policy(
        &mut self,
        files: Arc<dyn Backend>,
        table: &PolicyTable,
        position: LayerHandle<()>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let rules = self.load_rules(table).await?;
        let mut policy = Policy::new(Arc::new(rules.clone()));
        if let Some(approver) = &self.spec.approver {
            policy = policy.with_approver(Arc::clone(approver));
        }
        if let Some(timeout) = table.approval_timeout {
            policy = policy.with_approval_timeout(timeout.0);
        }
        if position.scope == LayerScope::Namespace {
            self.handles.command_policies.push(policy.clone());
        }
        self.handles.policies.push(position.with_layer(rules));
        Ok(policy.layer(files))
    }

    async fn load_rules(&self, table: &PolicyTable) -> Result<RuleSet, ConfigError> {
        let Some(file) = &table.rules_file else {
            let rules = table.rules.clone().unwrap_or_default();
            let PolicyTable { default, hard_links, not_understood, .. } = *table;
            let inline = RulesTable { default, hard_links, not_understood, rules };
            return config_validator::compile_rules(&self.spec.source, &inline);
        };
        let source = ConfigText::read(&self.base.join(file.get_ref())).await?;
        config_validator::compile_rules(&source, &parse::parse_rules(&source)?)
    }
}

fn cache(table: &CacheTable) -> Cache {
    let cache = Cache::new(table.max_bytes.0);
    table.max_file_size.map_or(cache, |size| cache.max_file_size(size.0))
}

fn concurrency_limit(table: &ConcurrencyTable) -> ConcurrencyLimit {
    let limit = ConcurrencyLimit::new(table.operations.get());
    table.queue.map_or(limit, |queue| limit.queue(queue))
}

fn quota(table: &QuotaTable) -> Quota {
    let per_actor = table.per_actor.as_ref().map_or_else(QuotaLimits::new, |limits| limits.to_limits());
    Quota::new(table.overall().to_limits()).per_actor(per_actor)
}

fn retry(table: &RetryTable) -> Retry {
    let mut retry = Retry::new();
    if let Some(attempts) = table.attempts {
        retry = retry.attempts(attempts.get());
    }
    if let Some(delay) = table.min_delay {
        retry = retry.min_delay(delay.0);
    }
    if let Some(delay) = table.max_delay {
        retry = retry.max_delay(delay.0);
    }
    retry
}

fn timeout(table: &TimeoutTable) -> Timeout {
    let times = table.operations.iter();
    times.fold(Timeout::new(table.time.0), |timeout, (operation, time)| timeout.for_operation(*operation, time.0))
}
