//! Comparison of the programs that real shells run for odd command lines with those that rules find in them.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use vfs_core::ExecuteRequest;
use vfs_policy::{CommandLine, RuleEffect, RuleSet};

/// Pieces of command lines. `mark` leaves a mark, `ok` does nothing, and `no` fails.
const PIECES: &[&str] = &[
    "mark",
    "mark",
    "mark",
    "ok",
    "ok",
    "no",
    "x",
    "echo",
    ";",
    ";",
    "&",
    "&&",
    "||",
    "|",
    "\n",
    "\n",
    "(",
    ")",
    "{ ",
    "; }",
    "$(",
    "`",
    "'",
    "\"",
    "\\",
    "\\\n",
    "$X",
    "${X:-",
    "}",
    "${X",
    "$((",
    "))",
    "((",
    "1",
    "+",
    "[[ ",
    " ]]",
    "[ ",
    " ]",
    "if ",
    "; then ",
    "; else ",
    "; fi",
    "while no; do ",
    "; do ",
    "; done",
    "for x in ",
    "case x in ",
    "x) ",
    "(x) ",
    " ;; ",
    " esac",
    "<<E\n",
    "<<'E'\n",
    "<<-E\n",
    "\nE\n",
    "E\n",
    "<<<",
    ">o",
    "<o",
    "2>&1",
    "&>o",
    ">&o",
    "<(",
    ">(",
    "3>o",
    "{d}>o",
    "{mark,x}",
    "m{a,a}rk",
    "m?rk",
    "$'mark'",
    "$'\\x6dark'",
    "$'x\\'",
    "\"mark\"",
    "ma\\rk",
    "m''ark",
    "#",
    "! ",
    "time ",
    "coproc ",
    "function q { ",
    "q() { ",
    "eval ",
    "eval 'mark'",
    "command ",
    "exec ",
    "sh -c ",
    "'mark'",
    "\"mark x\"",
    "trap mark EXIT",
    "trap ",
    " EXIT",
    "X=mark",
    "X=",
    "X=1 ",
    "a=(",
    "a[0]=",
    "a[$(mark)]=",
    "=",
    "$",
    "*",
    "?",
    "[",
    "]",
    "~",
    "-c",
    "--",
    "$X ",
    "${X} ",
    "\t",
    "select x in ",
    "until ok; do ",
    "in",
    "do",
    "then",
    "fi",
    "done",
    "esac",
    "{",
    "}",
];

/// A directory with a program that leaves marks and others that do not, and nothing else in the way of programs but a shell.
struct Yard {
    directory: String,
    /// The program that ends others in time.
    timeout: String,
}

fn sh(script: &str, argument: &str) -> String {
    let output = Command::new("sh").args(["-c", script, "sh", argument]).output().expect("a POSIX system has a shell");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

impl Yard {
    fn new() -> Self {
        let directory = sh("mktemp -d", "").trim_end().to_owned();
        let programs = "cd \"$1\" && mkdir bin work marks && cd bin && \
            printf '#!/bin/sh\\necho > \"$MARK\"\\n' > mark && \
            printf '#!/bin/sh\\nexit 0\\n' > ok && printf '#!/bin/sh\\nexit 1\\n' > no && chmod +x * && \
            ln -s \"$(command -v sh)\" sh";
        sh(programs, &directory);
        Self { directory, timeout: sh("command -v timeout", "").trim_end().to_owned() }
    }

    fn run(&self, shell: &[&str], line: &str, mark: &str) {
        let directory = &self.directory;
        let mut command = Command::new(&self.timeout);
        command.args(["-s", "KILL", "2"]).args(shell).args(["-c", line]).env_clear();
        command
            .env("PATH", format!("{directory}/bin"))
            .env("MARK", format!("{directory}/marks/{mark}"))
            .env("FUNCNEST", "9");
        command
            .current_dir(format!("{directory}/work"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().expect("it is started");
    }

    fn marks(&self) -> BTreeSet<String> {
        sh("ls \"$1/marks\"", &self.directory).lines().map(str::to_owned).collect()
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        sh("rm -rf \"$1\"", &self.directory);
    }
}

/// The shells that are here, each as the words that run it.
fn shells() -> Vec<Vec<&'static str>> {
    let shells = [vec!["/bin/sh"], vec!["/bin/bash"], vec!["/bin/dash"], vec!["/bin/busybox", "sh"]];
    let is_here = |shell: &Vec<&str>| {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).args(["-c", "true"]).status().is_ok_and(|status| status.success())
    };
    shells.into_iter().filter(is_here).collect()
}

/// Constructs around a line (`@`), most of which never run it where it is a program's.
const AROUND: &[&str] = &[
    "@",
    "@; @",
    "@ && @",
    "no && @",
    "ok || @",
    "@ | @",
    "@ & wait",
    "(@)",
    "{ @; }",
    "! @",
    "if @; then @; fi",
    "if no; then @; else @; fi",
    "while no; do @; done",
    "for x in a b; do @; done",
    "case x in x) @;; y) @;; esac",
    "case x in (y|x) @;; esac",
    "echo $(@)",
    "echo \"$(@)\"",
    "echo `@`",
    "echo '@'",
    "echo \"@\"",
    "X=$(@) ok",
    "X='@' ok",
    "echo ${X:-$(@)}",
    "echo \"${X:-\"$(@)\"}\"",
    "echo $((1 + $(@)))",
    "ok > $(@)",
    "cat <<E\n$(@)\nE\n",
    "cat <<'E'\n@\nE\n@",
    "cat <<E; @\n@\nE\n",
    "sh <<'E'\n@\nE\n",
    "q() { @; }; q",
    "q() { @; }",
    "eval '@'",
    "eval @",
    "sh -c '@'",
    "trap '@' EXIT",
    "command @",
    "exec @",
    "[[ x && $(@) ]]",
    "[ x ] && @",
    "[[ x || @ ]]",
    "((@))",
    "time @",
    "ok <(@)",
    "a=($(@))",
    "a[$(@)]=1",
    "coproc @",
    "ok # @",
    "ok \\\n@",
    "ok &>o @",
    "X=1 @",
    "2>&1 @",
    ">o @",
    "@ <o >o",
    "ok '\n' @",
    "echo \\; @",
    "echo {@,x}",
    "alias a=@",
    "ok;#\n@",
    "${X:-@}",
    "$X @",
    "\"$X\" @",
    "$(echo @)",
    "`echo @`",
];

const PROGRAMS: &[&str] = &[
    "mark",
    "ok",
    "no",
    "echo mark",
    "m'ar'k",
    "\\mark",
    "\"mark\" x",
    "$'mark'",
    "ma\\\nrk",
    "ok mark",
    "echo x",
    ":",
    "true",
];

fn lines(count: usize, seed: u64) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count).map(|at| if at % 3 == 0 { pieced(&mut random) } else { grown(&mut random) }).collect()
}

fn pieced(random: &mut fastrand::Rng) -> String {
    let mut line = String::new();
    for _ in 0..random.usize(1..10) {
        line.push_str(PIECES[random.usize(..PIECES.len())]);
        line.push_str([" ", "", "\n", ";"][random.usize(..16).saturating_sub(12)]);
    }
    line
}

/// A line of constructs in one another, with a few mistakes.
fn grown(random: &mut fastrand::Rng) -> String {
    let mut line = "@".to_owned();
    for _ in 0..random.usize(..4) {
        let around = AROUND[random.usize(..AROUND.len())];
        let places: Vec<_> = line.match_indices('@').map(|(at, _)| at).collect();
        let Some(place) = random.choice(places) else { break };
        line.replace_range(place..=place, around);
    }
    while let Some(place) = line.find('@') {
        line.replace_range(place..=place, PROGRAMS[random.usize(..PROGRAMS.len())]);
    }
    for _ in 0..random.usize(..4).saturating_sub(1) {
        let place = random.usize(..=line.len().saturating_sub(1));
        match random.u8(..3) {
            0 if !line.is_empty() => drop(line.remove(place)),
            1 => line.insert_str(place, PIECES[random.usize(..PIECES.len())]),
            _ => line.insert_str(
                place,
                ["\\\n", "\\", "'", "\"", "\n", " ", "$", "`", ";", "#", "&", "(", ")"][random.usize(..13)],
            ),
        }
    }
    line
}

#[test]
fn what_a_shell_runs_is_found_and_what_is_allowed_runs_nothing_else() {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let count = number("VFS_SHELL_LINES").unwrap_or(150);
    let seed = number("VFS_SHELL_SEED").unwrap_or(7) as u64;
    let lines = lines(count, seed);
    let deny =
        "[[rules]]\neffect = 'deny'\ncommands = ['mark']\n[[rules]]\neffect = 'allow'\noperations = ['execute']\n";
    let deny = RuleSet::from_toml(deny).expect("valid rules");
    let allow =
        "[[rules]]\neffect = 'allow'\ncommands = ['ok *', 'no *', 'echo *', 'cat *', 'true *', ': *', '[ *', 'x *']\n";
    let allow = RuleSet::from_toml(allow).expect("valid rules");
    let is_allowed = |rules: &RuleSet, line: &str| {
        rules.explain_command(None, &ExecuteRequest::new(line)).effect == RuleEffect::Allow
    };

    let yard = Yard::new();
    let shells = shells();
    for (at, line) in lines.iter().enumerate() {
        for (which, shell) in shells.iter().enumerate() {
            yard.run(shell, line, &format!("{at}-{which}"));
        }
    }
    let marks = yard.marks();
    let mut wrong = Vec::new();
    let mut judged = (0, 0);
    for (at, line) in lines.iter().enumerate() {
        let ran: Vec<_> = (0..shells.len()).filter(|which| marks.contains(&format!("{at}-{which}"))).collect();
        let (may_be, is_fine) = (!is_allowed(&deny, line), is_allowed(&allow, line));
        judged = (judged.0 + usize::from(!may_be), judged.1 + usize::from(is_fine));
        if let Some(which) = ran.first().filter(|_| !may_be || is_fine) {
            let found = CommandLine::parse(line);
            wrong.push(format!("{:?} marks with {line:?}: {found:?}", shells[*which]));
        }
    }
    assert!(wrong.is_empty(), "{} of {} lines, {judged:?}:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
    let is_enough = !shells.is_empty() && !marks.is_empty() && judged.0 > 0 && judged.1 > 0;
    assert!(is_enough, "{judged:?}, {} marks", marks.len());
}
