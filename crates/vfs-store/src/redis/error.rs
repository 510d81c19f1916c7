//! Errors of requests to Redis.

use std::time::Duration;

use ::redis::RedisError;
use vfs_core::{Error, ErrorKind};

/// Why an attempt gave no answer, or none that is of use.
#[derive(Debug)]
pub(super) enum RequestError {
    /// No connection could be made.
    NotConnected(RedisError),
    /// No connection was there in time.
    NotConnectedFor(Duration),
    /// The connection was lost, with the request perhaps sent.
    Lost(RedisError),
    /// No answer came in time.
    NotAnsweredFor(Duration),
    /// The server refused.
    Refused(RedisError),
}

/// What to do after a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecoveryAction {
    GiveUp,
    /// Try again, by the same connection or, with [`RequestError::breaks_connection`], by a new one.
    TryAgain,
}

impl RequestError {
    /// What became of a request that was sent.
    pub(super) fn of_request(error: RedisError) -> Self {
        let is_answer = matches!(error.kind(), ::redis::ErrorKind::Server(_) | ::redis::ErrorKind::Extension);
        if is_answer { RequestError::Refused(error) } else { RequestError::Lost(error) }
    }

    /// Whether the server may have got the request, or may still get it.
    pub(super) fn may_have_been_sent(&self) -> bool {
        matches!(self, RequestError::Lost(_) | RequestError::NotAnsweredFor(_))
    }

    /// Whether the connection is of no more use. Behind the address of one that became a replica may by now be another server.
    pub(super) fn breaks_connection(&self) -> bool {
        match self {
            RequestError::Lost(_) | RequestError::NotAnsweredFor(_) => true,
            RequestError::Refused(error) => matches!(code(error).as_str(), "READONLY" | "NOAUTH"),
            RequestError::NotConnected(_) | RequestError::NotConnectedFor(_) => false,
        }
    }

    pub(super) fn next(&self) -> RecoveryAction {
        match self {
            RequestError::Lost(_) | RequestError::NotAnsweredFor(_) | RequestError::NotConnectedFor(_) => {
                RecoveryAction::TryAgain
            }
            RequestError::NotConnected(error) | RequestError::Refused(error) => {
                let is_passing = is_no_answer(error)
                    || matches!(
                        code(error).as_str(),
                        "READONLY" | "LOADING" | "BUSY" | "MASTERDOWN" | "TRYAGAIN" | "CLUSTERDOWN"
                    );
                if is_passing { RecoveryAction::TryAgain } else { RecoveryAction::GiveUp }
            }
        }
    }

    /// The failure in words, of the server at `address`.
    pub(super) fn into_error(self, address: &str) -> Error {
        let may_have_been_sent = self.may_have_been_sent();
        let of = |kind, message: String| {
            let error = Error::new(kind, message);
            if may_have_been_sent {
                error.with_model_message(
                    "Error: the storage failed while it worked on this; if it was a change, read the file to see whether it was made",
                )
            } else {
                error.with_generic_model_message()
            }
        };
        match self {
            RequestError::NotConnectedFor(limit) => {
                let advice = "correct the host and port, or open the firewall";
                of(
                    ErrorKind::Unavailable,
                    format!("the Redis server at {address} was not reached within {limit:?}; {advice}"),
                )
            }
            RequestError::NotAnsweredFor(limit) => {
                let advice = "it is overloaded, or the network lost the connection; the change, if it was one, may have been made";
                of(
                    ErrorKind::Timeout,
                    format!("the Redis server at {address} gave no answer within {limit:?}; {advice}"),
                )
            }
            RequestError::NotConnected(error) if is_no_answer(&error) => {
                of(ErrorKind::Unavailable, not_connected(&error, address)).with_source(error)
            }
            RequestError::Lost(error) => {
                let message = "the connection to the Redis server at";
                let advice = "and could not be used again in time; the change, if it was one, may have been made";
                of(ErrorKind::Unavailable, format!("{message} {address} was lost, {advice}")).with_source(error)
            }
            RequestError::NotConnected(error) | RequestError::Refused(error) => {
                let (kind, message) = refused(&error, address);
                of(kind, message)
            }
        }
    }
}

/// Whether what came was nothing, or nothing that a server says.
fn is_no_answer(error: &RedisError) -> bool {
    error.is_io_error() || error.kind() == ::redis::ErrorKind::Parse
}

fn not_connected(error: &RedisError, address: &str) -> String {
    if error.is_connection_refusal() {
        return format!("nothing listens at {address}; start the Redis server there, or correct the store's URL");
    }
    let text = error.to_string();
    if text.contains("lookup") || text.contains("resolve") {
        format!("the host of {address} cannot be found; correct the store's URL")
    } else if text.contains("certificate") {
        let advice = "trust it with 'RedisConfig::root_certificate', or use the name that it was made for";
        format!("the certificate of the Redis server at {address} is not trusted ({text}); {advice}")
    } else if text.contains("tls") || text.contains("corrupt message") {
        format!("no TLS connection could be made to {address} ({text}); 'redis://' is without TLS")
    } else {
        format!("no connection could be made to the Redis server at {address}; is it one?")
    }
}

/// The code and the text of what the server answered. Within a script, they are those of the command that failed.
fn code_and_text(error: &RedisError) -> (String, String) {
    let first = error.clone().into_server_errors().and_then(|errors| errors.first().map(|(_, error)| error.clone()));
    let (code, text) = match &first {
        Some(error) => (error.code().to_owned(), error.details().unwrap_or_default().to_owned()),
        None => (error.code().unwrap_or_default().to_owned(), error.detail().unwrap_or_default().to_owned()),
    };
    // Redis 6 wraps what a command in a script answered.
    const WRAPPED: [&str; 6] = ["OOM", "READONLY", "WRONGTYPE", "NOPERM", "MISCONF", "NOREPLICAS"];
    let inner = WRAPPED.iter().find(|inner| text.contains(&format!(" -{inner} ")));
    (inner.map_or(code, |inner| (*inner).to_owned()), text)
}

fn code(error: &RedisError) -> String {
    code_and_text(error).0
}

fn refused(error: &RedisError, address: &str) -> (ErrorKind, String) {
    let (code, text) = code_and_text(error);
    if error.kind() == ::redis::ErrorKind::AuthenticationFailed {
        let advice =
            "write them as 'redis://user:password@host', or without a user where the server has only a password";
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
            "does not allow this to the user; see what a store needs in its documentation",
        ),
        "DENIED" => {
            (ErrorKind::PermissionDenied, "is in protected mode; set a password there, or bind it to this address")
        }
        "READONLY" => (ErrorKind::Unavailable, "is a read-only replica; use the address of the primary"),
        "OOM" => {
            (ErrorKind::StorageFull, "has no memory left (its 'maxmemory' is reached); delete files or raise the limit")
        }
        "LOADING" => (ErrorKind::Unavailable, "is still loading its data; try again soon"),
        "BUSY" => (ErrorKind::Busy, "is busy with a long script; try again"),
        "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "NOREPLICAS" => {
            (ErrorKind::Unavailable, "does not take this now, as other servers that it needs are missing; try again")
        }
        "MISCONF" => {
            (ErrorKind::Unavailable, "takes no changes, as it cannot save to its disk; look for a full disk there")
        }
        "MOVED" | "ASK" | "CROSSSLOT" => {
            (ErrorKind::Unsupported, "is a part of a Redis Cluster, which is not supported; use one server, or a proxy")
        }
        "WRONGTYPE" => {
            (ErrorKind::InvalidArgument, "holds another program's value at a key of this store; use another 'prefix'")
        }
        _ if text.contains("max number of clients") => (ErrorKind::Unavailable, "has too many clients; try again"),
        _ if text.contains("DB index") => {
            (ErrorKind::InvalidArgument, "has no database of the number in the store's URL")
        }
        _ => {
            let message = format!("the Redis server at {address} refused ({code} {text:.200})");
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
        let cut = || RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        for (fault, expected) in [
            (RequestError::NotAnsweredFor(Duration::from_secs(1)), "read the file to see whether it was made"),
            (RequestError::Lost(cut()), "read the file to see whether it was made"),
            (RequestError::NotConnectedFor(Duration::from_secs(1)), "try again later"),
            (RequestError::NotConnected(cut()), "try again later"),
        ] {
            let error = fault.into_error("db.internal:6379");
            assert!(error.message().contains("db.internal:6379"), "{error}");
            let shown = error.for_model();
            assert!(shown.contains(expected) && !shown.contains("db.internal"), "{shown}");
        }
    }
}
