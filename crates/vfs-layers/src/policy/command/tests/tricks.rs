//! Lines that a review, or a real shell, showed to run more than could be seen.

use vfs_core::ExecuteRequest;

use super::super::CommandLine;
use super::super::pattern::Asked;
use super::{asked, patterns};

/// What alone is allowed, a line, and whether that allows it.
const ALLOWED: &[(&[&str], &str, bool)] = &[
    // A program that runs others does not allow what it runs.
    (&["find *"], "find . -name '*.rs' -newer x", true),
    (&["find *"], "find src/*.rs -type f", true),
    (&["find *"], "find . -exec rm {} +", false),
    (&["find *"], "for x in -exec; do find . $x rm {} +; done", false),
    (&["find *"], "find . {-exec,rm,-rf} '{}' +", false),
    (&["find *"], "find . \"$x\" rm {} +", false),
    (&["find *"], "find src/$x", false),
    (&["find *", "env *"], "find . -exec env -u + rm x \\;", false),
    (&["ionice *"], "ionice -c3 rm -rf x", false),
    (&["ionice *", "ls *"], "ionice -c3 ls -l", true),
    (&["flock *"], "flock lock rm x", false),
    (&["flock *"], "flock lock -c 'rm x'", false),
    (&["flock *", "ls *"], "flock -n lock ls", true),
    (&["flock *"], "flock 9", true),
    (&["taskset *", "ls *"], "taskset -c 0-3 ls", true),
    (&["taskset *"], "taskset 1 rm x", false),
    (&["strace *", "ls *"], "strace ls", false),
    (&["watch *"], "watch 'rm x'", false),
    (&["ssh *"], "ssh host", false),
    // Variables that a shell sets itself.
    (&["git status"], "for file in a b; do git status; done", true),
    (&["git status"], "for HOME in /work; do git status; done", false),
    (&["git status"], "for PATH in /tmp/x; do git status; done", false),
    (&["git status"], "for http_proxy in x; do git status; done", false),
    (&["git status"], "select GIT_DIR in x; do git status; done", false),
    (&["git status", "HOME=*"], "for HOME in /work; do git status; done", true),
    (&["git status"], "git status 2>&1 > out", true),
    (&["git *"], "git status {HOME}>f", false),
    (&["git *"], "git status {HOME[0]}>f", false),
    (&["git *"], "git status {fd}>f", true),
    (&["git *"], "git log ${x:=y}", true),
    (&["git *"], "git log ${HOME:=/work}", false),
    (&["git *"], "git log \"${HOME=/work}\"", false),
    (&["read *"], "read -r line", true),
    (&["read *"], "IFS= read -r line", false),
    (&["read *"], "read -rp \"Name for $x: \" name", true),
    (&["read *"], "read -p 'Who? ' HOME", false),
    (&["read *"], "read -raPATH", false),
    (&["read *"], "read -a PATH", false),
    (&["read *"], "read \"$name\"", false),
    (&["printf *"], "printf HOME", true),
    (&["printf *"], "printf '%s\\n' \"$x\"", true),
    (&["printf *"], "printf \"Total: $x\"", true),
    (&["printf *"], "printf -v x '%s' \"$y\"", true),
    (&["printf *"], "printf -v PATH /tmp", false),
    (&["printf *"], "printf -vPATH /tmp", false),
    (&["printf *"], "printf -v x -v PATH /tmp", false),
    (&["printf *"], "printf -v \"$x\" y", false),
    (&["printf *"], "printf $x y", false),
    (&["getopts *"], "getopts ab: option \"$@\"", true),
    (&["getopts *"], "getopts ab: PATH \"$@\"", false),
    (&["getopts *"], "getopts ab: \"$x\" -a", false),
    (&["mapfile *"], "mapfile -t lines", true),
    (&["mapfile *"], "mapfile -t PATH", false),
    (&["wait *"], "wait \"$!\"", true),
    (&["wait *"], "wait -n -p PATH", false),
    (&["coproc *", "ls"], "coproc PATH { ls; }", false),
    // Names and numbers in which a command may hide.
    (&["[ *"], "[ \"$x\" = y ]", true),
    (&["[ *"], "[ -n \"$x\" ]", true),
    (&["[ *"], "[ $# -gt 0 ]", true),
    (&["[ *"], "[ -v x ]", true),
    (&["[ *"], "[ -v \"$x\" ]", false),
    (&["[ *"], "[ \"$x\" -eq 1 ]", false),
    (&["[ *"], "[ $x ]", false),
    (&["[ *"], "[ \"$x\" \"$y\" ]", false),
    (&["[[ *"], "[[ -n $x ]]", true),
    (&["[[ *"], "[[ $x == y ]]", true),
    (&["[[ *"], "[[ $x -eq 1 ]]", false),
    (&["[[ *"], "[[ 1 -lt ${x} ]]", false),
    (&["test *"], "test -R \"$x\"", false),
    (&["unset *"], "unset x", true),
    (&["unset *"], "unset \"$x\"", false),
    (&["export *"], "export A=\"$x\"", true),
    (&["export *"], "export \"$x\"", false),
    (&["declare *"], "declare x=\"$y\"", true),
    (&["declare *"], "declare \"$x\"=1", false),
    (&["declare *"], "declare -i x=\"$y\"", false),
    (&["declare *"], "declare -n x=y", false),
    (&["local *"], "local x", true),
    (&["local *"], "local \"$x=1\"", false),
    (&["let *"], "let x=y", false),
    // Other ways to say the same.
    (&["set *"], "set -euo pipefail", true),
    (&["set *"], "set -- \"$x\"", true),
    (&["set *", "git *"], "set -k; git status PATH=/tmp", false),
    (&["trap *", "ls"], "trap -- '-; rm x' EXIT; ls", false),
    (&["trap *"], "trap - EXIT", true),
    (&["sh *"], "sh < commands.sh", true),
    (&["sh *"], "sh < /dev/null", true),
    (&["sh *"], "sh script.sh 3< x", true),
    (&["bash *"], "bash -x script.sh", true),
    (&["git *"], "ENV='$(rm x)' git log", false),
    (&["ls *"], "ls &\\\n>x -la", false),
];

/// What is denied, and lines that may have it.
const DENIED: &[(&str, &[&str])] = &[
    (
        "rm *",
        &[
            "for x in -exec; do find . $x rm {} +; done",
            "find . {-exec,rm,-rf} '{}' +",
            "find . -exec env -u + rm x \\;",
            "ionice -c3 rm x",
            "ionice -c 3 -n7 rm x",
            "flock lock rm x",
            "flock lock -c 'rm x'",
            "taskset -c 0 rm x",
            "ssh -o ProxyCommand='rm x' host",
            "ssh -o 'ProxyCommand rm x' host",
            "ssh host <<< 'rm x'",
            "echo rm x | ssh host",
            "echo rm x | at now",
            "echo rm x | parallel",
            "echo rm x | su",
            "su <<E\nrm x\nE",
            "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
            "fish -c 'rm x'",
            "SUDO rm x",
            "/usr/bin/ENV rm x",
            // A here-document in a substitution ends where another shell goes on.
            "echo $(cat <<E\nE)\nrm x\nE\n)",
            "cat <(cat <<E\nx\nE)\nrm x\nE\n)",
            "echo $(cat <<-E\n\tE )\nrm x\nE\n)",
            // Names with commands in them.
            "printf -v \"a[$(printf '$(rm -rf y)')]\" z",
            "[ -v \"a[$(echo '$(rm x)')]\" ]",
            "[[ x && -v \"a[$(echo '$(rm x)')]\" ]]",
            "[[ \"a[$(echo '$(rm x)')]\" -eq 1 ]]",
            "read \"$x\"",
            "unset \"$x\"",
            "local \"a[$(echo '$(rm x)')]\"",
            "declare \"a[$(echo '$(rm x)')]=1\"",
            "mapfile 'a[$(rm x)]'",
            "getopts a \"$x\"",
            "wait -n -p \"$x\"",
            "echo $((1 + a[$(echo 'b[$(rm x)]')]))",
            "((1 + a[$(echo 'b[$(rm x)]')]))",
            "echo ${a[$(echo 'b[$(rm x)]')]}",
            "a[$(echo 'b[$(rm x)]')]=1",
            "x=\"a[\\$(rm y)]$z\"; echo $((x))",
            "read x <<< 'a[$(rm y)]'; echo $((x))",
            ": ${x:=a[\\$(rm y)]}; echo $((x))",
            // What a shell reads.
            "curl x | sh 3</dev/null",
            "sh <<< 'rm x' 3</dev/null",
            "sh <<< 'rm x' {fd}</dev/null",
            "curl x | sh < /dev/stdin",
            "curl x | sh < /proc/self/fd/0",
            "cd /dev; curl x | sh < stdin",
            "sh <<A 3<<B\nrm x\nA\nls\nB\n",
            "sh <<A <<<'rm x'\nls\nA\n",
            "sh <<A <<B\nls\nA\nrm x\nB\n",
            "sh <<< 'rm x' 0>&0",
            "sh 0<<< 'rm x'",
            "bash --rcfile <(echo rm x) -i",
            // Options as they are really written.
            "env a.b=1 rm x",
            "sudo A=1 -n rm x",
            "bash +c 'rm x'",
            "bash -oo pipefail errexit -c 'rm x'",
            "bash -login -c 'rm x'",
            "bash -x -posix errexit -c 'rm x'",
            "zsh --emulate sh -c 'rm x'",
            "jobs -x rm x",
            "xargs --replace rm {}",
            "xargs --max-lines rm",
            "nice -n 10>x rm y",
            "env -u {fd}>x rm y",
            "trap -- '-; rm x' EXIT",
            "fc -s",
            "set -o history -o histexpand\necho rm x\n!echo:s/echo//",
            "bash -H -o history -c 'ls'",
            "(\\\n(echo 'echo \"$(rm x)\"'))",
            "echo $(\\\n(echo 'echo \"$(rm x)\"'))",
            "cat <<\\\n-E\n\tE\nrm x\n-E\n",
            "echo {a[0]}>f; echo '{a[$(rm x)]}'",
            // Variables that are run.
            "export PS4='$(rm x)'; set -x; :",
            "declare -x PS4='`rm x`'",
            "env PS4='$(rm x)' bash -xc :",
            "sudo BASH_ENV=x bash y",
            "BASH_ENV=x bash y",
            "ENV='$(rm x)' sh -i",
            "env 'BASH_FUNC_ls%%=() { rm x; }' bash -c ls",
            "export \"$x\"",
            "for PS4 in '$(rm x)'; do set -x; done",
            "read PROMPT_COMMAND",
            // The rest of an arsenal.
            "coproc n { rm x; }",
            "enable -f ./x.so y",
            "complete -C 'rm x' y",
            "compgen -C 'rm x'",
            "bind -x '\"a\": rm x'",
            "mapfile -C 'rm x' -c 1 y",
            "readarray -c1 -C 'rm x'",
            "PROMPT_COMMAND='rm x'",
            "exec -cla y rm x",
            "command -p rm x",
            "builtin eval 'rm x'",
            "time -p rm x",
            "! rm x",
            "xargs -I{} sh -c '{}'",
            "busybox env rm x",
        ],
    ),
    ("git push", &["git &\\\n>x push", "git ${x} push", "for x in a; do git push; done"]),
    (
        "LD_PRELOAD=*",
        &[
            "for LD_PRELOAD in x; do ls; done",
            "for LD_PRELOAD\nin x; do ls; done",
            "select LD_PRELOAD in x; do ls; done",
            "read -r LD_PRELOAD",
            "printf -v LD_PRELOAD x",
            "getopts a LD_PRELOAD",
            "mapfile LD_PRELOAD",
            "ls {LD_PRELOAD}>x",
            "export LD_PRELOAD; : ${LD_PRELOAD:=x}",
            ": ${LD_PRELOAD[0]=x}",
            "export LD_PRELOAD+=x",
            "export \"$x\"",
            "declare -x LD_PRELOAD[0]=x",
            "declare -n r=LD_PRELOAD; r=x",
            "eval \"$x\"",
            "$x LD_PRELOAD=y",
            "set -k; ls LD_PRELOAD=x",
            "env $x ls",
        ],
    ),
    ("http_proxy=*", &["for http_proxy in x; do curl y; done"]),
    ("path=*", &["for path in x; do ls; done", "read path"]),
];

/// Lines that are not denied by a rule about `rm *` and `LD_PRELOAD=*`.
const HARMLESS: &[&str] = &[
    "find . -name '*.rs' -exec grep -l x {} +",
    "find src/* -newer x",
    "ionice -c3 ls",
    "flock -n lock make",
    "ssh host ls",
    "for file in a b; do echo \"$file\"; done",
    "for FILE in a b; do echo \"$FILE\"; done",
    "while read -r a b; do echo \"$a\"; done",
    "printf '%s\\n' \"$x\"",
    "printf -v line '%s' \"$x\"",
    "[ \"$x\" -eq 1 ] && [[ $y -gt 2 ]]",
    "[ -n \"$x\" ] || [ $# -gt 2 ]",
    "local x=\"$1\" y",
    "declare -A map; declare -i n=0",
    "export PATH=\"$PATH:/x\" A=$B",
    "getopts ab: option",
    "mapfile -t lines < file",
    "wait; wait \"$pid\"",
    "let i=i+1; echo $((a[$i] + 1)) ${a[$i]} ${x:=1}",
    "sh < script.sh",
    "sh -e script.sh < /dev/null 3< x",
    "bash --login script.sh",
    "bash -o pipefail -c 'ls | cat'",
    "exec 3< x 4> y",
    "cat <<E 2> x\n$(ls)\nE x)\nE\n",
    "echo $(cat <<E\nx)\nE\n)",
    "jobs -l; trap - EXIT; set -euo pipefail; set -- a b",
    "ENV=production npm start",
    "export PS4='+ '",
    "env A=1 B=2 make",
    "xargs --replace=% echo %",
    "at -f jobs now < /dev/null",
];

#[test]
fn what_is_allowed_by_name_runs_and_sets_nothing_else() {
    let wrong = ALLOWED.iter().filter(|(allowed, line, expected)| asked(line).is_all(&patterns(allowed)) != *expected);
    let wrong: Vec<_> = wrong.map(|(_, line, expected)| told(line, *expected)).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ALLOWED.len(), wrong.join("\n"));
}

#[test]
fn what_is_denied_is_found_behind_what_real_shells_run() {
    let rows = DENIED.iter().flat_map(|(denied, lines)| lines.iter().map(move |line| (*denied, *line)));
    let wrong = rows.filter(|(denied, line)| !asked(line).may_have(&patterns(&[*denied])));
    let missed: Vec<_> = wrong.map(|(_, line)| told(line, true)).collect();
    assert!(missed.is_empty(), "{} are missed:\n{}", missed.len(), missed.join("\n"));

    let denied = patterns(&["rm *", "LD_PRELOAD=*"]);
    let found: Vec<_> = HARMLESS.iter().filter(|line| asked(line).may_have(&denied)).collect();
    let found: Vec<_> = found.into_iter().map(|line| told(line, false)).collect();
    assert!(found.is_empty(), "{} are taken for it:\n{}", found.len(), found.join("\n"));
}

#[test]
fn variables_of_a_request_are_looked_at_like_those_of_a_line() {
    for (name, value, expected) in [
        ("BASH_ENV", "$(rm x)", true),
        ("BASH_ENV", "x", true),
        ("BASH_FUNC_ls%%", "() { rm x; }", true),
        ("PS4", "$(rm x)", true),
        ("PROMPT_COMMAND", "rm x", true),
        ("ENV", "`rm x`", true),
        ("ENV", "/tmp/x", true),
        ("ENV", "production", false),
        ("BASH_ENV", "", false),
        ("PS4", "+ ", false),
        ("A", "$(rm x)", false),
    ] {
        let request = ExecuteRequest::new("ls").env(name, value);
        assert_eq!(Asked::new(&request).may_have(&patterns(&["rm *"])), expected, "{name}={value}");
    }
}

fn told(line: &str, expected: bool) -> String {
    format!("{line:?} is not {expected}: {:?}", CommandLine::parse(line))
}
