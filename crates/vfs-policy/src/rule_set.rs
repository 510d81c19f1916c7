//! The built-in `PolicyHook`: an ordered list of rules, of which the first match decides.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use vfs_core::operation::RequestRef;
use vfs_core::{Error, ErrorKind, OpContext, Operation, Result, VfsPath};
use vfs_search::GlobPattern;

use crate::command_parser::{CommandPattern, RequestedCommand};
use crate::path_pattern::{CaseSensitivity, PathPattern};
use crate::policy::{Decision, Permission, PolicyHook};
use crate::required_permissions::{lists_entries, required_permissions};
use crate::rule::{HardLinks, Rule, RuleEffect};

/// Ordered list of rules: the first rule that covers an operation decides about it.
///
/// # Behaviour
///
/// * A rule covers an operation by the required permissions as well as by the operation's own word: `read` covers downloads,
///   searches, the source of a copy or rename and the path of an edit, `write` covers uploads and targets.
/// * A rule that denies `write` or asks about it covers `delete` too, since removing or moving a file away changes it. To allow
///   removal alone, put a rule for `delete` before it. A rule that asks does not hide a later rule, or a default, that denies
///   `delete`. A rule that allows `write` does not allow `delete`.
/// * Rules that deny or ask match paths case-insensitively; rules that allow match them exactly. So on a case-insensitive file
///   system, another spelling does not get past a denial. Spellings that differ by Unicode normalisation are different names to
///   a rule, even if a file system treats them as the same.
/// * Commands are denied unless a rule that names `execute` allows them: rules about paths cannot see the effects of a
///   command.
/// * Operations that no rule covers get the default effect, which is to allow.
///
/// # Commands
///
/// A rule with [`commands`](Rule::commands) is matched against the simple commands of a line, as parsed by
/// [`CommandLine`](crate::CommandLine).
///
/// * A pattern is a list of words, separated by blanks. In a word, `*` matches any text, `?` any character, and `\` makes the
///   next character literal. A `*` as the last word matches any number of further words, including none; elsewhere it matches
///   one word. Leading words such as `NAME=*` match variables that the request passes: in a rule that allows, variables that may
///   be passed; in a rule that denies or asks, variables that are passed.
/// * A rule that *allows* covers a line only if every command in it matches one of its patterns: the same words, no more and no
///   fewer, and no passed variable that the pattern does not list.
/// * A rule that *denies* or *asks* covers a line if a command in it may match one of its patterns: by the file name of the
///   program, case-insensitively, and with the other words of the pattern in their order, with any words between and after
///   them, so that `git push` covers `git -C /src push --force`.
/// * If a line is not understood, no such rule allows it. A rule that denies or asks covers it by the commands before the part
///   that is not understood, and by the words that follow a program that runs other commands (`sudo rm x`). When such a line
///   reaches a rule with commands that covers its actor and directory and does not deny it,
///   [`not_understood`](Self::with_not_understood) decides: the line is denied (`deny`), or the next rules are evaluated and, if
///   they allow it, an approval is required (`ask`, the default) or not (`allow`). A passed variable that determines what a shell
///   runs or finds, such as `PATH`, `BASH_ENV` and `LD_PRELOAD`, makes a line one that is not understood.
/// * The paths of such a rule are the directories in which a command runs. Paths in arguments, targets of redirections and the
///   effects of a program are not checked: a script that a program reads, an interpreter, `make` or `git` can do anything.
///   Command rules keep an honest agent from mistakes; to confine any other agent, use a sandbox, or an allow list of programs
///   that do one thing.
/// * Requests about jobs have no command line, so rules with commands do not cover them. If commands may run in the background,
///   allow `jobs`, `job_output` and `stop_job` by name.
///
/// ```
/// use vfs_core::{ExecuteRequest, VfsPath};
/// use vfs_policy::{RuleEffect, RuleSet};
///
/// let rules = RuleSet::from_toml(r#"
///     [[rules]]
///     effect = "deny"
///     commands = ["sudo *", "git push"]
///
///     [[rules]]
///     effect = "allow"
///     commands = ["git *", "ls *", "cargo test *"]
/// "#)?;
/// let effect = |line: &str| rules.explain_command(None, &ExecuteRequest::new(line)).effect;
/// assert_eq!(effect("git status && ls -l"), RuleEffect::Allow);
/// assert_eq!(effect("git status; git -C /src push"), RuleEffect::Deny);
/// // Not understood, so that no rule about commands allows it.
/// assert_eq!(effect("ls $(rm -rf /)"), RuleEffect::Deny);
/// # Ok::<(), vfs_core::Error>(())
/// ```
///
/// # Files
///
/// In TOML:
///
/// ```
/// use vfs_policy::RuleSet;
///
/// let rules = RuleSet::from_toml(r#"
///     default = "allow"
///
///     [[rules]]
///     name = "no secrets"
///     effect = "deny"
///     paths = ["/secrets", ".env", "*.pem"]
///
///     [[rules]]
///     effect = "ask"
///     operations = ["delete"]
///     actors = ["intern-*"]
///     reason = "an intern wants to delete something"
/// "#)?;
/// assert_eq!(rules.rules().len(), 2);
/// # Ok::<(), vfs_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "RuleSetData", into = "RuleSetData")]
pub struct RuleSet {
    data: RuleSetData,
    compiled: Vec<CompiledRule>,
}

/// Serialised form of a rule set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RuleSetData {
    default: RuleEffect,
    hard_links: HardLinks,
    not_understood: RuleEffect,
    rules: Vec<Rule>,
}

impl Default for RuleSetData {
    fn default() -> Self {
        Self {
            default: RuleEffect::Allow,
            hard_links: HardLinks::default(),
            not_understood: RuleEffect::Ask,
            rules: Vec::new(),
        }
    }
}

/// A rule with compiled patterns.
#[derive(Debug, Clone)]
struct CompiledRule {
    effect: RuleEffect,
    permissions: Vec<Permission>,
    operations: BTreeSet<Operation>,
    covers_all_operations: bool,
    paths: Vec<PathPattern>,
    actors: Vec<GlobPattern>,
    commands: Vec<CommandPattern>,
}

/// Result of an evaluation, with the deciding rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleEvaluation {
    pub(crate) effect: RuleEffect,
    /// Index of the deciding rule; `None` for the default.
    pub(crate) rule: Option<usize>,
    /// Part of the command line that is not understood, if it influenced the result.
    pub(crate) not_understood: Option<&'static str>,
}

/// One query of the rules: who does what at which path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuleQuery<'a> {
    pub(crate) actor: Option<&'a str>,
    pub(crate) operation: Option<Operation>,
    pub(crate) permission: Permission,
    pub(crate) path: &'a VfsPath,
    /// The command line, if the operation runs one.
    pub(crate) command: Option<&'a RequestedCommand>,
}

impl RuleSet {
    /// Returns a set that evaluates `rules` in this order, and allows operations that no rule covers.
    ///
    /// # Errors
    ///
    /// `invalid_pattern` and `invalid_argument`, with the number of the rule.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Result<Self> {
        Self::try_from(RuleSetData { rules: rules.into_iter().collect(), ..RuleSetData::default() })
    }

    /// Parses rules from TOML.
    ///
    /// # Errors
    ///
    /// `invalid_argument`, with the line, for text that is not TOML or not a rule, and those of [`RuleSet::new`].
    pub fn from_toml(text: &str) -> Result<Self> {
        let data: RuleSetData = toml::from_str(text).map_err(|error| unreadable(&error.to_string()))?;
        Self::try_from(data)
    }

    /// Parses rules from JSON.
    ///
    /// # Errors
    ///
    /// Those of [`RuleSet::from_toml`].
    pub fn from_json(text: &str) -> Result<Self> {
        let data: RuleSetData = serde_json::from_str(text).map_err(|error| unreadable(&error.to_string()))?;
        Self::try_from(data)
    }

    /// Sets the effect on operations that no rule covers. Default [`RuleEffect::Allow`].
    #[must_use]
    pub fn otherwise(mut self, effect: RuleEffect) -> Self {
        self.data.default = effect;
        self
    }

    /// Sets the treatment of files with several names. Default [`HardLinks::Deny`].
    #[must_use]
    pub fn with_hard_links(mut self, hard_links: HardLinks) -> Self {
        self.data.hard_links = hard_links;
        self
    }

    /// Sets the effect on command lines that command rules do not understand. Default [`RuleEffect::Ask`].
    #[must_use]
    pub fn with_not_understood(mut self, effect: RuleEffect) -> Self {
        self.data.not_understood = effect;
        self
    }

    /// Returns the rules, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.data.rules
    }

    pub(crate) fn decide(&self, query: RuleQuery<'_>) -> RuleEvaluation {
        let not_understood = query.command.and_then(RequestedCommand::not_understood);
        // Approvals by rules that do not name the operation, or do not understand the command. A later denial takes precedence.
        let mut ask_verdict: Option<RuleEvaluation> = None;
        let mut is_unclear = false;
        for (index, rule) in self.compiled.iter().enumerate().filter(|(_, rule)| rule.applies(query)) {
            let verdict = |effect| RuleEvaluation { effect, rule: Some(index), not_understood: None };
            let covers = rule.covers_command(query.command);
            if not_understood.is_some() && !rule.commands.is_empty() {
                let effect = self.data.not_understood;
                is_unclear |= effect != RuleEffect::Allow;
                let unclear = RuleEvaluation { not_understood, ..verdict(effect) };
                match effect {
                    RuleEffect::Deny if !(covers && rule.effect == RuleEffect::Deny) => return unclear,
                    RuleEffect::Ask => ask_verdict = ask_verdict.or(Some(unclear)),
                    _ => {}
                }
            }
            if !covers {
                continue;
            }
            if rule.effect == RuleEffect::Ask && !rule.names(query) {
                ask_verdict = ask_verdict.or(Some(verdict(RuleEffect::Ask)));
                continue;
            }
            return stricter(ask_verdict, verdict(rule.effect));
        }
        let effect = match self.data.default {
            // The default never allows a command.
            RuleEffect::Allow if query.permission == Permission::Execute => RuleEffect::Deny,
            default => default,
        };
        stricter(
            ask_verdict,
            RuleEvaluation { effect, rule: None, not_understood: not_understood.filter(|_| is_unclear) },
        )
    }

    /// Returns the parsed command line of `action`, if it has one and a rule has command patterns.
    fn requested_command(&self, action: &RequestRef<'_>) -> Option<RequestedCommand> {
        if self.compiled.iter().all(|rule| rule.commands.is_empty()) {
            return None;
        }
        match action {
            RequestRef::Execute(request) => Some(RequestedCommand::new(request)),
            RequestRef::ExecuteStream(request) => Some(RequestedCommand::new(&request.0)),
            _ => None,
        }
    }

    fn decision(&self, verdict: RuleEvaluation, query: RuleQuery<'_>) -> Decision {
        if verdict.effect == RuleEffect::Allow {
            return Decision::Allow;
        }
        let rule = verdict.rule.map(|rule| &self.data.rules[rule]);
        let reason = self.reason(verdict);
        match verdict.effect {
            RuleEffect::Allow => Decision::Allow,
            RuleEffect::Deny => Decision::Deny {
                reason: reason.unwrap_or_else(|| match (query.permission, rule) {
                    (Permission::Execute, None) => "no rule allows this command".to_owned(),
                    (Permission::Execute, Some(rule)) if !rule.commands.is_empty() => {
                        "a command in it is, or may be, one that is not allowed".to_owned()
                    }
                    (permission, rule) => {
                        match query.operation.and_then(|operation| change(operation, permission)) {
                            // The rule names the operation itself, not one of its permissions.
                            Some(change) if rule.is_some_and(|rule| names_alone(rule, change, permission)) => {
                                format!("{change} is not allowed here")
                            }
                            Some(change) => format!("{change} needs {permission}, which is not allowed here"),
                            None => format!("{permission} is not allowed here"),
                        }
                    }
                }),
            },
            RuleEffect::Ask => Decision::Ask {
                prompt: reason.unwrap_or_else(|| format!("allow {} of {}?", query.permission, query.path)),
            },
        }
    }

    /// Returns the reason of `verdict`: the text of the rule, or the part of a command line that is not understood.
    pub(crate) fn reason(&self, verdict: RuleEvaluation) -> Option<String> {
        match (verdict.not_understood, verdict.rule) {
            (Some(reason), _) => Some(format!("rules about commands do not understand this command line: {reason}")),
            (None, rule) => self.data.rules.get(rule?)?.reason.clone(),
        }
    }

    fn leads(&self, actor: Option<&str>, path: &VfsPath) -> bool {
        let query = RuleQuery { actor, operation: None, permission: Permission::Read, path, command: None };
        let last = self.decide(query).rule.unwrap_or(self.compiled.len());
        // Only rules before the one that denies the directory can have another effect below it.
        let mut earlier = self.compiled[..last].iter().filter(|rule| rule.effect != RuleEffect::Deny);
        earlier.any(|rule| rule.is_about(query) && rule.reaches(path))
    }
}

/// Returns the name of `operation` if it is a change that needs more than the permission of its own name. Others have no name:
/// a namespace or layer reads on its own account, by operations that the caller did not request.
fn change(operation: Operation, permission: Permission) -> Option<&'static str> {
    match operation {
        Operation::Write if permission == Permission::Read => Some("append"),
        Operation::Edit | Operation::Rename | Operation::Copy => Some(operation.code()),
        _ => None,
    }
}

/// Returns whether `rule` names the operation `change` and not the permission.
fn names_alone(rule: &Rule, change: &str, permission: Permission) -> bool {
    let names = |word: &str| rule.operations.iter().any(|operation| operation == word);
    names(change) && !names(permission.code())
}

/// Returns the stricter of `verdict` and `ask_verdict`, whose effect is to ask.
fn stricter(ask_verdict: Option<RuleEvaluation>, verdict: RuleEvaluation) -> RuleEvaluation {
    ask_verdict.filter(|_| verdict.effect != RuleEffect::Deny).unwrap_or(verdict)
}

impl CompiledRule {
    fn new(rule: &Rule) -> Result<Self> {
        let mut compiled = Self {
            effect: rule.effect,
            permissions: Vec::new(),
            operations: BTreeSet::new(),
            covers_all_operations: rule.operations.is_empty(),
            paths: rule.paths.iter().map(|glob| PathPattern::new(glob)).collect::<Result<_>>()?,
            actors: rule.actors.iter().map(|glob| GlobPattern::new(glob)).collect::<Result<_>>()?,
            commands: rule.commands.iter().map(|pattern| CommandPattern::new(pattern)).collect::<Result<_>>()?,
        };
        if !rule.commands.is_empty() && rule.operations.iter().any(|word| word != Permission::Execute.code()) {
            let message =
                "a rule with commands is about running them alone; write other operations in a rule of their own";
            return Err(Error::invalid_argument(message));
        }
        for word in &rule.operations {
            let permission = Permission::ALL.iter().find(|permission| permission.code() == word);
            match permission {
                Some(permission) => compiled.permissions.push(*permission),
                None => drop(compiled.operations.insert(Operation::from_str(word)?)),
            }
        }
        Ok(compiled)
    }

    fn case(&self) -> CaseSensitivity {
        if self.effect == RuleEffect::Allow { CaseSensitivity::Sensitive } else { CaseSensitivity::Insensitive }
    }

    /// Returns whether the rule covers the actor and the operation.
    fn is_about(&self, query: RuleQuery<'_>) -> bool {
        let actor = query.actor.unwrap_or_default();
        let is_actors = self.actors.is_empty() || self.actors.iter().any(|glob| glob.matches(actor));
        let is_operations = if !self.commands.is_empty() {
            query.permission == Permission::Execute
        } else if self.covers_all_operations {
            // A rule has to name `execute` to allow commands; one that denies everything denies commands too.
            query.permission != Permission::Execute || self.effect != RuleEffect::Allow
        } else {
            self.names(query) || self.implies(query.permission)
        };
        is_actors && is_operations
    }

    /// Returns whether the rule names the operation or the permission. A rule that names nothing covers everything.
    fn names(&self, query: RuleQuery<'_>) -> bool {
        self.covers_all_operations
            || !self.commands.is_empty()
            || self.permissions.contains(&query.permission)
            || query.operation.is_some_and(|operation| {
                [operation, operation.collecting()].iter().any(|operation| self.operations.contains(operation))
            })
    }

    /// Returns whether a rule that denies or asks covers `permission` without naming it: an actor that may not change a file may
    /// not remove it.
    fn implies(&self, permission: Permission) -> bool {
        self.effect != RuleEffect::Allow
            && permission == Permission::Delete
            && self.permissions.contains(&Permission::Write)
    }

    /// Returns whether the rule covers the actor, operation and path; command patterns are not evaluated.
    fn applies(&self, query: RuleQuery<'_>) -> bool {
        self.is_about(query)
            && (self.paths.is_empty() || self.paths.iter().any(|glob| glob.covers(query.path, self.case())))
    }

    fn covers_command(&self, command: Option<&RequestedCommand>) -> bool {
        self.commands.is_empty()
            || command.is_some_and(|command| match self.effect {
                RuleEffect::Allow => command.is_all(&self.commands),
                RuleEffect::Deny | RuleEffect::Ask => command.may_have(&self.commands),
            })
    }

    fn reaches(&self, directory: &VfsPath) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|glob| glob.reaches(directory, self.case()))
    }
}

impl TryFrom<RuleSetData> for RuleSet {
    type Error = Error;

    fn try_from(data: RuleSetData) -> Result<Self> {
        let compiled = data.rules.iter().enumerate().map(|(index, rule)| {
            CompiledRule::new(rule).map_err(|error| {
                let name = rule.name.as_ref().map(|name| format!(" ('{name}')")).unwrap_or_default();
                Error::new(error.kind(), format!("rule {}{name}: {}", index + 1, error.message()))
            })
        });
        let compiled = compiled.collect::<Result<_>>()?;
        Ok(Self { data, compiled })
    }
}

impl From<RuleSet> for RuleSetData {
    fn from(rules: RuleSet) -> Self {
        rules.data
    }
}

fn unreadable(message: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("the rules cannot be read: {}", message.trim()))
}

#[async_trait]
impl PolicyHook for RuleSet {
    async fn check(&self, cx: &OpContext, action: &RequestRef<'_>) -> Decision {
        let mut strictest = Decision::Allow;
        let command = self.requested_command(action);
        for need in required_permissions(action) {
            let query = RuleQuery {
                actor: cx.actor(),
                operation: Some(action.operation()),
                permission: need.permission,
                path: need.path,
                command: command.as_ref(),
            };
            let verdict = self.decide(query);
            match self.decision(verdict, query) {
                Decision::Allow => {}
                _ if lists_entries(action) && self.leads(cx.actor(), need.path) => {}
                ask @ Decision::Ask { .. } => strictest = ask,
                deny @ Decision::Deny { .. } => return deny,
            }
        }
        strictest
    }

    async fn check_path(&self, cx: &OpContext, permission: Permission, path: &VfsPath) -> Decision {
        let query = RuleQuery { actor: cx.actor(), operation: None, permission, path, command: None };
        self.decision(self.decide(query), query)
    }

    fn leads_on(&self, cx: &OpContext, path: &VfsPath) -> bool {
        self.leads(cx.actor(), path)
    }

    fn differs_below(&self, _cx: &OpContext, path: &VfsPath) -> bool {
        // The root needs no evaluation, since every pattern may cover a path below it. It is checked before every operation.
        self.compiled.iter().any(|rule| !rule.paths.is_empty() && (path.is_root() || rule.reaches(path)))
    }

    fn hard_links(&self) -> HardLinks {
        let denies = |effect| effect != RuleEffect::Allow;
        // If nothing is denied, no other name of a file can be a denied one.
        let may_hide = denies(self.data.default) || self.data.rules.iter().any(|rule| denies(rule.effect));
        if may_hide { self.data.hard_links } else { HardLinks::Allow }
    }
}
