//! Rules, and what they say.

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
        explain(&["delete", "/a.txt", "--actor", "intern-7"]).refused().ends_with("delete /a.txt: asked by rule 2\n")
    );
    let allowed = explain(&["rename", "/a.txt"]);
    assert!(allowed.success().contains("write /a.txt: allowed by default\n"), "{allowed:?}");
    assert!(explain(&["write", "/vfs.toml"]).refused().contains("denied by rule 1 'configuration': this file says"));
    let json = json_lines(explain(&["--json", "read", "/secrets"]).refused());
    let last = json.last().expect("an answer");
    assert_eq!((&last["effect"], &last["rule"], &last["name"]), (&"deny".into(), &1.into(), &"secrets".into()));
    explain(&["fly", "/a.txt"]).failure("neither a permission nor an operation");
}
