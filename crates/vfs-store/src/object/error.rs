//! Errors of object storage, without secrets.

use std::error::Error as _;

use object_store::client::{HttpError, HttpErrorKind};
use vfs_core::{Error, ErrorKind};

/// Description of a failure of an object store.
///
/// The original error is dropped, because the response of a service may repeat credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BucketError {
    cause: BucketErrorCause,
    /// Error code of the service, such as `NoSuchBucket`.
    code: Option<String>,
    status: Option<u16>,
}

/// Cause of a failure, without the original error.
#[derive(Debug, Clone, PartialEq, Eq)]
enum BucketErrorCause {
    /// There is no such object.
    Missing,
    /// The precondition of the request does not hold.
    Refused,
    /// The object store does not support the request.
    Unsupported,
    /// A listing has an invalid key.
    BadKey,
    /// There was no response: the kind of failure and its reason.
    Unanswered(HttpErrorKind, String),
    /// No credentials are configured.
    NoCredentials,
    /// The bucket is at another address.
    Redirected,
    /// The object changed during each attempt to read it.
    Changing,
    /// Any other failure, with its reason if that is safe to show.
    Other(String),
}

impl From<object_store::Error> for BucketError {
    fn from(error: object_store::Error) -> Self {
        let text = error.to_string();
        let code = between(&text, "<Code>", "</Code>").filter(|code| is_word(code)).map(str::to_owned);
        let status = between(&text, "status code: ", " ").or_else(|| between(&text, "status code: ", ":"));
        let status = status.and_then(|digits| digits.parse().ok());
        let cause = match &error {
            _ if is_credential_lookup(&text) => BucketErrorCause::NoCredentials,
            object_store::Error::NotFound { .. } => BucketErrorCause::Missing,
            object_store::Error::AlreadyExists { .. }
            | object_store::Error::Precondition { .. }
            | object_store::Error::NotModified { .. } => BucketErrorCause::Refused,
            object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. } => {
                BucketErrorCause::Unsupported
            }
            object_store::Error::InvalidPath { .. } => BucketErrorCause::BadKey,
            _ if text.contains("Received redirect") => BucketErrorCause::Redirected,
            error => match transport_failure(error) {
                Some((kind, reason)) => BucketErrorCause::Unanswered(kind, reason),
                // The text of a failure without a response comes from this program; that of a response may contain
                // anything.
                None if status.is_none() && code.is_none() && !text.contains('<') => BucketErrorCause::Other(text),
                None => BucketErrorCause::Other(String::new()),
            },
        };
        Self { cause, code, status }
    }
}

impl BucketError {
    /// Returns the error of a change whose precondition does not hold.
    pub(super) fn refused() -> Self {
        Self { cause: BucketErrorCause::Refused, code: None, status: None }
    }

    /// Returns the error of a request without a response in time.
    pub(super) fn unanswered() -> Self {
        Self { cause: BucketErrorCause::Unanswered(HttpErrorKind::Timeout, String::new()), code: None, status: None }
    }

    /// Returns the error of an object that changed during each attempt to read it.
    pub(super) fn changing() -> Self {
        Self { cause: BucketErrorCause::Changing, code: None, status: None }
    }

    /// Returns whether there is no such object. A missing bucket is a different error.
    pub(super) fn is_missing(&self) -> bool {
        self.cause == BucketErrorCause::Missing && !self.is_missing_bucket()
    }

    /// Returns whether the precondition of the request does not hold.
    pub(super) fn is_refusal(&self) -> bool {
        (self.cause == BucketErrorCause::Refused || self.cause == BucketErrorCause::Missing)
            && !self.is_missing_bucket()
    }

    /// Returns whether the requested range may begin after the end of the value.
    pub(super) fn may_be_range(&self) -> bool {
        self.status == Some(416) || matches!(self.cause, BucketErrorCause::Other(_)) && self.status.is_none()
    }

    /// Returns whether there was no response at all.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(self.cause, BucketErrorCause::Unanswered(HttpErrorKind::Timeout | HttpErrorKind::Connect, _))
    }

    fn is_missing_bucket(&self) -> bool {
        matches!(self.code.as_deref(), Some("NoSuchBucket" | "ContainerNotFound"))
    }

    /// Converts this into the public error of the store with the name `store`.
    pub(super) fn error(&self, store: &str) -> Error {
        let (kind, reason) = self.explain();
        let detail = match (&self.code, self.status) {
            (Some(code), Some(status)) => format!(" ({code}, {status})"),
            (Some(code), None) => format!(" ({code})"),
            (None, Some(status)) => format!(" ({status})"),
            (None, None) => String::new(),
        };
        Error::new(kind, format!("{store}: {reason}{detail}")).with_generic_model_message()
    }

    fn explain(&self) -> (ErrorKind, String) {
        if let Some((kind, reason)) = self.code.as_deref().and_then(explain_code) {
            return (kind, reason.to_owned());
        }
        if let Some((kind, reason)) = self.explain_cause() {
            return (kind, reason);
        }
        let (kind, reason) = match self.status {
            Some(400) => (
                ErrorKind::PermissionDenied,
                "the service does not accept the request; the credentials may have expired, or the region may be wrong",
            ),
            Some(401) => (
                ErrorKind::PermissionDenied,
                "the service does not accept the credentials; check the key and its secret",
            ),
            Some(403) => (
                ErrorKind::PermissionDenied,
                "the service denies access; the credentials may be wrong or expired, or lack the right to list, get, put and delete objects of this bucket",
            ),
            Some(301 | 307 | 308) => (ErrorKind::InvalidArgument, WRONG_REGION),
            Some(404) => (ErrorKind::InvalidArgument, NO_SUCH_BUCKET),
            Some(408 | 504) => (ErrorKind::Unavailable, "the service took too long; try again later"),
            Some(413) => (ErrorKind::TooLarge, "the value is larger than the service accepts"),
            Some(429 | 503) => (ErrorKind::Unavailable, "the service is overloaded; try again later"),
            Some(507) => (ErrorKind::StorageFull, "the service has no space left"),
            Some(501) => (ErrorKind::Unsupported, "the service cannot do this"),
            Some(500..) => (ErrorKind::Unavailable, "the service has a fault; try again later"),
            _ => (ErrorKind::Unavailable, "the service sent a response that cannot be understood"),
        };
        (kind, reason.to_owned())
    }

    fn explain_cause(&self) -> Option<(ErrorKind, String)> {
        Some(match &self.cause {
            BucketErrorCause::NoCredentials => (
                ErrorKind::PermissionDenied,
                "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give access_key_id and secret_access_key in the URL".to_owned(),
            ),
            BucketErrorCause::Redirected => (ErrorKind::InvalidArgument, WRONG_REGION.to_owned()),
            BucketErrorCause::Unsupported => (ErrorKind::Unsupported, "the object store does not support conditional changes".to_owned()),
            BucketErrorCause::BadKey => (
                ErrorKind::InvalidArgument,
                "an object in the bucket has a key with empty parts or control characters, which hides the objects next to it; rename or remove it".to_owned(),
            ),
            BucketErrorCause::Unanswered(HttpErrorKind::Timeout, _) => (
                ErrorKind::Unavailable,
                "the service did not answer in time; check the network, and whether the service is running".to_owned(),
            ),
            BucketErrorCause::Unanswered(HttpErrorKind::Connect, reason) => {
                (ErrorKind::Unavailable, format!("the service cannot be reached: {reason}; check the endpoint, and whether the service is running"))
            }
            BucketErrorCause::Unanswered(_, reason) => (ErrorKind::Unavailable, format!("the connection to the service was lost: {reason}")),
            BucketErrorCause::Other(reason) if !reason.is_empty() => (ErrorKind::Unavailable, reason.clone()),
            BucketErrorCause::Changing => (ErrorKind::Busy, "other writers keep changing the file while it is read; try again".to_owned()),
            BucketErrorCause::Refused => (ErrorKind::Conflict, "the object is not in the state that the change depends on".to_owned()),
            BucketErrorCause::Missing | BucketErrorCause::Other(_) => return None,
        })
    }
}

const NO_SUCH_BUCKET: &str = "there is no such bucket; create it, or correct its name in the URL";
const WRONG_REGION: &str = "the bucket is in another region; name it in the URL as 'region'";

/// Returns the meaning of an error code of S3 or another service.
fn explain_code(code: &str) -> Option<(ErrorKind, &'static str)> {
    Some(match code {
        "NoSuchBucket" | "ContainerNotFound" => (ErrorKind::InvalidArgument, NO_SUCH_BUCKET),
        "InvalidBucketName" => (ErrorKind::InvalidArgument, "the name of the bucket is invalid; correct the URL"),
        "PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException" => {
            (ErrorKind::InvalidArgument, WRONG_REGION)
        }
        "AccessDenied" | "AllAccessDisabled" | "AccountProblem" => (
            ErrorKind::PermissionDenied,
            "the credentials do not allow this; they need the right to list, get, put and delete objects of this bucket",
        ),
        "InvalidAccessKeyId" | "NotSignedUp" => {
            (ErrorKind::PermissionDenied, "the service does not know the access key")
        }
        "SignatureDoesNotMatch" | "AuthenticationFailed" => {
            (ErrorKind::PermissionDenied, "the secret does not belong to the access key; check both")
        }
        "ExpiredToken" | "TokenRefreshRequired" | "InvalidToken" | "ExpiredTokenException" => {
            (ErrorKind::PermissionDenied, "the credentials have expired or are no longer valid; get new ones")
        }
        "RequestTimeTooSkewed" | "RequestExpired" => {
            (ErrorKind::PermissionDenied, "the clock of this machine is wrong; correct the time")
        }
        "EntityTooLarge" => (ErrorKind::TooLarge, "the value is larger than the service accepts"),
        "KeyTooLongError" => (ErrorKind::InvalidPath, "the path is too long for the service; use a shorter one"),
        "QuotaExceeded" | "XMinioAdminBucketQuotaExceeded" => {
            (ErrorKind::QuotaExceeded, "the quota of the bucket is used up; delete files first")
        }
        "XMinioStorageFull" => (ErrorKind::StorageFull, "the service has no space left"),
        "SlowDown" | "ServiceUnavailable" | "ServerBusy" => {
            (ErrorKind::Unavailable, "the service is overloaded; try again later")
        }
        "NotImplemented" | "MethodNotAllowed" => (ErrorKind::Unsupported, "the service cannot do this"),
        _ => return None,
    })
}

/// Returns whether the failed request was for credentials, which is sent if no key, file or variable has any.
fn is_credential_lookup(text: &str) -> bool {
    ["/latest/api/token", "/latest/meta-data/", "169.254.169.254", "169.254.170.2"]
        .iter()
        .any(|part| text.contains(part))
}

/// Returns the kind and reason of a request without a response.
fn transport_failure(error: &object_store::Error) -> Option<(HttpErrorKind, String)> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(http) = error.downcast_ref::<HttpError>() {
            return Some((http.kind(), root_cause(http)));
        }
        cause = error.source();
    }
    None
}

/// Returns the text of the root cause, such as `Connection refused`.
fn root_cause(error: &HttpError) -> String {
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason = error.to_string();
        cause = error.source();
    }
    reason
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = &text[text.find(before)? + before.len()..];
    Some(&rest[..rest.find(after)?])
}

fn is_word(code: &str) -> bool {
    code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> BucketError {
        BucketError::from(object_store::Error::Generic { store: "S3", source: text.to_owned().into() })
    }

    fn status(code: u16, body: &str) -> String {
        format!("Error performing GET http://h/b in 1ms - Server returned non-2xx status code: {code} Words: {body}")
    }

    #[test]
    fn every_response_has_its_kind() {
        let code = |code: &str| format!("<Error><Code>{code}</Code><Message>hidden</Message></Error>");
        for (text, kind, words) in [
            (status(404, &code("NoSuchBucket")), ErrorKind::InvalidArgument, "no such bucket"),
            (status(403, &code("AccessDenied")), ErrorKind::PermissionDenied, "do not allow"),
            (status(403, &code("InvalidAccessKeyId")), ErrorKind::PermissionDenied, "access key"),
            (status(403, &code("SignatureDoesNotMatch")), ErrorKind::PermissionDenied, "secret"),
            (status(400, &code("ExpiredToken")), ErrorKind::PermissionDenied, "expired"),
            (status(400, &code("AuthorizationHeaderMalformed")), ErrorKind::InvalidArgument, "region"),
            (status(403, ""), ErrorKind::PermissionDenied, "denies access"),
            (status(503, &code("SlowDown")), ErrorKind::Unavailable, "overloaded"),
            (status(500, "<html>hidden"), ErrorKind::Unavailable, "fault"),
            (status(507, ""), ErrorKind::StorageFull, "space"),
            (
                "Error performing PUT http://169.254.169.254/latest/api/token".into(),
                ErrorKind::PermissionDenied,
                "no credentials",
            ),
        ] {
            let error = fault(&text).error("s3://b");
            assert_eq!(error.kind(), kind, "{text}");
            assert!(error.message().contains(words), "{error}");
            assert!(!format!("{error:?}").contains("hidden"), "{error:?}");
            assert!(!error.for_model().contains("s3://"), "{}", error.for_model());
        }
    }

    #[test]
    fn a_missing_bucket_is_not_a_missing_object() {
        let missing = |body: &str| {
            let source = status(404, body).into();
            BucketError::from(object_store::Error::NotFound { path: "a".into(), source })
        };
        assert!(missing("<Error><Code>NoSuchKey</Code></Error>").is_missing());
        assert!(missing("").is_missing());
        assert!(!missing("<Error><Code>NoSuchBucket</Code></Error>").is_missing());
    }

    #[test]
    fn a_request_without_a_response_has_a_reason() {
        let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
        let http = HttpError::new(HttpErrorKind::Connect, refused);
        let error =
            BucketError::from(object_store::Error::Generic { store: "S3", source: Box::new(http) }).error("s3://b");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("cannot be reached: connection refused"), "{error}");
    }
}
