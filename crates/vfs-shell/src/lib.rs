//! Commands on the host that end when they should: a shell beside the files of a local root.

#[cfg(not(target_os = "linux"))]
compile_error!("vfs-shell needs Linux: it ends processes by what their supervisor sees in /proc");

mod launch;

pub use launch::{Launch, Launcher, Limits};
