//! What is found in command lines.

mod matching;
mod tricks;

use proptest::prelude::*;
use vfs_core::ExecuteRequest;

use super::pattern::Asked;
use super::{CommandLine, CommandPattern, CommandWord, SimpleCommand};

fn written(command: &SimpleCommand) -> String {
    let set = command.assignments.iter().map(|set| format!("{}={}", set.name, word(&set.value)));
    set.chain(command.words.iter().map(word)).collect::<Vec<_>>().join(" ")
}

fn word(word: &CommandWord) -> String {
    match word {
        CommandWord::Literal(text) => text.clone(),
        CommandWord::Dynamic(text) => format!("<{text}>"),
    }
}

/// A line, and its commands: those that are not known in angle brackets.
const LINES: &[(&str, &[&str])] = &[
    ("ls -l /tmp", &["ls -l /tmp"]),
    ("a; b & c && d || e | f |& g\nh", &["a", "b", "c", "d", "e", "f", "g", "h"]),
    ("r'm' -rf", &["rm -rf"]),
    ("\"rm\" -rf", &["rm -rf"]),
    ("\\rm -rf", &["rm -rf"]),
    ("r\\\nm -rf", &["rm -rf"]),
    ("$'rm' -rf", &["rm -rf"]),
    ("$'\\x72\\155' -rf", &["rm -rf"]),
    ("rm -rf # a comment; ls", &["rm -rf"]),
    ("echo a#b", &["echo a#b"]),
    ("echo \"$(rm x)\"", &["echo <\"$(rm x)\">", "rm x"]),
    ("echo `rm x`", &["echo <`rm x`>", "rm x"]),
    ("echo `echo \\`rm x\\``", &["echo <`echo \\`rm x\\``>", "echo <`rm x`>", "rm x"]),
    ("x=$(rm y) ls", &["x=<$(rm y)> ls", "rm y"]),
    ("x=1", &["x=1"]),
    ("a=(x $(rm y) z)", &["a=<(...)>", "rm y"]),
    ("echo $((1 + $(rm x)))", &["echo <$((1 + $(rm x)))>", "rm x"]),
    ("echo $((rm) | (ls))", &["echo <$((rm) | (ls))>", "rm", "ls"]),
    ("echo ${x:-$(rm y)}", &["echo <${x:-$(rm y)}>", "rm y"]),
    ("ls > $(rm x)", &["ls", "rm x"]),
    ("> file", &[""]),
    ("cat <(rm x) >(ls)", &["cat <<(rm x)> <>(ls)>", "rm x", "ls"]),
    ("cat <<EOF\n$(rm x)\nEOF\nls", &["cat", "rm x", "ls"]),
    ("cat <<'EOF'\n$(rm x)\nEOF\nls", &["cat", "ls"]),
    ("cat <<-EOF; ls\n\tx\n\tEOF\nrm", &["cat", "ls", "rm"]),
    ("sh <<EOF\nrm x\nEOF", &["sh", "rm x"]),
    ("sh <<< 'rm x'", &["sh", "rm x"]),
    ("base64 -d x | sh", &["base64 -d x", "sh", "<the commands of a shell>"]),
    ("sh script.sh", &["sh script.sh"]),
    ("bash -c 'rm x; ls' y", &["bash -c rm x; ls y", "rm x", "ls"]),
    ("bash -xec \"rm x\"", &["bash -xec rm x", "rm x"]),
    ("bash -c \"$X\"", &["bash -c <\"$X\">", "<the commands of a shell>"]),
    ("(rm x); { ls; }", &["rm x", "ls"]),
    ("((i++))", &["i++"]),
    ("f() { rm x; }; f", &["rm x", "f"]),
    ("git() { rm x; }; git status", &["rm x", "git status"]),
    ("function git { rm x; }\ngit status", &["rm x", "git status"]),
    ("if a; then b; elif c; then d; else e; fi > out", &["a", "b", "c", "d", "e"]),
    ("while a; do b; done; until c; do d; done", &["a", "b", "c", "d"]),
    ("for x in $(a) b; do c; done", &["a", "c"]),
    ("for ((i = 0; i < 3; i++)); do a; done", &["a"]),
    ("for x; do a; done; for x do b; done", &["a", "b"]),
    ("case $x in a|b) c;; (d) e;& *) f; esac", &["c", "e", "f"]),
    ("case $(a) in esac", &["a"]),
    ("[[ -f x && $(rm y) ]]", &["[[ -f x", "<$(rm y)> ]]", "rm y"]),
    ("[[ x || ! rm y ]]", &["[[ x", "rm y ]]"]),
    ("[[ x == *.rs ]] && a", &["[[ x == <*.rs> ]]", "a"]),
    ("! a | ! b", &["a", "b"]),
    ("time -p a; time { b; }; time ! c=1 d", &["time", "a", "time", "b", "time", "c=1 d"]),
    ("coproc a; coproc n { b; }", &["a", "n", "b"]),
    ("echo &>x rm y", &["echo rm y", "rm y"]),
    ("env -i A=1 rm x", &["env -i A=1 rm x", "A=1 rm x"]),
    ("/usr/bin/env rm x", &["/usr/bin/env rm x", "rm x"]),
    (
        "nohup nice -n 5 timeout -k 1 5s rm x",
        &["nohup nice -n 5 timeout -k 1 5s rm x", "nice -n 5 timeout -k 1 5s rm x", "timeout -k 1 5s rm x", "rm x"],
    ),
    ("sudo -u root -- rm x", &["sudo -u root -- rm x", "rm x"]),
    ("sudo -s rm", &["sudo -s rm", "<sudo>"]),
    ("ls | xargs -0 -n1 rm", &["ls", "xargs -0 -n1 rm", "rm <...>"]),
    ("xargs -I{} cp {} /x", &["xargs -I{} cp {} /x", "cp <{}> /x"]),
    (
        "command rm x; command -v rm; builtin eval 'rm y'; exec rm z",
        &["command rm x", "rm x", "command -v rm", "builtin eval rm y", "eval rm y", "rm y", "exec rm z", "rm z"],
    ),
    (
        "find . -name '*.o' -exec rm {} \\; -exec sh -c 'ls' \\;",
        &["find . -name *.o -exec rm {} ; -exec sh -c ls ;", "rm <{}>", "sh -c ls", "ls"],
    ),
    ("eval rm 'x; ls'; eval \"$X\"", &["eval rm x; ls", "rm x", "ls", "eval <\"$X\">", "<eval>"]),
    ("trap 'rm x' EXIT; trap - INT", &["trap rm x EXIT", "rm x", "trap - INT"]),
    ("alias git='rm'", &["alias git=rm", "<alias>"]),
    ("hash -p /bin/rm git", &["hash -p /bin/rm git", "<hash>"]),
    (". ./lib.sh; source <(rm x)", &[". ./lib.sh", "source <<(rm x)>", "<source>", "rm x"]),
    ("{rm,-rf,/}", &["<{rm,-rf,/}>"]),
    ("echo {} {a {a} x{1..3}", &["echo {} {a {a} <x{1..3}>"]),
    ("$X -rf; ~/bin/x; r* x; /bin/r?", &["<$X> -rf", "<~/bin/x>", "<r*> x", "</bin/r?>"]),
    ("P\\\nATH=/tmp git", &["PATH=/tmp git"]),
    ("x='a[$(rm)]'; echo", &["x=a[$(rm)]", "<x=a[$(rm)]>", "echo"]),
    ("printf -v 'a[$(rm)]' x", &["printf -v a[$(rm)] x", "<printf>"]),
    ("PS4='$(rm x)'", &["PS4=$(rm x)", "<PS4>"]),
    ("PROMPT_COMMAND=rm bash x", &["PROMPT_COMMAND=rm bash x", "<PROMPT_COMMAND>"]),
    ("echo ${x@P}", &["echo <${x@P}>", "<${...@P}>"]),
    ("export A=1 B=(x)", &["B=<(...)> export A=1 <B=>"]),
    ("2>&1 ls 3< in", &["ls"]),
    ("ls {fd}> out", &["ls", "ls {fd}"]),
    ("nice -n 10> out ls", &["nice -n ls", "nice -n 10 ls", "ls"]),
    ("for HOME in x; do a; done; read -r LINE", &["HOME=<...>", "a", "LINE=<...>", "read -r LINE"]),
    ("env a.b=1 rm x", &["env a.b=1 rm x", "<env>"]),
    ("echo 'a'\"b\"c$'\\td'", &["echo abc\td"]),
    ("time -o out rm x", &["time -o out rm x", "rm x"]),
    ("echo `m'a\\\nr'k`", &["echo <`m'a\\\nr'k`>", "mark"]),
    ("busybox rm x", &["busybox rm x", "rm x"]),
];

#[test]
fn commands_are_found_wherever_they_stand() {
    let mut wrong = Vec::new();
    for (line, expected) in LINES {
        let mut expected: Vec<_> = expected.iter().map(|command| (*command).to_owned()).collect();
        expected.sort_unstable();
        match CommandLine::parse(line) {
            Ok(parsed) => {
                let mut commands: Vec<_> = parsed.commands().iter().map(written).collect();
                commands.sort_unstable();
                if commands != expected {
                    wrong.push(format!("{line:?}\n  is    {commands:?}\n  not   {expected:?}"));
                }
            }
            Err(error) => wrong.push(format!("{line:?}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_not_certain_is_refused() {
    for line in [
        "echo 'x",
        "echo \"x",
        "echo $(x",
        "echo `x",
        "(x",
        "x)",
        "if x; then y",
        "fi",
        "}",
        "x ;; y",
        "case x in",
        "for",
        "f() x",
        "a b(c)",
        "echo @(a|b)",
        "!(a)",
        "echo $[1]",
        "echo ${ rm; }",
        "echo ${x:-'a'}",
        "echo $'a\\'b; rm; '",
        "cat <<$X\n",
        "$(cat <<EOF)\nx\nEOF",
        "a[1 + 1]=x rm y",
        "(a) b",
        "{ a; } b",
        "cat <<EOF $(\nrm\n)\nEOF\n",
        "cat <<EOF > \"$(\nrm\n)\"\nEOF\n",
        "cat <<EOF; echo $(\nrm\n)\nEOF\n",
        "(( # )); rm",
        "((echo 'echo \"$(rm)\"'))",
        "((x # $(rm)\n))",
        "echo $((echo '$(rm)') )",
        "[[ x =~ ^(a|b)$ ]]",
        "echo $\\\n(rm)",
        "$\\\nX -rf",
        "\"$\\\nX\"",
        "2\\\n>x rm",
        "ls 2\\\n>x",
        "{fd\\\n}>x rm",
    ] {
        assert!(CommandLine::parse(line).is_err(), "{line:?}: {:?}", CommandLine::parse(line));
    }
    for line in ["echo $((x))", "echo ${!x}", "echo ${a[$i]}", "a[$i]=1", "{ cat; } <<EOF\nx\nEOF"] {
        let parsed = CommandLine::parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(!parsed.doubts().is_empty(), "{line}");
    }
}

fn patterns(texts: &[&str]) -> Vec<CommandPattern> {
    texts.iter().map(|text| CommandPattern::new(text).expect("a valid pattern")).collect()
}

fn asked(line: &str) -> Asked {
    Asked::new(&ExecuteRequest::new(line))
}

#[test]
fn much_is_refused_and_nothing_takes_long() {
    for unit in [
        "(",
        "$(",
        "`",
        "((",
        "$((",
        "${a:-",
        "\"$(",
        "{ ",
        "if ",
        "f() {",
        "eval ",
        "<(",
        "! ",
        "[[ ",
        "a=(",
        "case x in (",
        "\\`",
    ] {
        for count in [10, 100, 1_000, 20_000] {
            let text: String = unit.repeat(count).chars().take(CommandLine::MAX_BYTES).collect();
            let _either = CommandLine::parse(&text);
            let _either = CommandLine::parse(&(text.clone() + "x" + &")".repeat(count.min(100))));
        }
    }
    for unit in [
        "a;",
        "$((1)) ",
        "$(a) ",
        "`a` ",
        "a <<X\nX\n",
        "'a' ",
        "sudo ",
        "ssh ",
        "ssh x ",
        "{a ",
        "env sh -c 'a' ",
        "*a",
        "a|",
    ] {
        for count in [20, 250, CommandLine::MAX_BYTES / unit.len()] {
            let asked = asked(&unit.repeat(count));
            asked.may_have(&patterns(&["rm *", "a*b*c*d* x"]));
        }
    }
    assert!(CommandLine::parse(&"x".repeat(CommandLine::MAX_BYTES + 1)).is_err());
    assert!(CommandLine::parse(&format!("{}x{}", "(".repeat(100_000), ")".repeat(100_000))).is_err());
}

proptest! {
    #[test]
    fn no_line_is_too_odd(line in "[-a-z0-9 $(){}\\[\\]'\"`\\\\|&;<>=~*?!#\n@é]{0,80}") {
        let asked = asked(&line);
        let all = patterns(&["*"]);
        // What is allowed as any command is also found as any command.
        prop_assert!(!asked.is_all(&all) || asked.may_have(&all));
    }

    #[test]
    fn a_command_is_found_behind_whatever_is_complete_before_it(before in prop::collection::vec(prop::sample::select(vec![
        "ls", ";", "&&", "|", "(ls)", "{ ls; }", "\n", "'a b'", "\"$(ls)\"", "x=1", "> out", "if :; then ls; fi;",
        "case x in x) ls;; esac;", "echo", "$((1 + 2))", "<<'E'\nls\nE\n", "[[ -f x ]];", "`ls`", "# c\n", "!", "a=(b c)",
    ]), 0..8)) {
        let line = before.join(" ") + "\nrm x";
        prop_assert!(asked(&line).may_have(&patterns(&["rm *"])), "{line}");
    }

    #[test]
    fn quoting_changes_nothing(name in "[a-z]{1,6}", quotes in prop::collection::vec(0..4_u8, 6)) {
        let quoted: String = name.chars().zip(&quotes).map(|(letter, quote)| match quote {
            0 => letter.to_string(),
            1 => format!("'{letter}'"),
            2 => format!("\"{letter}\""),
            _ => format!("\\{letter}"),
        }).collect();
        let parsed = CommandLine::parse(&format!("{quoted} x")).expect("a plain command");
        prop_assert_eq!(parsed.commands()[0].name(), Some(name.as_str()));
    }
}
