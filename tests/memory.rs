//! Peak memory of searches, an edit and a diff, each measured in a process of its own.
//!
//! `VFS_MEMORY_LINES` sets how many matching lines the searched tree has; `VFS_MEMORY_TREE` names another tree, and
//! `VFS_MEMORY_PATTERN` what to find in it (default `return`).

#![expect(clippy::print_stdout, reason = "the figures are the report of this test, read from its processes")]

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::executor::block_on;
use libtest_mimic::{Arguments, Failed, Trial};
use vfs_core::{Backend, EditRequest, GrepEvent, GrepRequest, OpContext, VfsPath};
use vfs_local::LocalBackend;
use vfs_memory::MemoryBackend;
use vfs_tests::process::Usage;
use vfs_tests::settings::{directory, setting};

const STREAMED_LIMIT: u64 = 64_000_000;
const COLLECTED_LIMIT: u64 = 32_000_000;

/// Size of the edited file, whose old and new content are in memory together.
const EDITED_SIZE: usize = 32 << 20;
const EDIT_LIMIT: u64 = 72 << 20;

/// In every line of the tree that is made.
const PATTERN: &str = "return";

/// Finds a pattern, and returns how many matches were taken.
type Search = fn(&dyn Backend, &str) -> u64;

/// Each way to search: its name, what it does, and how much it may take.
const SEARCHES: [(&str, Search, u64); 3] = [
    ("streamed_and_dropped", stream, STREAMED_LIMIT),
    ("streamed_to_a_slow_reader", stream_slowly, STREAMED_LIMIT),
    ("collected_with_a_limit_of_1000", collect, COLLECTED_LIMIT),
];

/// Lines on each side of the diff, all of them different, and the maximum memory for both sides and the diff.
const DIFF_LINES: u64 = 2_000_000;
const DIFF_LIMIT: u64 = 160 << 20;

/// Searches that make their own files on a disk, in the same form.
const OWN_FILES: [(&str, Search, u64); 2] =
    [("edit_of_crlf", edit, EDIT_LIMIT), ("diff_of_all_lines", diff, DIFF_LIMIT)];

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, first, place, search, tree, pattern] = &arguments[..]
        && first == "measure"
    {
        measure(place, search, Path::new(tree), pattern);
        return ExitCode::SUCCESS;
    }
    let made = tempfile::tempdir().expect("a temporary directory");
    let (tree, pattern) = match directory("VFS_MEMORY_TREE") {
        Some(tree) => (tree, setting("VFS_MEMORY_PATTERN", PATTERN.to_owned())),
        None => {
            // An unoptimised build takes some twenty times as long, and as much memory.
            let lines = setting("VFS_MEMORY_LINES", if cfg!(debug_assertions) { 100_000 } else { 1_000_000 });
            make_tree(made.path(), lines).expect("the tree is made");
            (made.path().to_owned(), PATTERN.to_owned())
        }
    };
    let mut trials = Vec::new();
    for place in ["memory", "local"] {
        for (search, _, limit) in SEARCHES {
            let (tree, pattern) = (tree.clone(), pattern.clone());
            let name = format!("peak_memory::{place}::{search}");
            trials.push(Trial::test(name, move || check(place, search, &tree, &pattern, limit)));
        }
    }
    for (name, _, limit) in OWN_FILES {
        let (tree, pattern) = (tree.clone(), pattern.clone());
        trials.push(Trial::test(format!("peak_memory::local::{name}"), move || {
            check("local", name, &tree, &pattern, limit)
        }));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// One file with a tenth of the lines, and as many as it takes with 250 each.
fn make_tree(root: &Path, lines: usize) -> io::Result<()> {
    let text = |from: usize, count: usize| -> String {
        (from..from + count).map(|line| format!("\treturn call_{line}(context, {line});\n")).collect()
    };
    fs::write(root.join("large.c"), text(0, lines / 10))?;
    for file in 0..(lines - lines / 10) / 250 {
        let directory = root.join(format!("d{:03}", file / 50));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(format!("f{file:05}.c")), text(file * 250, 250))?;
    }
    Ok(())
}

/// Has a process of its own search, and looks at what it says.
fn check(place: &str, search: &str, tree: &Path, pattern: &str, limit: u64) -> Result<(), Failed> {
    let program = std::env::current_exe()?;
    let output = Command::new(program).args(["measure", place, search]).arg(tree).arg(pattern).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("it failed: {text}{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    print!("{place}, {search}: {text}");
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
    let (grew, found) = numbers.next().zip(numbers.next()).ok_or("it did not say how much, and of what")?;
    if found == 0 {
        return Err("it found nothing".into());
    }
    if grew < limit { Ok(()) } else { Err(format!("{grew} bytes are not under {limit}").into()) }
}

/// Searches, and prints by how much the peak of this process grew beyond what it began with.
fn measure(place: &str, search: &str, tree: &Path, pattern: &str) {
    let files: Arc<dyn Backend> = match place {
        "memory" => Arc::new(in_memory(tree)),
        _ => Arc::new(LocalBackend::open(tree).expect("the tree can be opened")),
    };
    let all = || SEARCHES.into_iter().chain(OWN_FILES);
    let (_, search, _) = all().find(|(name, ..)| *name == search).expect("it is one of them");
    // Reset the peak, so that it does not include the memory for filling the store.
    fs::write("/proc/self/clear_refs", "5").expect("a process may forget its own peak");
    let before = Usage::now();
    let found = search(&*files, pattern);
    let after = Usage::now();
    let grew = after.peak - before.resident;
    println!(
        "{grew} bytes more at the peak for {found} matches, from {} bytes, by {} threads",
        before.resident, after.threads
    );
}

fn in_memory(tree: &Path) -> MemoryBackend {
    let mut files = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(tree.join(&directory)).expect("the tree can be listed") {
            let entry = entry.expect("the tree can be listed");
            let below = directory.join(entry.file_name());
            let kind = entry.file_type().expect("the tree can be listed");
            if kind.is_dir() {
                directories.push(below);
            } else if let Some(path) = below.to_str().filter(|_| kind.is_file()) {
                let path = VfsPath::parse(&format!("/{path}")).expect("it is a path");
                files.push((path, fs::read(entry.path()).expect("the tree can be read").into()));
            }
        }
    }
    MemoryBackend::from_files(files).expect("the files fit one another")
}

fn stream(files: &dyn Backend, pattern: &str) -> u64 {
    block_on(matches(files, pattern).count()) as u64
}

/// Reads so slowly that the search is always as far ahead as it may be, and leaves after a while.
fn stream_slowly(files: &dyn Backend, pattern: &str) -> u64 {
    let slow = matches(files, pattern).take(50_000).inspect(|event| {
        let mut hash = DefaultHasher::new();
        for _ in 0..20 {
            format!("{event:?}").hash(&mut hash);
        }
        std::hint::black_box(hash.finish());
    });
    block_on(slow.count()) as u64
}

fn matches(files: &dyn Backend, pattern: &str) -> impl futures::Stream<Item = GrepEvent> {
    let events = files.grep_stream(OpContext::new(), GrepRequest::literal(pattern));
    let events = events.map(|event| event.expect("it searches"));
    events.filter(|event| std::future::ready(matches!(event, GrepEvent::Match(_))))
}

/// Edits a file in a directory of its own, and returns how many places were changed.
fn edit(_: &dyn Backend, _: &str) -> u64 {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let line = "a line of text\r\n";
    let text = line.repeat(EDITED_SIZE / line.len()) + "the last line\r\n";
    fs::write(directory.path().join("file"), text).expect("the file is written");
    let files = LocalBackend::open(directory.path()).expect("the directory can be opened");
    let path = VfsPath::parse("/file").expect("it is a path");
    let request = EditRequest::new(path, "the last line\n", "the last line\nand one more\n");
    block_on(files.edit(&OpContext::new(), request)).expect("it edits").occurrences
}

/// Compares two texts without a common line, and returns how many lines the diff has.
fn diff(_: &dyn Backend, _: &str) -> u64 {
    let text = |side: &str| (0..DIFF_LINES).map(|line| format!("{side}{line}\n")).collect::<String>();
    let path = VfsPath::parse("/file").expect("it is a path");
    let diff = vfs_core::edit::diff(&path, text("old").as_bytes(), text("new").as_bytes());
    diff.lines().count() as u64
}

fn collect(files: &dyn Backend, pattern: &str) -> u64 {
    let found = block_on(files.grep(&OpContext::new(), GrepRequest::literal(pattern).limit(1_000)));
    found.expect("it searches").matches.len() as u64
}
