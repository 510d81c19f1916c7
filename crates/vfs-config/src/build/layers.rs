//! Layers around what is open.

use std::sync::Arc;

use toml::Spanned;
use vfs_core::{Backend, Layer, PathMapping, VfsPath};
use vfs_layers::{Audit, Cache, ConcurrencyLimit, Quota, QuotaLimits, ReadOnly, Retry, Scoped, Timeout, Trace};
use vfs_policy::{Policy, RuleSet};
use vfs_versions::{Checkpoints, OverlayBackend};

use super::Builder;
use crate::built::{AuditLog, Place, Placed};
use crate::check;
use crate::error::{ConfigError, ConfigErrorKind};
use crate::host;
use crate::parse;
use crate::tables::{
    AuditTable, CacheTable, CheckpointsTable, ConcurrencyTable, LayerTable, OverlayTable, PolicyTable, QuotaTable,
    RetryTable, RulesTable, TimeoutTable,
};

/// The directory that `layers` show as the root: that of all scopes, one in the other.
pub(super) fn scope(layers: &[Spanned<LayerTable>]) -> Result<VfsPath, ConfigError> {
    let mut scope = VfsPath::root();
    for layer in layers {
        if let LayerTable::Scoped(scoped) = layer.get_ref() {
            scope = scope.join(scoped.directory.relative()).map_err(|error| {
                ConfigError::new(ConfigErrorKind::Conflict, "the scopes are too deep").because(error)
            })?;
        }
    }
    Ok(scope)
}

/// Where a layer is that has the layers `further` around it in `place`, which is at `at`.
pub(super) fn placed(place: Place, at: &VfsPath, further: &[Spanned<LayerTable>]) -> Result<Placed<()>, ConfigError> {
    Ok(Placed::new((), place, PathMapping::new(at.clone(), scope(further)?)))
}

impl Builder<'_> {
    /// `files`, which are at `at`, with `layers` around them, the first one innermost.
    pub(super) async fn around(
        &mut self,
        mut files: Arc<dyn Backend>,
        layers: &[Spanned<LayerTable>],
        place: Place,
        at: &VfsPath,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        for (index, layer) in layers.iter().enumerate() {
            let further = &layers[index + 1..];
            let placed = placed(place, at, further)?;
            // Below an overlay nothing is changed but by a commit, which is for people and not to be kept out.
            let is_overlaid = further.iter().any(|layer| matches!(layer.get_ref(), LayerTable::Overlay(_)));
            if !(is_overlaid && matches!(layer.get_ref(), LayerTable::ReadOnly(_))) {
                files = self.layer(files, layer, placed).await?;
            }
        }
        Ok(files)
    }

    async fn layer(
        &mut self,
        files: Arc<dyn Backend>,
        layer: &Spanned<LayerTable>,
        placed: Placed<()>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        Ok(match layer.get_ref() {
            LayerTable::Audit(table) => self.audit(files, table, placed).await?,
            LayerTable::Cache(table) => cache(table).layer(files),
            LayerTable::Checkpoints(table) => self.checkpoints(files, table, placed)?,
            LayerTable::ConcurrencyLimit(table) => concurrency_limit(table).layer(files),
            LayerTable::Overlay(table) => self.overlay(files, table, placed).await?,
            LayerTable::Policy(table) => self.policy(files, table, placed).await?,
            LayerTable::Quota(table) => {
                let (files, meter) = quota(table).metered(files);
                self.parts.quotas.push(placed.with(meter));
                files
            }
            LayerTable::ReadOnly(_) => ReadOnly.layer(files),
            LayerTable::Retry(table) => retry(table).layer(files),
            LayerTable::Scoped(table) => Scoped::new(table.directory.clone()).layer(files),
            LayerTable::Timeout(table) => timeout(table).layer(files),
            LayerTable::Trace(_) => Trace::new().layer(files),
        })
    }

    async fn audit(
        &mut self,
        files: Arc<dyn Backend>,
        table: &AuditTable,
        placed: Placed<()>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let (store, sink) = (self.stores.of(&table.file)?, self.stores.log(table)?);
        let head = sink.head().await.map_err(|error| {
            let message =
                "the audit log cannot be gone on with; move its files into another directory to begin a new one";
            self.config.source.error(ConfigErrorKind::Open, table.file.span(), message).because(error)
        })?;
        let audit = Audit::resuming(sink.clone(), head)
            .scope(table.scope.map(Into::into).unwrap_or_default())
            .on_sink_failure(table.on_failure.map(Into::into).unwrap_or_default());
        self.parts.overlays.iter_mut().for_each(|overlay| overlay.record_in(&audit, &placed));
        self.parts.checkpoints.iter_mut().for_each(|checkpoints| checkpoints.record_in(&audit, &placed));
        let files = audit.layer(files);
        self.parts.audits.push(placed.with(AuditLog { audit, sink, file: store.real.clone() }));
        Ok(files)
    }

    fn checkpoints(
        &mut self,
        files: Arc<dyn Backend>,
        table: &CheckpointsTable,
        placed: Placed<()>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let store = self.stores.of(&table.store)?;
        let mut checkpoints = Checkpoints::new(store.files(), store.path.clone());
        // To go back is to write, which nobody does to these; and what people have changed there since is to stay.
        for fixed in self.guard.fixed() {
            if let Some(path) = placed.within(fixed) {
                checkpoints = checkpoints.exclude(path);
            }
        }
        if let Some(operations) = table.max_undo {
            checkpoints = checkpoints.max_undo(operations);
        }
        let files = checkpoints.over(files);
        self.parts.overlays.iter_mut().for_each(|overlay| overlay.keep_undoable_in(&files, &placed));
        self.parts.checkpoints.push(placed.with(files.clone()));
        Ok(Arc::new(files))
    }

    async fn overlay(
        &mut self,
        files: Arc<dyn Backend>,
        table: &OverlayTable,
        placed: Placed<()>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let mut overlay = match &table.store {
            None => OverlayBackend::new(files),
            Some(named) => {
                let store = self.stores.of(named)?;
                let opened = OverlayBackend::open(files, store.files(), store.path.clone()).await;
                opened.map_err(|error| {
                    let message = format!("the overlay store '{}' cannot be opened", store.real.display());
                    self.config.source.error(ConfigErrorKind::Open, named.span(), message).because(error)
                })?
            }
        };
        if let Some(budget) = table.budget {
            overlay = overlay.with_budget(budget.0);
        }
        self.parts.overlays.push(placed.with(overlay.clone()));
        Ok(Arc::new(overlay))
    }

    async fn policy(
        &mut self,
        files: Arc<dyn Backend>,
        table: &PolicyTable,
        placed: Placed<()>,
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let rules = self.rules(table).await?;
        let mut policy = Policy::new(Arc::new(rules.clone()));
        if let Some(approver) = &self.config.approver {
            policy = policy.with_approver(Arc::clone(approver));
        }
        if let Some(timeout) = table.approval_timeout {
            policy = policy.with_approval_timeout(timeout.0);
        }
        self.parts.policies.push(placed.with(rules));
        Ok(policy.layer(files))
    }

    async fn rules(&self, table: &PolicyTable) -> Result<RuleSet, ConfigError> {
        let Some(file) = &table.rules_file else {
            let rules = table.rules.clone().unwrap_or_default();
            let PolicyTable { default, hard_links, not_understood, .. } = *table;
            let own = RulesTable { default, hard_links, not_understood, rules };
            return check::rule_set(&self.config.source, &own);
        };
        let source = host::source(&self.base.join(file.get_ref())).await?;
        check::rule_set(&source, &parse::rules(&source)?)
    }
}

impl Placed<()> {
    /// What the place calls `path` of the namespace, where it has it.
    fn within(&self, path: &VfsPath) -> Option<VfsPath> {
        self.rebase.to_inner(path).ok()
    }

    pub(super) fn with<T>(self, part: T) -> Placed<T> {
        Placed::new(part, self.place, self.rebase)
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
    let per_actor = table.per_actor.as_ref().map_or_else(QuotaLimits::new, |limits| limits.limits());
    Quota::new(table.overall().limits()).per_actor(per_actor)
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
