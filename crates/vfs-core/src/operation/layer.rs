//! Factories of backend wrappers.

use std::fmt::Debug;
use std::sync::Arc;

use super::{Intercepted, Interceptor};
use crate::backend::Backend;

/// A factory that wraps a backend in another one, such as a policy, an audit log or a quota.
///
/// # Behaviour
///
/// One layer may wrap many backends. The wrapper implements all of [`Backend`], its facets included, and forwards the calls that
/// it does not change.
pub trait Layer: Debug + Send + Sync {
    /// Returns `inner` wrapped in this layer.
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend>;
}

impl<I: Interceptor> Layer for Arc<I> {
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Intercepted::new(inner, Self::clone(self)))
    }
}

/// Wraps `inner` in all `layers`; the first one is the innermost.
pub fn layered<'a>(inner: Arc<dyn Backend>, layers: impl IntoIterator<Item = &'a dyn Layer>) -> Arc<dyn Backend> {
    layers.into_iter().fold(inner, |inner, layer| layer.layer(inner))
}
