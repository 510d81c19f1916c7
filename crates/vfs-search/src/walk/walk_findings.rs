//! Problems and omissions of a walk.

use vfs_core::Problem;
use vfs_core::search::Skipped;

/// The problems and omissions of a walk.
#[derive(Debug, Default)]
pub(crate) struct WalkFindings {
    pub(crate) problems: Vec<Problem>,
    pub(crate) skipped: Skipped,
    /// Whether there are entries deeper than the depth limit, or deeper than a path can express.
    pub(crate) too_deep: bool,
    /// Whether directories were left out because the walk had listed too many entries.
    pub(crate) too_many: bool,
}

impl WalkFindings {
    /// Returns the findings for one link that was skipped.
    pub(crate) fn skipped_link() -> Self {
        let mut findings = Self::default();
        findings.skipped.links = 1;
        findings
    }
}
