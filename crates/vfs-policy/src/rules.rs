//! The built-in `PolicyHook`: an ordered list of rules, of which the first match decides.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use vfs_core::{Action, Error, ErrorKind, OpContext, Operation, Result, VfsPath};
use vfs_search::GlobPattern;

use crate::commands::{CommandPattern, RequestedCommand};
use crate::pattern::{Case, PathPattern};
use crate::policy::{Decision, Permission, PolicyHook};
use crate::required_permissions::{lists_entries, required_permissions};
use crate::rule::{HardLinks, Rule, RuleEffect};

/// Rules in order: the first that covers something decides about it.
///
/// # Behaviour
///
/// * A rule covers an operation by its permissions as well as by its own word: `read` is about downloads, searches, the
///   source of a copy or rename and the place of an edit, `write` about uploads and targets.
/// * A rule that denies `write` or asks about it covers `delete` too: what is removed or moved away is changed. Where only
///   removing is to be allowed, a rule before it says so. One that asks does not hide a later one, or a default, that denies
///   `delete`. A rule that allows `write` does not allow to remove.
/// * Rules that deny or ask match paths whatever the case of their letters; rules that allow match them as they are
///   written. So on a file system that folds case, other cases do not get past a denial. Other spellings that a file
///   system may take for the same, by Unicode normalisation, are other names to a rule.
/// * Commands are denied unless a rule that names `execute` allows them: what a command does, no rule about paths can see.
/// * What no rule covers is the default's, which allows.
///
/// # Commands
///
/// A rule with [`commands`](Rule::commands) looks at the simple commands of a line, as far as a
/// [`CommandLine`](crate::CommandLine) understands it.
///
/// * A pattern is words, separated by blanks. In a word `*` is any text, `?` any character, and `\` takes the next character
///   as it is. A `*` of its own at the end is any number of further words, none included; elsewhere it is one word. Leading
///   words such as `NAME=*` are variables that the request passes: which may be passed in a rule that allows, and are passed
///   in one that denies or asks.
/// * A rule that *allows* covers a line only if every command in it is one of its patterns: the same words, no more and no
///   fewer, and no variable that is passed and not written.
/// * A rule that *denies* or *asks* covers a line if a command in it may be one of its patterns: by the file name of its
///   name, whatever the case of its letters, and with the other words of the pattern in their order, whatever stands between
///   and after them, so that `git push` covers `git -C /src push --force`.
/// * A line that is not understood no such rule allows; one that denies or asks covers it by the commands before what is
///   not understood, and by what stands openly behind a program that runs others (`sudo rm x`). Where it comes to a rule
///   with commands that is about its actor and directory and does not deny it,
///   [`not_understood`](Self::with_not_understood) decides: it is denied, or goes on to the next rules, and is asked about
///   (the default) where these allow it, or is not (`allow`). A variable that is passed and decides what a shell runs or
///   finds, such as `PATH`, `BASH_ENV` and `LD_PRELOAD`, makes a line one that is not understood.
/// * The paths of the rule are those a command runs in. Paths in its words and targets of redirections are not looked at,
///   nor is what a program does: a script that a program reads, an interpreter, `make` or `git` can do anything. Rules about
///   commands keep an honest agent from doing what it should not; to hold one that is not takes a sandbox, or an allow list
///   of programs that do one thing.
/// * Requests about jobs have no command line: rules with commands do not cover them. Allow `jobs`, `job_output` and
///   `stop_job` by name where commands may run in the background.
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
#[serde(try_from = "Written", into = "Written")]
pub struct RuleSet {
    written: Written,
    compiled: Vec<Compiled>,
}

/// The rules as they are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    default: RuleEffect,
    hard_links: HardLinks,
    not_understood: RuleEffect,
    rules: Vec<Rule>,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            default: RuleEffect::default(),
            hard_links: HardLinks::default(),
            not_understood: RuleEffect::Ask,
            rules: Vec::new(),
        }
    }
}

/// A rule, ready to match.
#[derive(Debug, Clone)]
struct Compiled {
    effect: RuleEffect,
    permissions: Vec<Permission>,
    operations: BTreeSet<Operation>,
    covers_all_operations: bool,
    paths: Vec<PathPattern>,
    actors: Vec<GlobPattern>,
    commands: Vec<CommandPattern>,
}

/// Which rule decided, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) effect: RuleEffect,
    /// Its place in the list; `None` for the default.
    pub(crate) rule: Option<usize>,
    /// What in a command line rules do not understand, where that had a part in it.
    pub(crate) not_understood: Option<&'static str>,
}

/// One thing that is asked of the rules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) actor: Option<&'a str>,
    pub(crate) operation: Option<Operation>,
    pub(crate) permission: Permission,
    pub(crate) path: &'a VfsPath,
    /// The command line, where one is to be run.
    pub(crate) command: Option<&'a RequestedCommand>,
}

impl RuleSet {
    /// Rules that are asked in this order; what none covers is allowed.
    ///
    /// # Errors
    ///
    /// `invalid_pattern` and `invalid_argument`, with the number of the rule.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Result<Self> {
        Self::try_from(Written { rules: rules.into_iter().collect(), ..Written::default() })
    }

    /// Reads rules from TOML.
    ///
    /// # Errors
    ///
    /// `invalid_argument`, naming the line, for what is not TOML or not a rule, and those of [`RuleSet::new`].
    pub fn from_toml(text: &str) -> Result<Self> {
        let written: Written = toml::from_str(text).map_err(|error| unreadable(&error.to_string()))?;
        Self::try_from(written)
    }

    /// Reads rules from JSON.
    ///
    /// # Errors
    ///
    /// As [`RuleSet::from_toml`].
    pub fn from_json(text: &str) -> Result<Self> {
        let written: Written = serde_json::from_str(text).map_err(|error| unreadable(&error.to_string()))?;
        Self::try_from(written)
    }

    /// Sets what becomes of what no rule covers. Default [`RuleEffect::Allow`].
    #[must_use]
    pub fn otherwise(mut self, effect: RuleEffect) -> Self {
        self.written.default = effect;
        self
    }

    /// Sets what becomes of files that have several names. Default [`HardLinks::Deny`].
    #[must_use]
    pub fn with_hard_links(mut self, hard_links: HardLinks) -> Self {
        self.written.hard_links = hard_links;
        self
    }

    /// Sets what becomes of command lines that rules about commands do not understand. Default [`RuleEffect::Ask`].
    #[must_use]
    pub fn with_not_understood(mut self, effect: RuleEffect) -> Self {
        self.written.not_understood = effect;
        self
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.written.rules
    }

    pub(crate) fn decide(&self, question: Question<'_>) -> Verdict {
        let not_understood = question.command.and_then(RequestedCommand::not_understood);
        // Rules that ask about more than they name, or about what they do not understand; neither hides what forbids it.
        let mut asked: Option<Verdict> = None;
        let mut is_unclear = false;
        for (index, rule) in self.compiled.iter().enumerate().filter(|(_, rule)| rule.applies(question)) {
            let verdict = |effect| Verdict { effect, rule: Some(index), not_understood: None };
            let covers = rule.covers_command(question.command);
            if not_understood.is_some() && !rule.commands.is_empty() {
                let effect = self.written.not_understood;
                is_unclear |= effect != RuleEffect::Allow;
                let unclear = Verdict { not_understood, ..verdict(effect) };
                match effect {
                    RuleEffect::Deny if !(covers && rule.effect == RuleEffect::Deny) => return unclear,
                    RuleEffect::Ask => asked = asked.or(Some(unclear)),
                    _ => {}
                }
            }
            if !covers {
                continue;
            }
            if rule.effect == RuleEffect::Ask && !rule.names(question) {
                asked = asked.or(Some(verdict(RuleEffect::Ask)));
                continue;
            }
            return stricter(asked, verdict(rule.effect));
        }
        let effect = match self.written.default {
            // What no rule says of commands is not said by a default either.
            RuleEffect::Allow if question.permission == Permission::Execute => RuleEffect::Deny,
            default => default,
        };
        stricter(asked, Verdict { effect, rule: None, not_understood: not_understood.filter(|_| is_unclear) })
    }

    /// The command line of `action`, read where a rule is about commands.
    fn requested_command(&self, action: &Action<'_>) -> Option<RequestedCommand> {
        if self.compiled.iter().all(|rule| rule.commands.is_empty()) {
            return None;
        }
        match action {
            Action::Execute(request) => Some(RequestedCommand::new(request)),
            Action::ExecuteStream(request) => Some(RequestedCommand::new(&request.0)),
            _ => None,
        }
    }

    fn decision(&self, verdict: Verdict, question: Question<'_>) -> Decision {
        if verdict.effect == RuleEffect::Allow {
            return Decision::Allow;
        }
        let rule = verdict.rule.map(|rule| &self.written.rules[rule]);
        let said = self.reason(verdict);
        match verdict.effect {
            RuleEffect::Allow => Decision::Allow,
            RuleEffect::Deny => Decision::Deny {
                reason: said.unwrap_or_else(|| match (question.permission, rule) {
                    (Permission::Execute, None) => "no rule allows this command".to_owned(),
                    (Permission::Execute, Some(rule)) if !rule.commands.is_empty() => {
                        "a command in it is, or may be, one that is not allowed".to_owned()
                    }
                    (permission, rule) => {
                        match question.operation.and_then(|operation| change(operation, permission)) {
                            // The rule is about the operation itself, whatever that needs.
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
                prompt: said.unwrap_or_else(|| format!("allow {} of {}?", question.permission, question.path)),
            },
        }
    }

    /// Why it was decided so: what the rule says, or what in a command line is not understood.
    pub(crate) fn reason(&self, verdict: Verdict) -> Option<String> {
        match (verdict.not_understood, verdict.rule) {
            (Some(reason), _) => Some(format!("rules about commands do not understand this command line: {reason}")),
            (None, rule) => self.written.rules.get(rule?)?.reason.clone(),
        }
    }

    fn leads(&self, actor: Option<&str>, path: &VfsPath) -> bool {
        let question = Question { actor, operation: None, permission: Permission::Read, path, command: None };
        let last = self.decide(question).rule.unwrap_or(self.compiled.len());
        // Only rules that come before the one that denies the directory can say another thing below it.
        let mut earlier = self.compiled[..last].iter().filter(|rule| rule.effect != RuleEffect::Deny);
        earlier.any(|rule| rule.is_about(question) && rule.reaches(path))
    }
}

/// Returns the name of `operation` if it is a change that needs more than the permission of its own name. Others have no name:
/// a namespace or layer reads on its own account, by operations that the caller did not ask for.
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

/// `verdict`, or `asked`, which asks, where that is stricter.
fn stricter(asked: Option<Verdict>, verdict: Verdict) -> Verdict {
    asked.filter(|_| verdict.effect != RuleEffect::Deny).unwrap_or(verdict)
}

impl Compiled {
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

    fn case(&self) -> Case {
        if self.effect == RuleEffect::Allow { Case::Sensitive } else { Case::Insensitive }
    }

    /// Whether the rule is about who asks, and about what is done.
    fn is_about(&self, question: Question<'_>) -> bool {
        let actor = question.actor.unwrap_or_default();
        let is_actors = self.actors.is_empty() || self.actors.iter().any(|glob| glob.matches(actor));
        let is_operations = if !self.commands.is_empty() {
            question.permission == Permission::Execute
        } else if self.covers_all_operations {
            // To allow commands takes a word; to deny everything denies commands too.
            question.permission != Permission::Execute || self.effect != RuleEffect::Allow
        } else {
            self.names(question) || self.implies(question.permission)
        };
        is_actors && is_operations
    }

    /// Whether what is done is among what the rule names; one that names nothing is about everything.
    fn names(&self, question: Question<'_>) -> bool {
        self.covers_all_operations
            || !self.commands.is_empty()
            || self.permissions.contains(&question.permission)
            || question.operation.is_some_and(|operation| {
                [operation, operation.collecting()].iter().any(|operation| self.operations.contains(operation))
            })
    }

    /// Whether what is done is kept from happening, or asked about, beside what the rule names: who may not change a file may
    /// not remove it.
    fn implies(&self, permission: Permission) -> bool {
        self.effect != RuleEffect::Allow
            && permission == Permission::Delete
            && self.permissions.contains(&Permission::Write)
    }

    /// Whether the rule is about who asks, what is done, and where, whatever command it may be.
    fn applies(&self, question: Question<'_>) -> bool {
        self.is_about(question)
            && (self.paths.is_empty() || self.paths.iter().any(|glob| glob.covers(question.path, self.case())))
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

impl TryFrom<Written> for RuleSet {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self> {
        let compiled = written.rules.iter().enumerate().map(|(index, rule)| {
            Compiled::new(rule).map_err(|error| {
                let name = rule.name.as_ref().map(|name| format!(" ('{name}')")).unwrap_or_default();
                Error::new(error.kind(), format!("rule {}{name}: {}", index + 1, error.message()))
            })
        });
        let compiled = compiled.collect::<Result<_>>()?;
        Ok(Self { written, compiled })
    }
}

impl From<RuleSet> for Written {
    fn from(rules: RuleSet) -> Self {
        rules.written
    }
}

fn unreadable(message: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("the rules cannot be read: {}", message.trim()))
}

#[async_trait]
impl PolicyHook for RuleSet {
    async fn check(&self, cx: &OpContext, action: &Action<'_>) -> Decision {
        let mut asks = Decision::Allow;
        let command = self.requested_command(action);
        for need in required_permissions(action) {
            let question = Question {
                actor: cx.actor(),
                operation: Some(action.operation()),
                permission: need.permission,
                path: need.path,
                command: command.as_ref(),
            };
            let verdict = self.decide(question);
            match self.decision(verdict, question) {
                Decision::Allow => {}
                _ if lists_entries(action) && self.leads(cx.actor(), need.path) => {}
                ask @ Decision::Ask { .. } => asks = ask,
                deny @ Decision::Deny { .. } => return deny,
            }
        }
        asks
    }

    async fn check_path(&self, cx: &OpContext, permission: Permission, path: &VfsPath) -> Decision {
        let question = Question { actor: cx.actor(), operation: None, permission, path, command: None };
        self.decision(self.decide(question), question)
    }

    fn leads_on(&self, cx: &OpContext, path: &VfsPath) -> bool {
        self.leads(cx.actor(), path)
    }

    fn differs_below(&self, _cx: &OpContext, path: &VfsPath) -> bool {
        // Everything lies below the root, so it is asked about no pattern; it is asked about before every operation.
        self.compiled.iter().any(|rule| !rule.paths.is_empty() && (path.is_root() || rule.reaches(path)))
    }

    fn hard_links(&self) -> HardLinks {
        let denies = |effect| effect != RuleEffect::Allow;
        // Where nothing is denied, no other name of a file can be a denied one.
        let may_hide = denies(self.written.default) || self.written.rules.iter().any(|rule| denies(rule.effect));
        if may_hide { self.written.hard_links } else { HardLinks::Allow }
    }
}
