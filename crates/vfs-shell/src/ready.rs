//! Descriptors that the runtime watches.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// `fd`, with the runtime told to say when it is ready for `interest`. Needs a runtime with its IO driver.
pub(crate) fn watched(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    #[allow(deprecated, reason = "an owned descriptor stays what it is, and what replaces this is new in tokio")]
    AsyncFd::with_interest(fd, interest)
}
