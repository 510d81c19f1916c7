//! Standard input of commands.

use super::ShellTarget;
use super::law_helpers::{assert_success, lines};
use crate::laws::LawResult;

shell_laws! { "input":
    "XI1" has() by_default_there_is_nothing_to_read,
    "XI2" has() a_command_reads_what_it_is_given in Wrapper,
    "XI3" has() a_megabyte_goes_in_and_out,
    "XI4" has() input_that_a_command_does_not_read_is_no_error,
    "XI5" has(Processes) a_command_may_read_and_print_at_once,
}

async fn by_default_there_is_nothing_to_read(t: &ShellTarget) -> LawResult {
    assert_eq!(t.printed("cat; echo read").await?, "read\n");
    assert_eq!(t.printed("if read line; then echo some; else echo none; fi").await?, "none\n");
    let ended = t.execute(t.command("cat; echo read").stdin("")).await?;
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (Some(0), "read\n"));
    Ok(())
}

async fn a_command_reads_what_it_is_given(t: &ShellTarget) -> LawResult {
    for text in
        ["one\ntwo\n", "no end of line", "\r\n\t\n", "a\0b\n", "na\u{ef}ve \u{1f600}\n", "EOF\n'\n$(touch ran)\n"]
    {
        let ended = t.execute(t.command("cat").stdin(text)).await?;
        assert_success(&ended);
        assert_eq!(ended.stdout, text);
        let ended = t.execute(t.command("cat >input").stdin(text)).await?;
        assert_success(&ended);
        assert_eq!(t.files.bytes("/input").await?, text.as_bytes());
    }
    let ended = t.execute(t.command("read first; echo \"got $first\"; cat").stdin("one\ntwo\nthree\n")).await?;
    assert_eq!(ended.stdout, "got one\ntwo\nthree\n");
    assert!(!t.files.has("/ran").await?, "what is read is not a command");
    Ok(())
}

async fn a_megabyte_goes_in_and_out(t: &ShellTarget) -> LawResult {
    let text = lines((1 << 20) / 12);
    let ended = t.execute(t.command("cat").stdin(text.clone()).max_output_bytes(2 << 20)).await?;
    assert_success(&ended);
    assert!(ended.stdout == text, "{} of {} bytes", ended.stdout.len(), text.len());
    let ended = t.execute(t.command("cat >input; wc -c <input | tr -d ' '").stdin(text.clone())).await?;
    assert_success(&ended);
    assert_eq!(ended.stdout, format!("{}\n", text.len()));
    assert!(t.files.bytes("/input").await? == text.as_bytes(), "the file has the input of the command");
    Ok(())
}

async fn input_that_a_command_does_not_read_is_no_error(t: &ShellTarget) -> LawResult {
    let text = lines((1 << 20) / 12);
    for (command, code, printed) in [
        ("true", 0, ""),
        ("exit 3", 3, ""),
        ("head -n 1", 0, "line 000000\n"),
        ("exec <&-; echo closed", 0, "closed\n"),
    ] {
        let ended = t.execute(t.command(command).stdin(text.clone())).await?;
        assert_eq!((ended.exit_code, ended.stdout.as_str()), (Some(code), printed), "{command}: {}", ended.stderr);
    }
    Ok(())
}

/// The input is larger than the pipes on the way, and the command prints as much at the same time.
async fn a_command_may_read_and_print_at_once(t: &ShellTarget) -> LawResult {
    let text = lines(400_000);
    let request = t.command("tee /dev/stderr | sed 's/line/LINE/'").stdin(text.clone()).max_output_bytes(16 << 20);
    let ended = t.execute(request).await?;
    assert_success(&ended);
    assert!(ended.stderr == text && ended.stdout == text.replace("line", "LINE"), "both are whole");
    Ok(())
}
