//! Matches of rules and command lines.

use vfs_core::ExecuteRequest;

use super::super::{CommandPattern, RequestedCommand};

fn patterns(texts: &[&str]) -> Vec<CommandPattern> {
    texts.iter().map(|text| CommandPattern::new(text).expect("a valid pattern")).collect()
}

fn requested(line: &str) -> RequestedCommand {
    RequestedCommand::new(&ExecuteRequest::new(line))
}

fn passing(line: &str, variable: &str) -> RequestedCommand {
    RequestedCommand::new(&ExecuteRequest::new(line).env(variable, "1"))
}

#[test]
fn a_line_is_allowed_where_all_its_commands_are() {
    let allowed = patterns(&["git status", "git log *", "ls *", "echo *", "FOO=* make", "rm a/*", "sh *", "*/x"]);
    for (line, expected) in [
        ("git status", true),
        ("  git   'status' ", true),
        ("git status; ls -l && echo a | ls > out", true),
        ("git log --oneline src/*", true),
        ("ls src/*", true),
        ("git status x", false),
        ("git push", false),
        ("/usr/bin/git status", false),
        ("/usr/bin/x", true),
        ("GIT status", false),
        ("git status src/*", false),
        ("rm a/b", true),
        ("rm a/*", false),
        ("git status; rm x", false),
        ("git status & rm x", false),
        ("git status\nrm x", false),
        ("echo $X", false),
        ("sh -c ls", false),
        ("FOO=1 make", false),
        ("", false),
    ] {
        assert_eq!(requested(line).is_all(&allowed), expected, "{line:?}: {:?}", requested(line));
    }
    assert!(passing("make", "FOO").is_all(&allowed));
    assert!(!passing("make", "BAR").is_all(&allowed));
    assert!(!passing("git status", "FOO").is_all(&allowed));
    assert!(!passing("make", "PATH").is_all(&patterns(&["PATH=* *"])));
    assert!(requested("anything at all").is_all(&patterns(&["*"])));
}

#[test]
fn what_is_denied_is_found_where_it_stands_openly() {
    let denied = patterns(&["rm *", "git push", "git add secret/*", "FOO=*"]);
    for (line, expected) in [
        ("rm -rf /", true),
        ("rm", true),
        ("/bin/rm x", true),
        ("RM x", true),
        ("r'm' x", true),
        ("\\rm x", true),
        ("ls; rm x", true),
        ("ls &rm x", true),
        ("ls|rm x", true),
        ("2>x rm y", true),
        ("git push --force origin", true),
        ("git -C /x push", true),
        ("git -c a=b push", true),
        ("git add -f secret/key", true),
        ("git add secret/*", true),
        ("git add s/../secret/*", false),
        ("sudo rm x", true),
        ("sudo -u root nice /bin/rm x", true),
        ("env git -C x push", true),
        ("env bin/* x", true),
        ("find . -exec rm {} +", true),
        ("./rm x", true),
        ("rm x; echo $X", true),
        ("git remote", false),
        ("git pull; echo push", false),
        ("ls -l", false),
        ("echo rm", false),
        ("rmdir x", false),
        ("git commit -m 'do not push yet'", false),
    ] {
        assert_eq!(requested(line).may_have(&denied), expected, "{line:?}: {:?}", requested(line));
    }
    assert!(passing("ls", "FOO").may_have(&denied) && !passing("ls", "BAR").may_have(&denied));
}

#[test]
fn variables_that_decide_what_runs_are_not_understood() {
    for (name, expected) in [
        ("PATH", true),
        ("LD_PRELOAD", true),
        ("LD_LIBRARY_PATH", true),
        ("BASH_ENV", true),
        ("BASH_FUNC_ls%%", true),
        ("PS4", true),
        ("IFS", true),
        ("HOME", false),
        ("ENV", false),
        ("CI", false),
    ] {
        assert_eq!(passing("ls", name).not_understood().is_some(), expected, "{name}");
    }
}

#[test]
fn patterns_are_words_with_wildcards() {
    for (pattern, line, expected) in [
        ("ls", "ls", true),
        ("ls", "ls -l", false),
        ("ls *", "ls", true),
        ("ls *", "ls a b", true),
        ("ls * x", "ls a x", true),
        ("ls * x", "ls a b x", false),
        ("git log --*", "git log --oneline", true),
        ("git log --*", "git log -p", false),
        ("cat /tmp/*", "cat /tmp/a/b", true),
        ("cat /tmp/?", "cat /tmp/a", true),
        ("echo \\*", "echo '*'", true),
        ("echo \\*", "echo a", false),
        ("np? test", "npm test", true),
        ("/bin/* x", "/bin/ls x", true),
    ] {
        assert_eq!(requested(line).is_all(&patterns(&[pattern])), expected, "{pattern:?} {line:?}");
    }
    for bad in ["", "  ", &"x".repeat(2_000)] {
        CommandPattern::new(bad).expect_err(bad);
    }
}
