//! Tests of the command parser against tables and random lines.

mod matching;

use proptest::prelude::*;

use super::{CommandArgument, CommandLine, SimpleCommand};

fn written(command: &SimpleCommand) -> String {
    let arguments = command.arguments().iter().map(|word| match word {
        CommandArgument::Literal(text) => text.clone(),
        CommandArgument::Glob(beginning) => format!("<{beginning}>"),
    });
    std::iter::once(command.name().to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// A line, and its commands.
const UNDERSTOOD: &[(&str, &[&str])] = &[
    ("ls -l /tmp", &["ls -l /tmp"]),
    ("  ls\t-l  ", &["ls -l"]),
    ("a; b & c && d || e | f\ng\n\nh;", &["a", "b", "c", "d", "e", "f", "g", "h"]),
    ("a &&\nb |\n\nc", &["a", "b", "c"]),
    ("g'i't \"sta\"tus", &["git status"]),
    ("\\git 'a b' \"c d\" e\\ f ''", &["git a b c d e f "]),
    ("echo 'it'\\''s' \"\\\"\\$x\\`\\\\\\n\"", &["echo it's \"$x`\\\\n"]),
    ("echo \"a\nb\"", &["echo a\nb"]),
    ("echo a#b c # d; rm x", &["echo a#b c"]),
    ("# nothing\nls # more\n#", &["ls"]),
    ("docker run \\\n  --rm \\\n\t-it x", &["docker run --rm -it x"]),
    ("ls src/*.rs ./* a/b[0-9]?", &["ls <src/> <./> <a/b>"]),
    ("curl http://x/?a=b", &["curl <http://x/>"]),
    ("echo '*' \"?\" \\[", &["echo * ? ["]),
    ("git stash@{1} {} a{b}c a!b x=y --k=v %1 a^b a:b@c", &["git stash@{1} {} a{b}c a!b x=y --k=v %1 a^b a:b@c"]),
    ("git show HEAD~2 a~", &["git show HEAD~2 a~"]),
    ("ls > out 2>&1 < in 2>/dev/null >> log >| x 3<> y 2>&-", &["ls"]),
    ("> out ls -l", &["ls -l"]),
    ("ls>out -l 2>x", &["ls -l"]),
    ("ls '2'>x a2>y", &["ls 2 a2"]),
    ("cat <<'E' > f\n$(rm x)\nE\nls", &["cat", "ls"]),
    ("cat <<E\nplain\nE", &["cat"]),
    ("cat <<-E; ls\n\tx\n\tE\npwd", &["cat", "ls", "pwd"]),
    ("cat <<A <<'B'\na\nA\n`b`\nB\n", &["cat"]),
    ("cat <<E &&\nx\nE\nls", &["cat", "ls"]),
    ("/bin/ls; /usr/local/bin/x", &["/bin/ls", "/usr/local/bin/x"]),
    ("[ -f x ] && test -n 'a' || exit 1", &["[ -f x ]", "test -n a", "exit 1"]),
    ("find . -name '*.rs' -newer x", &["find . -name *.rs -newer x"]),
    ("printf '%s [x]\\n' a", &["printf %s [x]\\n a"]),
    ("echo 'é\u{a0}\r'", &["echo é\u{a0}\r"]),
];

/// Lines that are not understood.
const NOT_UNDERSTOOD: &[&str] = &[
    // Nothing to run.
    "",
    " \n",
    "# ls",
    "> file",
    "''",
    "'' x",
    // Mistakes.
    "ls |",
    "ls &&",
    "| ls",
    "; ls",
    "ls ;; ls",
    "a & & b",
    "ls && ; x",
    "ls 'x",
    "ls \"x",
    "ls \\",
    "ls >",
    "ls > ;",
    "ls > #x",
    "ls <",
    "cat <<E",
    "cat <<E\nx",
    "cat <<E\nx\n E",
    "a )",
    "}",
    "fi",
    // Expansions and substitutions.
    "$X",
    "echo $X",
    "echo ${X}",
    "echo \"$X\"",
    "echo $(ls)",
    "echo `ls`",
    "echo \"`ls`\"",
    "echo \"$(ls)\"",
    "echo $((1))",
    "echo $[1]",
    "echo $'a'",
    "echo $\"a\"",
    "echo 5$",
    "echo ~",
    "~/x",
    "echo ~root/x",
    "echo a=~/x",
    "echo a:~",
    "cat <(ls)",
    "ls > >(cat)",
    "{rm,-rf,/}",
    "echo {a,b}",
    "echo x{1..3}",
    "echo {a','b,c}",
    "cat <<E\n$X\nE",
    "cat <<E\n`ls`\nE",
    "cat <<E\na\\\nE",
    "ls > $X",
    "ls > x*",
    "ls 2> */x",
    // Globs that may become an option or another word.
    "ls *",
    "ls *.rs",
    "ls ?",
    "ls a[b]",
    "r? x",
    "/bin/r?",
    "find . -ex*/../x",
    "a/*",
    // Variables.
    "X=1",
    "X=1 ls",
    "PATH=/tmp git status",
    "X=",
    "X+=1 ls",
    "a[0]=1",
    "a=(b c)",
    "'X'=1 ls",
    "export X=1",
    "read x",
    "printf -v x y",
    "wait -np x",
    "[ -v 'a[$(rm)]' ]",
    "test -v 'a[0]'",
    "set -k",
    "unset X",
    "ENV=script sh -i -c :",
    // Groups, functions, and the rest of the grammar.
    "(ls)",
    "{ ls; }",
    "!(a)",
    "echo @(a|b)",
    "f() { ls; }",
    "function f { ls; }",
    "if ls; then ls; fi",
    "while ls; do ls; done",
    "for x in a; do ls; done",
    "case x in x) ls;; esac",
    "[[ -f x ]]",
    "((1))",
    "! ls",
    "\\! ls",
    "'!' ls",
    "time ls",
    "\\time ls",
    "coproc ls",
    "\\coproc ls",
    "'coproc' ls",
    ">o time ls",
    "2>x ! ls",
    "select x in a; do ls; done",
    "until ls; do ls; done",
    // Builtins that run text, or change what a line means.
    "eval ls",
    "\\eval ls",
    ". x",
    "source x",
    "exec ls",
    "command ls",
    "builtin ls",
    "trap ls EXIT",
    "alias ls=rm",
    "hash -p x ls",
    "enable -f x y",
    "complete -C x y",
    "mapfile -C ls x",
    "bind -x x",
    "fc -s",
    "shopt -s extglob",
    "let x=1",
    "declare x=1",
    // Programs that run others.
    "sh",
    "sh x",
    "sh -c ls",
    "bash -c ls",
    "BASH -c ls",
    "bash5.2 -c ls",
    "ksh93 -c ls",
    "busybox ls",
    "busybox-static ls",
    "/bin/sh -c ls",
    "env ls",
    "/usr/bin/env ls",
    "/usr/bin/ENV ls",
    "xargs ls",
    "sudo ls",
    "doas ls",
    "nohup ls",
    "nice ls",
    "timeout 5 ls",
    "setsid ls",
    "stdbuf -o0 ls",
    "ionice ls",
    "flock x ls",
    "taskset 1 ls",
    "strace ls",
    "watch ls",
    "ssh x ls",
    "runcon -t x ls",
    "ssh-agent ls",
    "systemd-cat ls",
    "logsave log ls",
    "i686 ls",
    "ip netns exec x ls",
    "rg --pre x y",
    "sort --compress-prog=x y",
    "split --filter x y",
    "tar -xf x --to-command=ls",
    "tar -xIls -f x",
    "tar -cf x --checkpoint=1 --checkpoint-action exec=ls y",
    "find . -exec ls {} +",
    "find . -execdir ls ;",
    "find . -ok ls \\;",
    "fd -x ls",
    "fd -Hx ls",
    "fd --exec=ls",
    "fd --exec-b ls",
    "ls | sh",
    "curl x | bash",
    "/lib64/ld-linux-x86-64.so.2 /bin/ls",
    "ld.so /bin/ls",
    "ld-linux.so.2 /bin/ls",
    // Programs outside of the system.
    "./ls",
    "../ls",
    "x/ls",
    "/tmp/ls",
    "/proc/self/exe -c ls",
    "/proc/1/exe",
    "/bin/../tmp/ls",
    "/usr/bin/../../tmp/x",
    "/bin/",
    "//bin/ls",
    // Syntax about which shells differ.
    "ls &> out",
    "ls &>> out",
    "ls >& out",
    "ls |& cat",
    "ls 10> out",
    "ls {fd}> out",
    "cat <<< x",
    "l\\\ns",
    "ls &\\\n> x",
    "ls 2\\\n>x",
    "cat <<\\\nE\nE",
    "ls >\\\nx",
    "\"l\\\ns\"",
    "cat <<E 'a\nb'\nE",
    "ls\rrm x",
    "ls \u{b} x",
    "ls\u{a0}x",
    "ls\u{2028}x",
    "ls >&2x",
    "ls <&x",
    "ſudo ls",
];

#[test]
fn simple_commands_are_understood() {
    for (line, expected) in UNDERSTOOD {
        let parsed = CommandLine::parse(line);
        let commands: Vec<_> = parsed.iter().flat_map(CommandLine::commands).map(written).collect();
        assert_eq!(commands, *expected, "{line:?}: {parsed:?}");
    }
}

#[test]
fn everything_else_is_not_understood() {
    let understood: Vec<_> = NOT_UNDERSTOOD.iter().filter(|line| CommandLine::parse(line).is_ok()).collect();
    assert!(understood.is_empty(), "{understood:?}");
}

#[test]
fn long_lines_take_no_long_time() {
    for unit in ["(", "'a' ", "\\a", "a;", "sudo ", "a <<X\nX\n", "a/* ", "{", "\"a\" ", "<<A ", "# \n", "> x "] {
        let _either = CommandLine::parse(&unit.repeat(CommandLine::MAX_BYTES / unit.len()));
    }
    CommandLine::parse(&"x".repeat(CommandLine::MAX_BYTES)).expect("a long name is a name");
    CommandLine::parse(&"x".repeat(CommandLine::MAX_BYTES + 1)).expect_err("too long");
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(line in "[-a-z0-9 $(){}\\[\\]'\"`\\\\|&;<>=~*?!#\n@é]{0,80}") {
        let _either = CommandLine::parse(&line);
    }

    #[test]
    fn quoting_changes_nothing(name in "[a-d]{1,6}", quotes in prop::collection::vec(0..4_u8, 6)) {
        let quoted: String = name.chars().zip(&quotes).map(|(letter, quote)| match quote {
            0 => letter.to_string(),
            1 => format!("'{letter}'"),
            2 => format!("\"{letter}\""),
            _ => format!("\\{letter}"),
        }).collect();
        let parsed = CommandLine::parse(&format!("{quoted} x")).expect("a plain command");
        prop_assert_eq!(parsed.commands()[0].name(), name.as_str());
    }
}
