//! Classification of OpenSSH diagnostics as errors.

use vfs_core::{Error, ErrorKind};

use crate::exec::diagnostics::Said;

/// The words of OpenSSH, which are in English everywhere, as an error.
pub(super) fn classify(said: &Said) -> Error {
    use ErrorKind::{InvalidArgument, PermissionDenied, Unavailable};
    if let Some(error) = said.broken_off() {
        return error;
    }
    let (kind, meaning) = if said.has(&["remote host identification has changed"]) {
        (
            PermissionDenied,
            "the host's key is not the one that is known: it was set up anew, or somebody is in between; where the change is \
             known to be right, remove the old key with `ssh-keygen -R`",
        )
    } else if said.has(&["host key verification failed", "host key is known for"]) {
        (
            PermissionDenied,
            "the host's key is not known: connect once by hand and look at it, or let new keys be accepted",
        )
    } else if said.has(&["permission denied", "too many authentication failures", "no supported authentication"]) {
        (
            PermissionDenied,
            "the host did not accept the login: check the user, the key and the agent; nothing can be asked for here, so a key \
             with a passphrase has to be in an agent",
        )
    } else if said.has(&["could not resolve hostname"]) {
        (Unavailable, "the host's name is not known: check its spelling and the network")
    } else if said.has(&["connection refused"]) {
        (Unavailable, "the host refused the connection: check the port, and that its SSH server runs")
    } else if said.has(&["connection timed out", "no route to host", "network is unreachable", "operation timed out"]) {
        (Unavailable, "the host cannot be reached: check its address and the network")
    } else if said.has(&["bad configuration option", "command-line line", "bad number", "unsupported option"]) {
        (InvalidArgument, "ssh does not take one of its options")
    } else if said.has(&["command not found", "sh: not found", "exec: sh", "unknown command"]) {
        (Unavailable, "the host could not start `sh`: it needs a POSIX shell; the command was not run")
    } else if said.late {
        (Unavailable, "the host did not answer in time: check its address and the network, or allow more time")
    } else {
        (Unavailable, "the connection to the host was lost, or not made; whether the command was run is not known")
    };
    said.error(kind, meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_ssh_are_told_apart() {
        for (words, kind, meaning) in [
            ("ssh: connect to host a port 1: Connection refused", ErrorKind::Unavailable, "refused"),
            (
                "ssh: Could not resolve hostname a: Name or service not known",
                ErrorKind::Unavailable,
                "name is not known",
            ),
            ("ssh: connect to host a port 22: No route to host", ErrorKind::Unavailable, "cannot be reached"),
            ("a@b: Permission denied (publickey).", ErrorKind::PermissionDenied, "login"),
            (
                "No ED25519 host key is known for a.\nHost key verification failed.",
                ErrorKind::PermissionDenied,
                "not known",
            ),
            ("command-line: line 0: Bad configuration option: x", ErrorKind::InvalidArgument, "options"),
            ("kex_exchange_identification: Connection closed by remote host", ErrorKind::Unavailable, "lost"),
            ("", ErrorKind::Unavailable, "lost"),
        ] {
            let error = classify(&Said::new(words.as_bytes(), b"", false, false));
            assert_eq!(error.kind(), kind, "{words}");
            assert!(error.message().contains(meaning), "{words}: {error}");
        }
    }

    #[test]
    fn paths_of_this_machine_are_for_operators_only() {
        let error = classify(&Said::new(b"Load key \"/home/me/.ssh/id\": bad permissions", b"", false, false));
        assert!(!error.for_model().contains("/home"), "{error}");
        let source = std::error::Error::source(&error).expect("a source");
        assert!(source.to_string().contains("/home/me"));
    }
}
