//! What a durable store costs as it grows: `cargo run --profile dist -p vfs-benches --bin stores -- --help`.
//!
//! Each store is filled with files in directories of ten, and each operation is timed from a handle that others share. The
//! table is in Markdown, times are medians.
#![expect(clippy::print_stdout, reason = "the table is what it is for")]

mod directory;
mod fill;
mod plain;
mod rival;
mod timed;

use std::sync::Arc;

use clap::Parser;
use vfs_core::{
    Backend as _, BackendExt as _, EditRequest, GlobRequest, GrepRequest, LsRequest, OpContext, ReadRequest,
};
use vfs_store::{Namespace, Store, StoreBackend, StoreConfig, StoreUrl, open_store};

use fill::{NEEDLE, PHRASE, middle, path};
use timed::{Times, median};

/// A regex that no index narrows, and that matches in no file.
const NO_LITERAL: &str = "[0-9a-f]{64}";

/// Times operations on durable stores of several sizes.
#[derive(Debug, Parser)]
struct Args {
    /// A store by its URL; may be given more than once. What it has in the namespaces bench/N is used again
    #[arg(long, required = true)]
    store: Vec<String>,
    /// How many files there are, in one namespace for each
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 100_000])]
    files: Vec<usize>,
    /// How often each operation is timed
    #[arg(long, default_value_t = 21)]
    samples: usize,
    /// Rename, copy and delete a directory with a quarter of the files instead, with the longest wait of others in brackets
    #[arg(long)]
    directory: bool,
    /// A Python that has deepagents, whose store is timed beside ours
    #[arg(long)]
    python: Option<String>,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if args.directory {
        return directories(&args).await;
    }
    println!(
        "| store | files | fill, files/s | upload, files/s | ls of 10 | glob of a prefix | read | edit | grep, first | grep, next | grep after an edit | grep of a common phrase | its first 20 | reading all |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for text in &args.store {
        let url = StoreUrl::parse(text)?;
        let store = open_store(&url).await?;
        for files in &args.files {
            let row = measure(Arc::clone(&store), *files, args.samples).await?;
            println!("| {} | {files} | {row} |", url.scheme());
            if let Some(mut plain) = plain::Plain::open(text, *files).await? {
                println!("| its SQL alone | {files} | {} |", plain.measure(args.samples).await?);
            }
        }
    }
    if let Some(python) = &args.python {
        for files in &args.files {
            println!("| deepagents, in memory | {files} | | {} |", rival::time(python, *files)?);
        }
    }
    Ok(())
}

async fn directories(args: &Args) -> anyhow::Result<()> {
    println!("| store | files | rename | copy | delete |");
    println!("|---|--:|--:|--:|--:|");
    for url in &args.store {
        let url = StoreUrl::parse(url)?;
        for files in &args.files {
            println!("| {} | {files} | {} |", url.scheme(), directory::measure(&url, *files).await?);
        }
    }
    Ok(())
}

async fn measure(store: Arc<dyn Store>, files: usize, samples: usize) -> anyhow::Result<Times> {
    let namespace = Namespace::parse(&format!("bench/{files}"))?;
    let fill = fill::fill(&*store, &namespace, files).await?;
    let open = || StoreBackend::with_config(Arc::clone(&store), StoreConfig::new().namespace(namespace.clone()));
    let (backend, cx) = (open(), OpContext::new());
    let file = path(middle(files));
    let directory = file.parent().unwrap_or_default();

    let ls = median(samples, || backend.ls(&cx, LsRequest::new(directory.clone()))).await?;
    let glob = median(samples, || backend.glob(&cx, GlobRequest::new("*.md").path(directory.clone()))).await?;
    let read = median(samples, || backend.read(&cx, ReadRequest::new(file.clone()))).await?;
    // A run that was stopped may have left it either way.
    let mut toggled = backend.read_text(file.as_str()).await?.contains("line three of");
    let mut toggle = || {
        toggled = !toggled;
        let (old, new) = if toggled { ("line 3 of", "line three of") } else { ("line three of", "line 3 of") };
        EditRequest::new(file.clone(), old, new)
    };
    let samples_of_edits = samples + samples % 2;
    let edit = median(samples_of_edits, || backend.edit(&cx, toggle())).await?;

    let search = || GrepRequest::literal(NEEDLE);
    let first = median(3, || {
        let fresh = open();
        let cx = cx.clone();
        async move { fresh.grep(&cx, search()).await }
    })
    .await?;
    anyhow::ensure!(backend.grep_text(NEEDLE).await?.len() == 1, "the needle is in one file");
    let next = median(samples, || backend.grep(&cx, search())).await?;
    let after_edit = timed::median_of(samples_of_edits, || {
        let (edit, backend, cx) = (toggle(), &backend, &cx);
        async move {
            backend.edit(cx, edit).await?;
            timed::of(backend.grep(cx, search())).await
        }
    })
    .await?;
    let phrase = || GrepRequest::literal(PHRASE);
    let common = median(1, || backend.grep(&cx, phrase())).await?;
    let first_20 = median(samples, || backend.grep(&cx, phrase().limit(20))).await?;
    let all = timed::of(open().grep(&cx, GrepRequest::regex(NO_LITERAL))).await?;
    let uploads = StoreConfig::new().namespace(Namespace::parse("bench/uploads")?);
    let upload = Some(fill::upload(&StoreBackend::with_config(Arc::clone(&store), uploads), files).await?);
    Ok(Times { fill, upload, operations: vec![ls, glob, read, edit, first, next, after_edit, common, first_20, all] })
}
