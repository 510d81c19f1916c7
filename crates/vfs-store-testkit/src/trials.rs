//! Named tests of the laws of stores.

use libtest_mimic::{Completion, Failed, Trial};
use vfs_testkit::law_runner::run_law;

use crate::laws::{STORE, StoreLaw};
use crate::target::StoreFactory;

/// Returns every law of a store as a trial `store::subject::law`, each on a fresh store and a runtime of its own.
///
/// A law that needs a feature that the store lacks is shown as ignored, with the reason. A law that has not ended after
/// ten minutes fails.
pub fn store_trials(factory: StoreFactory) -> Vec<Trial> {
    STORE
        .iter()
        .map(|law| {
            let factory = factory.clone();
            let name = format!("{}::{}::{}", factory.name, law.subject, law.name);
            Trial::ignorable_test(name, move || try_law(&factory, *law))
        })
        .collect()
}

fn try_law(factory: &StoreFactory, law: StoreLaw) -> Result<Completion, Failed> {
    if let Some(reason) = factory.absent {
        return Ok(Completion::ignored_with(reason));
    }
    let target = (factory.make)();
    let ignored = run_law(law.number, async move {
        let mut target = target.await?;
        let exception = target.exception_of(&law);
        if exception.is_none() {
            (law.run)(&mut target).await?;
        }
        Ok(exception)
    })?;
    Ok(ignored.map_or(Completion::Completed, Completion::ignored_with))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_have_unique_names_and_numbers() {
        let count = |mut words: Vec<String>| {
            words.sort_unstable();
            words.dedup();
            words.len()
        };
        assert_eq!(count(STORE.iter().map(|law| format!("{}::{}", law.subject, law.name)).collect()), STORE.len());
        assert_eq!(count(STORE.iter().map(|law| law.number.to_owned()).collect()), STORE.len());
    }
}
