//! Commands in a terminal.

use vfs_core::ExecuteRequest;
use vfs_core::shell::TerminalSize;

use super::{HANG_TIMEOUT, Place};

fn at_a_terminal(command: &str) -> ExecuteRequest {
    ExecuteRequest::new(command).terminal(TerminalSize { rows: 33, columns: 101 }).timeout(HANG_TIMEOUT)
}

#[tokio::test]
async fn a_command_in_a_terminal_sees_a_terminal() {
    let place = Place::new();
    let response = place
        .run(at_a_terminal("tty >/dev/null && [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size; echo err >&2; exit 3"))
        .await;
    assert_eq!(response.output, "33 101\r\nerr\r\n");
    assert_eq!((response.stdout.as_str(), response.stderr.as_str()), (response.output.as_str(), ""));
    assert_eq!((response.exit_code, response.timed_out), (Some(3), false));
    let controlling = place.run(at_a_terminal("echo there > /dev/tty")).await;
    assert_eq!(controlling.output, "there\r\n");
    let none = place.run(ExecuteRequest::new("[ -t 1 ] || echo none; echo x > /dev/tty")).await;
    assert!(none.stdout == "none\n" && none.exit_code != Some(0), "{none:?}");
}

#[tokio::test]
async fn terminal_input_is_typed_and_ended() {
    let place = Place::new();
    for (command, stdin, expected) in [
        ("stty -echo; cat; echo end", None, "end\r\n"),
        ("read a; echo \"<$a>\"", Some("typed\n"), "<typed>\r\n"),
        ("cat; echo end", Some("a\nb"), "b"),
    ] {
        let mut request = at_a_terminal(command);
        request.stdin = stdin.map(str::to_owned);
        let response = place.run(request).await;
        assert!(response.output.contains(expected) && !response.timed_out, "{command}: {response:?}");
        assert_eq!(response.exit_code, Some(0), "{command}: {response:?}");
    }
}

#[tokio::test]
async fn all_of_a_large_output_arrives() {
    let place = Place::new();
    for _ in 0..5 {
        let command = "i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done";
        let response = place.run(at_a_terminal(command)).await;
        let expected: String = (0..2000).map(|i| format!("{i}\r\n")).collect();
        assert_eq!(response.output, expected);
    }
}

#[tokio::test]
async fn a_timeout_ends_a_command_in_a_terminal() {
    let place = Place::new();
    for command in
        ["echo begun; sleep 100", "echo begun; trap '' TERM HUP; sleep 100; sleep 100", "echo begun; exec sh -i"]
    {
        let request = at_a_terminal(command).stdin("sleep 100\n");
        place.timed_out(request, |response| response.output.contains("begun\r\n")).await;
    }
}
