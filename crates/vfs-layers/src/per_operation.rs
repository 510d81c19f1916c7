//! A setting that may differ between operations.

use std::collections::BTreeMap;

use vfs_core::Operation;

/// One value for every operation, and others for some.
#[derive(Debug, Clone)]
pub(crate) struct PerOperation<T> {
    usual: T,
    special: BTreeMap<Operation, T>,
}

impl<T: Copy> PerOperation<T> {
    pub(crate) fn new(usual: T) -> Self {
        Self { usual, special: BTreeMap::new() }
    }

    pub(crate) fn set(&mut self, operation: Operation, value: T) {
        self.special.insert(operation, value);
    }

    pub(crate) fn of(&self, operation: Operation) -> T {
        self.only_of(operation).or_else(|| self.only_of(operation.collecting())).unwrap_or(self.usual)
    }

    /// The value that was set for just this operation.
    pub(crate) fn only_of(&self, operation: Operation) -> Option<T> {
        self.special.get(&operation).copied()
    }
}
