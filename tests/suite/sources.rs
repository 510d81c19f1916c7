//! The source files of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the name and directory of each crate, sorted.
pub(crate) fn crates() -> Vec<(String, PathBuf)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root").join("crates");
    let entries = fs::read_dir(directory).expect("the crates are listed").map(|entry| entry.expect("an entry").path());
    let mut crates: Vec<_> = entries
        .filter(|path| path.join("Cargo.toml").is_file())
        .map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), path))
        .collect();
    crates.sort();
    crates
}

/// Returns the Rust files below `directory`, sorted.
pub(crate) fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let (mut files, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("a directory is listed") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Returns the lines of `text` before its unit tests, without comments and without what only documentation needs.
pub(crate) fn code_of(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut is_for_docs = false;
    let mut code = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        if !is_for_docs {
            code.push_str(line);
            code.push('\n');
        }
        is_for_docs = line.trim() == "#[cfg(doc)]";
    }
    code
}
