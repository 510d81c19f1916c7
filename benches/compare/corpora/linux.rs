//! Corpus L: the kernel's source as Debian packages it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::run::{checked, say};

/// Debian's package, and the directory that its archive unpacks to.
const PACKAGE: &str = "linux-source-6.1";
/// Stands on a handful of its lines.
pub(crate) const RARE: &str = "securityfs_create_symlink";

/// Fetches and unpacks it below `cache`, unless it is there.
pub(super) fn fetch(cache: &Path) -> Result<PathBuf> {
    let root = cache.join("L").join(PACKAGE);
    if root.join("Makefile").is_file() {
        return Ok(root);
    }
    say(format_args!("fetching {PACKAGE}"));
    let unpacking = cache.join("L.partial");
    if unpacking.exists() {
        fs::remove_dir_all(&unpacking)?;
    }
    fs::create_dir_all(&unpacking)?;
    checked(Command::new("apt-get").args(["download", PACKAGE]).current_dir(&unpacking))?;
    let mut packages = fs::read_dir(&unpacking)?.filter_map(|entry| Some(entry.ok()?.path()));
    let package = packages.find(|path| path.extension().is_some_and(|end| end == "deb"));
    let package = package.context("apt-get left no package")?;
    checked(Command::new("dpkg").arg("-x").arg(package).arg("package").current_dir(&unpacking))?;
    let archive = format!("package/usr/src/{PACKAGE}.tar.xz");
    checked(Command::new("tar").arg("-xf").arg(archive).current_dir(&unpacking))?;
    keep_rules_of_the_kernel(&unpacking.join(PACKAGE).join(".gitignore"))?;
    fs::create_dir_all(cache.join("L"))?;
    fs::rename(unpacking.join(PACKAGE), &root)?;
    fs::remove_dir_all(unpacking)?;
    ensure!(root.join("Makefile").is_file(), "the archive of {PACKAGE} does not hold a kernel");
    Ok(root)
}

/// Removes Debian's rules from the ignore file of the kernel: they exclude all of it, so that `rg` would search nothing in a
/// repository.
fn keep_rules_of_the_kernel(ignore_file: &Path) -> Result<()> {
    let rules = fs::read_to_string(ignore_file)?;
    if let Some((of_the_kernel, _)) = rules.split_once("\n#\n# Debian packaging") {
        fs::write(ignore_file, format!("{of_the_kernel}\n"))?;
    }
    Ok(())
}
