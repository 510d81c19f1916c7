//! What a sandbox enforces, as its trial showed.

pub(crate) mod assessment;
pub(crate) mod guarantee;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::report::guarantee::Belt;

/// Whether a belt holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Holding {
    /// It does, by this.
    Enforced(String),
    /// It does not, and this is why and what can be done.
    Missing(String),
    /// The settings leave nothing to enforce.
    NotAsked,
}

/// What is known of one belt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// The belt.
    pub belt: Belt,
    /// Whether it holds.
    pub holding: Holding,
    /// Whether the settings require it.
    pub required: bool,
}

/// What a sandbox enforces on this machine with its settings, and why not the rest: found by starting a process in it and
/// by looking at what that process could do.
///
/// Displayed, it is a table, a line for each belt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SandboxReport {
    /// Every belt, in the order of [`Belt::ALL`].
    pub findings: Vec<Finding>,
}

impl SandboxReport {
    /// Whether `belt` holds.
    pub fn enforces(&self, belt: Belt) -> bool {
        self.finding(belt).is_some_and(|finding| matches!(finding.holding, Holding::Enforced(_)))
    }

    /// What is known of `belt`.
    pub fn finding(&self, belt: Belt) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.belt == belt)
    }

    /// What is required and does not hold: a sandbox with any does not open.
    pub fn missing(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.required && matches!(finding.holding, Holding::Missing(_)))
    }
}

impl fmt::Display for SandboxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:18} {:9} {:9} by what, or why not", "belt", "enforced", "required")?;
        let mut reasons: Vec<(&str, Belt)> = Vec::new();
        for Finding { belt, holding, required } in &self.findings {
            let required = if *required { "yes" } else { "no" };
            let (enforced, words) = match holding {
                Holding::Enforced(how) => ("yes", how.as_str()),
                Holding::Missing(why) => ("NO", why.as_str()),
                Holding::NotAsked => ("-", "the settings leave nothing to enforce"),
            };
            match reasons.iter().find(|(reason, _)| *reason == words) {
                Some((_, first)) if enforced == "NO" => {
                    writeln!(f, "{belt:18} {enforced:9} {required:9} as for {first}")?;
                }
                _ => writeln!(f, "{belt:18} {enforced:9} {required:9} {words}")?,
            }
            reasons.push((words, *belt));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::guarantee::Mechanism;

    #[test]
    fn a_report_is_written_with_the_names_with_which_it_is_read() {
        let findings = [
            (Belt::Namespaces, Holding::Enforced("bwrap".to_owned()), true),
            (Belt::Memory, Holding::Missing("no cgroup".to_owned()), false),
            (Belt::NoNetwork, Holding::NotAsked, true),
        ];
        let findings = findings.map(|(belt, holding, required)| Finding { belt, holding, required });
        let report = SandboxReport { findings: findings.into() };
        let json = concat!(
            r#"{"findings":[{"belt":"namespaces","holding":{"enforced":"bwrap"},"required":true},"#,
            r#"{"belt":"memory","holding":{"missing":"no cgroup"},"required":false},"#,
            r#"{"belt":"no_network","holding":"not_asked","required":true}]}"#
        );
        assert_eq!(serde_json::to_string(&report).expect("JSON"), json);
        assert_eq!(serde_json::from_str::<SandboxReport>(json).expect("a report"), report);
    }

    #[test]
    fn belts_and_mechanisms_are_words() {
        let belts = concat!(
            r#"["namespaces","seccomp","landlock_files","landlock_network","landlock_scope","no_new_privileges","#,
            r#""read_only_system","private_files","private_tmp","no_network","private_processes","#,
            r#""hidden_processes","protected_paths","protected_names","unix_sockets","host_paths","processes","memory"]"#
        );
        assert_eq!(serde_json::to_string(Belt::ALL).expect("JSON"), belts);
        assert_eq!(serde_json::from_str::<Vec<Belt>>(belts).expect("belts"), Belt::ALL);
        for belt in Belt::ALL {
            assert_eq!(serde_json::to_string(belt).expect("JSON"), format!("\"{}\"", belt.code()));
        }
        let mechanisms = r#"["namespaces","landlock","seccomp"]"#;
        assert_eq!(serde_json::to_string(Mechanism::ALL).expect("JSON"), mechanisms);
        assert_eq!(serde_json::from_str::<Vec<Mechanism>>(mechanisms).expect("mechanisms"), Mechanism::ALL);
    }
}
