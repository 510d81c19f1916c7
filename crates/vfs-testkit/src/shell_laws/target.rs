//! Shells under test, and the features that laws need from them.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use vfs_core::Result;

use super::ShellLaw;
use crate::law_tier::LawTier;
use crate::target::Target;

/// A backend with a shell, and the features of the shell.
///
/// Commands of the laws run in the [base](Target::base) of its files and below.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ShellTarget {
    /// The target of the files, whose backend has the shell.
    pub files: Target,
    features: Vec<ShellFeature>,
    exceptions: Vec<(&'static str, &'static str)>,
}

/// Features that not every shell has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShellFeature {
    /// Output is handed on as it arrives.
    Streaming,
    /// Commands run in the background.
    Background,
    /// Commands run in a terminal by request.
    Terminal,
    /// All output is written to a file by request.
    FullOutputMode,
    /// A command has the environment of the serving process by request.
    InheritedEnvironment,
    /// Commands are processes of a system, with its base tools: `mkfifo`, `kill`, `chmod`, `yes`.
    Processes,
    /// Processes that left the command's session with `setsid` are ended with the command.
    Sessions,
    /// The signal that ended a command is reported.
    Signals,
    /// Both outputs together are in the order of arrival.
    Order,
    /// Commands find the files at the backend's own paths.
    SamePaths,
    /// Commands can make symbolic links, and the backend supports them.
    Links,
}

impl ShellFeature {
    /// All of them.
    pub const ALL: &'static [ShellFeature] = &[
        ShellFeature::Streaming,
        ShellFeature::Background,
        ShellFeature::Terminal,
        ShellFeature::FullOutputMode,
        ShellFeature::InheritedEnvironment,
        ShellFeature::Processes,
        ShellFeature::Sessions,
        ShellFeature::Signals,
        ShellFeature::Order,
        ShellFeature::SamePaths,
        ShellFeature::Links,
    ];

    /// Returns the reason for which a law that needs this feature does not apply to a shell without it.
    fn missing(self) -> &'static str {
        match self {
            ShellFeature::Streaming => "it hands no output on before the end",
            ShellFeature::Background => "nothing runs in the background here",
            ShellFeature::Terminal => "it has no terminals",
            ShellFeature::FullOutputMode => "it writes output to no file",
            ShellFeature::InheritedEnvironment => "it passes no environment on",
            ShellFeature::Processes => "its commands are no processes",
            ShellFeature::Sessions => "what leaves the session of its command is beyond its reach",
            ShellFeature::Signals => "it does not report signals",
            ShellFeature::Order => "it returns both outputs only separately",
            ShellFeature::SamePaths => "commands see the files under other paths",
            ShellFeature::Links => "there are no links here",
        }
    }

    /// Returns the reason for which a law for shells without this feature does not apply to a shell with it.
    fn present(self) -> &'static str {
        match self {
            ShellFeature::Streaming => "it streams",
            ShellFeature::Background => "it has a background",
            ShellFeature::Terminal => "it has terminals",
            ShellFeature::FullOutputMode => "it writes output to files",
            ShellFeature::InheritedEnvironment => "it passes its environment on",
            ShellFeature::Processes => "its commands are processes",
            ShellFeature::Sessions => "it reaches other sessions",
            ShellFeature::Signals => "it reports signals",
            ShellFeature::Order => "it returns both outputs in their order",
            ShellFeature::SamePaths => "commands see the backend's paths",
            ShellFeature::Links => "there are links here",
        }
    }
}

impl ShellTarget {
    /// Creates a target from a fresh, empty backend whose shell has all features.
    pub fn new(files: Target) -> Self {
        Self { files, features: ShellFeature::ALL.to_vec(), exceptions: Vec::new() }
    }

    /// Sets features that the shell lacks. Laws that need them are ignored; other laws check that the shell refuses
    /// them.
    #[must_use]
    pub fn without(mut self, features: &[ShellFeature]) -> Self {
        self.features.retain(|feature| !features.contains(feature));
        self
    }

    /// Excludes the law `number`, for a `reason` that is due to the place where commands run and not to the shell.
    #[must_use]
    pub fn except(mut self, number: &'static str, reason: &'static str) -> Self {
        self.exceptions.push((number, reason));
        self
    }

    /// Returns whether the shell has `feature`.
    pub fn has(&self, feature: ShellFeature) -> bool {
        self.features.contains(&feature)
    }

    /// Returns the reason for which `law` does not apply, or `None` if it applies.
    pub fn exception_of(&self, law: &ShellLaw) -> Option<&'static str> {
        let excepted = self.exceptions.iter().find(|(number, _)| *number == law.number);
        law.need.missing_in(self).or(excepted.map(|(_, reason)| *reason))
    }
}

/// The features that a law needs from a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(non_camel_case_types, reason = "tables of laws read as sentences")]
#[non_exhaustive]
pub enum ShellNeed {
    /// All of these.
    has(&'static [ShellFeature]),
    /// None of these.
    lacks(&'static [ShellFeature]),
}

impl ShellNeed {
    /// Returns the reason for which the law does not apply to `target`, or `None` if it applies.
    pub fn missing_in(self, target: &ShellTarget) -> Option<&'static str> {
        match self {
            ShellNeed::has(features) => {
                features.iter().find(|feature| !target.has(**feature)).map(|feature| feature.missing())
            }
            ShellNeed::lacks(features) => {
                features.iter().find(|feature| target.has(**feature)).map(|feature| feature.present())
            }
        }
    }
}

/// Makes fresh shells of one kind.
#[derive(Clone)]
#[non_exhaustive]
pub struct ShellFactory {
    /// The first part of the names of the trials.
    pub name: String,
    /// The reason for which there is no such shell on this machine, such as a missing program; every law is then
    /// ignored.
    pub absent: Option<String>,
    /// The tier, whose laws run by default with those of the tiers before it. Default: [`LawTier::Semantics`], all laws.
    pub tier: LawTier,
    /// Creates a shell for one trial, on the runtime of the law.
    pub make: Arc<MakeShell>,
}

/// Makes a shell.
pub type MakeShell = dyn Fn() -> BoxFuture<'static, Result<ShellTarget>> + Send + Sync;

impl ShellFactory {
    /// Calls `make` for each trial.
    pub fn new<F>(name: impl Into<String>, make: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ShellTarget>> + Send + 'static,
    {
        Self { name: name.into(), absent: None, tier: LawTier::Semantics, make: Arc::new(move || Box::pin(make())) }
    }

    /// Runs only the laws of `tier` and the tiers before it, unless the environment requires all.
    #[must_use]
    pub fn tier(mut self, tier: LawTier) -> Self {
        self.tier = tier;
        self
    }

    /// Returns a factory of the same shells under another name, each changed by `change`, such as by a layer around its
    /// backend.
    #[must_use]
    pub fn seen_through(
        self,
        name: impl Into<String>,
        change: impl Fn(ShellTarget) -> ShellTarget + Send + Sync + 'static,
    ) -> Self {
        let (make, change) = (self.make, Arc::new(change));
        let make = move || {
            let (made, change) = (make(), Arc::clone(&change));
            async move { made.await.map(|target| change(target)) }
        };
        Self { absent: self.absent, tier: self.tier, ..Self::new(name, make) }
    }

    /// Marks these shells as absent, for a `reason` that every trial shows.
    #[must_use]
    pub fn absent(mut self, reason: impl Into<String>) -> Self {
        self.absent = Some(reason.into());
        self
    }
}

impl fmt::Debug for ShellFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShellFactory")
            .field("name", &self.name)
            .field("absent", &self.absent)
            .field("tier", &self.tier)
            .finish_non_exhaustive()
    }
}
