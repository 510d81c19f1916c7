//! Backend with the files and commands of a sandbox.

use std::sync::Arc;

use vfs_composite::CompositeBackend;
use vfs_core::backend::AccessMode;
use vfs_core::{Backend, Layer as _, Result};
use vfs_layers::ReadOnly;
use vfs_memory::MemoryBackend;
use vfs_policy::{HardLinks, Policy, PolicyBackend, Rule, RuleEffect, RuleSet};
use vfs_shell::{ShellConfig, WithShell};

use crate::config::ProtectionLevel;
use crate::protect::open_mount::OpenMount;
use crate::sandbox::OsSandbox;
use crate::sandbox::sandbox_shell::SandboxShell;

/// The files of a sandbox, and commands in it, which see them at the same paths.
///
/// There are no files outside of the mounts, and none can be created there. Paths and names that are protected from
/// commands are protected from file tools, too.
pub type OsSandboxBackend = WithShell<SandboxShell>;

impl OsSandbox {
    /// Returns a backend of the sandbox, with the default settings of commands.
    ///
    /// # Errors
    ///
    /// Those of [`into_backend_with`](Self::into_backend_with).
    pub fn into_backend(self) -> Result<OsSandboxBackend> {
        self.into_backend_with(ShellConfig::new())
    }

    /// Returns a backend of the sandbox that runs commands with these settings.
    ///
    /// # Errors
    ///
    /// `invalid_pattern` for a protected path that no rule can express.
    pub fn into_backend_with(self, config: ShellConfig) -> Result<OsSandboxBackend> {
        let nothing = ReadOnly.layer(Arc::new(MemoryBackend::new()));
        let namespace = CompositeBackend::new(nothing);
        for mount in self.setup.mounts.iter() {
            namespace.mount(mount.at.clone(), self.files(mount)?)?;
        }
        Ok(WithShell::new("sandbox", Arc::new(namespace), SandboxShell::new(self, config)))
    }

    fn files(&self, mount: &OpenMount) -> Result<Arc<dyn Backend>> {
        let mut files: Arc<dyn Backend> = Arc::new(mount.files.clone());
        let config = self.config();
        let rules: Vec<Rule> = (mount.protected.iter())
            .map(|protected| rule(literal(protected.path.as_str()), protected.protection))
            // A pattern without `/` matches a name at any depth.
            .chain(config.protected_names.iter().map(|protected| rule(literal(&protected.name), protected.protection)))
            .collect();
        if !rules.is_empty() {
            let rules = RuleSet::new(rules)?.with_hard_links(HardLinks::Allow);
            files = Arc::new(PolicyBackend::new(files, Policy::new(Arc::new(rules))));
        }
        if mount.access != AccessMode::ReadWrite {
            files = ReadOnly.layer(files);
        }
        Ok(files)
    }
}

fn rule(pattern: String, protection: ProtectionLevel) -> Rule {
    let rule = Rule::new(RuleEffect::Deny).path(pattern).reason("the sandbox protects it");
    match protection {
        ProtectionLevel::ReadOnly => rule.operation("write").operation("delete"),
        ProtectionLevel::Hidden => rule,
    }
}

/// Returns a pattern that matches only this path or name.
fn literal(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for character in path.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '!' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}
