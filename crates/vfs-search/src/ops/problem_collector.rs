//! Bounded collector of the problems of one result.

use vfs_core::{Error, ErrorKind, Problem, VfsPath};

/// Maximum number of problems that are stored individually.
const MAX_PROBLEMS: usize = 1000;

/// Stores the first thousand problems and counts the rest.
#[derive(Debug, Default)]
pub(crate) struct ProblemCollector {
    problems: Vec<Problem>,
    omitted: u64,
}

impl ProblemCollector {
    pub(crate) fn push(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.omitted += 1;
        }
    }

    /// Returns the problems. If there were more than the maximum, the last one says how many; its path is `start`,
    /// where the walk started.
    pub(crate) fn into_vec(self, start: &VfsPath) -> Vec<Problem> {
        let mut problems = self.problems;
        if self.omitted > 0 {
            let error = Error::new(ErrorKind::TooLarge, format!("there are {} more problems like these", self.omitted));
            problems.push(Problem::new(start.as_str(), &error));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thousand_and_first_problem_counts_those_that_are_left_out() {
        for (pushed, expected, count) in
            [(0, 0, ""), (1000, 1000, "gone"), (1001, 1001, " 1 more"), (5000, 1001, " 4000 more")]
        {
            let mut problems = ProblemCollector::default();
            for _ in 0..pushed {
                problems.push(Problem::new("/a", &Error::new(ErrorKind::NotFound, "gone")));
            }
            let problems = problems.into_vec(&VfsPath::root());
            assert_eq!(problems.len(), expected);
            assert!(problems.last().is_none_or(|last| last.message.contains(count)), "{:?}", problems.last());
        }
    }
}
