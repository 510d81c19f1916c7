//! Opening what a file describes.

mod durable;
mod guard;
mod identity;
mod journal;
mod layers;
mod overlap;
mod stores;

use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use vfs_composite::{CompositeBackend, Recovery};
use vfs_core::{Backend, PathMapping, VfsPath};
use vfs_layers::{BackendSink, QuotaMeter};
use vfs_local::{Confinement, LocalConfig};
use vfs_memory::{MemoryBackend, MemoryConfig};
use vfs_policy::RuleSet;
use vfs_versions::{CheckpointedBackend, OverlayBackend};

use self::durable::Opened;
use self::guard::Guard;
use self::journal::MoveJournal;
use self::layers::placed;
use self::overlap::SharedDirectories;
use self::stores::Stores;
use crate::built::{AuditLog, Built, Place, Placed};
use crate::config::Config;
use crate::error::{ConfigError, ConfigErrorKind, unopened_directory};
use crate::host;
use crate::tables::{BackendTable, LayerTable, LocalTable, MemoryTable};

/// Opens what `config` describes, with relative paths under `base`.
pub(crate) async fn build(config: &Config, base: &Path) -> Result<Built, ConfigError> {
    let base = real_base(base)?;
    let mut stores = Stores::find(config, &base).await?;
    let journal = MoveJournal::open(config, &base, &mut stores).await?;
    let guard = Guard::new(config, &base, &stores).await?;
    let (parts, durable) = (Parts::default(), Opened::new());
    let shared = SharedDirectories::default();
    let mut builder = Builder { config, base, stores, guard, parts, durable, shared };
    let tables = &config.tables;
    let root = VfsPath::root();
    let default = builder.place(&root, &tables.default.backend, &tables.default.layers).await?;
    let identity = builder.identity(&root, tables.default.backend.get_ref(), &tables.default.layers)?;
    let composite = CompositeBackend::new(default).with_identity(&root, identity);
    let mut composite = composite.and_then(|composite| journal.attach(composite)).map_err(|error| {
        ConfigError::new(ConfigErrorKind::Open, "the journal of moves cannot be used").because(error)
    })?;
    for mount in &tables.mounts {
        let at = mount.path.get_ref();
        let backend = builder.place(at, &mount.backend, &mount.layers).await?;
        let identity = builder.identity(at, mount.backend.get_ref(), &mount.layers)?;
        let mounted = composite.mount(at.clone(), backend).and_then(|()| composite.with_identity(at, identity));
        composite = mounted.map_err(|error| {
            config.source.error(ConfigErrorKind::Conflict, mount.path.span(), "it cannot be mounted").because(error)
        })?;
    }
    let is_read_only = tables.layers.iter().any(|layer| matches!(layer.get_ref(), LayerTable::ReadOnly(_)));
    let (recovery, recovery_warnings) = if is_read_only {
        (Recovery::default(), journal.leave_records().await)
    } else {
        journal.recover(&composite, config.recovery_observer.clone()).await
    };
    let everything = Arc::new(composite.clone());
    let backend = builder.around(everything, &tables.layers, Place::Everywhere, &root).await?;
    let backend = builder.guard.around_everything(backend, &mut builder.parts.policies)?;
    let Parts { overlays, policies, audits, checkpoints, quotas } = builder.parts;
    let mut warnings = builder.shared.warnings;
    warnings.extend(recovery_warnings);
    warnings.extend(self::journal::audit_recovery(&recovery, &audits).await);
    Ok(Built { backend, composite, overlays, policies, audits, checkpoints, quotas, recovery, warnings })
}

/// The audit logs that `config` describes, without anything else.
pub(crate) async fn audit_logs(config: &Config, base: &Path) -> Result<Vec<Placed<BackendSink>>, ConfigError> {
    let stores = Stores::find(config, &real_base(base)?).await?;
    let (tables, root) = (&config.tables, VfsPath::root());
    let mounts = tables.mounts.iter().map(|mount| (mount.path.get_ref(), Place::Mount, &mount.layers));
    let places = iter::once((&root, Place::Mount, &tables.default.layers)).chain(mounts);
    let mut logs = Vec::new();
    for (at, place, layers) in places.chain([(&root, Place::Everywhere, &tables.layers)]) {
        for (index, layer) in layers.iter().enumerate() {
            if let LayerTable::Audit(table) = layer.get_ref() {
                logs.push(placed(place, at, &layers[index + 1..])?.with(stores.log(table)?));
            }
        }
    }
    Ok(logs)
}

fn real_base(base: &Path) -> Result<PathBuf, ConfigError> {
    host::real_directory(base).map_err(|error| {
        let mut failed = ConfigError::new(ConfigErrorKind::Open, unopened_directory("base directory", base, &error));
        failed.cause = Some(error);
        failed
    })
}

/// Everything that is being opened.
struct Builder<'a> {
    config: &'a Config,
    /// The directory that paths are relative to.
    base: PathBuf,
    stores: Stores,
    guard: Guard,
    parts: Parts,
    durable: Opened,
    shared: SharedDirectories,
}

/// The parts of layers, in the order in which they came.
#[derive(Default)]
struct Parts {
    overlays: Vec<Placed<OverlayBackend>>,
    policies: Vec<Placed<RuleSet>>,
    audits: Vec<Placed<AuditLog>>,
    checkpoints: Vec<Placed<CheckpointedBackend>>,
    quotas: Vec<Placed<QuotaMeter>>,
}

impl Builder<'_> {
    /// What is at `at`, with its layers.
    async fn place(
        &mut self,
        at: &VfsPath,
        backend: &Spanned<BackendTable>,
        layers: &[Spanned<LayerTable>],
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let opened: Arc<dyn Backend> = match backend.get_ref() {
            BackendTable::Local(local) => self.local(at, local, layers)?,
            BackendTable::Memory(memory) => Arc::new(MemoryBackend::with_config(memory_config(memory))),
            BackendTable::Store(durable) => self.durable(durable).await?,
        };
        self.around(opened, layers, Place::Mount, at).await
    }

    fn local(
        &mut self,
        at: &VfsPath,
        table: &LocalTable,
        layers: &[Spanned<LayerTable>],
    ) -> Result<Arc<dyn Backend>, ConfigError> {
        let source = &self.config.source;
        let span = table.root.span();
        let path = self.base.join(table.root.get_ref());
        let config = local_config(table, &path);
        let is_host = config.confinement == Confinement::None;
        let opened = config.open().and_then(|opened| Ok((opened, host::real_directory(&path)?)));
        let (opened, real) = opened.map_err(|error| {
            let message = unopened_directory("root", &path, &error);
            let mut told = source.error(ConfigErrorKind::Open, span.clone(), message);
            told.cause = Some(error);
            told
        })?;
        if self.stores.hold(&real) {
            let message = "this directory lies in the store of a layer; show another, or keep the store elsewhere";
            return Err(source.error(ConfigErrorKind::Conflict, span, message));
        }
        let shown = if is_host { Path::new("/") } else { &real };
        let place = PathMapping::new(at.clone(), self::layers::scope(layers)?);
        if let Some(weakness) = vfs_local::weakness_between_processes().filter(|_| !self.shared.is_anything_shown()) {
            self.shared.warnings.push(source.error(ConfigErrorKind::Open, span.clone(), weakness));
        }
        self.shared.add(source, span, at, shown.join(place.inner().relative()));
        self.guard.around_place(Arc::new(opened), shown, &place, &mut self.parts.policies)
    }
}

fn local_config(table: &LocalTable, path: &Path) -> LocalConfig {
    let mut config = LocalConfig::new(path);
    let LocalTable { root: _, confinement, durability, hard_links, mounts, resolution, max_file_size, lock_timeout } =
        table;
    config.confinement = confinement.map_or(config.confinement, Into::into);
    config.durability = durability.map_or(config.durability, Into::into);
    config.hard_links = hard_links.map_or(config.hard_links, Into::into);
    config.mounts = mounts.map_or(config.mounts, Into::into);
    config.resolution = resolution.map_or(config.resolution, Into::into);
    config.lock_timeout = lock_timeout.map_or(config.lock_timeout, |time| time.0);
    match max_file_size {
        Some(size) => config.max_file_size(size.0),
        None => config,
    }
}

fn memory_config(table: &MemoryTable) -> MemoryConfig {
    let mut config = MemoryConfig::new();
    config.max_file_size = table.max_file_size.map_or(config.max_file_size, |size| size.0);
    config.max_total_size = table.max_total_size.map(|size| size.0);
    config
}
