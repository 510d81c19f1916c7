//! The laws of files on the virtual shell, which passes them on. The laws of shells are in the workspace's `tests/shells`.

use std::sync::Arc;

use libtest_mimic::Arguments;
use vfs_memory::MemoryBackend;
use vfs_testkit::{Target, TargetFactory, trials};
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

fn files() -> Target {
    Target::new(Arc::new(VirtualShell::new(Arc::new(MemoryBackend::new()), VirtualShellConfig::new())))
}

fn main() {
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, trials(TargetFactory::new("virtual_shell_files", files))).exit();
}
