//! Output of commands.

use super::ShellTarget;
use super::law_helpers::assert_success;
use crate::laws::LawResult;

shell_laws! { "output":
    "XO1" has() both_outputs_are_returned_separately_and_combined in Smoke,
    "XO2" has(Order) combined_output_is_in_the_order_of_printing,
    "XO3" has() text_is_returned_unchanged,
    "XO4" has() bytes_that_are_not_text_are_no_error,
    "XO5" has() a_nul_is_printed_like_any_other,
    "XO6" has() no_character_is_cut_in_much_output,
    "XO7" has(Processes) a_character_that_comes_in_two_parts_is_one,
    "XO8" has() a_silent_command_has_printed_nothing,
    "XO9" has() the_output_of_a_failed_command_is_returned,
}

async fn both_outputs_are_returned_separately_and_combined(t: &ShellTarget) -> LawResult {
    let ended = t.run("echo to out; echo to err >&2; echo out again").await?;
    assert_success(&ended);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("to out\nout again\n", "to err\n"));
    let mut all: Vec<_> = ended.output.lines().collect();
    all.sort_unstable();
    assert_eq!(all, ["out again", "to err", "to out"]);
    assert_eq!((ended.output_bytes, ended.truncated), (24, false));
    Ok(())
}

/// With a pause between one and the next, which has to be long enough for the machine at that moment.
async fn combined_output_is_in_the_order_of_printing(t: &ShellTarget) -> LawResult {
    let mut seen = String::new();
    for pause in ["0.05", "0.3", "1.5"] {
        let ended = t
            .run(&format!("for n in 1 2 3; do echo out $n; sleep {pause}; echo err $n >&2; sleep {pause}; done"))
            .await?;
        assert_success(&ended);
        seen = ended.output;
        if seen == "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n" {
            return Ok(());
        }
    }
    panic!("out of order: {seen:?}");
}

/// The shell adds, removes and normalises nothing.
async fn text_is_returned_unchanged(t: &ShellTarget) -> LawResult {
    for text in [
        "one\n",
        "no end of line",
        "\n",
        "\n\n  two  \n\n",
        "a\r\nb\rc\n",
        "\ttab\u{b}\u{c}\u{7f}\n",
        "\u{1b}[31mred\u{1b}[0m\n",
        "\u{feff}with a mark\u{2028}and a separator\u{85}\n",
        "na\u{ef}ve \u{4e2d}\u{6587} \u{1f600}\u{200d}\u{1f4bb}\n",
        "$HOME `x` \\n %s 'single' \"double\"\n",
    ] {
        t.files.put("/text", text).await?;
        let ended = t.run("cat text; cat text >&2").await?;
        assert_success(&ended);
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (text, text));
        assert_eq!(ended.output, text.repeat(2));
        assert_eq!(ended.output_bytes, 2 * text.len() as u64, "{text:?}");
    }
    Ok(())
}

async fn bytes_that_are_not_text_are_no_error(t: &ShellTarget) -> LawResult {
    for bytes in [
        &b"\xff"[..],
        b"a\xffb\n",
        b"\xc3(\xe2\x82 \xf0\x9f\x98\n",
        b"caf\xe9 latin\n",
        b"\xed\xa0\x80 surrogate\n",
        b"cut at the end \xf0\x9f\x98",
    ] {
        t.files.put("/bytes", bytes).await?;
        let ended = t.run("cat bytes; cat bytes >&2").await?;
        assert_success(&ended);
        let shown = String::from_utf8_lossy(bytes);
        assert_eq!((&ended.stdout, &ended.stderr), (&shown.clone().into_owned(), &shown.into_owned()), "{bytes:?}");
    }
    Ok(())
}

async fn a_nul_is_printed_like_any_other(t: &ShellTarget) -> LawResult {
    t.files.put("/nul", "a\0b\0\0\n").await?;
    let ended = t.run("cat nul; cat nul >&2").await?;
    assert_success(&ended);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("a\0b\0\0\n", "a\0b\0\0\n"));
    Ok(())
}

/// The first byte shifts the characters, so that some lie across the ends of pipes and buffers.
async fn no_character_is_cut_in_much_output(t: &ShellTarget) -> LawResult {
    let text = format!("x{}", "\u{e9}\u{20ac}\u{1f600}".repeat(30_000));
    t.files.put("/much", text.clone()).await?;
    for (command, is_stdout) in [("cat much", true), ("cat much >&2", false)] {
        let ended = t.execute(t.command(command).max_output_bytes(1 << 20)).await?;
        assert_success(&ended);
        let printed = if is_stdout { &ended.stdout } else { &ended.stderr };
        assert!(*printed == text, "{command}: {} of {} bytes came as they are", printed.len(), text.len());
        assert!(ended.output == text, "{command}: both together");
    }
    Ok(())
}

async fn a_character_that_comes_in_two_parts_is_one(t: &ShellTarget) -> LawResult {
    let ended = t.run("printf '\\342'; sleep 0.1; printf '\\202'; sleep 0.1; printf '\\254\\n'").await?;
    assert_success(&ended);
    assert_eq!((ended.stdout.as_str(), ended.output.as_str()), ("\u{20ac}\n", "\u{20ac}\n"));
    Ok(())
}

async fn a_silent_command_has_printed_nothing(t: &ShellTarget) -> LawResult {
    for command in ["true", "exit 3", ":", "cat /dev/null"] {
        let ended = t.run(command).await?;
        let printed = (ended.output.as_str(), ended.stdout.as_str(), ended.stderr.as_str());
        assert_eq!(printed, ("", "", ""), "{command}");
        assert_eq!((ended.output_bytes, ended.truncated), (0, false), "{command}");
    }
    Ok(())
}

async fn the_output_of_a_failed_command_is_returned(t: &ShellTarget) -> LawResult {
    let ended = t.run("echo so far; echo 'what is wrong' >&2; exit 9").await?;
    assert_eq!(ended.exit_code, Some(9));
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("so far\n", "what is wrong\n"));
    Ok(())
}
