//! Help texts, and what misspelt arguments are told.

use crate::{Run, tree, vfs};

/// The help that `args` print, with its line breaks as spaces.
fn help(args: &[&str]) -> String {
    let run = vfs(&tree(&[]), &[args, &["--help"]].concat());
    run.success().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn help_says_that_commands_on_the_host_are_not_confined() {
    let exec = help(&["exec"]);
    assert!(exec.contains("runs on this machine as your user and is not confined by --root"), "{exec}");
    assert!(exec.contains("--root only sets the directory it starts in"), "{exec}");
    assert!(!exec.contains("nothing outside it can be reached"), "{exec}");
    let all = help(&[]);
    assert!(all.contains("does not confine the commands of 'vfs exec'"), "{all}");
}

#[test]
fn global_options_have_a_section_of_their_own() {
    for args in [&[][..], &["read"], &["exec"], &["store", "check"]] {
        let run = vfs(&tree(&[]), &[args, &["--help"]].concat());
        let text = run.success();
        let start = text.find("\nGlobal options:\n").unwrap_or_else(|| panic!("{args:?}: {text}"));
        let section = &text[start + 1..];
        let section = section.split("\n\n").next().unwrap_or_default();
        for option in ["--root", "--host", "--config", "--store", "--namespace", "--actor"] {
            assert!(
                section.contains(&format!("{option} ")) || section.contains(&format!("{option}\n")),
                "{args:?}: {text}"
            );
        }
    }
}

#[track_caller]
fn suggests(args: &[&str], words: &str) {
    let run: Run = vfs(&tree(&[("a", "")]), args);
    run.failure(words);
}

#[test]
fn misspelt_arguments_name_the_nearest() {
    suggests(&["raed", "/a"], "unrecognized subcommand 'raed'; did you mean 'read'?");
    suggests(&["store", "chekc"], "did you mean 'check'?");
    suggests(&["read", "--ofset", "1", "/a"], "unexpected argument '--ofset' found; did you mean '--offset'?");
    suggests(&["completions", "bsh"], "did you mean 'bash'?");
    suggests(&["completions", "klingon"], "possible values: bash, elvish, fish, powershell, zsh");
    suggests(&["write", "--mode", "overwirte", "/a"], "did you mean 'overwrite'?");
}
