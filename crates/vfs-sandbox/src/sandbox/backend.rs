//! Files and commands of a sandbox, as one backend.

use std::sync::Arc;

use vfs_composite::CompositeBackend;
use vfs_core::{Access, Backend, Layer as _, Result};
use vfs_layers::ReadOnly;
use vfs_memory::MemoryBackend;
use vfs_policy::{HardLinks, Policy, PolicyBackend, Rule, RuleEffect, RuleSet};
use vfs_shell::{ShellConfig, WithShell};

use crate::config::Protection;
use crate::protect::open_mount::Held;
use crate::sandbox::OsSandbox;
use crate::sandbox::commands::SandboxCommands;

/// The files that a sandbox shows, and commands in it, which see them at the same paths.
///
/// Beside the mounts there is nothing, and nothing can be written there; what is protected from commands is protected from
/// file tools, too.
pub type OsSandboxBackend = WithShell<SandboxCommands>;

impl OsSandbox {
    /// Its files and its commands, with the default settings of commands.
    ///
    /// # Errors
    ///
    /// As [`into_backend_with`](Self::into_backend_with).
    pub fn into_backend(self) -> Result<OsSandboxBackend> {
        self.into_backend_with(ShellConfig::new())
    }

    /// Its files and its commands.
    ///
    /// # Errors
    ///
    /// `invalid_pattern` for a protected path that no rule can name.
    pub fn into_backend_with(self, config: ShellConfig) -> Result<OsSandboxBackend> {
        let nothing = ReadOnly.layer(Arc::new(MemoryBackend::new()));
        let namespace = CompositeBackend::new(nothing);
        for mount in self.setup.mounts.iter() {
            namespace.mount(mount.at.clone(), self.files(mount)?)?;
        }
        Ok(WithShell::new("sandbox", Arc::new(namespace), SandboxCommands::new(self, config)))
    }

    fn files(&self, mount: &Held) -> Result<Arc<dyn Backend>> {
        let mut files: Arc<dyn Backend> = Arc::new(mount.files.clone());
        let config = self.config();
        let rules: Vec<Rule> = (mount.protected.iter())
            .map(|protected| rule(literal(protected.path.as_str()), protected.protection))
            // A pattern without a `/` is about a name at any depth.
            .chain(config.protected_names.iter().map(|protected| rule(literal(&protected.name), protected.protection)))
            .collect();
        if !rules.is_empty() {
            let rules = RuleSet::new(rules)?.with_hard_links(HardLinks::Allow);
            files = Arc::new(PolicyBackend::new(files, Policy::new(Arc::new(rules))));
        }
        if mount.access != Access::ReadWrite {
            files = ReadOnly.layer(files);
        }
        Ok(files)
    }
}

fn rule(pattern: String, protection: Protection) -> Rule {
    let rule = Rule::new(RuleEffect::Deny).path(pattern).reason("the sandbox protects it");
    match protection {
        Protection::ReadOnly => rule.operation("write").operation("delete"),
        Protection::Hidden => rule,
    }
}

/// A path or name as a pattern that matches nothing else.
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
