//! Laws as named tests.

use libtest_mimic::{Completion, Failed, Trial};
use vfs_core::backend::AccessMode;

use crate::law_runner::run_law;
use crate::laws::{ALL, Law};
use crate::target::TargetFactory;

/// Returns every law of the factory's [tier](crate::LawTier) as a trial `backend::operation::law`, each on a fresh target and a runtime
/// of its own.
///
/// A law that needs a feature which the target lacks is shown as ignored, with the reason. One that has not ended after
/// ten minutes fails.
pub fn trials(factory: TargetFactory) -> Vec<Trial> {
    ALL.iter()
        .filter(|law| factory.tier.runs(law.tier))
        .map(|law| {
            let factory = factory.clone();
            let name = format!("{}::{}::{}", factory.name, law.operation, law.name);
            Trial::ignorable_test(name, move || try_law(&factory, *law))
        })
        .collect()
}

fn try_law(factory: &TargetFactory, law: Law) -> Result<Completion, Failed> {
    let target = (factory.make)();
    if target.backend.capabilities(&target.base).access == AccessMode::ReadOnly {
        return Ok(Completion::ignored_with("nothing can be written here, and a law begins with files of its own"));
    }
    if let Some(reason) = law.need.missing_in(&target) {
        return Ok(Completion::ignored_with(reason));
    }
    run_law(law.number, async move { (law.run)(&target).await })?;
    Ok(Completion::Completed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_have_names_of_their_own() {
        let mut names: Vec<_> = ALL.iter().map(|law| (law.operation, law.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
