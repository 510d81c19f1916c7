//! Ours beside others: one command that prepares corpora and rivals, runs every row in turns, and writes the report.

mod chart;
mod corpora;
mod growth;
mod instructions;
mod lab;
mod machine;
mod measure;
mod notes;
mod outcome;
mod report;
mod rivals;
mod rows;
mod run;
mod timing;
mod words;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};

use crate::lab::{Lab, target_directory};
use crate::measure::Measure;
use crate::outcome::{Figures, Outcome};
use crate::report::Report;
use crate::rivals::{Named, Rivals};
use crate::rows::Row;
use crate::run::say;

/// Measure the operations beside those of others, and write docs/performance.md with its chart
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    own: Option<Own>,
    /// Where corpora and rivals are kept [default: target/compare]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// The kernel's source, unpacked [default: Debian's, fetched into the cache]
    #[arg(long, value_name = "DIR")]
    linux: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    /// The `vfs` to measure [default: built from this workspace, as it is released]
    #[arg(long, value_name = "PATH")]
    vfs: Option<PathBuf>,
    /// How many pairs each row has, after a warm-up
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Run only rows whose name contains this; may be given more than once
    #[arg(long, value_name = "NAME")]
    row: Vec<String>,
    /// Count instructions, too
    #[arg(long)]
    instructions: bool,
    /// Where the report goes [default: docs, or the cache where only some rows are run]
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,
}

/// What this program starts itself for.
#[derive(Debug, Subcommand)]
enum Own {
    /// Measure one thing in this process, and print it
    #[command(hide = true, subcommand)]
    Measure(Measure),
}

fn main() -> Result<()> {
    vfs_sandbox::sandbox_helper_main();
    ensure!(!cfg!(debug_assertions), "figures of a debug build mean nothing: run this with --profile dist");
    let arguments = Arguments::parse();
    match &arguments.own {
        Some(Own::Measure(measure)) => measure::run(measure),
        None => compare(arguments),
    }
}

fn compare(arguments: Arguments) -> Result<()> {
    let target = target_directory()?;
    let cache = arguments.cache.unwrap_or_else(|| target.join("compare"));
    fs::create_dir_all(&cache).with_context(|| format!("the cache {} cannot be made", cache.display()))?;
    let cache = fs::canonicalize(cache)?;
    let wanted = |row: &Row| arguments.row.is_empty() || arguments.row.iter().any(|name| row.id.contains(name));
    let rows: Vec<Row> = rows::all().into_iter().filter(wanted).collect();
    ensure!(!rows.is_empty(), "no row has a name like that; there are {}", names());

    let lab = Lab::new(&cache, Rivals::new(arguments.named, &cache), arguments.linux, arguments.vfs)?;
    let count = rows.len();
    let outcomes: Vec<Outcome> = rows
        .into_iter()
        .enumerate()
        .map(|(place, row)| {
            say(format_args!("{}/{count} {}", place + 1, row.id));
            run_row(&lab, row, arguments.pairs)
        })
        .collect();
    let instructions = match arguments.instructions {
        true => instructions::count(&lab).map_err(|error| format!("{error:#}")),
        false => Err("not asked for; add `--instructions`".into()),
    };
    let all = notes::all();
    let report = Report {
        date: chrono::Utc::now().date_naive(),
        pairs: arguments.pairs,
        machine: machine::describe(),
        rivals: lab.rivals.versions(),
        notes: all.into_iter().filter(|(id, _)| outcomes.iter().any(|outcome| outcome.row.id == *id)).collect(),
        outcomes: &outcomes,
        instructions,
        growth: growth::read(&target.join("criterion"))?,
    };

    let workspace_docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs").into();
    let docs = arguments.docs.unwrap_or(if arguments.row.is_empty() { workspace_docs } else { cache });
    fs::create_dir_all(&docs)?;
    fs::write(docs.join("performance.md"), report.markdown())?;
    fs::write(docs.join("performance.svg"), chart::svg(&outcomes))?;
    say(format_args!("wrote {}", docs.join("performance.md").display()));
    Ok(())
}

fn names() -> String {
    rows::all().iter().map(|row| row.id).collect::<Vec<_>>().join(", ")
}

/// Whatever stops one row stops no other.
fn run_row(lab: &Lab, row: Row, pairs: u32) -> Outcome {
    let samples = (row.prepare)(lab).and_then(|contest| contest.run(pairs));
    let figures = samples
        .and_then(|samples| Figures::of(row.unit, samples).context("there are no samples"))
        .map_err(|error| format!("{error:#}"));
    let outcome = Outcome { row, figures };
    say(format_args!("    {}", report::summary(&outcome)));
    outcome
}
