//! Help texts, and suggestions for misspelt arguments.

use std::process::{Command, Stdio};

use crate::{Run, finish, shell, tree, vfs, with_config};

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
fn misspelt_arguments_get_the_most_similar_name() {
    suggests(&["raed", "/a"], "unrecognized subcommand 'raed'; did you mean 'read'?");
    suggests(&["store", "chekc"], "did you mean 'check'?");
    suggests(&["read", "--ofset", "1", "/a"], "unexpected argument '--ofset' found; did you mean '--offset'?");
    suggests(&["completions", "bsh"], "did you mean 'bash'?");
    suggests(&["completions", "klingon"], "possible values: bash, elvish, fish, powershell, zsh");
    suggests(&["write", "--mode", "overwirte", "/a"], "did you mean 'overwrite'?");
}

#[test]
fn an_invalid_number_is_refused_with_the_valid_range() {
    let any = "expected a whole number from 0 to 18446744073709551615";
    for (args, range) in [
        (&["read", "--limit", "-1", "/a"][..], any),
        (&["read", "--limit", "1e20", "/a"], any),
        (&["read", "--offset", "x", "/a"], any),
        (&["grep", "-C", "-1", "x"], "expected a whole number from 0 to 4294967295"),
        (&["grep", "-m", "99999999999999999999", "x"], any),
        (&["undo", "0"], "expected a whole number from 1 to 18446744073709551615"),
        (&["undo", "-1"], "expected a whole number from 1 to 18446744073709551615"),
        (&["history", "-n", "-1"], any),
        (&["log", "-n", "1.5"], any),
        (&["jobs", "output", "--from", "-1", "x"], any),
        (&["batch", "--jobs", "0"], "expected a whole number from 1 to 1024"),
        (&["exec", "--json", "--max-output", "0", "true"], "expected a whole number from 1 to 18446744073709551615"),
        (&["exec", "--timeout", "-1", "true"], "expected a number of seconds above 0, such as 30 or 0.5"),
    ] {
        suggests(args, range);
    }
}

#[test]
fn topics_are_listed_and_printed() {
    let root = tree(&[]);
    let list = vfs(&root, &["help", "topics"]);
    let names: Vec<_> =
        list.success().lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next()).collect();
    assert_eq!(names, ["paths", "patterns", "versions", "policies"]);
    for name in names {
        let topic = vfs(&root, &["help", name]);
        assert!(topic.success().to_lowercase().starts_with(&format!("{name}\n\n")), "{topic:?}");
        let main_help = vfs(&root, &["--help"]);
        assert!(main_help.success().contains(name));
    }
}

#[test]
fn the_rules_of_the_topic_on_policies_are_valid() {
    let topic = vfs(&tree(&[]), &["help", "policies"]);
    let start = topic.success().find("  [[layers]]").expect("an example");
    let rules = topic.success()[start..].split("\n\n").next().unwrap_or_default();
    let root = tree(&[("vfs.toml", &format!("[default]\ntype = 'local'\nroot = '.'\n{rules}"))]);
    with_config(&root, &["config", "check"]).success();
    vfs(&tree(&[]), &["help", "polices"]).failure("did you mean 'policies'?");
}

#[test]
fn the_help_of_a_command_is_that_of_its_option() {
    let root = tree(&[]);
    for words in [&[][..], &["read"], &["grep"], &["store", "check"], &["policy", "explain"]] {
        let with_option = vfs(&root, &[words, &["--help"]].concat());
        assert_eq!(vfs(&root, &[&["help"], words].concat()).success(), with_option.success());
        let page = vfs(&root, &[&["man"], words].concat());
        let name = [&["vfs"], words].concat().join("-");
        assert!(page.success().contains(&format!(".TH {name} 1 ")), "{page:?}");
    }
    vfs(&root, &["help", "store", "chek"]).failure("there is no command or topic 'chek'; did you mean 'check'?");
    vfs(&root, &["man", "grpe"]).failure("there is no command or topic 'grpe'; did you mean 'grep'?");
}

#[test]
fn help_fits_a_terminal_of_40_columns() {
    let root = tree(&[]);
    for words in [&["help", "paths"][..], &["help", "versions"], &["grep", "--help"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vfs"));
        command.current_dir(root.path()).args(words).env("COLUMNS", "40").stdout(Stdio::piped());
        let run = finish(&mut command, b"");
        // Usages, the lines of examples and addresses are not broken.
        let is_whole = |line: &str| line.starts_with("  ") || line.starts_with("Usage: ") || line.contains("https://");
        let prose = run.success().lines().filter(|line| !is_whole(line));
        assert!(prose.clone().all(|line| line.chars().count() <= 40), "{words:?}: {}", run.out());
        assert!(prose.count() > 5);
    }
}

/// Runs `lines` in a shell, in an empty directory, one after the other; each must succeed.
#[track_caller]
fn runs_as_written<'a>(lines: impl Iterator<Item = &'a str>) {
    let root = tree(&[]);
    let mut count = 0;
    for line in lines {
        let run = finish(&mut shell(&root, line), b"");
        assert!(run.code == Some(0) && run.err.is_empty() && !run.out.is_empty(), "{line}: {run:?}");
        count += 1;
    }
    assert!(count >= 5, "there are examples");
}

#[test]
fn the_examples_of_the_help_and_the_readme_run_as_written() {
    let help = vfs(&tree(&[]), &["--help"]);
    let examples = help.success().split("Examples:\n").nth(1).and_then(|text| text.split("\n\n").next());
    let lines = examples.unwrap_or_default().lines();
    // What an example does stands behind it, after three spaces.
    runs_as_written(lines.filter_map(|line| line.trim().split("   ").next()));
    let readme = include_str!("../../../../README.md");
    let section = readme.split("## The command\n").nth(1).and_then(|text| text.split("```").nth(1));
    runs_as_written(section.unwrap_or_default().lines().skip(1));
}

#[test]
fn the_short_description_of_the_help_can_be_opened_and_is_not_wrapped() {
    let help = vfs(&tree(&[]), &["config", "--help"]);
    let text =
        help.success().split("A short vfs.toml:\n").nth(1).and_then(|text| text.split("\nvfs does not look").next());
    let text = text.unwrap_or_default();
    assert!(text.lines().all(|line| line.is_empty() || (line.starts_with("  ") && line.len() <= 80)), "{text}");
    let root = tree(&[("vfs.toml", text)]);
    assert!(with_config(&root, &["config", "check"]).success().ends_with("the configuration is valid\n"));
}
