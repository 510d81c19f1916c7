//! Result streams and their constructors.

use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};

use crate::error::{Error, Result};

/// The stream of results that streaming operations return.
pub type ResultStream<T> = BoxStream<'static, Result<T>>;

/// Returns the stream that the future `start` resolves to. If `start` fails, its error is the only item.
///
/// ```
/// use futures::StreamExt as _;
/// use vfs_core::operation::{ResultStream, deferred_stream};
/// use vfs_core::{Error, ErrorKind};
///
/// # futures::executor::block_on(async {
/// let mut items: ResultStream<u32> = deferred_stream(async { Err(Error::of(ErrorKind::Busy)) });
/// assert!(items.next().await.is_some_and(|item| item.is_err()));
/// assert!(items.next().await.is_none());
/// # });
/// ```
pub fn deferred_stream<T: Send + 'static>(
    start: impl Future<Output = Result<ResultStream<T>>> + Send + 'static,
) -> ResultStream<T> {
    stream::once(start).try_flatten().boxed()
}

impl Error {
    /// Returns a stream whose only item is this error.
    pub fn into_stream<T: Send + 'static>(self) -> ResultStream<T> {
        stream::iter([Err(self)]).boxed()
    }
}
