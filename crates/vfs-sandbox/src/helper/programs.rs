//! Programs that a sandbox runs on the host, or on its way in: none that a command could have changed.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, FileType, Mode, OFlags, Stat, fstat, stat};
use rustix::io::Errno;

use crate::descriptors::{is_same, place};
use crate::protect::open_mount::Held;

/// Where the system's own programs are, which is looked at before `PATH`.
const PLACES: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];

/// A program of the host: at `beside`, where the system's own are, or in `PATH`. One that somebody else could change is
/// passed over, and told of where there is no other.
pub(crate) fn find(name: &str, beside: Option<PathBuf>, mounts: &[Held]) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = PLACES.iter().map(PathBuf::from).chain(std::env::split_paths(&path));
    let candidates = beside.into_iter().chain(places.map(|place| place.join(name)));
    let mut told = format!("{name} was not found");
    for candidate in candidates.filter(|path| path.is_absolute() && is_program(path)) {
        match trusted(&candidate, mounts) {
            Ok(program) => return Ok(program),
            Err(why) => told = why,
        }
    }
    Err(told)
}

/// The same program by a path without links, or why it is not run: commands can change what their mounts show, and
/// others of the host what they may write to, the directories above it among that.
pub(crate) fn trusted(path: &Path, mounts: &[Held]) -> Result<PathBuf, String> {
    let told = |why: &str| format!("{} is not run: {why}", path.display());
    if !is_program(path) {
        return Err(told("it is no program, or not there"));
    }
    let unknown = |errno: Errno| told(&format!("it cannot be looked at ({errno})"));
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let program = rustix::fs::open(path, flags, Mode::empty()).and_then(|held| place(&held)).map_err(unknown)?;
    for above in program.ancestors() {
        let status = stat(above).map_err(unknown)?;
        let is_shown = |mount: &Held| fstat(&mount.root).is_ok_and(|root| is_same(&root, &status));
        if let Some(mount) = mounts.iter().find(|mount| is_shown(mount)) {
            return Err(told(&format!("commands are shown it below {}; put it where they are not", mount.at)));
        }
        if is_open_to_others(&status) {
            let place = above.display();
            return Err(told(&format!("others may write to {place}; let it be root's or yours, and nobody else's")));
        }
    }
    Ok(program)
}

/// Whether somebody who is neither root nor this process' user may change it. In a directory with the sticky bit others
/// have only what is theirs.
fn is_open_to_others(status: &Stat) -> bool {
    let owner = status.st_uid;
    let is_ours = owner == 0 || owner == rustix::process::geteuid().as_raw();
    let is_directory = FileType::from_raw_mode(status.st_mode) == FileType::Directory;
    let is_sticky = is_directory && status.st_mode & libc::S_ISVTX != 0;
    let of_root = status.st_gid == 0;
    let writable = if of_root { libc::S_IWOTH } else { libc::S_IWGRP | libc::S_IWOTH };
    !is_ours || (status.st_mode & writable != 0 && !is_sticky)
}

/// Whether a file is there that may be run.
fn is_program(path: &Path) -> bool {
    let is_file = stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    is_file && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}
