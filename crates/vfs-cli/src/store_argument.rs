//! Resolution of store URLs given as arguments.

use std::path::Path;

use vfs_core::{BackendExt as _, Error, ErrorKind};
use vfs_local::LocalBackend;
use vfs_store::StoreUrl;

use crate::exit::Failure;

/// The behaviour if the file of a store does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingStore {
    /// The store is created.
    Create,
    /// An error is returned, because a new store has no files to read.
    Refuse,
}

/// The environment variable with the URL of a store, for the argument `-`.
const STORE_VARIABLE: &str = "VFS_STORE";

/// Returns the URL that the argument `text` stands for.
pub(crate) async fn resolve_store_url(text: &str, missing: MissingStore) -> Result<StoreUrl, Failure> {
    let url = if text == "-" {
        let unset = "'-' stands for the URL in the environment variable VFS_STORE, which is not set; set it";
        StoreUrl::parse(&std::env::var(STORE_VARIABLE).map_err(|_| Failure::Usage(unset))?)?
    } else {
        StoreUrl::parse(text)?
    };
    match url.file()? {
        // Without the feature, opening the store fails with an error that names it.
        Some(file) if cfg!(feature = "sqlite") && missing == MissingStore::Refuse && !file_exists(&file).await => {
            let message = format!("there is no store at '{url}'; name another file, or create one with 'vfs write'");
            Err(Failure::Operation(Error::new(ErrorKind::NotFound, message)))
        }
        _ => Ok(url),
    }
}

async fn file_exists(file: &Path) -> bool {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Ok(files) = LocalBackend::host(directory) else { return false };
    match files.resolve(name) {
        Ok(path) => files.exists(path.as_str()).await.unwrap_or(false),
        Err(_) => false,
    }
}
