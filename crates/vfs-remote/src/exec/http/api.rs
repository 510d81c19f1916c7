//! Service adapter traits: the format of requests and responses, and request signing.

use std::fmt;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use vfs_core::Result;

use crate::exec::{Invocation, RemoteOutput, Transport};

/// The requests and answers of a service that runs code.
///
/// `Display` names the service in errors and logs; it must not show a secret.
pub trait RunCodeApi: fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// Limits of the service.
    fn transport(&self) -> Transport;

    /// The request that runs `invocation`.
    ///
    /// # Errors
    ///
    /// Those of an invocation that the service cannot run.
    fn request(&self, invocation: &Invocation) -> Result<ApiRequest>;

    /// Parses the service's response to `request`, whose status was one of success and whose body is complete.
    ///
    /// # Errors
    ///
    /// `unavailable` for an answer that is not in the service's format, and for one that says that the script was not
    /// run.
    fn answer(&self, request: &ApiRequest, body: &[u8]) -> Result<RemoteOutput>;

    /// Returns the message of a response whose status is not one of success, if it has one.
    fn complaint(&self, body: &[u8]) -> Option<String>;
}

/// A POST request to a service, without its signature.
#[derive(Clone)]
#[non_exhaustive]
pub struct ApiRequest {
    /// Names and values of the query, as they are and not encoded.
    pub query: Vec<(String, String)>,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// Marker of the response to this very request, for an API that needs it.
    pub tag: String,
}

impl ApiRequest {
    /// Sends `body`, which is JSON.
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self {
            query: Vec::new(),
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.into(),
            tag: String::new(),
        }
    }

    /// Adds to the query.
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
        // A script may hold secrets, and so may its input.
        f.debug_struct("ApiRequest")
            .field("query", &self.query)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Proves to a service who sends a request.
pub trait Sign: fmt::Debug + Send + Sync + 'static {
    /// The headers that are added to `request`, with their values.
    ///
    /// Called for each attempt, so that a signature can have the time of the attempt. The values are left out of every
    /// error.
    ///
    /// # Errors
    ///
    /// `permission_denied` where there is nothing to sign with.
    fn sign(&self, request: &Unsigned<'_>) -> Result<Vec<(String, String)>>;
}

/// The parts of a request that a signature can cover.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Unsigned<'a> {
    /// The method, in capitals.
    pub method: &'a str,
    /// The host as the request names it, with the port unless it is the usual one.
    pub host: &'a str,
    /// The path as it is sent, at least `/`.
    pub path: &'a str,
    /// Names and values of the query, as they are and not encoded.
    pub query: &'a [(String, String)],
    /// Names and values of the headers so far.
    pub headers: &'a [(String, String)],
    /// The SHA-256 of the body, in lower-case hexadecimal digits.
    pub body_sha256: &'a str,
    /// When it is sent.
    pub time: DateTime<Utc>,
}

impl<'a> Unsigned<'a> {
    /// A POST request to `host` at `path`, with nothing else in it yet but the hash of its body.
    pub fn new(host: &'a str, path: &'a str, body_sha256: &'a str, time: DateTime<Utc>) -> Self {
        Self { method: "POST", host, path, query: &[], headers: &[], body_sha256, time }
    }
}
