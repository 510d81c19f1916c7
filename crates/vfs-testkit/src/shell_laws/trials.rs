//! The laws of shells as named tests.

use libtest_mimic::{Completion, Failed, Trial};

use super::{SHELL, ShellFactory, ShellLaw};
use crate::law_runner::run_law;

/// Returns every law of the factory's [tier](crate::LawTier) as a trial `shell::subject::law`, each on a fresh backend and a runtime of
/// its own.
///
/// A law that needs a feature which the shell lacks is shown as ignored, with the reason. One that has not ended after
/// ten minutes fails. Before laws of inherited environments run, call [`plant_environment`](super::plant_environment).
pub fn shell_trials(factory: ShellFactory) -> Vec<Trial> {
    SHELL
        .iter()
        .filter(|law| factory.tier.runs(law.tier))
        .map(|law| {
            let factory = factory.clone();
            let name = format!("{}::{}::{}", factory.name, law.subject, law.name);
            Trial::ignorable_test(name, move || try_law(&factory, *law))
        })
        .collect()
}

fn try_law(factory: &ShellFactory, law: ShellLaw) -> Result<Completion, Failed> {
    if let Some(reason) = &factory.absent {
        return Ok(Completion::ignored_with(reason.clone()));
    }
    let made = (factory.make)();
    let ignored = run_law(law.number, async move {
        let target = made.await?;
        let exception = target.exception_of(&law);
        if exception.is_none() {
            (law.run)(&target).await?;
        }
        Ok(exception)
    })?;
    Ok(ignored.map_or(Completion::Completed, Completion::ignored_with))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_have_names_and_numbers_of_their_own() {
        let count = |mut words: Vec<String>| {
            words.sort_unstable();
            words.dedup();
            words.len()
        };
        assert_eq!(count(SHELL.iter().map(|law| format!("{}::{}", law.subject, law.name)).collect()), SHELL.len());
        assert_eq!(count(SHELL.iter().map(|law| law.number.to_owned()).collect()), SHELL.len());
    }
}
