//! Commands in a terminal.

use vfs_core::shell::TerminalSize;

use super::ShellTarget;
use super::law_helpers::{TIMES, assert_success};
use super::orphan_detector::HOLD_PREFIX;
use crate::laws::LawResult;

shell_laws! { "terminal":
    "XP1" has() without_a_request_outputs_are_no_terminal,
    "XP2" has(Terminal) by_request_outputs_are_a_terminal in Wrapper,
    "XP3" has(Terminal) a_terminal_has_the_requested_size,
    "XP4" has(Terminal) output_and_exit_of_a_command_in_a_terminal_are_returned,
    "XP5" has(Terminal) a_timeout_ends_every_process_in_a_terminal,
    "XP6" has(Terminal) a_terminal_is_the_commands_own,
}

const WHICH: &str = "for n in 1 2; do if test -t $n; then echo $n is; else echo $n is not; fi; done";

async fn without_a_request_outputs_are_no_terminal(t: &ShellTarget) -> LawResult {
    assert_eq!(t.printed(WHICH).await?, "1 is not\n2 is not\n");
    assert_eq!(t.printed("test -t 0 || echo 0 is not").await?, "0 is not\n");
    Ok(())
}

/// Returns the output of a terminal with the line ends of a file.
fn shown(output: &str) -> String {
    output.replace("\r\n", "\n")
}

async fn by_request_outputs_are_a_terminal(t: &ShellTarget) -> LawResult {
    let ended = t.execute(t.command(WHICH).terminal(TerminalSize::default())).await?;
    assert_success(&ended);
    assert_eq!(shown(&ended.output), "1 is\n2 is\n");
    Ok(())
}

async fn a_terminal_has_the_requested_size(t: &ShellTarget) -> LawResult {
    for (rows, columns) in [(24, 80), (50, 132), (1, 1), (u16::MAX, u16::MAX)] {
        let request = t.command("stty size </dev/tty").terminal(TerminalSize { rows, columns });
        let ended = t.execute(request).await?;
        assert_success(&ended);
        assert_eq!(shown(&ended.output), format!("{rows} {columns}\n"));
    }
    Ok(())
}

async fn output_and_exit_of_a_command_in_a_terminal_are_returned(t: &ShellTarget) -> LawResult {
    let request = t.command("echo out; echo err >&2; echo na\u{ef}ve; exit 42").terminal(TerminalSize::default());
    let ended = t.execute(request).await?;
    assert_eq!((ended.exit_code, ended.signal, ended.timed_out), (Some(42), None, false));
    assert_eq!(shown(&ended.output), "out\nerr\nna\u{ef}ve\n", "both go to the terminal, in their order");
    let ended = t.execute(t.command("yes | head -n 20000").terminal(TerminalSize::default())).await?;
    assert_success(&ended);
    assert_eq!(shown(&ended.output), "y\n".repeat(20_000));
    Ok(())
}

async fn a_timeout_ends_every_process_in_a_terminal(t: &ShellTarget) -> LawResult {
    let command = format!(
        "{HOLD_PREFIX} sleep 60 & (trap '' HUP TERM; sleep 60; sleep 60) & echo before; echo x >started; sleep 60"
    );
    let request = t.command(command).terminal(TerminalSize::default());
    for time in TIMES {
        let hold = t.hold().await?;
        let ended = t.timed_out(&request, time).await?;
        if let Some(ended) = ended
            && t.files.has("/started").await?
        {
            assert!(shown(&ended.output).contains("before\n"), "{ended:?}");
            return hold.released().await;
        }
        hold.give_up();
    }
    panic!("it did not start");
}

/// The terminal controls the command's session, and no other.
async fn a_terminal_is_the_commands_own(t: &ShellTarget) -> LawResult {
    let ended = t.execute(t.command("echo shown >/dev/tty").terminal(TerminalSize::default())).await?;
    assert_success(&ended);
    assert_eq!(shown(&ended.output), "shown\n");
    let ended = t.run("{ echo lost >/dev/tty; } 2>/dev/null || echo no terminal").await?;
    assert_eq!(ended.stdout, "no terminal\n", "without a request there is none");
    Ok(())
}
