//! Per-call context: caller, deadline, cancellation and extensions.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

pub use crate::cancel::{CancelToken, DropGuard};
use crate::error::{Error, ErrorKind, Result};
use crate::operation_id::OperationId;

/// The context of one operation: caller, deadline, cancellation token, tracing span and extensions.
///
/// # Behaviour
///
/// * The default has no actor, no session, no deadline, and a token of its own that is never cancelled.
/// * If the deadline passes or the token is cancelled, the operation soon fails with [`ErrorKind::Timeout`] or
///   [`ErrorKind::Cancelled`]; it checks at each file and each chunk. A mutation past its commit point completes.
/// * Extensions are values keyed by type, for layers that need data which this struct does not have.
/// * Cloning is cheap. A clone shares the token.
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
    operation_id: Option<OperationId>,
    deadline: Option<Instant>,
    cancel: CancelToken,
    span: tracing::Span,
    extensions: Option<Arc<Extensions>>,
}

/// The extensions of a context, by their type.
type Extensions = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

impl OpContext {
    /// Creates a context without actor, session or deadline, with a new token.
    pub fn new() -> Self {
        Self {
            actor: None,
            session: None,
            operation_id: None,
            deadline: None,
            cancel: CancelToken::new(),
            span: tracing::Span::none(),
            extensions: None,
        }
    }

    /// Sets the actor: the agent or user on whose behalf the call is made.
    #[must_use]
    pub fn with_actor(mut self, actor: impl Into<Arc<str>>) -> Self {
        self.actor = Some(actor.into());
        self
    }

    /// Sets the session: the conversation, thread or run that the call belongs to.
    #[must_use]
    pub fn with_session(mut self, session: impl Into<Arc<str>>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets the id of a mutation that may be sent more than once. Calls that are no mutations ignore it.
    #[must_use]
    pub fn with_operation_id(mut self, id: OperationId) -> Self {
        self.operation_id = Some(id);
        self
    }

    /// Sets the deadline, after which the operation fails with [`ErrorKind::Timeout`]. An earlier deadline stays.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(self.deadline.map_or(deadline, |earlier| earlier.min(deadline)));
        self
    }

    /// Sets the deadline to `timeout` from now. A deadline out of the clock's range is ignored.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        match Instant::now().checked_add(timeout) {
            Some(deadline) => self.with_deadline(deadline),
            None => self,
        }
    }

    /// Replaces the cancellation token.
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

    /// Returns a copy of this context without deadline, cancellation or operation id, for cleanup after the caller gave up.
    #[must_use]
    pub fn for_cleanup(&self) -> Self {
        Self { cancel: CancelToken::new(), deadline: None, operation_id: None, ..self.clone() }
    }

    /// Returns a copy of this context without operation id, for mutations that are not the caller's own: records of a journal, or one
    /// step of several.
    #[must_use]
    pub fn without_operation_id(&self) -> Self {
        Self { operation_id: None, ..self.clone() }
    }

    /// Sets the tracing span of the operation.
    #[must_use]
    pub fn with_span(mut self, span: tracing::Span) -> Self {
        self.span = span;
        self
    }

    /// Adds an extension; it replaces one of the same type.
    #[must_use]
    pub fn with_extension<T: Any + Send + Sync>(mut self, value: T) -> Self {
        let mut extensions = self.extensions.as_deref().cloned().unwrap_or_default();
        extensions.insert(TypeId::of::<T>(), Arc::new(value));
        self.extensions = Some(Arc::new(extensions));
        self
    }

    /// Returns the actor on whose behalf the call is made.
    pub fn actor(&self) -> Option<&str> {
        self.actor.as_deref()
    }

    /// Returns the session that the call belongs to.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Returns the id of the mutation.
    pub fn operation_id(&self) -> Option<&OperationId> {
        self.operation_id.as_ref()
    }

    /// Returns the deadline.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the cancellation token.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.cancel
    }

    /// Returns the tracing span of the operation.
    pub fn span(&self) -> &tracing::Span {
        &self.span
    }

    /// Returns the extension of type `T`.
    pub fn extension<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.extensions.as_ref()?.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// Checks whether the operation may continue. Backends call this at each file and each chunk.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cancelled`] or [`ErrorKind::Timeout`], which name no path.
    pub fn check(&self) -> Result<()> {
        if self.cancel.is_cancelled() {
            return Err(cancelled_error());
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(timeout_error()),
            _ => Ok(()),
        }
    }

    /// Runs `work` and returns its output; drops `work` if the context is cancelled or its deadline passes first.
    ///
    /// `timer` returns a future that completes at an instant, by the clock of the caller's runtime, as this crate has no runtime.
    /// Without a deadline `timer` is not called.
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
    pub async fn run_until_cancelled<T, F>(
        &self,
        timer: impl FnOnce(Instant) -> F,
        work: impl Future<Output = T>,
    ) -> Result<T>
    where
        F: Future<Output = ()>,
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
            Either::Right((Either::Left(_), _)) => Err(cancelled_error()),
            Either::Right((Either::Right(_), _)) => Err(timeout_error()),
        }
    }
}

fn cancelled_error() -> Error {
    Error::of(ErrorKind::Cancelled)
}

fn timeout_error() -> Error {
    Error::new(ErrorKind::Timeout, "the deadline passed; narrow the request or extend the deadline")
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
            .field("operation_id", &self.operation_id)
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
    fn cancellation_ends_the_wait_and_starts_no_work() {
        use futures::executor::block_on;
        use futures::future::join;

        let cx = OpContext::new();
        let cancel = async { cx.cancel_token().cancel() };
        let (waited, ()) = block_on(join(cx.run_until_cancelled(|_| pending(), pending::<()>()), cancel));
        assert_eq!(waited.expect_err("the context is cancelled").kind(), ErrorKind::Cancelled);
        let begun = cx.run_until_cancelled(|_| pending(), async { panic!("work must not start") });
        assert_eq!(block_on(begun).map(|()| 0).expect_err("the context is cancelled").kind(), ErrorKind::Cancelled);
    }

    #[test]
    fn extensions_are_found_by_type_and_clones_do_not_share_later_ones() {
        let first = OpContext::new().with_extension(7_u32);
        let second = first.clone().with_extension("text");
        assert_eq!(second.extension::<u32>(), Some(&7));
        assert_eq!(first.extension::<&str>(), None);
    }
}
