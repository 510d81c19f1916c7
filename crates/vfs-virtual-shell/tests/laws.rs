//! The laws of shells, and those of files, on the virtual shell over a store in memory.

use std::sync::Arc;

use libtest_mimic::Arguments;
use vfs_core::Backend;
use vfs_memory::MemoryBackend;
use vfs_testkit::{ShellFactory, ShellFeature, ShellTarget, Target, TargetFactory, shell_trials, trials};
use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};

/// What takes processes, or shows the serving one.
const MISSING: &[ShellFeature] = &[
    ShellFeature::Terminal,
    ShellFeature::InheritedEnvironment,
    ShellFeature::Processes,
    ShellFeature::Sessions,
    ShellFeature::Signals,
    ShellFeature::Links,
];

fn files() -> Arc<dyn Backend> {
    Arc::new(VirtualShell::new(Arc::new(MemoryBackend::new()), VirtualShellConfig::new()))
}

fn shell() -> ShellTarget {
    let reason = "the interpreter reaches no names with control characters";
    ShellTarget::new(Target::new(files())).without(MISSING).except("XD10", reason).except("XF11", reason)
}

fn main() {
    let arguments = Arguments::from_args();
    let shells = ShellFactory::new("virtual_shell", || async { Ok(shell()) });
    let mut all = shell_trials(shells);
    all.extend(trials(TargetFactory::new("virtual_shell_files", || Target::new(files()))));
    libtest_mimic::run(&arguments, all).exit();
}
