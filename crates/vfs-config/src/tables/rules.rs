//! Tables of policy rules.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use vfs_policy::{HardLinks, Rule, RuleEffect};

/// Access rules; the first one that covers an operation decides about it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RulesTable {
    /// The effect on operations that no rule covers. Default: `allow`. Commands always need a rule.
    pub(crate) default: Option<EffectSetting>,
    /// The effect on files with several hard links. Default: `deny`, if any rule denies.
    pub(crate) hard_links: Option<HardLinksSetting>,
    /// The effect on command lines that rules with `commands` do not understand. Default: `ask`.
    pub(crate) not_understood: Option<EffectSetting>,
    /// The rules.
    #[serde(default)]
    #[schemars(with = "Vec<RuleTable>")]
    pub(crate) rules: Vec<Spanned<RuleTable>>,
}

/// An access rule.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleTable {
    /// The effect on the operations that the rule covers.
    effect: EffectSetting,
    /// The name of the rule in explanations.
    name: Option<String>,
    /// Permissions (`read`, `write`, `delete`, `execute`) and single operations (`rename`, `grep`, ...). Default: all; but to
    /// allow `execute`, name it.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(crate) operations: Vec<Spanned<String>>,
    /// Globs. A glob without a `/` is matched against names at any depth, a glob with a `/` against whole paths. Each covers the
    /// paths that match and everything below. Default: all paths.
    #[serde(default)]
    paths: Vec<String>,
    /// Patterns of command lines, as words with wildcards: `git status`, `ls *`, `rm *`. A rule with patterns applies to commands
    /// only. A rule that allows covers a line if every command in the line matches a pattern; a rule that denies or asks covers
    /// a line if any command may match. Expansions, assignments, the shell's grammar, and programs that run others, such as
    /// `env` and `xargs`, are not understood: see `not_understood`. Default: any command.
    #[serde(default)]
    commands: Vec<String>,
    /// Globs of actors. Default: all actors.
    #[serde(default)]
    actors: Vec<String>,
    /// The reason, which is shown to the model and to approvers.
    reason: Option<String>,
}

impl RuleTable {
    pub(crate) fn to_rule(&self) -> Rule {
        let mut rule = Rule::new(self.effect.into());
        rule.name.clone_from(&self.name);
        rule.operations = self.operations.iter().map(|operation| operation.get_ref().clone()).collect();
        rule.paths.clone_from(&self.paths);
        rule.commands.clone_from(&self.commands);
        rule.actors.clone_from(&self.actors);
        rule.reason.clone_from(&self.reason);
        rule
    }
}

/// The effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EffectSetting {
    /// The operation is allowed.
    Allow,
    /// The operation is denied.
    Deny,
    /// An approver has to allow the operation.
    Ask,
}

impl From<EffectSetting> for RuleEffect {
    fn from(setting: EffectSetting) -> Self {
        match setting {
            EffectSetting::Allow => Self::Allow,
            EffectSetting::Deny => Self::Deny,
            EffectSetting::Ask => Self::Ask,
        }
    }
}

/// The effect on files with several hard links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PolicyHardLinks")]
pub(crate) enum HardLinksSetting {
    /// They cannot be read: another of their names may be denied.
    Deny,
    /// They are subject to the rules for the name in the request.
    Allow,
}

impl From<HardLinksSetting> for HardLinks {
    fn from(setting: HardLinksSetting) -> Self {
        match setting {
            HardLinksSetting::Deny => Self::Deny,
            HardLinksSetting::Allow => Self::Allow,
        }
    }
}
