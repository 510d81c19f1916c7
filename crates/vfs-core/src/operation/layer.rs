//! Wrappers as values.

use std::fmt::Debug;
use std::sync::Arc;

use crate::backend::Backend;

/// Something that can be put around any backend: a policy, an audit, a quota.
///
/// # Behaviour
///
/// A layer is a plain value; the same one may be put around many backends. The wrapper implements the whole of [`Backend`]
/// and changes only what it is for.
pub trait Layer: Debug + Send + Sync {
    /// `inner` with this layer around it.
    fn layer(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend>;
}

/// Puts `layers` around `inner`, the first one innermost.
pub fn layered<'a>(inner: Arc<dyn Backend>, layers: impl IntoIterator<Item = &'a dyn Layer>) -> Arc<dyn Backend> {
    layers.into_iter().fold(inner, |inner, layer| layer.layer(inner))
}
