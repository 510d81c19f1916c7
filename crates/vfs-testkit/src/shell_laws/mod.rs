//! The laws of shells, by subject.
//!
//! Each file holds private functions and the table that lists them: a law that is not listed is dead code, which does not
//! compile under `-D warnings`.

use std::fmt;

use futures::future::BoxFuture;

use crate::law_runner::{count, flatten};
use crate::law_tier::LawTier;
use crate::laws::LawResult;

/// One check of one numbered behaviour of a shell.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ShellLaw {
    /// The number of the law: `X`, the letter of the subject, and the position in the subject.
    pub number: &'static str,
    /// The subject of the law.
    pub subject: &'static str,
    /// The name of the law, which states the behaviour.
    pub name: &'static str,
    /// The features that a shell must have, or must lack, for the law to apply.
    pub need: ShellNeed,
    /// The tier of shells that run the law by default.
    pub tier: LawTier,
    /// Checks the behaviour; panics or fails if the shell breaks it.
    pub run: for<'a> fn(&'a ShellTarget) -> BoxFuture<'a, LawResult>,
}

impl fmt::Debug for ShellLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShellLaw")
            .field("number", &self.number)
            .field("subject", &self.subject)
            .field("name", &self.name)
            .field("need", &self.need)
            .field("tier", &self.tier)
            .finish_non_exhaustive()
    }
}

/// Lists the laws of a file: for a subject the number, the required features and the name of each law, and its tier if
/// that is not [`LawTier::Storage`], as most laws are about the place where commands run. `has()` is for every shell,
/// `has(Terminal)` for those with terminals, and `lacks(Terminal)` for those without.
macro_rules! shell_laws {
    ($subject:literal: $($number:literal $need:ident($($feature:ident),*) $name:ident $(in $tier:ident)?,)+) => {
        pub(super) const LAWS: &[$crate::shell_laws::ShellLaw] = &[$($crate::shell_laws::ShellLaw {
            number: $number,
            subject: $subject,
            name: stringify!($name),
            need: $crate::shell_laws::ShellNeed::$need(&[$($crate::shell_laws::ShellFeature::$feature),*]),
            tier: $crate::law_tier::tier!(Storage $($tier)?),
            run: |target| Box::pin($name(target)),
        }),+];
    };
}

mod concurrent_commands;
mod directory;
mod environment;
mod exit;
mod files;
mod invalid_requests;
mod jobs;
mod law_helpers;
mod orphan_detector;
mod output;
mod output_limits;
mod standard_input;
mod streaming;
mod target;
mod terminal;
mod termination;
mod trials;

pub use environment::plant_environment;
pub use target::{MakeShell, ShellFactory, ShellFeature, ShellNeed, ShellTarget};
pub use trials::shell_trials;

const TABLES: &[&[ShellLaw]] = &[
    exit::LAWS,
    output::LAWS,
    output_limits::LAWS,
    environment::LAWS,
    directory::LAWS,
    standard_input::LAWS,
    invalid_requests::LAWS,
    termination::LAWS,
    streaming::LAWS,
    jobs::LAWS,
    files::LAWS,
    concurrent_commands::LAWS,
    terminal::LAWS,
];

/// Every law of a shell.
pub static SHELL: &[ShellLaw] = &flatten::<_, { count(TABLES) }>(TABLES);
