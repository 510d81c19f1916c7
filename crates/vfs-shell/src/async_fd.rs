//! Registration of descriptors with the runtime's IO driver.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers `fd` with the runtime for `interest`. Needs a runtime with its IO driver.
pub(crate) fn register(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    #[allow(deprecated, reason = "an owned descriptor stays what it is, and what replaces this is new in tokio")]
    AsyncFd::with_interest(fd, interest)
}
