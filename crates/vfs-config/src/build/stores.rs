//! Where layers keep what they keep, and databases are.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use vfs_layers::BackendSink;

use super::durable;
use crate::config::Config;
use crate::error::{ConfigError, ConfigErrorKind, unopened_directory};
use crate::host::{self, StorePlace};
use crate::tables::{AuditTable, DurableTable, StoreTable};
use crate::values::HostPath;

/// All of them that a file names.
#[derive(Debug)]
pub(super) struct Stores {
    stores: Vec<Store>,
    /// Directories in which a journal of moves is, or may be.
    journals: Vec<PathBuf>,
}

#[derive(Debug)]
struct Store {
    /// Where in the file it is named.
    span: Range<usize>,
    place: StorePlace,
    kind: Kind,
    /// What else belongs to it, on the host.
    beside: Vec<PathBuf>,
}

/// What a store is on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A layer keeps it in a directory of its own.
    Directory,
    /// It is the file of an audit log, which is rotated into others beside it.
    Log,
    /// It is a file of a SQLite database, which several places may use.
    Database,
}

/// What SQLite calls the files that it has beside a database.
const BESIDE_A_DATABASE: [&str; 4] = ["-wal", "-shm", "-journal", "-reserve"];

impl Stores {
    /// Finds them on the host, and makes those that are not there yet; none may be, or be in, another.
    pub(super) async fn find(config: &Config, base: &Path) -> Result<Self, ConfigError> {
        let source = &config.source;
        let mut stores: Vec<Store> = Vec::new();
        for table in config.tables.all_layers().filter_map(|layer| layer.get_ref().store()) {
            let (named, kind, find): (_, _, fn(&Path) -> _) = match table {
                StoreTable::Directory(named) => (named, Kind::Directory, StorePlace::directory),
                StoreTable::File(named) => (named, Kind::Log, StorePlace::file),
            };
            let path = base.join(named.get_ref());
            let place = find(&path).map_err(|error| {
                let message = unopened_directory("store", &path, &error);
                let mut failed = source.error(ConfigErrorKind::Open, named.span(), message);
                failed.cause = Some(error);
                failed
            })?;
            let is_shared =
                |other: &Store| place.real.starts_with(&other.place.real) || other.place.real.starts_with(&place.real);
            if stores.iter().any(is_shared) {
                let message =
                    "another layer keeps something here, or in it, or around it; give each a place of its own";
                return Err(source.error(ConfigErrorKind::Conflict, named.span(), message));
            }
            let made = match table {
                StoreTable::Directory(_) => place.make_directory().await,
                StoreTable::File(_) => place.make_file().await,
            };
            made.map_err(|error| {
                let message = format!("'{}' cannot be made", path.display());
                source.error(ConfigErrorKind::Open, named.span(), message).because(error)
            })?;
            stores.push(Store { span: named.span(), place, kind, beside: Vec::new() });
        }
        let mut found = Self { stores, journals: Vec::new() };
        for table in config.tables.all_durable() {
            found.find_database(config, table, base).await?;
        }
        Ok(found)
    }

    async fn find_database(&mut self, config: &Config, table: &DurableTable, base: &Path) -> Result<(), ConfigError> {
        let (source, span) = (&config.source, durable::span_of(table));
        let failed = |path: &Path, error: vfs_core::Error| {
            let message = format!("'{}' cannot be made", path.display());
            source.error(ConfigErrorKind::Open, span.clone(), message).because(error)
        };
        let url = durable::url_of(config, table, base)?;
        let Some(path) = url.file().map_err(|error| failed(Path::new("the database"), error))? else { return Ok(()) };
        let place = StorePlace::file(&path).map_err(|error| failed(&path, error))?;
        if self.stores.iter().any(|store| store.kind == Kind::Database && store.place.real == place.real) {
            return Ok(());
        }
        place.make_file().await.map_err(|error| failed(&path, error))?;
        // SQLite follows a link, and keeps its files beside what that leads to.
        let names = host::real_names(&path).await.map_err(|error| failed(&path, error))?;
        let is_shared = |other: &Store| {
            let real = &other.place.real;
            names.iter().any(|name| name.starts_with(real) || real.starts_with(name))
        };
        if self.stores.iter().filter(|other| other.kind != Kind::Database).any(is_shared) {
            let message = "a layer keeps something here, or around it; give the database a place of its own";
            return Err(source.error(ConfigErrorKind::Conflict, span, message));
        }
        let mut beside = names.clone();
        for name in &names {
            beside.extend(BESIDE_A_DATABASE.iter().map(|suffix| {
                let mut file = name.clone().into_os_string();
                file.push(suffix);
                PathBuf::from(file)
            }));
        }
        self.stores.push(Store { span, place, kind: Kind::Database, beside });
        Ok(())
    }

    /// Adds the directory `real`, in which a journal of moves is or may be, to what is hidden.
    pub(super) fn hide_journal(&mut self, real: PathBuf) {
        self.journals.push(real);
    }

    /// Whether the store of a layer or a database is in the directory `real`, or around it.
    pub(super) fn overlap(&self, real: &Path) -> bool {
        self.store_reals().any(|(store, _)| real.starts_with(store) || store.starts_with(real))
    }

    /// What appends to the audit log of `table`, and reads it.
    pub(super) fn log(&self, table: &AuditTable) -> Result<BackendSink, ConfigError> {
        let store = self.of(&table.file)?;
        let sink = BackendSink::new(store.files(), store.path.clone());
        Ok(match table.rotate_at {
            Some(size) => sink.max_size(size.0),
            None => sink,
        })
    }

    /// The one that is named at `named`.
    pub(super) fn of(&self, named: &Spanned<HostPath>) -> Result<&StorePlace, ConfigError> {
        let found = self.stores.iter().find(|store| store.kind != Kind::Database && store.span == named.span());
        found.map(|store| &store.place).ok_or_else(|| {
            ConfigError::new(ConfigErrorKind::Open, "this store was not looked for; that is a fault of this library")
        })
    }

    /// Whether one of them is the directory `real`, or around it.
    pub(super) fn hold(&self, real: &Path) -> bool {
        let stores = self.stores.iter().map(|store| store.place.real.as_path());
        stores.chain(self.journals.iter().map(PathBuf::as_path)).any(|store| real.starts_with(store))
    }

    /// Where they are on the host, and what each is.
    pub(super) fn reals(&self) -> impl Iterator<Item = (&Path, Kind)> {
        self.store_reals().chain(self.journals.iter().map(|journal| (journal.as_path(), Kind::Directory)))
    }

    fn store_reals(&self) -> impl Iterator<Item = (&Path, Kind)> {
        self.stores.iter().flat_map(|store| {
            let all = [store.place.real.as_path()].into_iter().chain(store.beside.iter().map(PathBuf::as_path));
            all.map(|real| (real, store.kind))
        })
    }
}
