//! Classification of OpenSSH diagnostics as errors.

use vfs_core::{Error, ErrorKind};

use crate::exec::diagnostics::ClientDiagnostics;

/// Classifies the messages of OpenSSH, which are in English in every locale.
pub(super) fn classify(diagnostics: &ClientDiagnostics) -> Error {
    use ErrorKind::{InvalidArgument, PermissionDenied, Unavailable};
    if let Some(error) = diagnostics.broken_off() {
        return error;
    }
    let (kind, meaning) = if diagnostics.has(&["remote host identification has changed"]) {
        (
            PermissionDenied,
            "the host's key is not the recorded one: the host was installed again, or the connection is intercepted; where the change is \
             known to be right, remove the old key with `ssh-keygen -R`",
        )
    } else if diagnostics.has(&["host key verification failed", "host key is known for"]) {
        (
            PermissionDenied,
            "the host's key is unknown: connect once by hand and look at it, or let new keys be accepted",
        )
    } else if diagnostics.has(&["permission denied", "too many authentication failures", "no supported authentication"])
    {
        (
            PermissionDenied,
            "the host did not accept the login: check the user, the key and the agent; no prompt can be answered here, so a key \
             with a passphrase has to be in an agent",
        )
    } else if diagnostics.has(&["could not resolve hostname"]) {
        (Unavailable, "the host's name does not resolve: check its spelling and the network")
    } else if diagnostics.has(&["connection refused"]) {
        (Unavailable, "the host refused the connection: check the port, and that its SSH server runs")
    } else if diagnostics.has(&[
        "connection timed out",
        "no route to host",
        "network is unreachable",
        "operation timed out",
    ]) {
        (Unavailable, "the host cannot be reached: check its address and the network")
    } else if diagnostics.has(&["bad configuration option", "command-line line", "bad number", "unsupported option"]) {
        (InvalidArgument, "ssh does not take one of its options")
    } else if diagnostics.has(&["command not found", "sh: not found", "exec: sh", "unknown command"]) {
        (Unavailable, "the host could not start `sh`: it needs a POSIX shell; the command was not run")
    } else if diagnostics.late {
        (Unavailable, "the host did not answer in time: check its address and the network, or allow more time")
    } else {
        (Unavailable, "the connection to the host was lost, or not made; whether the command was run is unknown")
    };
    diagnostics.error(kind, meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_ssh_are_classified() {
        for (words, kind, meaning) in [
            ("ssh: connect to host a port 1: Connection refused", ErrorKind::Unavailable, "refused"),
            (
                "ssh: Could not resolve hostname a: Name or service not known",
                ErrorKind::Unavailable,
                "name does not resolve",
            ),
            ("ssh: connect to host a port 22: No route to host", ErrorKind::Unavailable, "cannot be reached"),
            ("a@b: Permission denied (publickey).", ErrorKind::PermissionDenied, "login"),
            (
                "No ED25519 host key is known for a.\nHost key verification failed.",
                ErrorKind::PermissionDenied,
                "unknown",
            ),
            ("command-line: line 0: Bad configuration option: x", ErrorKind::InvalidArgument, "options"),
            ("kex_exchange_identification: Connection closed by remote host", ErrorKind::Unavailable, "lost"),
            ("", ErrorKind::Unavailable, "lost"),
        ] {
            let error = classify(&ClientDiagnostics::new(words.as_bytes(), b"", false, false));
            assert_eq!(error.kind(), kind, "{words}");
            assert!(error.message().contains(meaning), "{words}: {error}");
        }
    }

    #[test]
    fn paths_of_this_machine_are_for_operators_only() {
        let error =
            classify(&ClientDiagnostics::new(b"Load key \"/home/me/.ssh/id\": bad permissions", b"", false, false));
        assert!(!error.for_model().contains("/home"), "{error}");
        let source = std::error::Error::source(&error).expect("a source");
        assert!(source.to_string().contains("/home/me"));
    }
}
