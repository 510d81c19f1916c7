//! Who asks, until when, and how to stop: handed to every operation.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

use crate::cancel::{CancelToken, DropGuard};
use crate::error::{Error, ErrorKind, Result};

/// The circumstances of one operation: cheap to clone, never implicit.
///
/// # Behaviour
///
/// * The default has no actor, no deadline, and a token of its own that nobody cancels.
/// * Passing the deadline or cancelling the token ends the work soon with [`ErrorKind::Timeout`] or
///   [`ErrorKind::Cancelled`]: it is looked at per file and per chunk. A mutation past its commit point completes.
/// * Extensions are values by type, for layers that need to know more than this struct says.
///
/// ```
/// use std::time::Duration;
/// use vfs_core::OpContext;
///
/// let cx = OpContext::new().with_actor("planner").with_timeout(Duration::from_secs(5));
/// assert_eq!(cx.actor(), Some("planner"));
/// assert!(cx.check().is_ok());
/// cx.cancel_token().cancel();
/// assert!(cx.check().is_err());
/// ```
#[derive(Clone)]
pub struct OpContext {
    actor: Option<Arc<str>>,
    session: Option<Arc<str>>,
    deadline: Option<Instant>,
    cancel: CancelToken,
    span: tracing::Span,
    extensions: Option<Arc<Extensions>>,
}

type Extensions = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

impl OpContext {
    /// A context with nothing set.
    pub fn new() -> Self {
        Self {
            actor: None,
            session: None,
            deadline: None,
            cancel: CancelToken::new(),
            span: tracing::Span::none(),
            extensions: None,
        }
    }

    /// Names who asks: an agent, a user.
    #[must_use]
    pub fn with_actor(mut self, actor: impl Into<Arc<str>>) -> Self {
        self.actor = Some(actor.into());
        self
    }

    /// Names the session, thread or run that the call belongs to.
    #[must_use]
    pub fn with_session(mut self, session: impl Into<Arc<str>>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets the moment after which the work ends with a timeout. An earlier deadline stays.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(self.deadline.map_or(deadline, |earlier| earlier.min(deadline)));
        self
    }

    /// Sets the deadline to `timeout` from now; one that is out of the clock's range is no deadline.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        match Instant::now().checked_add(timeout) {
            Some(deadline) => self.with_deadline(deadline),
            None => self,
        }
    }

    /// Puts the call under `cancel` instead of a token of its own.
    #[must_use]
    pub fn with_cancel_token(mut self, cancel: CancelToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Returns a copy of this context that is also cancelled when the guard is dropped.
    ///
    /// ```
    /// use vfs_core::OpContext;
    ///
    /// let caller = OpContext::new();
    /// let (cx, guard) = caller.cancel_on_drop();
    /// drop(guard);
    /// assert!(cx.check().is_err() && caller.check().is_ok());
    /// ```
    pub fn cancel_on_drop(&self) -> (Self, DropGuard) {
        let token = self.cancel.child();
        (self.clone().with_cancel_token(token.clone()), token.drop_guard())
    }

    /// Returns a copy of this context without deadline or cancellation, for cleanup that goes on when the caller has given up.
    #[must_use]
    pub fn for_cleanup(&self) -> Self {
        Self { cancel: CancelToken::new(), deadline: None, ..self.clone() }
    }

    /// Puts the work into `span`.
    #[must_use]
    pub fn with_span(mut self, span: tracing::Span) -> Self {
        self.span = span;
        self
    }

    /// Adds a value by its type, replacing one of the same type.
    #[must_use]
    pub fn with_extension<T: Any + Send + Sync>(mut self, value: T) -> Self {
        let mut extensions = self.extensions.as_deref().cloned().unwrap_or_default();
        extensions.insert(TypeId::of::<T>(), Arc::new(value));
        self.extensions = Some(Arc::new(extensions));
        self
    }

    /// Who asks.
    pub fn actor(&self) -> Option<&str> {
        self.actor.as_deref()
    }

    /// The session that the call belongs to.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The moment after which the work ends.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The token that stops the work.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.cancel
    }

    /// The span that the work belongs to.
    pub fn span(&self) -> &tracing::Span {
        &self.span
    }

    /// The extension of type `T`.
    pub fn extension<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.extensions.as_ref()?.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// Whether the work should go on; called at every file and every chunk.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cancelled`] or [`ErrorKind::Timeout`].
    pub fn check(&self) -> Result<()> {
        if self.cancel.is_cancelled() {
            return Err(unwanted());
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(too_late()),
            _ => Ok(()),
        }
    }

    /// Returns what `work` returns, unless the context is cancelled or its deadline passes first: then `work` is dropped.
    ///
    /// `timer` makes a future that completes at an instant, by the clock of the caller's runtime, as this crate has none. Without
    /// a deadline it is not called.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cancelled`] or [`ErrorKind::Timeout`], which name no path.
    ///
    /// ```
    /// use std::future::{pending, ready};
    /// use std::time::Duration;
    /// use vfs_core::{ErrorKind, OpContext};
    ///
    /// # futures::executor::block_on(async {
    /// let cx = OpContext::new().with_timeout(Duration::from_secs(60));
    /// assert_eq!(cx.run_until_cancelled(|_| pending(), ready(7)).await?, 7);
    /// let late = cx.run_until_cancelled(|_| ready(()), pending::<()>()).await.expect_err("the timer has ended");
    /// assert_eq!(late.kind(), ErrorKind::Timeout);
    /// # Ok::<(), vfs_core::Error>(())
    /// # }).expect("it works");
    /// ```
    pub async fn run_until_cancelled<T, Timer>(
        &self,
        timer: impl FnOnce(Instant) -> Timer,
        work: impl Future<Output = T>,
    ) -> Result<T>
    where
        Timer: Future<Output = ()>,
    {
        self.check()?;
        let deadline = async {
            match self.deadline {
                Some(deadline) => timer(deadline).await,
                None => pending().await,
            }
        };
        let (cancelled, deadline) = (pin!(self.cancel.cancelled()), pin!(deadline));
        match select(pin!(work), select(cancelled, deadline)).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right((Either::Left(_), _)) => Err(unwanted()),
            Either::Right((Either::Right(_), _)) => Err(too_late()),
        }
    }
}

fn unwanted() -> Error {
    Error::new(ErrorKind::Cancelled, "it was cancelled")
}

fn too_late() -> Error {
    Error::new(ErrorKind::Timeout, "the deadline passed; narrow the request or allow more time")
}

impl Default for OpContext {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for OpContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpContext")
            .field("actor", &self.actor)
            .field("session", &self.session)
            .field("deadline", &self.deadline)
            .field("cancelled", &self.cancel.is_cancelled())
            .field("extensions", &self.extensions.as_ref().map_or(0, |extensions| extensions.len()))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_deadline_stays() {
        let cx = OpContext::new().with_timeout(Duration::ZERO).with_timeout(Duration::from_secs(60));
        assert_eq!(cx.check().expect_err("passed").kind(), ErrorKind::Timeout);
        assert!(OpContext::new().with_timeout(Duration::MAX).check().is_ok());
    }

    #[test]
    fn waiting_ends_when_the_caller_cancels() {
        use futures::executor::block_on;
        use futures::future::join;

        let cx = OpContext::new();
        let cancel = async { cx.cancel_token().cancel() };
        let (waited, ()) = block_on(join(cx.run_until_cancelled(|_| pending(), pending::<()>()), cancel));
        assert_eq!(waited.expect_err("it was cancelled").kind(), ErrorKind::Cancelled);
        let begun = cx.run_until_cancelled(|_| pending(), async { panic!("it is not begun") });
        assert_eq!(block_on(begun).map(|()| 0).expect_err("it is over").kind(), ErrorKind::Cancelled);
    }

    #[test]
    fn extensions_are_found_by_type_and_clones_do_not_share_later_ones() {
        let first = OpContext::new().with_extension(7_u32);
        let second = first.clone().with_extension("text");
        assert_eq!(second.extension::<u32>(), Some(&7));
        assert_eq!(first.extension::<&str>(), None);
    }
}
