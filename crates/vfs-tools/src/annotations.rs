//! Hints about what a tool does.

/// Hints about what a tool does, for a runtime that shows or groups tools. What a call really does is its
/// [`Effect`](crate::Effect); rights are the business of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Annotations {
    /// The title for people.
    pub title: &'static str,
    /// Whether no call changes anything.
    pub read_only: bool,
    /// Whether a call may remove or replace content.
    pub destructive: bool,
    /// Whether a repetition of a call has no further effect.
    pub idempotent: bool,
}

impl Annotations {
    /// Creates hints for a tool that changes nothing.
    pub const fn read_only(title: &'static str) -> Self {
        Self { title, read_only: true, destructive: false, idempotent: true }
    }

    /// Creates hints for a tool that changes something, may remove or replace content, and is not idempotent.
    pub const fn destructive(title: &'static str) -> Self {
        Self { title, read_only: false, destructive: true, idempotent: false }
    }

    /// Sets that no call removes or replaces content.
    #[must_use]
    pub const fn additive(mut self) -> Self {
        self.destructive = false;
        self
    }
}
