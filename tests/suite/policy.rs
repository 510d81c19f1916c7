//! Ways to get at what a policy denies, on real files: all of them are refused, and nothing of the secret shows anywhere.

mod attacks;
mod lab;

use lab::{Lab, SECRET};

/// Performs every attack on a lab of its own, and looks for the secret in all that came of it.
#[test]
fn no_attack_gets_at_a_denied_file() {
    let mut failures = Vec::new();
    for (name, attack) in attacks::ALL {
        let lab = Lab::new();
        let outcome = lab.run(attack(&lab));
        for failure in outcome.failures {
            failures.push(format!("{name}: {failure}"));
        }
        if outcome.seen.contains(SECRET) {
            failures.push(format!("{name}: the secret shows: {}", outcome.seen));
        }
        if let Some(trace) = lab.traces() {
            failures.push(format!("{name}: the secret shows in what was recorded: {trace}"));
        }
        if let Some(difference) = lab.difference() {
            failures.push(format!("{name}: {difference}"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(attacks::ALL.len() >= 25, "there are only {}", attacks::ALL.len());
}

/// Whether the attacks could have worked: without the policy, they do.
#[test]
fn without_the_policy_most_attacks_succeed() {
    let mut passed = 0;
    for (_, attack) in attacks::ALL {
        let lab = Lab::unguarded();
        let outcome = lab.run(attack(&lab));
        if !outcome.failures.is_empty() || outcome.seen.contains(SECRET) || lab.difference().is_some() {
            passed += 1;
        }
    }
    assert!(passed * 10 >= attacks::ALL.len() * 8, "only {passed} of {} are attacks at all", attacks::ALL.len());
}
