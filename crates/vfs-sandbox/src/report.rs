//! Report of the guarantees that a sandbox enforces, according to its self-test.

pub(crate) mod guarantee;
pub(crate) mod guarantee_assessor;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::report::guarantee::Guarantee;

/// Whether a guarantee is enforced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EnforcementStatus {
    /// The guarantee is enforced, by this mechanism.
    Enforced(String),
    /// The guarantee is not enforced: the reason and the remedy.
    Missing(String),
    /// The settings leave nothing to enforce. In JSON `not_asked`.
    #[serde(rename = "not_asked")]
    NotRequested,
}

/// Result of the self-test for one guarantee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GuaranteeResult {
    /// The guarantee. In JSON `belt`.
    #[serde(rename = "belt")]
    pub guarantee: Guarantee,
    /// Whether it is enforced. In JSON `holding`.
    #[serde(rename = "holding")]
    pub enforcement: EnforcementStatus,
    /// Whether the settings require it.
    pub required: bool,
}

/// The guarantees that a sandbox with its settings enforces on this machine, and the reasons for which it does not
/// enforce the others. The self-test starts a process in the sandbox and observes what that process can do.
///
/// Its `Display` form is a table with a line for each guarantee.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SandboxReport {
    /// The result for every guarantee, in the order of [`Guarantee::ALL`]. In JSON `findings`.
    #[serde(rename = "findings")]
    pub results: Vec<GuaranteeResult>,
}

impl SandboxReport {
    /// Returns whether `guarantee` is enforced.
    pub fn enforces(&self, guarantee: Guarantee) -> bool {
        self.result(guarantee).is_some_and(|result| matches!(result.enforcement, EnforcementStatus::Enforced(_)))
    }

    /// Returns the result for `guarantee`.
    pub fn result(&self, guarantee: Guarantee) -> Option<&GuaranteeResult> {
        self.results.iter().find(|result| result.guarantee == guarantee)
    }

    /// Returns the guarantees that are required and not enforced. If there are any, the sandbox does not open.
    pub fn missing(&self) -> impl Iterator<Item = &GuaranteeResult> {
        self.results
            .iter()
            .filter(|result| result.required && matches!(result.enforcement, EnforcementStatus::Missing(_)))
    }
}

impl fmt::Display for SandboxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:18} {:9} {:9} mechanism, or reason", "guarantee", "enforced", "required")?;
        let mut reasons: Vec<(&str, Guarantee)> = Vec::new();
        for GuaranteeResult { guarantee, enforcement, required } in &self.results {
            let required = if *required { "yes" } else { "no" };
            let (enforced, words) = match enforcement {
                EnforcementStatus::Enforced(how) => ("yes", how.as_str()),
                EnforcementStatus::Missing(why) => ("NO", why.as_str()),
                EnforcementStatus::NotRequested => ("-", "the settings leave nothing to enforce"),
            };
            match reasons.iter().find(|(reason, _)| *reason == words) {
                Some((_, first)) if enforced == "NO" => {
                    writeln!(f, "{guarantee:18} {enforced:9} {required:9} as for {first}")?;
                }
                _ => writeln!(f, "{guarantee:18} {enforced:9} {required:9} {words}")?,
            }
            reasons.push((words, *guarantee));
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
        let results = [
            (Guarantee::Namespaces, EnforcementStatus::Enforced("bwrap".to_owned()), true),
            (Guarantee::Memory, EnforcementStatus::Missing("no cgroup".to_owned()), false),
            (Guarantee::NoNetwork, EnforcementStatus::NotRequested, true),
        ];
        let results =
            results.map(|(guarantee, enforcement, required)| GuaranteeResult { guarantee, enforcement, required });
        let report = SandboxReport { results: results.into() };
        let json = concat!(
            r#"{"findings":[{"belt":"namespaces","holding":{"enforced":"bwrap"},"required":true},"#,
            r#"{"belt":"memory","holding":{"missing":"no cgroup"},"required":false},"#,
            r#"{"belt":"no_network","holding":"not_asked","required":true}]}"#
        );
        assert_eq!(serde_json::to_string(&report).expect("JSON"), json);
        assert_eq!(serde_json::from_str::<SandboxReport>(json).expect("a report"), report);
    }

    #[test]
    fn guarantees_and_mechanisms_are_words() {
        let guarantees = concat!(
            r#"["namespaces","seccomp","landlock_files","landlock_network","landlock_scope","no_new_privileges","#,
            r#""read_only_system","private_files","private_tmp","no_network","private_processes","#,
            r#""hidden_processes","protected_paths","protected_names","unix_sockets","host_paths","processes","memory"]"#
        );
        assert_eq!(serde_json::to_string(Guarantee::ALL).expect("JSON"), guarantees);
        assert_eq!(serde_json::from_str::<Vec<Guarantee>>(guarantees).expect("guarantees"), Guarantee::ALL);
        for guarantee in Guarantee::ALL {
            assert_eq!(serde_json::to_string(guarantee).expect("JSON"), format!("\"{}\"", guarantee.code()));
        }
        let mechanisms = r#"["namespaces","landlock","seccomp"]"#;
        assert_eq!(serde_json::to_string(Mechanism::ALL).expect("JSON"), mechanisms);
        assert_eq!(serde_json::from_str::<Vec<Mechanism>>(mechanisms).expect("mechanisms"), Mechanism::ALL);
    }
}
