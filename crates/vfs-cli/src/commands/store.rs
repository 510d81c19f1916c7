//! Command `vfs store`: administration of durable stores.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vfs_core::Problem;
use vfs_store::{ConflictPolicy, CopyOptions, CopyReport, Namespace, Store, StoreUrl};
#[cfg(feature = "sqlite")]
use vfs_store::{SqliteConfig, SqliteStore};

use crate::args::{StoreArgs, StoreBackupArgs, StoreCommand, StoreCopyArgs};
use crate::escape::escape;
use crate::exit::{Exit, Failure, print_problems};
use crate::progress_line::ProgressLine;
use crate::standard_output::StandardOutput;
use crate::store_argument::{MissingStore, resolve_store_url};

/// Runs `command` on the store from its arguments, or on that of the option `--store`, which is `option`.
pub(super) async fn run(
    out: &mut StandardOutput,
    command: StoreCommand,
    option: Option<&str>,
) -> Result<Exit, Failure> {
    match command {
        StoreCommand::Check(args) => check(out, args, option).await,
        StoreCommand::Stats(args) => stats(out, args, option).await,
        StoreCommand::Copy(args) => copy(out, args, option).await,
        StoreCommand::Backup(args) => backup(out, args, option).await,
    }
}

/// Opens an existing store.
async fn open(url: &str) -> Result<Arc<dyn Store>, Failure> {
    Ok(vfs_store::open_store(&resolve_store_url(url, MissingStore::Refuse).await?).await?)
}

/// Returns the URL from the argument or the option `--store`; it is an error to give both or none.
fn select_url<'a>(argument: Option<&'a str>, option: Option<&'a str>) -> Result<&'a str, Failure> {
    match (argument, option) {
        (Some(url), None) | (None, Some(url)) => Ok(url),
        (Some(_), Some(_)) => {
            Err(Failure::Usage("the store is given twice; leave out either --store or the URL argument"))
        }
        (None, None) => {
            Err(Failure::Usage("the command needs a store; give its URL, or --store; see 'vfs store --help'"))
        }
    }
}

async fn check(out: &mut StandardOutput, args: StoreArgs, option: Option<&str>) -> Result<Exit, Failure> {
    let store = open(select_url(args.url.as_deref(), option)?).await?;
    let report = vfs_store::check(&*store).await?;
    if args.json {
        out.json(&report)?;
    } else {
        for Problem { path, message, .. } in &report.problems {
            let line = format!("{path}: {}", message.strip_prefix("Error: ").unwrap_or(message));
            writeln!(out, "{}", escape(&line))?;
        }
        let problems = match report.problems.len() {
            0 => "no problem".to_owned(),
            1 => "1 problem".to_owned(),
            count => format!("{count} problems"),
        };
        writeln!(out, "{} files, {} bytes, {problems}", report.files, report.bytes)?;
    }
    Ok(if report.problems.is_empty() { Exit::Success } else { Exit::Refused })
}

async fn stats(out: &mut StandardOutput, args: StoreArgs, option: Option<&str>) -> Result<Exit, Failure> {
    let store = open(select_url(args.url.as_deref(), option)?).await?;
    let stats = vfs_store::stats(&*store).await?;
    if args.json {
        out.json(&stats)?;
    } else {
        writeln!(out, "{store}: {} files in {} namespaces, {} bytes", stats.files, stats.namespaces, stats.bytes)?;
    }
    Ok(Exit::Success)
}

async fn copy(out: &mut StandardOutput, args: StoreCopyArgs, option: Option<&str>) -> Result<Exit, Failure> {
    let mut options = CopyOptions::new();
    if args.replace {
        options = options.conflict_policy(ConflictPolicy::Replace);
    }
    if let Some(namespace) = &args.only {
        options = options.namespace(Namespace::parse(namespace)?);
    }
    let from = open(select_url(args.from.as_deref(), option)?).await?;
    let to = vfs_store::open_store(&resolve_store_url(&args.to, MissingStore::Create).await?).await?;
    let (files, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let count = |copied: &CopyReport| {
        files.store(copied.files + copied.present, Ordering::Relaxed);
        bytes.store(copied.bytes, Ordering::Relaxed);
    };
    let mut progress = ProgressLine::start();
    let mut copying = Box::pin(vfs_store::copy(&*from, &*to, &options, count));
    let copied = loop {
        tokio::select! {
            copied = &mut copying => break copied,
            () = progress.tick() => {
                let (files, bytes) = (files.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed));
                progress.show(&format!("{files} files, {bytes} bytes copied"));
            }
        }
    };
    progress.clear();
    let copied = copied?;
    if args.json {
        out.json(&copied)?;
    } else {
        print_problems(&copied.problems);
        let CopyReport { files, bytes, present, problems, .. } = &copied;
        writeln!(out, "{files} files copied, {bytes} bytes; {present} already present, {} not copied", problems.len())?;
    }
    Ok(if copied.problems.is_empty() { Exit::Success } else { Exit::Refused })
}

async fn backup(out: &mut StandardOutput, args: StoreBackupArgs, option: Option<&str>) -> Result<Exit, Failure> {
    let url = resolve_store_url(select_url(args.url.as_deref(), option)?, MissingStore::Refuse).await?;
    if url.scheme() != "sqlite" {
        return Err(Failure::Usage("only a SQLite store can be backed up; use 'vfs store copy' for other stores"));
    }
    let bytes = backup_sqlite(&url, &args.file).await?;
    writeln!(out, "{bytes} bytes in {}", args.file.display())?;
    Ok(Exit::Success)
}

/// Copies the SQLite store at `url` to `file`, and returns its size in bytes.
#[cfg(feature = "sqlite")]
async fn backup_sqlite(url: &StoreUrl, file: &Path) -> vfs_core::Result<u64> {
    SqliteStore::open(SqliteConfig::from_url(url)?).await?.backup(file).await
}

/// Returns the error of a store that this build cannot open.
#[cfg(not(feature = "sqlite"))]
async fn backup_sqlite(url: &StoreUrl, _file: &Path) -> vfs_core::Result<u64> {
    vfs_store::open_store(url).await.map(|_| 0)
}
