//! What is searched and read: prepared once, in the cache.

mod lines;
mod linux;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::run::say;

pub(crate) use lines::{HUGE, LARGE, SMALL};
pub(crate) use linux::RARE as LINUX_RARE;
pub(crate) use source::{CALL, DIRECTORY, EACH, RARE, RETURN};

/// L, the kernel's source.
pub(crate) fn linux(cache: &Path) -> Result<PathBuf> {
    linux::fetch(cache)
}

/// S, 20,000 source-like files.
pub(crate) fn sources(cache: &Path) -> Result<PathBuf> {
    made(cache, "S", source::write_sources)
}

/// P, 20,000 names that end in `.py`.
pub(crate) fn modules(cache: &Path) -> Result<PathBuf> {
    made(cache, "P", source::write_modules)
}

/// B, large files.
pub(crate) fn lines(cache: &Path) -> Result<PathBuf> {
    made(cache, "B", lines::write)
}

/// A corpus that is there is whole: it is made under another name first.
fn made(cache: &Path, name: &str, write: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let root = cache.join(name);
    if !root.is_dir() {
        say(format_args!("making corpus {name}"));
        let partial = cache.join(format!("{name}.partial"));
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        fs::create_dir_all(&partial)?;
        write(&partial)?;
        fs::rename(partial, &root)?;
    }
    Ok(root)
}
