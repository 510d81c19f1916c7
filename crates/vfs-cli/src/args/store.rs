//! Arguments and help texts of `vfs store`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

pub(super) const STORE_EXAMPLES: &str = "\
Examples:
  vfs --store sqlite:agents.db write /notes.md < notes.md
  vfs --store postgres://me@db/files --namespace acme/ann ls /
  vfs store check sqlite:agents.db         or: vfs store check --store sqlite:agents.db
  vfs store copy sqlite:agents.db 's3://bucket/agents?region=eu-central-1'
  vfs store backup sqlite:agents.db agents-today.db

URLs: sqlite:relative.db, sqlite:///absolute/path.db, postgres://user:password@host/database, redis://:password@host/0, \
s3://bucket/prefix. To keep a password out of the list of processes, write '-' for the URL and put it into the variable \
VFS_STORE.";

/// Operations on a whole store.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Read and verify every file and the metadata of the store
    #[command(after_help = "Exit status: 0 without problems, 1 for problems, which are listed, 2 for an error.")]
    Check(StoreArgs),
    /// Print the number of files, namespaces and bytes
    Stats(StoreArgs),
    /// Copy all files of a store into another; a second run copies only missing files
    #[command(after_help = "Exit status: 0 if all files are copied, 1 if one is not, 2 for an error.")]
    Copy(StoreCopyArgs),
    /// Copy a consistent snapshot of a SQLite store into a new file, even while the store is in use
    Backup(StoreBackupArgs),
}

/// Arguments of `vfs store check` and `vfs store stats`.
#[derive(Debug, ClapArgs)]
pub(crate) struct StoreArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The URL of the store, or '-' for the one in VFS_STORE [default: that of --store]
    pub(crate) url: Option<String>,
}

/// Arguments of `vfs store copy`.
#[derive(Debug, ClapArgs)]
#[command(allow_missing_positional = true)]
pub(crate) struct StoreCopyArgs {
    /// Replace files of the target with other content; without this, they are left unchanged and reported
    #[arg(long)]
    pub(crate) replace: bool,
    /// Copy only the files of this namespace [default: all]
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) only: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The URL of the store to copy, or '-' for the one in VFS_STORE [default: that of --store]
    pub(crate) from: Option<String>,
    /// The URL of the target store, or '-'
    #[arg(required = true)]
    pub(crate) to: String,
}

/// Arguments of `vfs store backup`.
#[derive(Debug, ClapArgs)]
#[command(allow_missing_positional = true)]
pub(crate) struct StoreBackupArgs {
    /// The URL of the store, or '-' for the one in VFS_STORE [default: that of --store]
    pub(crate) url: Option<String>,
    /// The new file
    #[arg(required = true)]
    pub(crate) file: PathBuf,
}
