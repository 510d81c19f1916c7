//! Service adapter traits: the format of requests and responses, and request signing.

use std::fmt;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use vfs_core::Result;

use crate::exec::{RemoteOutput, ScriptInvocation, TransportLimits};

/// The format of the requests and responses of a service that runs code.
///
/// `Display` names the service in errors and logs; it must not show a secret.
pub trait CodeExecutionApi: fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// Returns the limits of the service.
    fn transport(&self) -> TransportLimits;

    /// Creates the request that runs `invocation`.
    ///
    /// # Errors
    ///
    /// An error if the service cannot run the invocation.
    fn request(&self, invocation: &ScriptInvocation) -> Result<ApiRequest>;

    /// Parses the service's response to `request`, which has a status of success and a complete body.
    ///
    /// # Errors
    ///
    /// `unavailable` for a malformed response, and for one that says that the script was not run.
    fn parse_response(&self, request: &ApiRequest, body: &[u8]) -> Result<RemoteOutput>;

    /// Returns the message of a response with a status of failure, if it has one.
    fn parse_failure(&self, body: &[u8]) -> Option<String>;
}

/// A POST request to a service, without its signature.
#[derive(Clone)]
#[non_exhaustive]
pub struct ApiRequest {
    /// Names and values of the query, not encoded.
    pub query: Vec<(String, String)>,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// A marker of the response to this request, for an API that needs one.
    pub tag: String,
}

impl ApiRequest {
    /// Creates a request with the JSON body `body`.
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self {
            query: Vec::new(),
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.into(),
            tag: String::new(),
        }
    }

    /// Adds a parameter to the query.
    #[must_use]
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.query.push((name.into(), value.into()));
        self
    }

    /// Sets the [`tag`](Self::tag).
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = tag.into();
        self
    }
}

impl fmt::Debug for ApiRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A script may contain secrets, and so may its input.
        f.debug_struct("ApiRequest")
            .field("query", &self.query)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Authenticates requests to a service.
pub trait Sign: fmt::Debug + Send + Sync + 'static {
    /// Returns the names and values of the headers to add to `request`.
    ///
    /// The method is called for each attempt, so that a signature can have the time of the attempt. No error contains
    /// the values.
    ///
    /// # Errors
    ///
    /// `permission_denied` if there is no key to sign with.
    fn sign(&self, request: &SignableRequest<'_>) -> Result<Vec<(String, String)>>;
}

/// The parts of a request that a signature can cover.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SignableRequest<'a> {
    /// The method, in capitals.
    pub method: &'a str,
    /// The host as in the request, with the port unless it is the default one.
    pub host: &'a str,
    /// The path as in the request, at least `/`.
    pub path: &'a str,
    /// Names and values of the query, not encoded.
    pub query: &'a [(String, String)],
    /// Names and values of the headers so far.
    pub headers: &'a [(String, String)],
    /// The SHA-256 of the body, in lower-case hexadecimal digits.
    pub body_sha256: &'a str,
    /// The time of the attempt.
    pub time: DateTime<Utc>,
}

impl<'a> SignableRequest<'a> {
    /// Creates the parts of a POST request to `host` at `path`, without query and headers.
    pub fn new(host: &'a str, path: &'a str, body_sha256: &'a str, time: DateTime<Utc>) -> Self {
        Self { method: "POST", host, path, query: &[], headers: &[], body_sha256, time }
    }
}
