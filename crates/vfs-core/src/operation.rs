//! Operations as values, and interceptors, which treat all of them alike.

mod intercepted;
mod interceptor;
mod layer;
mod request;
mod request_json;
mod result_stream;
mod upload_contexts;

pub use self::intercepted::Intercepted;
pub use self::interceptor::{Interceptor, StreamCall};
pub use self::layer::{Layer, layered};
pub use self::request::{
    AnyOutput, AnyRequest, ExecuteStreamRequest, GrepStreamRequest, ListSnapshotsRequest, Operation, OperationClass,
    OutputRef, Request, RequestRef, StreamRequest, UnaryRequest,
};
pub use self::request_json::from_json;
pub use self::result_stream::{ResultStream, deferred_stream};
pub use self::upload_contexts::UploadContexts;
