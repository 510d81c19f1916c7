//! Data model of one rule.

use serde::{Deserialize, Serialize};

/// Effect of a rule on the operations that it covers. A rule without an effect is refused: it may be meant to deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleEffect {
    /// The operation is allowed.
    Allow,
    /// The operation is denied.
    Deny,
    /// The operation needs an approval.
    Ask,
}

/// Treatment of files with several names (hard links).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HardLinks {
    /// The files are not read: one of the other names may be a denied one.
    #[default]
    Deny,
    /// The files are read by the rules for the requested name alone.
    Allow,
}

/// One rule, in the form in which users write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rule {
    /// Name of the rule, for explanations and records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Effect on the operations that the rule covers.
    pub effect: RuleEffect,
    /// Permissions (`read`, `write`, `delete`, `execute`) and single operations (`rename`, `glob`, `upload`, ...). `grep`
    /// includes `grep_stream`, by which `vfs grep` searches.
    /// Default: all but `execute`, which a rule that allows has to name. In a rule that denies or asks, `write` includes
    /// `delete`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<String>,
    /// Globs over paths. A glob without a `/` is matched against names at any depth, a glob with a `/` against whole paths.
    /// Each covers its matches and everything below. Default: everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Command patterns, as words with wildcards: `git status`, `ls *`, `rm *`. A rule with command patterns covers running
    /// commands and nothing else; [`RuleSet`](crate::RuleSet) describes the matching. Default: any command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Globs over actors. A caller without a name is the empty string, which only `*` matches. Default: every actor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actors: Vec<String>,
    /// Reason, in words for the model or for the approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Rule {
    /// Returns a rule with `effect` that covers everything.
    pub fn new(effect: RuleEffect) -> Self {
        Self {
            name: None,
            effect,
            operations: Vec::new(),
            paths: Vec::new(),
            commands: Vec::new(),
            actors: Vec::new(),
            reason: None,
        }
    }

    /// Adds a glob to the paths that the rule is restricted to.
    #[must_use]
    pub fn path(mut self, glob: impl Into<String>) -> Self {
        self.paths.push(glob.into());
        self
    }

    /// Adds a permission or operation to those that the rule is restricted to.
    #[must_use]
    pub fn operation(mut self, word: impl Into<String>) -> Self {
        self.operations.push(word.into());
        self
    }

    /// Adds a pattern to the commands that the rule is restricted to.
    #[must_use]
    pub fn command(mut self, pattern: impl Into<String>) -> Self {
        self.commands.push(pattern.into());
        self
    }

    /// Adds a glob to the actors that the rule is restricted to.
    #[must_use]
    pub fn actor(mut self, glob: impl Into<String>) -> Self {
        self.actors.push(glob.into());
        self
    }

    /// Sets the name of the rule.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the reason.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}
