//! Problems of reports for operators.

use vfs_core::{Error, Problem};

use crate::store::{Key, Namespace};

/// Returns the problem of `place` with the error message for operators instead of the one for models.
pub(crate) fn operator_problem(place: impl Into<String>, error: &Error) -> Problem {
    let mut problem = Problem::new(place, error);
    problem.message = error.message().to_owned();
    problem
}

/// Returns the name of a value in a report: `namespace:/path`, or the path alone in the namespace without components.
pub(crate) fn place(namespace: &Namespace, path: &str) -> String {
    if *namespace == Namespace::default() { path.to_owned() } else { format!("{namespace}:{path}") }
}

/// Returns the problem of the value of `key`.
pub(super) fn value_problem(key: &Key, error: &Error) -> Problem {
    operator_problem(place(&key.namespace, key.path.as_str()), error)
}
