//! Exit codes and signals.

use std::time::{Duration, Instant};

use super::ShellTarget;
use super::law_helpers::assert_success;
use crate::laws::LawResult;

shell_laws! { "exit":
    "XE1" has() an_exit_code_is_an_answer in Smoke,
    "XE2" has() a_missing_program_is_127,
    "XE3" has(Processes) a_file_that_cannot_be_executed_is_126,
    "XE4" has(Signals) a_signal_that_ended_a_command_is_reported,
    "XE5" has(Processes) a_command_that_a_signal_ended_is_no_success,
    "XE6" has() a_syntax_error_is_reported_by_the_shell,
    "XE7" has() the_last_command_decides,
    "XE8" has() the_duration_of_a_command_is_reported,
    "XE9" has() a_command_may_have_many_lines,
}

async fn an_exit_code_is_an_answer(t: &ShellTarget) -> LawResult {
    for code in [0, 1, 2, 42, 124, 126, 127, 137, 255] {
        let ended = t.run(&format!("exit {code}")).await?;
        assert_eq!((ended.exit_code, ended.signal, ended.timed_out), (Some(code), None, false), "exit {code}");
        assert_eq!((ended.job, ended.full_output, ended.truncated), (None, None, false), "exit {code}");
    }
    Ok(())
}

async fn a_missing_program_is_127(t: &ShellTarget) -> LawResult {
    let missing =
        ["no-such-program-anywhere", "./no-such-program", "-no-such-program", "echo x | no-such-program-anywhere"];
    for command in missing {
        let ended = t.run(command).await?;
        assert_eq!(ended.exit_code, Some(127), "{command}: {ended:?}");
        assert!(ended.stderr.contains("no-such-program"), "the shell names the missing program: {ended:?}");
    }
    Ok(())
}

async fn a_file_that_cannot_be_executed_is_126(t: &ShellTarget) -> LawResult {
    t.files.put("/plain", "echo it ran\n").await?;
    let ended = t.run("chmod 644 plain; ./plain").await?;
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (Some(126), ""), "{ended:?}");
    Ok(())
}

async fn a_signal_that_ended_a_command_is_reported(t: &ShellTarget) -> LawResult {
    for (name, number) in [("TERM", 15), ("KILL", 9), ("HUP", 1), ("USR1", 10)] {
        let ended = t.run(&format!("echo before; kill -{name} $$; sleep 20")).await?;
        assert_eq!((ended.exit_code, ended.signal), (None, Some(number)), "{name}");
        assert_eq!((ended.stdout.as_str(), ended.timed_out), ("before\n", false), "{name}");
    }
    Ok(())
}

/// If the signal itself is not reported, the exit code is the one that shells use for the signal.
async fn a_command_that_a_signal_ended_is_no_success(t: &ShellTarget) -> LawResult {
    for (name, number) in [("TERM", 15), ("KILL", 9)] {
        let ended = t.run(&format!("kill -{name} $$; sleep 20")).await?;
        let is_reported = ended.signal == Some(number) || ended.exit_code == Some(128 + number);
        assert!(is_reported && !ended.timed_out, "{name}: {ended:?}");
    }
    Ok(())
}

async fn a_syntax_error_is_reported_by_the_shell(t: &ShellTarget) -> LawResult {
    for command in ["if", "echo 'not closed", "echo $(", "case x in"] {
        let ended = t.run(command).await?;
        assert!(ended.exit_code.is_some_and(|code| code != 0), "{command}: {ended:?}");
        assert!(!ended.stderr.is_empty(), "{command}: {ended:?}");
    }
    Ok(())
}

async fn the_last_command_decides(t: &ShellTarget) -> LawResult {
    for (command, code) in [
        ("false; true", 0),
        ("true; false", 1),
        ("false | true", 0),
        ("true | false", 1),
        ("! true", 1),
        ("(exit 3)", 3),
        ("false || exit 4", 4),
        ("true && exit 5", 5),
        ("set -e; false; true", 1),
        ("exit 6; exit 7", 6),
    ] {
        assert_eq!(t.run(command).await?.exit_code, Some(code), "{command}");
    }
    Ok(())
}

async fn the_duration_of_a_command_is_reported(t: &ShellTarget) -> LawResult {
    let start = Instant::now();
    let ended = t.run("sleep 0.3").await?;
    let took = start.elapsed();
    assert_success(&ended);
    // A clock may be some milliseconds off the other.
    assert!(ended.duration >= Duration::from_millis(280), "{:?}", ended.duration);
    assert!(ended.duration <= took, "{:?} of {took:?}", ended.duration);
    Ok(())
}

async fn a_command_may_have_many_lines(t: &ShellTarget) -> LawResult {
    let script = "
        # A comment with a quote: '
        greet() {
            printf '%s, %s\\n' \"$1\" \"${2:-nobody}\"
        }
        for name in Ann 'Bob  B'; do
            greet hello \"$name\"
        done
        greet bye
        cat <<END
$((6 * 7)) \"as it is\" `echo ran`
END
    ";
    let printed = t.printed(script).await?;
    assert_eq!(printed, "hello, Ann\nhello, Bob  B\nbye, nobody\n42 \"as it is\" ran\n");
    Ok(())
}
