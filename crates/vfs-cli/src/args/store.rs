//! The commands for durable stores.

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

/// What is done to a store as a whole.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Read and verify every file, and what the store keeps beside them
    #[command(after_help = "Exit status: 0 where all is well, 1 for problems, which are listed, 2 for an error.")]
    Check(StoreArgs),
    /// Count what is there
    Stats(StoreArgs),
    /// Copy all files of a store into another; run again, it copies what is missing
    #[command(after_help = "Exit status: 0 where all is copied, 1 where a file was not, 2 for an error.")]
    Copy(StoreCopyArgs),
    /// Copy a SQLite store into a new file, as it is at one moment, while others use it
    Backup(StoreBackupArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StoreArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The store, or '-' for the one in VFS_STORE [default: that of --store]
    pub(crate) url: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(allow_missing_positional = true)]
pub(crate) struct StoreCopyArgs {
    /// Replace files of the target that have another content; else they stay, and are told
    #[arg(long)]
    pub(crate) replace: bool,
    /// Only the files of this namespace [default: those of all]
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) only: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The store to copy, or '-' for the one in VFS_STORE [default: that of --store]
    pub(crate) from: Option<String>,
    /// The store to copy into, or '-'
    #[arg(required = true)]
    pub(crate) to: String,
}

#[derive(Debug, ClapArgs)]
#[command(allow_missing_positional = true)]
pub(crate) struct StoreBackupArgs {
    /// The store, or '-' for the one in VFS_STORE [default: that of --store]
    pub(crate) url: Option<String>,
    /// The new file
    #[arg(required = true)]
    pub(crate) file: PathBuf,
}
