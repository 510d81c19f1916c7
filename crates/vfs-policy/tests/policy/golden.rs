//! The JSON of rules, explanations and command lines.

use serde::Serialize;
use serde::de::DeserializeOwned;
use vfs_policy::{CommandLine, HardLinks, Permission, Rule, RuleEffect, RuleSet};

use super::rules::path;

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("JSON")
}

/// Reads `text` as a `T`, and checks that it is written again as it was.
#[track_caller]
fn check<T: Serialize + DeserializeOwned>(text: &str) -> T {
    let value: T = serde_json::from_str(text).expect("the names are valid");
    assert_eq!(json(&value), text);
    value
}

#[test]
fn rules_are_written_with_the_names_with_which_they_are_read() {
    check::<Rule>(r#"{"effect":"allow"}"#);
    check::<Rule>(concat!(
        r#"{"name":"pushes","effect":"ask","operations":["execute"],"paths":["/src"],"commands":["git push"],"#,
        r#""actors":["bot-*"],"reason":"a bot wants to push"}"#
    ));
    let empty = r#"{"default":"allow","hard_links":"deny","not_understood":"ask","rules":[]}"#;
    assert_eq!(json(&RuleSet::default()), empty);
    check::<RuleSet>(empty);
    check::<RuleSet>(
        r#"{"default":"deny","hard_links":"allow","not_understood":"allow","rules":[{"effect":"deny","paths":["*.pem"]}]}"#,
    );
    let effects = check::<Vec<RuleEffect>>(r#"["allow","deny","ask"]"#);
    assert_eq!(effects, [RuleEffect::Allow, RuleEffect::Deny, RuleEffect::Ask]);
    assert_eq!(check::<Vec<HardLinks>>(r#"["deny","allow"]"#), [HardLinks::Deny, HardLinks::Allow]);
    assert_eq!(check::<Vec<Permission>>(r#"["read","write","delete","execute"]"#), Permission::ALL);
}

#[test]
fn an_explanation_has_the_rule_that_decides_and_its_reason() {
    let rule = Rule::new(RuleEffect::Deny).name("secrets").path("/secrets").reason("they stay here");
    let rules = RuleSet::new([rule]).expect("a valid rule");
    let explain = |at: &str| rules.explain(None, "read", &path(at)).expect("a permission").remove(0);
    assert_eq!(json(&explain("/a")), r#"{"path":"/a","permission":"read","effect":"allow","rule":null}"#);
    let mut explained = explain("/secrets/key");
    explained.mount = Some(path("/m"));
    assert_eq!(
        json(&explained),
        concat!(
            r#"{"path":"/secrets/key","permission":"read","effect":"deny","rule":1,"#,
            r#""mount":"/m","name":"secrets","reason":"they stay here"}"#
        )
    );
}

#[test]
fn a_command_line_is_its_commands_and_their_words() {
    let line = CommandLine::parse("ls src/*.rs 'a b'").expect("it is understood");
    let expected = r#"{"commands":[{"name":"ls","arguments":[{"glob":"src/"},{"literal":"a b"}]}]}"#;
    assert_eq!(json(&line), expected);
}
