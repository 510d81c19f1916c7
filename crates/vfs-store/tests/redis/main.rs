//! The Redis store over real servers.
//!
//! `VFS_TEST_REDIS` is the URL of a server that may be written to; each test uses a prefix of its own there. Tests that need a
//! server of a certain kind start the program `redis-server`. Where one of the two is missing, a test says so and ends.
#![cfg(feature = "redis")]
#![expect(clippy::print_stdout, reason = "a test that is skipped says why")]

mod faults;
mod lost;
mod proxy;
mod shared;
mod support;
mod values;
