//! How hard and on what a test works, from the environment; the defaults suit every run of the tests.

use std::path::PathBuf;
use std::str::FromStr;

/// The variable `name`, or `default` where it is not set.
///
/// # Panics
///
/// Where it is set to something else than a `T`: a long run of the wrong thing would be a pity.
pub fn setting<T: FromStr>(name: &str, default: T) -> T {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} cannot be {text:?}")),
        Err(_) => default,
    }
}

/// The directory that the variable `name` names, where it is set.
pub fn directory(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}
