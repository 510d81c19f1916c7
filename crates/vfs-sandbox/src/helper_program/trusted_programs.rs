//! Search for trusted programs of the host, which commands cannot have changed.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, FileType, Mode, OFlags, Stat, fstat, stat};
use rustix::io::Errno;

use crate::file_descriptors::{is_same, path_of};
use crate::protect::open_mount::OpenMount;

/// Directories that are searched before `PATH`.
const PROGRAM_DIRECTORIES: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];

/// Finds a trusted program: at `beside`, in the system's directories, or in `PATH`. If a program was found but is not
/// trusted, the error has the reason.
pub(crate) fn find(name: &str, beside: Option<PathBuf>, mounts: &[OpenMount]) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = PROGRAM_DIRECTORIES.iter().map(PathBuf::from).chain(std::env::split_paths(&path));
    let candidates = beside.into_iter().chain(places.map(|place| place.join(name)));
    let mut error = format!("{name} was not found");
    for candidate in candidates.filter(|path| path.is_absolute() && is_program(path)) {
        match verify(&candidate, mounts) {
            Ok(program) => return Ok(program),
            Err(why) => error = why,
        }
    }
    Err(error)
}

/// Returns the real path of a trusted program, or why it is not trusted. Commands can change the files of their mounts,
/// and other users the files and directories that they may write to.
pub(crate) fn verify(path: &Path, mounts: &[OpenMount]) -> Result<PathBuf, String> {
    let refused = |why: &str| format!("{} is not run: {why}", path.display());
    if !is_program(path) {
        return Err(refused("it is missing or not executable"));
    }
    let unknown = |errno: Errno| refused(&format!("it cannot be examined ({errno})"));
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let program = rustix::fs::open(path, flags, Mode::empty()).and_then(|file| path_of(&file)).map_err(unknown)?;
    for above in program.ancestors() {
        let status = stat(above).map_err(unknown)?;
        let is_shown = |mount: &OpenMount| fstat(&mount.root).is_ok_and(|root| is_same(&root, &status));
        if let Some(mount) = mounts.iter().find(|mount| is_shown(mount)) {
            return Err(refused(&format!("commands can see it below {}; keep it outside of the mounts", mount.at)));
        }
        if is_open_to_others(&status) {
            let place = above.display();
            return Err(refused(&format!(
                "others may write to {place}; change its owner to root or yourself, and let nobody else write to it"
            )));
        }
    }
    Ok(program)
}

/// Returns whether a user other than root and the user of this process may change the file. In a directory with the
/// sticky bit, others can change only their own files.
fn is_open_to_others(status: &Stat) -> bool {
    let owner = status.st_uid;
    let is_ours = owner == 0 || owner == rustix::process::geteuid().as_raw();
    let is_directory = FileType::from_raw_mode(status.st_mode) == FileType::Directory;
    let is_sticky = is_directory && status.st_mode & libc::S_ISVTX != 0;
    let of_root = status.st_gid == 0;
    let writable = if of_root { libc::S_IWOTH } else { libc::S_IWGRP | libc::S_IWOTH };
    !is_ours || (status.st_mode & writable != 0 && !is_sticky)
}

/// Returns whether `path` is a regular file that this process may execute.
fn is_program(path: &Path) -> bool {
    let is_file = stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    is_file && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}
