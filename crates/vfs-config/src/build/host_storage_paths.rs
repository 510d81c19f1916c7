//! Registry of the host paths in which layers and databases store their data.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use vfs_layers::BackendSink;

use super::store_url::{resolve_store_url, store_span};
use crate::error::{ConfigError, ConfigErrorKind, describe_open_failure};
use crate::host_paths;
use crate::host_storage_location::HostStorageLocation;
use crate::namespace_spec::NamespaceSpec;
use crate::setting_values::HostPath;
use crate::tables::{AuditTable, LayerStoragePath, StoreBackendTable};

/// The storage of all layers, databases and journals of a configuration.
#[derive(Debug)]
pub(super) struct HostStoragePaths {
    entries: Vec<StorageEntry>,
    /// Directories that are, or may become, a journal of moves.
    journals: Vec<PathBuf>,
}

/// The storage of one layer, database or audit log.
#[derive(Debug)]
struct StorageEntry {
    /// The position of the setting in the configuration file.
    span: Range<usize>,
    location: HostStorageLocation,
    kind: StorageForm,
    /// Further host files that belong to the entry, such as the write-ahead log of a database.
    companions: Vec<PathBuf>,
}

/// The form of a storage entry on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StorageForm {
    /// A directory that one layer uses alone.
    Directory,
    /// The file of an audit log, which is rotated into other files in the same directory.
    AuditLog,
    /// The file of a SQLite database, which several mounts can use.
    Database,
}

/// Suffixes of the files that SQLite creates next to a database.
const DATABASE_COMPANION_SUFFIXES: [&str; 4] = ["-wal", "-shm", "-journal", "-reserve"];

impl HostStoragePaths {
    /// Locates the storage of `spec` on the host and creates what is missing. Layer storage must not overlap other storage.
    pub(super) async fn create(spec: &NamespaceSpec, base: &Path) -> Result<Self, ConfigError> {
        let mut registry = Self { entries: Vec::new(), journals: Vec::new() };
        for storage in spec.tables.all_layers().filter_map(|layer| layer.get_ref().storage()) {
            registry.add_layer_storage(spec, storage, base).await?;
        }
        for table in spec.tables.all_store_backends() {
            registry.add_database(spec, table, base).await?;
        }
        Ok(registry)
    }

    async fn add_layer_storage(
        &mut self,
        spec: &NamespaceSpec,
        storage: LayerStoragePath<'_>,
        base: &Path,
    ) -> Result<(), ConfigError> {
        let source = &spec.source;
        let (setting, kind, locate): (_, _, fn(&Path) -> _) = match storage {
            LayerStoragePath::Directory(setting) => (setting, StorageForm::Directory, HostStorageLocation::directory),
            LayerStoragePath::File(setting) => (setting, StorageForm::AuditLog, HostStorageLocation::file),
        };
        let path = base.join(setting.get_ref());
        let location = locate(&path).map_err(|error| {
            let message = describe_open_failure("store", &path, &error);
            let mut config_error = source.error(ConfigErrorKind::Open, setting.span(), message);
            config_error.cause = Some(error);
            config_error
        })?;
        let overlaps = |other: &StorageEntry| {
            location.real.starts_with(&other.location.real) || other.location.real.starts_with(&location.real)
        };
        if self.entries.iter().any(overlaps) {
            let message =
                "another layer uses this path, or a path inside or around it; give each layer a path of its own";
            return Err(source.error(ConfigErrorKind::Conflict, setting.span(), message));
        }
        let created = match storage {
            LayerStoragePath::Directory(_) => location.create_directory().await,
            LayerStoragePath::File(_) => location.create_file().await,
        };
        created.map_err(|error| {
            let message = format!("'{}' cannot be created", path.display());
            source.error(ConfigErrorKind::Open, setting.span(), message).with_cause(error)
        })?;
        self.entries.push(StorageEntry { span: setting.span(), location, kind, companions: Vec::new() });
        Ok(())
    }

    async fn add_database(
        &mut self,
        spec: &NamespaceSpec,
        table: &StoreBackendTable,
        base: &Path,
    ) -> Result<(), ConfigError> {
        let (source, span) = (&spec.source, store_span(table));
        let failed = |path: &Path, error: vfs_core::Error| {
            let message = format!("'{}' cannot be created", path.display());
            source.error(ConfigErrorKind::Open, span.clone(), message).with_cause(error)
        };
        let url = resolve_store_url(source, table, base)?;
        let Some(path) = url.file().map_err(|error| failed(Path::new("the database"), error))? else { return Ok(()) };
        let location = HostStorageLocation::file(&path).map_err(|error| failed(&path, error))?;
        let is_same =
            |entry: &StorageEntry| entry.kind == StorageForm::Database && entry.location.real == location.real;
        if self.entries.iter().any(is_same) {
            return Ok(());
        }
        location.create_file().await.map_err(|error| failed(&path, error))?;
        // SQLite follows a link, and creates its companion files next to the target of the link.
        let names = host_paths::real_names(&path).await.map_err(|error| failed(&path, error))?;
        let overlaps = |other: &StorageEntry| {
            let real = &other.location.real;
            names.iter().any(|name| name.starts_with(real) || real.starts_with(name))
        };
        if self.entries.iter().filter(|other| other.kind != StorageForm::Database).any(overlaps) {
            let message = "a layer uses this path, or a path around it; give the database a path of its own";
            return Err(source.error(ConfigErrorKind::Conflict, span, message));
        }
        let mut companions = names.clone();
        for name in &names {
            companions.extend(DATABASE_COMPANION_SUFFIXES.iter().map(|suffix| {
                let mut file = name.clone().into_os_string();
                file.push(suffix);
                PathBuf::from(file)
            }));
        }
        self.entries.push(StorageEntry { span, location, kind: StorageForm::Database, companions });
        Ok(())
    }

    /// Adds the directory `real`, which is or may become a journal of moves, to the storage that is hidden.
    pub(super) fn add_journal(&mut self, real: PathBuf) {
        self.journals.push(real);
    }

    /// Returns whether the storage of a layer or a database is inside or around the directory `real`.
    pub(super) fn overlaps(&self, real: &Path) -> bool {
        self.entry_paths().any(|(path, _)| real.starts_with(path) || path.starts_with(real))
    }

    /// Returns the sink of the audit log of `table`.
    pub(super) fn audit_sink(&self, table: &AuditTable) -> Result<BackendSink, ConfigError> {
        let location = self.location(&table.file)?;
        let sink = BackendSink::new(location.files(), location.path.clone());
        Ok(match table.rotate_at {
            Some(size) => sink.max_size(size.0),
            None => sink,
        })
    }

    /// Returns the location of the storage that `setting` names.
    pub(super) fn location(&self, setting: &Spanned<HostPath>) -> Result<&HostStorageLocation, ConfigError> {
        let is_named = |entry: &&StorageEntry| entry.kind != StorageForm::Database && entry.span == setting.span();
        self.entries.iter().find(is_named).map(|entry| &entry.location).ok_or_else(|| {
            ConfigError::new(ConfigErrorKind::Open, "internal: the storage of a layer was not registered")
        })
    }

    /// Returns whether the directory `real` is, or is inside, the storage of a layer, a database or a journal.
    pub(super) fn contains(&self, real: &Path) -> bool {
        let stores = self.entries.iter().map(|entry| entry.location.real.as_path());
        stores.chain(self.journals.iter().map(PathBuf::as_path)).any(|store| real.starts_with(store))
    }

    /// Returns all host paths of the storage, with their kinds.
    pub(super) fn real_paths(&self) -> impl Iterator<Item = (&Path, StorageForm)> {
        self.entry_paths().chain(self.journals.iter().map(|journal| (journal.as_path(), StorageForm::Directory)))
    }

    fn entry_paths(&self) -> impl Iterator<Item = (&Path, StorageForm)> {
        self.entries.iter().flat_map(|entry| {
            let companions = entry.companions.iter().map(PathBuf::as_path);
            [entry.location.real.as_path()].into_iter().chain(companions).map(|real| (real, entry.kind))
        })
    }
}
