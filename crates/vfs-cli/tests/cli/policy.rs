//! Policies and `vfs policy explain`.

use crate::{configured, finish, json_lines, tree, with_config};

const RULED: &str = "[default]\ntype = 'local'\nroot = '.'\n[[layers]]\ntype = 'policy'\n\
    [[layers.rules]]\nname = 'secrets'\neffect = 'deny'\npaths = ['/secrets']\nreason = 'not for agents'\n\
    [[layers.rules]]\neffect = 'ask'\noperations = ['delete']\nactors = ['intern-*']\n";

#[test]
fn rules_hold_for_every_command_and_go_by_the_actor() {
    let root = tree(&[("vfs.toml", RULED), ("secrets/key", "needle"), ("a.txt", "needle")]);
    assert_eq!(with_config(&root, &["grep", "-l", "needle"]).success(), "/a.txt\n");
    with_config(&root, &["read", "/secrets/key"])
        .failure("policy_denied: /secrets/key: a policy forbids this: not for agents");
    finish(configured(&root).args(["rm", "/a.txt", "--actor", "intern-7"]), b"").failure("approval_required: /a.txt");
    with_config(&root, &["--actor", "boss", "rm", "/a.txt"]).success();
}

#[test]
fn explain_says_which_rule_decides_and_why() {
    let root = tree(&[("vfs.toml", RULED), ("a.txt", "")]);
    let explain = |args: &[&str]| with_config(&root, &[&["policy", "explain"], args].concat());
    let denied = explain(&["read", "/secrets/key"]);
    assert!(
        denied.refused().ends_with("read /secrets/key: denied by rule 1 'secrets': not for agents\n"),
        "{denied:?}"
    );
    assert!(
        explain(&["delete", "/a.txt", "--actor", "intern-7"])
            .refused()
            .ends_with("delete /a.txt: approval required by rule 2\n")
    );
    let allowed = explain(&["rename", "/a.txt"]);
    assert!(allowed.success().contains("write /a.txt: allowed by default\n"), "{allowed:?}");
    assert!(
        explain(&["write", "/vfs.toml"])
            .refused()
            .contains("denied by a built-in rule 'configuration': this file configures")
    );
    let json = json_lines(explain(&["--json", "read", "/secrets"]).refused());
    let last = json.last().expect("an answer");
    assert_eq!((&last["effect"], &last["rule"], &last["name"]), (&"deny".into(), &1.into(), &"secrets".into()));
    explain(&["fly", "/a.txt"]).failure("unknown operation 'fly'; use one of stat, ");
}

#[test]
fn explain_has_one_decision_for_each_permission_and_one_in_all() {
    let text = "[default]\ntype = 'local'\nroot = '.'\n[[layers]]\ntype = 'policy'\n\
        [[layers.rules]]\neffect = 'deny'\noperations = ['write']\npaths = ['/docs']\n\
        [[layers.rules]]\neffect = 'deny'\npaths = ['/secrets']\n";
    let root = tree(&[("vfs.toml", text), ("docs/a.md", ""), ("secrets/key", "")]);
    std::os::unix::fs::symlink("secrets/key", root.path().join("link")).expect("a link");
    let explain = |args: &[&str]| with_config(&root, &[&["policy", "explain"], args].concat());
    assert_eq!(explain(&["read", "/docs/a.md"]).success(), "read /docs/a.md: allowed by default\n");
    assert_eq!(explain(&["write", "/docs/a.md"]).refused(), "write /docs/a.md: denied by rule 1\n");
    let edit = "read /docs/a.md: allowed by default\nwrite /docs/a.md: denied by rule 1\nedit /docs/a.md: denied\n";
    assert_eq!(explain(&["edit", "/docs/a.md"]).refused(), edit);
    let linked = "read /link: allowed by default\nread /secrets/key, the target of /link: denied by rule 2\nread /link: denied\n";
    assert_eq!(explain(&["read", "/link"]).refused(), linked);
    assert_eq!(json_lines(explain(&["--json", "write", "/docs/a.md"]).refused()).len(), 1);
}

#[test]
fn explain_names_the_mount_whose_policy_decides() {
    let config = "[default]\ntype = 'memory'\n[[layers]]\ntype = 'policy'\nrules = [{ effect = 'deny', paths = ['/a'] }]\n\
        [[mounts]]\npath = '/notes'\ntype = 'memory'\n\
        layers = [{ type = 'policy', rules = [{ effect = 'allow', paths = ['/b'] }, { effect = 'deny' }] }]\n";
    let root = tree(&[("vfs.toml", config)]);
    let explain = |path: &str| with_config(&root, &["policy", "explain", "read", path]);
    assert_eq!(explain("/a").refused(), "read /a: denied by rule 1\n");
    assert_eq!(explain("/notes/c").refused(), "read /notes/c: denied by rule 2 of the mount '/notes'\n");
    assert_eq!(explain("/notes/b").success(), "read /notes/b: allowed by rule 1 of the mount '/notes'\n");
}

#[test]
fn explain_judges_a_command_line() {
    let text = "[default]\ntype = 'local'\nroot = '.'\n[[layers]]\ntype = 'policy'\n\
        [[layers.rules]]\neffect = 'allow'\ncommands = ['ls *', 'ls']\n";
    let root = tree(&[("vfs.toml", text)]);
    let explain = |args: &[&str]| with_config(&root, &[&["policy", "explain"], args].concat());
    assert_eq!(explain(&["execute", "/", "--command", "ls -l"]).success(), "execute /: allowed by rule 1\n");
    with_config(&root, &["exec", "--virtual", "--", "ls"]).success();
    assert_eq!(explain(&["execute", "/", "--command", "rm -r /"]).refused(), "execute /: denied by default\n");
    let unclear = explain(&["execute", "/", "--command", "ls $(rm x)"]);
    assert!(
        unclear.refused().starts_with("execute /: denied by default: rules about commands do not understand"),
        "{unclear:?}"
    );
    let open = explain(&["execute", "/"]);
    assert!(
        open.refused().starts_with("execute /: denied by default: ") && open.out().contains("single commands"),
        "{open:?}"
    );
    explain(&["read", "/", "--command", "ls"]).failure("--command needs the operation 'execute'");
}
