//! Files that bubblewrap inherits by descriptor, and limits on the length of a command.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use rustix::io::Errno;
use vfs_core::{Error, ErrorKind, Result};

use crate::file_descriptors::few_descriptors;

/// Descriptors that bubblewrap inherits, numbered from 3.
#[derive(Debug, Default)]
pub(crate) struct InheritedFiles(pub(crate) Vec<(OwnedFd, i32)>);

impl InheritedFiles {
    pub(crate) fn add(&mut self, file: OwnedFd) -> i32 {
        let number = self.0.last().map_or(3, |(_, last)| last + 1);
        self.0.push((file, number));
        number
    }

    /// Adds a file in memory with this content, and returns the number of its descriptor.
    pub(crate) fn add_content(&mut self, bytes: &[u8]) -> Result<i32> {
        let file = memfd_create("sandbox", MemfdFlags::CLOEXEC).map_err(no_memory)?;
        let mut left = bytes;
        while !left.is_empty() {
            let written = rustix::io::write(&file, left).map_err(no_memory)?;
            left = &left[written..];
        }
        seek(&file, SeekFrom::Start(0)).map_err(no_memory)?;
        Ok(self.add(file))
    }
}

/// Encodes options as bubblewrap reads them from a descriptor.
pub(crate) fn encode_options(options: &[OsString]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in options {
        bytes.extend_from_slice(option.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// Returns the error for a file in memory that cannot be created.
pub(crate) fn no_memory(errno: Errno) -> Error {
    let error = match errno {
        Errno::MFILE | Errno::NFILE => few_descriptors(),
        _ => Error::new(ErrorKind::Unavailable, "not enough memory to start a command"),
    };
    error.with_source(errno)
}

/// Returns an error if the kernel would not start a shell with this command or environment, since only the helper would
/// see the error inside the sandbox.
pub(crate) fn check_length(command: &str, environment: &[(OsString, OsString)]) -> Result<()> {
    /// Maximum length of one argument or variable.
    const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;
    /// Maximum length of all of them, each with a pointer, for any limit of the stack.
    const MAX_TOTAL_BYTES: u64 = 6 << 20;
    /// Reserve for the other arguments.
    const OTHER_BYTES: usize = 8192;
    let variables = environment.iter().map(|(name, value)| name.len() + value.len() + 1);
    let longest = variables.clone().chain([command.len()]).max().unwrap_or(0);
    let stack = rustix::process::getrlimit(rustix::process::Resource::Stack).current.unwrap_or(u64::MAX);
    let all: usize = variables.map(|length| length + 9).sum::<usize>() + command.len() + OTHER_BYTES;
    if longest <= MAX_ARGUMENT_BYTES && all as u64 <= MAX_TOTAL_BYTES.min(stack / 4) {
        return Ok(());
    }
    let message = format!(
        "a command and each variable have at most {MAX_ARGUMENT_BYTES} bytes, and a few megabytes together; write it to a file and \
         run that"
    );
    Err(Error::new(ErrorKind::TooLarge, message))
}
