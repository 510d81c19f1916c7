//! A cancellation token that needs no runtime.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use event_listener::{Event, listener};

/// Tells work that its caller no longer wants it.
///
/// # Behaviour
///
/// * Clones are the same token. A [`child`](CancelToken::child) is cancelled with its parent, but not the other way round.
/// * Once cancelled it stays so.
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

#[derive(Debug, Default)]
struct TokenState {
    cancelled: AtomicBool,
    event: Event,
    children: Mutex<Vec<Weak<TokenState>>>,
}

impl CancelToken {
    /// A token that nobody has cancelled yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that is cancelled with this one, and may be cancelled alone.
    pub fn child(&self) -> Self {
        let child = Self::new();
        let mut children = self.0.children.lock().unwrap_or_else(PoisonError::into_inner);
        // Looked at under the lock that `cancel` takes, so that no child is born between the flag and the hand-down.
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

    /// Whether it was cancelled.
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

    /// Waits until it is cancelled.
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

/// Cancels a [`CancelToken`] when it is dropped: work on other threads ends with the future that waits for it.
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
