//! Hierarchical cancellation tokens without a runtime.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use event_listener::{Event, listener};

/// A token that signals cancellation to an operation.
///
/// # Behaviour
///
/// * A clone is a handle on the same token.
/// * Cancelling a token cancels its [children](CancelToken::child), but not its parent.
/// * A cancelled token stays cancelled.
///
/// ```
/// use vfs_core::CancelToken;
///
/// let session = CancelToken::new();
/// let call = session.child();
/// session.cancel();
/// assert!(call.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<TokenState>);

/// The state that all clones of a token share.
#[derive(Debug, Default)]
struct TokenState {
    cancelled: AtomicBool,
    event: Event,
    children: Mutex<Vec<Weak<TokenState>>>,
}

impl CancelToken {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a child token, which is cancelled with this one or alone.
    pub fn child(&self) -> Self {
        let child = Self::new();
        let mut children = self.0.children.lock().unwrap_or_else(PoisonError::into_inner);
        // Check under the lock that `cancel` takes, so that no child is added after the flag was set and missed.
        if self.is_cancelled() {
            child.0.cancelled.store(true, Ordering::Release);
        } else {
            if children.len() == children.capacity() {
                children.retain(|child| child.strong_count() > 0);
            }
            children.push(Arc::downgrade(&child.0));
        }
        drop(children);
        child
    }

    /// Cancels this token and its children.
    pub fn cancel(&self) {
        let mut pending = vec![Arc::clone(&self.0)];
        while let Some(token) = pending.pop() {
            let mut children = token.children.lock().unwrap_or_else(PoisonError::into_inner);
            token.cancelled.store(true, Ordering::Release);
            pending.extend(children.drain(..).filter_map(|child| child.upgrade()));
            drop(children);
            token.event.notify(usize::MAX);
        }
    }

    /// Returns whether the token is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Returns a guard that cancels this token when it is dropped.
    ///
    /// ```
    /// use vfs_core::CancelToken;
    ///
    /// let token = CancelToken::new();
    /// let guard = token.clone().drop_guard();
    /// assert!(!token.is_cancelled());
    /// drop(guard);
    /// assert!(token.is_cancelled());
    /// ```
    pub fn drop_guard(self) -> DropGuard {
        DropGuard(self)
    }

    /// Waits until the token is cancelled.
    pub async fn cancelled(&self) {
        while !self.is_cancelled() {
            listener!(self.0.event => cancelled);
            if self.is_cancelled() {
                return;
            }
            cancelled.await;
        }
    }
}

/// A guard that cancels a [`CancelToken`] when it is dropped, so that work on other threads ends with the future that awaits it.
#[derive(Debug)]
#[must_use = "the token is cancelled as soon as the guard is dropped"]
pub struct DropGuard(CancelToken);

impl Drop for DropGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;

    #[test]
    fn waiting_ends_when_another_thread_cancels_the_parent() {
        let parent = CancelToken::new();
        let child = parent.child();
        let thread = std::thread::spawn(move || block_on(child.cancelled()));
        parent.cancel();
        thread.join().expect("the waiter returns");
    }

    #[test]
    fn children_of_a_cancelled_token_are_born_cancelled_and_parents_are_not_touched() {
        let parent = CancelToken::new();
        parent.child().cancel();
        assert!(!parent.is_cancelled());
        parent.cancel();
        assert!(parent.child().is_cancelled());
        block_on(parent.cancelled());
    }
}
