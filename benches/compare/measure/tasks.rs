//! A thousand tasks that read, edit and search one backend.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use vfs_benches::{RARE, source_tree};
use vfs_core::{Backend, EditRequest, GrepRequest, OpContext, ReadRequest, VfsPath};
use vfs_local::{Durability, LocalConfig};
use vfs_memory::MemoryBackend;

const TASKS: usize = 1_000;
const ROUNDS: usize = 3;
const READS_A_ROUND: usize = 3;
/// Stand in turns at the start of each file, and nowhere else.
const MARKS: [&str; 2] = ["// The mark is up.\n", "// The mark is down.\n"];

/// Where the files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Store {
    /// In memory.
    Memory,
    /// On disk.
    Disk,
}

/// How many cores may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cores {
    /// One.
    One,
    /// All that there are.
    All,
}

/// Which tasks.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Tasks {
    /// Where the files are
    #[arg(long)]
    pub(crate) store: Store,
    /// How many cores may be used
    #[arg(long)]
    pub(crate) cores: Cores,
    /// An empty directory, for files on disk
    #[arg(long)]
    pub(crate) root: PathBuf,
}

/// What a task does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Class {
    /// Reads a file of 4 KiB, any of all.
    Read,
    /// Edits a line of its own file.
    Edit,
    /// Searches a directory of 50 files.
    Search,
}

/// What the tasks took.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    /// How many operations there were.
    pub(crate) operations: u64,
    /// Seconds, for all of them.
    pub(crate) wall: f64,
    /// How long a caller waited, by what it asked for.
    pub(crate) latencies: Vec<(Class, Latency)>,
}

/// How long callers waited, in seconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Latency {
    /// Half of them not longer than this.
    pub(crate) p50: f64,
    /// 99 of 100 not longer than this.
    pub(crate) p99: f64,
}

impl Latency {
    fn of(mut waits: Vec<Duration>) -> Option<Self> {
        waits.sort_unstable();
        let last = waits.len().checked_sub(1)?;
        let at = |hundredths: usize| waits.get((waits.len() * hundredths / 100).min(last));
        Some(Self { p50: at(50)?.as_secs_f64(), p99: at(99)?.as_secs_f64() })
    }
}

impl Tasks {
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let (store, cores) = (value_name(self.store), value_name(self.cores));
        vec![
            "--store".into(),
            store.into(),
            "--cores".into(),
            cores.into(),
            "--root".into(),
            self.root.clone().into_os_string(),
        ]
    }

    pub(super) fn measure(&self) -> Result<Report> {
        if self.cores == Cores::One {
            // Before any thread is started: all of them inherit it, and size their pools by it.
            stay_on_one_core()?;
        }
        let workers = std::thread::available_parallelism()?.get();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build()?;
        let (files, paths) = self.open()?;
        let paths: Arc<[VfsPath]> = paths.into();
        let start = Instant::now();
        let tasks = (0..TASKS).map(|task| runtime.spawn(work(Arc::clone(&files), Arc::clone(&paths), task)));
        let tasks: Vec<_> = tasks.collect();
        let mut waits = Vec::new();
        for task in tasks {
            waits.extend(runtime.block_on(task)??);
        }
        let wall = start.elapsed().as_secs_f64();
        let latency = |class| {
            let of_class = waits.iter().filter(|(of, _)| *of == class).map(|(_, wait)| *wait).collect();
            Some((class, Latency::of(of_class)?))
        };
        let latencies = [Class::Read, Class::Edit, Class::Search].into_iter().filter_map(latency).collect();
        Ok(Report { operations: waits.len() as u64, wall, latencies })
    }

    fn open(&self) -> Result<(Arc<dyn Backend>, Vec<VfsPath>)> {
        let tree = source_tree(TASKS as u64)?.into_iter();
        let tree: Vec<_> = tree.map(|(path, text)| (path, [MARKS[0].as_bytes(), &text].concat())).collect();
        let paths = tree.iter().map(|(path, _)| path.clone()).collect();
        let files: Arc<dyn Backend> = match self.store {
            Store::Memory => {
                Arc::new(MemoryBackend::from_files(tree.into_iter().map(|(path, text)| (path, text.into())))?)
            }
            Store::Disk => {
                for (path, text) in tree {
                    let host = self.root.join(path.as_str().trim_start_matches('/'));
                    fs::create_dir_all(host.parent().context("a file lies in a directory")?)?;
                    fs::write(host, text)?;
                }
                Arc::new(LocalConfig::new(&self.root).durability(Durability::Atomic).open()?)
            }
        };
        Ok((files, paths))
    }
}

fn value_name(value: impl ValueEnum) -> String {
    value.to_possible_value().expect("no value is left out of the command line").get_name().to_owned()
}

fn stay_on_one_core() -> Result<()> {
    let allowed = sched_getaffinity(None)?;
    let first = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).context("there is a core to run on")?;
    let mut one = CpuSet::new();
    one.set(first);
    Ok(sched_setaffinity(None, &one)?)
}

/// What one task does, and how long it waited each time.
async fn work(files: Arc<dyn Backend>, paths: Arc<[VfsPath]>, task: usize) -> vfs_core::Result<Vec<(Class, Duration)>> {
    let cx = OpContext::new();
    let own = &paths[task];
    let directory = own.parent().unwrap_or_default();
    let mut waits = Vec::new();
    for round in 0..ROUNDS {
        for read in 0..READS_A_ROUND {
            let other = &paths[(task * 7 + round * 131 + read * 17) % paths.len()];
            let start = Instant::now();
            files.read(&cx, ReadRequest::new(other.clone())).await?;
            waits.push((Class::Read, start.elapsed()));
        }
        let (old, new) = (MARKS[round % 2], MARKS[(round + 1) % 2]);
        let start = Instant::now();
        files.edit(&cx, EditRequest::new(own.clone(), old, new)).await?;
        waits.push((Class::Edit, start.elapsed()));
        let start = Instant::now();
        files.grep(&cx, GrepRequest::literal(RARE).path(directory.clone())).await?;
        waits.push((Class::Search, start.elapsed()));
    }
    Ok(waits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_99th_of_a_hundred_waits() {
        let latency = Latency::of((1..=200).map(Duration::from_secs).collect()).unwrap();
        assert_eq!((latency.p50, latency.p99), (101.0, 199.0));
        assert!(Latency::of(Vec::new()).is_none());
    }
}
