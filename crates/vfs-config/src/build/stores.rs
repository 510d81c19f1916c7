//! Where layers keep what they keep.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;

use crate::config::Config;
use crate::error::{ConfigError, ConfigErrorKind};
use crate::host::StorePlace;
use crate::tables::StoreTable;
use crate::values::HostPath;

/// All stores of a file.
#[derive(Debug)]
pub(super) struct Stores(Vec<Store>);

#[derive(Debug)]
struct Store {
    /// Where in the file it is named.
    span: Range<usize>,
    place: StorePlace,
}

impl Stores {
    /// Finds them on the host, and makes those that are not there yet; none may be, or be in, another.
    pub(super) async fn find(config: &Config, base: &Path) -> Result<Self, ConfigError> {
        let source = &config.source;
        let mut stores: Vec<Store> = Vec::new();
        for table in config.tables.all_layers().filter_map(|layer| layer.get_ref().store()) {
            let (named, find): (_, fn(&Path) -> _) = match table {
                StoreTable::Directory(named) => (named, StorePlace::directory),
                StoreTable::File(named) => (named, StorePlace::file),
            };
            let path = base.join(named.get_ref());
            let place = find(&path).map_err(|error| {
                let message = format!("'{}' cannot be opened", path.display());
                source.error(ConfigErrorKind::Open, named.span(), message).because(error)
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
            stores.push(Store { span: named.span(), place });
        }
        Ok(Self(stores))
    }

    /// The one that is named at `named`.
    pub(super) fn of(&self, named: &Spanned<HostPath>) -> Result<&StorePlace, ConfigError> {
        let found = self.0.iter().find(|store| store.span == named.span());
        found.map(|store| &store.place).ok_or_else(|| {
            ConfigError::new(ConfigErrorKind::Open, "this store was not looked for; that is a fault of this library")
        })
    }

    /// Whether one of them is the directory `real`, or around it.
    pub(super) fn hold(&self, real: &Path) -> bool {
        self.0.iter().any(|store| real.starts_with(&store.place.real))
    }

    /// Where they are on the host.
    pub(super) fn reals(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|store| store.place.real.as_path())
    }
}
