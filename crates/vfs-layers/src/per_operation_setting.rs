//! Setting with a default and overrides for single operations.

use std::collections::BTreeMap;

use vfs_core::Operation;

/// A default value and overrides for single operations.
#[derive(Debug, Clone)]
pub(crate) struct PerOperationSetting<T> {
    default: T,
    overrides: BTreeMap<Operation, T>,
}

impl<T: Copy> PerOperationSetting<T> {
    pub(crate) fn new(default: T) -> Self {
        Self { default, overrides: BTreeMap::new() }
    }

    pub(crate) fn set(&mut self, operation: Operation, value: T) {
        self.overrides.insert(operation, value);
    }

    /// Returns the override for `operation`, or for the operation that collects its stream, or else the default.
    pub(crate) fn get(&self, operation: Operation) -> T {
        self.override_for(operation).or_else(|| self.override_for(operation.collecting())).unwrap_or(self.default)
    }

    /// Returns the override for exactly this operation.
    pub(crate) fn override_for(&self, operation: Operation) -> Option<T> {
        self.overrides.get(&operation).copied()
    }
}
