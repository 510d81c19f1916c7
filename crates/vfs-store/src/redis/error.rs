//! Errors of requests to Redis.

use std::time::Duration;

use ::redis::RedisError;
use vfs_core::{Error, ErrorKind};

use super::connection::AttemptKind;

/// Reason why an attempt failed.
#[derive(Debug)]
pub(super) enum RequestError {
    /// No connection could be established.
    Connect(RedisError),
    /// No connection was established in time.
    ConnectTimeout(Duration),
    /// The connection was lost after the request may have been sent.
    ConnectionLost(RedisError),
    /// No response arrived in time.
    ResponseTimeout(Duration),
    /// The server rejected the request.
    Rejected(RedisError),
}

/// Reaction to a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryDecision {
    Fail,
    /// Retry on the same connection or, with [`RequestError::breaks_connection`], on a new one.
    Retry,
}

impl RequestError {
    /// Converts the error of a request that was sent.
    pub(super) fn from_response(error: RedisError) -> Self {
        let is_reply = matches!(error.kind(), ::redis::ErrorKind::Server(_) | ::redis::ErrorKind::Extension);
        if is_reply { RequestError::Rejected(error) } else { RequestError::ConnectionLost(error) }
    }

    /// Returns whether the server may have received the request, or may still receive it.
    pub(super) fn may_have_been_sent(&self) -> bool {
        matches!(self, RequestError::ConnectionLost(_) | RequestError::ResponseTimeout(_))
    }

    /// Returns whether the connection cannot be used again. If the server became a replica, a new connection may reach
    /// the new primary at the same address.
    pub(super) fn breaks_connection(&self) -> bool {
        match self {
            RequestError::ConnectionLost(_) | RequestError::ResponseTimeout(_) => true,
            RequestError::Rejected(error) => matches!(code(error).as_str(), "READONLY" | "NOAUTH"),
            RequestError::Connect(_) | RequestError::ConnectTimeout(_) => false,
        }
    }

    pub(super) fn recovery_action(&self) -> RetryDecision {
        match self {
            RequestError::ConnectionLost(_) | RequestError::ResponseTimeout(_) | RequestError::ConnectTimeout(_) => {
                RetryDecision::Retry
            }
            RequestError::Connect(error) | RequestError::Rejected(error) => {
                let is_transient = is_no_reply(error)
                    || matches!(
                        code(error).as_str(),
                        "READONLY" | "LOADING" | "BUSY" | "MASTERDOWN" | "TRYAGAIN" | "CLUSTERDOWN"
                    );
                if is_transient { RetryDecision::Retry } else { RetryDecision::Fail }
            }
        }
    }

    /// Converts this into an error that describes the failure of `attempt` for the server at `address`.
    ///
    /// If this or an earlier attempt may have been sent, a change may be applied, even if the server rejected its repetition.
    pub(super) fn into_error(self, address: &str, attempt: AttemptKind) -> Error {
        let is_in_doubt = attempt == AttemptKind::Repeated || self.may_have_been_sent();
        let describe = |kind, message: String| {
            if !is_in_doubt {
                return Error::new(kind, message).with_generic_model_message();
            }
            let kind = if kind == ErrorKind::Timeout { kind } else { ErrorKind::Unavailable };
            Error::new(kind, format!("{message}; a change may have been made")).with_model_message(
                "Error: the storage failed during this operation; if it was a change, read the file to see whether it was made",
            )
        };
        match self {
            RequestError::ConnectTimeout(limit) => {
                let advice = "correct the host and port, or open the firewall";
                describe(
                    ErrorKind::Unavailable,
                    format!("the Redis server at {address} was not reached within {limit:?}; {advice}"),
                )
            }
            RequestError::ResponseTimeout(limit) => {
                let advice = "the server is overloaded, or the network lost the connection";
                describe(
                    ErrorKind::Timeout,
                    format!("the Redis server at {address} did not answer within {limit:?}; {advice}"),
                )
            }
            RequestError::Connect(error) if is_no_reply(&error) => {
                describe(ErrorKind::Unavailable, describe_connect_failure(&error, address)).with_source(error)
            }
            RequestError::ConnectionLost(error) => {
                let message = "was lost, and could not be restored in time";
                describe(ErrorKind::Unavailable, format!("the connection to the Redis server at {address} {message}"))
                    .with_source(error)
            }
            RequestError::Connect(error) | RequestError::Rejected(error) => {
                let (kind, message) = describe_rejection(&error, address);
                describe(kind, message)
            }
        }
    }
}

/// Returns whether the server sent nothing, or something that is not a reply.
fn is_no_reply(error: &RedisError) -> bool {
    error.is_io_error() || error.kind() == ::redis::ErrorKind::Parse
}

fn describe_connect_failure(error: &RedisError, address: &str) -> String {
    if error.is_connection_refusal() {
        return format!("nothing listens at {address}; start the Redis server there, or correct the store's URL");
    }
    let text = error.to_string();
    if text.contains("lookup") || text.contains("resolve") {
        format!("the host of {address} cannot be found; correct the store's URL")
    } else if text.contains("certificate") {
        let advice = "trust it with 'RedisConfig::root_certificate', or use the host name in the certificate";
        format!("the certificate of the Redis server at {address} is not trusted ({text}); {advice}")
    } else if text.contains("tls") || text.contains("corrupt message") {
        format!("no TLS connection could be established to {address} ({text}); 'redis://' is without TLS")
    } else {
        format!("no connection could be established to {address}; check that it is a Redis server")
    }
}

/// Returns the code and the text of an error reply. In a script, these are those of the command that failed.
fn code_and_text(error: &RedisError) -> (String, String) {
    let first = error.clone().into_server_errors().and_then(|errors| errors.first().map(|(_, error)| error.clone()));
    let (code, text) = match &first {
        Some(error) => (error.code().to_owned(), error.details().unwrap_or_default().to_owned()),
        None => (error.code().unwrap_or_default().to_owned(), error.detail().unwrap_or_default().to_owned()),
    };
    // Redis 6 wraps the error of a command in a script.
    const WRAPPED: [&str; 6] = ["OOM", "READONLY", "WRONGTYPE", "NOPERM", "MISCONF", "NOREPLICAS"];
    let inner = WRAPPED.iter().find(|inner| text.contains(&format!(" -{inner} ")));
    (inner.map_or(code, |inner| (*inner).to_owned()), text)
}

fn code(error: &RedisError) -> String {
    code_and_text(error).0
}

fn describe_rejection(error: &RedisError, address: &str) -> (ErrorKind, String) {
    let (code, text) = code_and_text(error);
    if error.kind() == ::redis::ErrorKind::AuthenticationFailed {
        let advice = "write them as 'redis://user:password@host', or without a user if the server has only a password";
        return (
            ErrorKind::PermissionDenied,
            format!("the Redis server at {address} refused the user or password; {advice}"),
        );
    }
    let (kind, words) = match code.as_str() {
        "NOAUTH" => (ErrorKind::PermissionDenied, "asks for a password; write it as 'redis://user:password@host'"),
        "WRONGPASS" => (ErrorKind::PermissionDenied, "refused the user or password"),
        "NOPERM" => (
            ErrorKind::PermissionDenied,
            "does not permit this to the user; grant the permissions listed in the documentation of the store",
        ),
        "DENIED" => (
            ErrorKind::PermissionDenied,
            "is in protected mode; set a password there, or bind the server to this address",
        ),
        "READONLY" => (ErrorKind::Unavailable, "is a read-only replica; use the address of the primary"),
        "OOM" => {
            (ErrorKind::StorageFull, "has no memory left (its 'maxmemory' is reached); delete files or raise the limit")
        }
        "LOADING" => (ErrorKind::Unavailable, "is still loading its data; try again soon"),
        "BUSY" => (ErrorKind::Busy, "is busy with a long script; try again"),
        "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "NOREPLICAS" => {
            (ErrorKind::Unavailable, "rejects this now, because other servers that it needs are missing; try again")
        }
        "MISCONF" => (
            ErrorKind::Unavailable,
            "rejects changes, because it cannot save to its disk; check whether that disk is full",
        ),
        "MOVED" | "ASK" | "CROSSSLOT" => {
            (ErrorKind::Unsupported, "is a part of a Redis Cluster, which is not supported; use one server, or a proxy")
        }
        "WRONGTYPE" => {
            (ErrorKind::InvalidArgument, "has another program's value at a key of this store; use another 'prefix'")
        }
        _ if text.contains("max number of clients") => (ErrorKind::Unavailable, "has too many clients; try again"),
        _ if text.contains("DB index") => {
            (ErrorKind::InvalidArgument, "has no database with the number in the store's URL")
        }
        _ => {
            let message = format!("the Redis server at {address} rejected the request ({code} {text:.200})");
            return (ErrorKind::Unavailable, message);
        }
    };
    (kind, format!("the Redis server at {address} {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_learns_that_a_change_may_have_been_made_and_no_address() {
        let broken_pipe = || RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        let second = Duration::from_secs(1);
        for (fault, attempt, is_in_doubt) in [
            (RequestError::ResponseTimeout(second), AttemptKind::First, true),
            (RequestError::ConnectionLost(broken_pipe()), AttemptKind::First, true),
            (RequestError::ConnectTimeout(second), AttemptKind::First, false),
            (RequestError::ConnectTimeout(second), AttemptKind::Repeated, true),
            (RequestError::Connect(broken_pipe()), AttemptKind::First, false),
            (RequestError::Connect(broken_pipe()), AttemptKind::Repeated, true),
        ] {
            let error = fault.into_error("db.internal:6379", attempt);
            assert!(error.message().contains("db.internal:6379"), "{error}");
            assert_eq!(error.message().contains("a change may have been made"), is_in_doubt, "{error}");
            let shown = error.for_model();
            let expected = if is_in_doubt { "read the file to see whether it was made" } else { "try again later" };
            assert!(shown.contains(expected) && !shown.contains("db.internal"), "{shown}");
        }
    }
}
