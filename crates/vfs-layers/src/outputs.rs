//! What some operations give, seen through the type that stands for the output of any.

use std::any::Any;
use std::mem;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use vfs_core::{Error, ExecuteEvent, GrepEvent, Operation, Result, WatchEvent};

use crate::outcome::Outcome;

/// A stream as operations give it.
pub(crate) type Items<T> = BoxStream<'static, Result<T>>;

/// Something that is done to a stream, whatever its items are.
pub(crate) trait OnStream {
    /// `items` with this around them.
    fn wrap<T: Send + 'static>(self, items: Items<T>) -> Items<T>;
}

/// `output` as a `T`, where it is one.
pub(crate) fn as_type<T: 'static>(output: &impl Any) -> Option<&T> {
    (output as &dyn Any).downcast_ref()
}

/// `value` as what the operation gives, where that is a `T`.
pub(crate) fn into_output<T: 'static, O: 'static>(value: T) -> Option<O> {
    let mut slot = Some(value);
    (&mut slot as &mut dyn Any).downcast_mut::<Option<O>>()?.take()
}

/// Whether the operation gives a stream.
pub(crate) fn is_stream(operation: Operation) -> bool {
    matches!(operation, Operation::GrepStream | Operation::ExecuteStream | Operation::Watch)
}

/// How a stream ends with `item` as its last one; `None` where this is not an item to end with.
pub(crate) fn end_with<T: 'static>(item: &Result<T>) -> Option<Outcome> {
    let item = match item {
        Ok(item) => item,
        Err(error) => return Some(Outcome::Failed(error.kind())),
    };
    let is_end = matches!(as_type::<GrepEvent>(item), Some(GrepEvent::End(_)))
        || matches!(as_type::<ExecuteEvent>(item), Some(ExecuteEvent::Exit(_)));
    is_end.then_some(Outcome::Ok)
}

/// `output` with `change` around it where it is a stream; any other output as it is, and `change` is dropped.
pub(crate) fn on_stream<O: 'static>(mut output: O, change: impl OnStream) -> O {
    let any: &mut dyn Any = &mut output;
    if let Some(items) = any.downcast_mut::<Items<GrepEvent>>() {
        replace(items, change);
    } else if let Some(items) = any.downcast_mut::<Items<ExecuteEvent>>() {
        replace(items, change);
    } else if let Some(items) = any.downcast_mut::<Items<WatchEvent>>() {
        replace(items, change);
    }
    output
}

fn replace<T: Send + 'static>(items: &mut Items<T>, change: impl OnStream) {
    let taken = mem::replace(items, stream::empty().boxed());
    *items = change.wrap(taken);
}

/// The error that `output` begins with, where it is a stream of a search or of a command; it is then taken off. Waits for
/// the first item.
pub(crate) async fn first_error<O: Send + 'static>(output: &mut O) -> Option<Error> {
    let any: &mut (dyn Any + Send) = output;
    if let Some(items) = any.downcast_mut::<Items<GrepEvent>>() {
        return begin(items).await;
    }
    match any.downcast_mut::<Items<ExecuteEvent>>() {
        Some(items) => begin(items).await,
        None => None,
    }
}

async fn begin<T: Send + 'static>(items: &mut Items<T>) -> Option<Error> {
    match items.next().await? {
        Ok(first) => {
            let rest = mem::replace(items, stream::empty().boxed());
            *items = stream::once(async { Ok(first) }).chain(rest).boxed();
            None
        }
        Err(error) => Some(error),
    }
}
