//! Sixty-four tasks mix all operations on memory and on a disk; in the end nothing may have grown.
//!
//! `VFS_SOAK_SECONDS` sets how long; by default each task makes about a hundred calls, and the memory in use is shown but
//! not judged. `VFS_SOAK_SEED` sets another order of things.

#![expect(clippy::print_stdout, reason = "the figures are what this test is for")]

mod content;
mod judge;
mod operations;
mod slices;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use vfs_core::Backend;
use vfs_local::{Durability, LocalConfig};
use vfs_memory::MemoryBackend;
use vfs_search::Pool;
use vfs_tests::settings::setting;

use self::judge::Tally;
use self::slices::{End, Slice, run};

/// Counts what is allocated: what the kernel says of memory in use has the allocator's own reserves in it.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// How often the tasks come to rest, so that what is left can be looked at.
const SLICES: u32 = 30;

/// Calls of each task in a slice of the short run.
const SHORT_CALLS: usize = 3;

fn main() {
    let seconds: u64 = setting("VFS_SOAK_SECONDS", 0);
    let seed: u64 = setting("VFS_SOAK_SEED", 1);
    let root = tempfile::Builder::new().prefix(judge::HOST_MARKER).tempdir().expect("a temporary directory");
    let disk = LocalConfig::new(root.path()).durability(Durability::Atomic).open().expect("the root opens");
    let backends: [Arc<dyn Backend>; 2] = [Arc::new(MemoryBackend::new()), Arc::new(disk)];
    let mut tally = Tally::default();
    let mut slices = Vec::new();
    for number in 0..SLICES {
        let end = match seconds {
            0 => End::Calls(SHORT_CALLS),
            _ => End::At(Instant::now() + Duration::from_secs(seconds) / SLICES),
        };
        let slice = run(&backends, end, seed.wrapping_mul(1_000).wrapping_add(number.into()), &mut tally);
        println!("{number:>3}: {slice}");
        slices.push(slice);
    }
    println!("{tally}");
    tally.assert_complete();
    assert_eq!(reserved_names(root.path()), 0, "changes that are over have left something behind");
    assert!(Pool::global().stats().is_idle());
    assert_no_growth(&slices, seconds > 0);
}

/// Compares the last third with the one before it; the first is there to warm up.
fn assert_no_growth(slices: &[Slice], judges_memory: bool) {
    let third = slices.len() / 3;
    let (before, last) = (&slices[third..2 * third], &slices[2 * third..]);
    let most = |slices: &[Slice], of: fn(&Slice) -> u64| slices.iter().map(of).max().unwrap_or_default();
    let mean = |slices: &[Slice]| slices.iter().map(|slice| slice.heap).sum::<u64>() / slices.len() as u64;
    let (threads, descriptors) = (|slice: &Slice| slice.idle.threads, |slice: &Slice| slice.idle.descriptors);
    println!(
        "second third and last: {} and {} bytes beside the files, {} and {} threads, {} and {} descriptors",
        mean(before),
        mean(last),
        most(before, threads),
        most(last, threads),
        most(before, descriptors),
        most(last, descriptors),
    );
    assert!(most(last, threads) <= most(before, threads) + 2, "threads grew");
    assert!(most(last, descriptors) <= most(before, descriptors) + 2, "descriptors grew");
    if judges_memory {
        let bound = mean(before) + mean(before) / 10 + (1 << 20);
        assert!(mean(last) <= bound, "memory grew over {bound} bytes");
    }
}

/// How many entries below `root` have a name that only changes under way have.
fn reserved_names(root: &Path) -> usize {
    let entries =
        std::fs::read_dir(root).expect("the tree can be listed").map(|entry| entry.expect("it can be listed"));
    entries
        .map(|entry| {
            let is_reserved = entry.file_name().as_encoded_bytes().starts_with(b".vfs-tmp-");
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            usize::from(is_reserved) + if is_directory { reserved_names(&entry.path()) } else { 0 }
        })
        .sum()
}
