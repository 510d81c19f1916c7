//! Decisions of rules, and approvals.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use vfs_core::operation::{AnyRequest, RequestRef};
use vfs_core::{
    Backend, BackendExt, CopyRequest, DeleteRequest, ErrorKind, ExecuteRequest, GrepRequest, Layer, LsRequest,
    OpContext, ReadRequest, RenameRequest, Result, VfsPath, WriteRequest,
};
use vfs_memory::MemoryBackend;
use vfs_policy::{Approval, ApprovalQueue, Decision, Policy, PolicyHook, Rule, RuleEffect, RuleSet};
use vfs_testkit::WithFakeFacets;

pub(crate) fn path(text: &str) -> VfsPath {
    VfsPath::parse(text).expect("a valid path")
}

pub(crate) fn rules(text: &str) -> RuleSet {
    RuleSet::from_toml(text).expect("the rules are valid")
}

async fn files() -> Arc<MemoryBackend> {
    let files = MemoryBackend::new();
    for at in ["/data/public/a", "/data/private/b", "/notes.md", "/src/x.rs"] {
        files.create_text(at, "text\n").await.expect("a new file");
    }
    Arc::new(files)
}

fn asking() -> RuleSet {
    rules("[[rules]]\neffect = 'ask'\noperations = ['delete']\nreason = 'really?'\n")
}

#[tokio::test]
async fn the_first_rule_that_covers_decides_and_the_way_to_what_is_allowed_is_shown() -> Result<()> {
    let rules = rules(
        "[[rules]]\neffect = 'allow'\npaths = ['/data/public/**']\n\
         [[rules]]\neffect = 'deny'\npaths = ['/data/**']\n",
    );
    let (guarded, cx) = (Policy::new(Arc::new(rules)).layer(files().await), OpContext::new());
    assert_eq!(guarded.read_text("/data/public/a").await?, "text\n");
    assert_eq!(guarded.read_text("/data/private/b").await.expect_err("denied").kind(), ErrorKind::PolicyDenied);
    let listed = guarded.ls(&cx, LsRequest::new(path("/")).recursive()).await?;
    let names: Vec<_> = listed.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(names, ["/data", "/data/public", "/data/public/a", "/notes.md", "/src", "/src/x.rs"]);
    assert_eq!(guarded.grep_text("text").await?.len(), 3);
    let error = guarded.delete(&cx, DeleteRequest::new(path("/data")).recursive()).await.expect_err("not all of it");
    assert_eq!(error.kind(), ErrorKind::PolicyDenied);
    Ok(())
}

#[tokio::test]
async fn the_default_covers_what_no_rule_does_and_actors_are_distinguished() -> Result<()> {
    let rules = rules(
        "default = 'deny'\n\
         [[rules]]\neffect = 'allow'\noperations = ['read']\npaths = ['*.md']\n\
         [[rules]]\neffect = 'allow'\nactors = ['writer-*']\npaths = ['/src/**']\n",
    );
    let guarded = Policy::new(Arc::new(rules)).layer(files().await);
    let (writer, reader) = (OpContext::new().with_actor("writer-1"), OpContext::new().with_actor("reader"));
    let write = || WriteRequest::new(path("/src/new.rs"), "x");
    assert_eq!(guarded.write(&reader, write()).await.expect_err("denied").kind(), ErrorKind::PolicyDenied);
    guarded.write(&writer, write()).await?;
    guarded.read(&reader, ReadRequest::new(path("/notes.md"))).await?;
    let error = guarded.write(&reader, WriteRequest::new(path("/new.md"), "x")).await.expect_err("reading only");
    assert_eq!(error.kind(), ErrorKind::PolicyDenied);
    Ok(())
}

#[tokio::test]
async fn what_may_not_be_changed_may_not_be_removed_unless_a_rule_says_so() -> Result<()> {
    let cx = OpContext::new();
    let rules = rules(
        "[[rules]]\neffect = 'allow'\noperations = ['delete']\npaths = ['/data/public/**']\n\
         [[rules]]\neffect = 'deny'\noperations = ['write']\npaths = ['/data/**', '/src/**']\n",
    );
    let guarded = Policy::new(Arc::new(rules)).layer(files().await);
    for at in ["/data/private/b", "/src/x.rs", "/src"] {
        let delete = DeleteRequest::new(path(at)).recursive();
        let error = guarded.delete(&cx, delete).await.expect_err("it is changed thereby");
        assert_eq!(error.kind(), ErrorKind::PolicyDenied, "{error}");
        let rename = RenameRequest::new(path(at), path("/gone"));
        assert_eq!(guarded.rename(&cx, rename).await.expect_err("as well").kind(), ErrorKind::PolicyDenied);
    }
    guarded.delete(&cx, DeleteRequest::new(path("/data/public/a"))).await?;

    let only_writing = Rule::new(RuleEffect::Allow).operation("write");
    let rules = RuleSet::new([only_writing])?.otherwise(RuleEffect::Deny);
    let guarded = Policy::new(Arc::new(rules)).layer(files().await);
    guarded.write(&cx, WriteRequest::new(path("/new"), "x")).await?;
    let error = guarded.delete(&cx, DeleteRequest::new(path("/new"))).await.expect_err("only writing is allowed");
    assert_eq!(error.kind(), ErrorKind::PolicyDenied);
    Ok(())
}

#[test]
fn to_ask_about_changes_hides_nothing_that_denies_removal() {
    let ask = "[[rules]]\neffect = 'ask'\noperations = ['write']\npaths = ['/src/**']\n";
    let rule =
        |effect: &str, operation: &str| format!("[[rules]]\neffect = '{effect}'\noperations = ['{operation}']\n");
    for (text, operation, effect, by) in [
        (ask.to_owned(), "delete", RuleEffect::Ask, Some(1)),
        (format!("{ask}{}", rule("deny", "delete")), "delete", RuleEffect::Deny, Some(2)),
        (format!("{ask}{}", rule("deny", "write")), "delete", RuleEffect::Deny, Some(2)),
        (format!("{ask}{}", rule("allow", "delete")), "delete", RuleEffect::Ask, Some(1)),
        (format!("{}{ask}", rule("allow", "delete")), "delete", RuleEffect::Allow, Some(1)),
        (format!("default = 'deny'\n{ask}"), "delete", RuleEffect::Deny, None),
        (format!("default = 'deny'\n{ask}"), "write", RuleEffect::Ask, Some(1)),
        (format!("{ask}{}", rule("deny", "write")), "write", RuleEffect::Ask, Some(1)),
    ] {
        let explained = rules(&text).explain(None, operation, &path("/src/x.rs")).expect("a permission");
        let explained = explained.last().expect("it is about something");
        assert_eq!((explained.effect, explained.rule), (effect, by), "{operation} by {text}");
    }
}

#[tokio::test]
async fn a_rule_about_an_operation_holds_for_its_stream() {
    use ErrorKind::{ApprovalRequired, NotFound, PolicyDenied};
    let (cx, request) = (OpContext::new(), || GrepRequest::literal("text"));
    for (text, collected, streamed) in [
        ("[[rules]]\neffect = 'deny'\noperations = ['grep']\n", Some(PolicyDenied), Some(PolicyDenied)),
        ("[[rules]]\neffect = 'ask'\noperations = ['grep']\n", Some(ApprovalRequired), Some(ApprovalRequired)),
        ("[[rules]]\neffect = 'deny'\noperations = ['grep_stream']\n", None, Some(PolicyDenied)),
        ("[[rules]]\neffect = 'deny'\noperations = ['glob']\n", None, None),
        // The search is allowed, and there is nothing that may be read.
        ("default = 'deny'\n[[rules]]\neffect = 'allow'\noperations = ['grep']\n", Some(NotFound), Some(NotFound)),
    ] {
        let guarded = Policy::new(Arc::new(rules(text))).layer(files().await);
        let found = guarded.grep(&cx, request()).await.err();
        assert_eq!(found.map(|error| error.kind()), collected, "{text}");
        let events: Vec<_> = guarded.grep_stream(cx.clone(), request()).collect().await;
        let refusal = events.into_iter().find_map(Result::err);
        assert_eq!(refusal.map(|error| error.kind()), streamed, "{text}");
    }
}

#[tokio::test]
async fn a_denial_names_the_path_that_is_denied() -> Result<()> {
    let cx = OpContext::new();
    let rules = rules("[[rules]]\neffect = 'deny'\npaths = ['/data/private/**', '*.pem']\n");
    let guarded = Policy::new(Arc::new(rules)).layer(files().await);
    for (from, to, denied) in [
        ("/notes.md", "/key.pem", "/key.pem"),
        ("/notes.md", "/data/private/x", "/data/private/x"),
        ("/data/private/b", "/x", "/data/private/b"),
        ("/data/private/b", "/key.pem", "/data/private/b"),
    ] {
        let copied = guarded.copy(&cx, CopyRequest::new(path(from), path(to))).await.expect_err("denied");
        let renamed = guarded.rename(&cx, RenameRequest::new(path(from), path(to))).await.expect_err("denied");
        for error in [copied, renamed] {
            assert_eq!((error.kind(), error.path()), (ErrorKind::PolicyDenied, Some(denied)), "{from} to {to}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_approver_approves_denies_and_edits() -> Result<()> {
    let (queue, mut pending) = ApprovalQueue::new(4);
    let memory = files().await;
    let guarded = Policy::new(Arc::new(asking())).with_approver(Arc::new(queue)).layer(memory);
    let delete = |at: &str| {
        let (guarded, request) = (Arc::clone(&guarded), DeleteRequest::new(path(at)));
        tokio::spawn(async move { guarded.delete(&OpContext::new().with_actor("agent"), request).await })
    };

    let approved = delete("/notes.md");
    let question = pending.recv().await.expect("there is a question");
    assert_eq!((question.prompt.as_str(), question.actor.as_deref()), ("really?", Some("agent")));
    assert_eq!(question.call, AnyRequest::Delete(DeleteRequest::new(path("/notes.md"))));
    assert!(question.answer(Approval::Approve));
    approved.await.expect("it ends")?;

    let denied = delete("/src/x.rs");
    pending.recv().await.expect("there is a question").answer(Approval::Deny { reason: "not today".into() });
    let error = denied.await.expect("it ends").expect_err("denied");
    assert!(error.kind() == ErrorKind::PolicyDenied && error.message().contains("not today"), "{error}");

    let edited = delete("/src/x.rs");
    let instead = AnyRequest::Delete(DeleteRequest::new(path("/data/public/a")));
    pending.recv().await.expect("there is a question").answer(Approval::Edit(Box::new(instead)));
    assert_eq!(edited.await.expect("it ends")?.path, path("/data/public/a"));
    assert!(guarded.exists("/src/x.rs").await? && !guarded.exists("/data/public/a").await?);

    let dropped = delete("/src/x.rs");
    let question = pending.recv().await.expect("there is a question");
    assert!(!question.is_abandoned());
    dropped.abort();
    assert!(dropped.await.is_err_and(|error| error.is_cancelled()));
    assert!(question.is_abandoned() && !question.answer(Approval::Approve));

    let abandoned = delete("/src/x.rs");
    drop(pending.recv().await.expect("there is a question"));
    assert_eq!(abandoned.await.expect("it ends").expect_err("no approver answers").kind(), ErrorKind::PolicyDenied);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_approval_is_required() -> Result<()> {
    let cx = OpContext::new();
    let alone = Policy::new(Arc::new(asking())).layer(files().await);
    let error = alone.delete(&cx, DeleteRequest::new(path("/notes.md"))).await.expect_err("no approver is there");
    assert_eq!(error.kind(), ErrorKind::ApprovalRequired);

    let (queue, _pending) = ApprovalQueue::new(1);
    let policy = Policy::new(Arc::new(asking())).with_approver(Arc::new(queue));
    let guarded = policy.with_approval_timeout(Duration::from_secs(60)).layer(files().await);
    let error = guarded.delete(&cx, DeleteRequest::new(path("/notes.md"))).await.expect_err("no approver answers");
    assert!(error.kind() == ErrorKind::ApprovalRequired && error.message().contains("in time"), "{error}");
    assert!(guarded.exists("/notes.md").await?);
    Ok(())
}

#[test]
fn a_dry_run_says_which_rule_decides() {
    let rules = rules(
        "[[rules]]\nname = 'no secrets'\neffect = 'deny'\npaths = ['/secrets']\nreason = 'they are secret'\n\
         [[rules]]\neffect = 'ask'\noperations = ['rename']\n",
    );
    let explained = rules.explain(None, "read", &path("/secrets/key")).expect("a permission");
    assert_eq!((explained[0].effect, explained[0].rule), (RuleEffect::Deny, Some(1)));
    assert_eq!(explained[0].name.as_deref(), Some("no secrets"));
    let explained = rules.explain(None, "rename", &path("/a")).expect("an operation");
    assert!(explained.iter().all(|one| (one.effect, one.rule) == (RuleEffect::Ask, Some(2))), "{explained:?}");
    let explained = rules.explain(None, "execute", &path("/")).expect("an operation");
    assert_eq!((explained[0].effect, explained[0].rule), (RuleEffect::Deny, None));
    assert_eq!(rules.explain(None, "frobnicate", &path("/")).expect_err("neither").kind(), ErrorKind::InvalidArgument);
}

#[test]
fn rules_that_are_not_rules_are_refused_and_named() {
    for (text, expected) in [
        ("[[rules]]\neffekt = 'deny'\n", "unknown field `effekt`"),
        ("[[rules]]\neffect = 'maybe'\n", "unknown variant `maybe`"),
        ("[[rules]]\neffect = 'allow'\npaths = ['[a']\n", "rule 1"),
        (
            "[[rules]]\neffect = 'allow'\n[[rules]]\neffect = 'allow'\nname = 'x'\noperations = ['fly']\n",
            "rule 2 ('x')",
        ),
        ("[[rules]]\neffect = 'allow'\ncommands = ['']\n", "rule 1: a command of a rule is empty"),
        (
            "[[rules]]\neffect = 'allow'\ncommands = ['ls']\noperations = ['read']\n",
            "rule 1: a rule with commands is about running them",
        ),
    ] {
        let error = RuleSet::from_toml(text).expect_err(text);
        assert!(error.message().contains(expected), "{text}: {error}");
    }
    let json = serde_json::to_string(&RuleSet::new([Rule::new(RuleEffect::Deny).path("/a")]).expect("valid"));
    let back = RuleSet::from_json(&json.expect("serialises")).expect("deserialises");
    assert_eq!(back.rules().len(), 1);
}

/// Decides for itself, and takes its time.
#[derive(Debug)]
struct Careful;

#[async_trait]
impl PolicyHook for Careful {
    async fn check(&self, _cx: &OpContext, action: &RequestRef<'_>) -> Decision {
        tokio::task::yield_now().await;
        if action.paths().any(|path| path.as_str().contains("private")) {
            return Decision::Deny { reason: "it is private".into() };
        }
        Decision::Allow
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_custom_hook_is_called_for_every_entry() -> Result<()> {
    let (guarded, cx) = (Policy::new(Arc::new(Careful)).layer(files().await), OpContext::new());
    assert_eq!(guarded.grep_text("text").await?.len(), 3);
    let rename = RenameRequest::new(path("/data"), path("/got"));
    assert_eq!(guarded.rename(&cx, rename).await.expect_err("not all of it").kind(), ErrorKind::PolicyDenied);
    guarded.rename(&cx, RenameRequest::new(path("/src"), path("/got"))).await?;
    Ok(())
}

fn commands() -> RuleSet {
    rules(
        "[[rules]]\nname = 'never'\neffect = 'deny'\ncommands = ['sudo', 'git push']\nreason = 'a person does that'\n\
         [[rules]]\neffect = 'allow'\noperations = ['execute']\ncommands = ['git *', 'ls *']\npaths = ['/src']\n\
         [[rules]]\nname = 'removing'\neffect = 'ask'\ncommands = ['rm *']\n\
         [[rules]]\neffect = 'allow'\noperations = ['execute']\npaths = ['/free']\n",
    )
}

#[test]
fn a_dry_run_says_which_rule_decides_about_a_command() {
    let rules = commands();
    for (line, cwd, expected) in [
        ("git status && ls -l", "/src/a", (RuleEffect::Allow, Some(2))),
        ("git status && ls -l", "/", (RuleEffect::Deny, None)),
        ("git -C x push", "/src", (RuleEffect::Deny, Some(1))),
        ("sudo id", "/free", (RuleEffect::Deny, Some(1))),
        ("nohup sudo id", "/free", (RuleEffect::Deny, Some(1))),
        ("ls $(sudo id)", "/free", (RuleEffect::Ask, Some(1))),
        ("ls $(sudo id)", "/src", (RuleEffect::Deny, None)),
        ("rm x", "/src", (RuleEffect::Ask, Some(3))),
        ("ls | xargs rm", "/src", (RuleEffect::Ask, Some(1))),
        ("make", "/src", (RuleEffect::Deny, None)),
        ("make", "/free", (RuleEffect::Allow, Some(4))),
        ("$CC x.c", "/free", (RuleEffect::Ask, Some(1))),
        ("echo 'not closed", "/free", (RuleEffect::Ask, Some(1))),
        ("\\coproc sudo id", "/free", (RuleEffect::Deny, Some(1))),
        ("\\! sudo id", "/free", (RuleEffect::Deny, Some(1))),
        ("/proc/self/exe -c 'sudo id'", "/free", (RuleEffect::Ask, Some(1))),
        ("ENV=script sh -i -c :", "/free", (RuleEffect::Ask, Some(1))),
    ] {
        let explained = rules.explain_command(None, &ExecuteRequest::new(line).cwd(path(cwd)));
        assert_eq!((explained.effect, explained.rule), expected, "{line:?} in {cwd}");
    }
    for (setting, free, src) in [
        (RuleEffect::Ask, RuleEffect::Ask, RuleEffect::Deny),
        (RuleEffect::Deny, RuleEffect::Deny, RuleEffect::Deny),
        (RuleEffect::Allow, RuleEffect::Allow, RuleEffect::Deny),
    ] {
        let rules = commands().with_not_understood(setting);
        let effect = |cwd: &str| rules.explain_command(None, &ExecuteRequest::new("echo $(date)").cwd(path(cwd)));
        assert_eq!((effect("/free").effect, effect("/src").effect), (free, src), "{setting:?}");
        assert!(
            setting == RuleEffect::Allow || effect("/free").reason.is_some_and(|reason| reason.contains("expansion"))
        );
    }
    let explained = rules.explain_command(None, &ExecuteRequest::new("sudo id"));
    assert_eq!((explained.name.as_deref(), explained.reason.as_deref()), (Some("never"), Some("a person does that")));
}

#[test]
fn rules_about_commands_go_through_json_and_are_built_in_code() {
    let rules = RuleSet::new([Rule::new(RuleEffect::Allow).command("ls *")]).expect("valid");
    let json = serde_json::to_string(&rules).expect("serialises");
    assert!(json.contains(r#""commands":["ls *"]"#), "{json}");
    let back = RuleSet::from_json(&json).expect("deserialises");
    assert_eq!(back.explain_command(None, &ExecuteRequest::new("ls -l")).effect, RuleEffect::Allow);
    assert_eq!(back.explain(None, "write", &path("/a")).expect("a permission")[0].rule, None);
}

#[tokio::test]
async fn commands_are_run_approved_or_refused_by_their_contents() -> Result<()> {
    let (queue, mut pending) = ApprovalQueue::new(4);
    let files = files().await;
    let shelled = Arc::new(WithFakeFacets::new(Arc::<MemoryBackend>::clone(&files)));
    let guarded = Policy::new(Arc::new(commands())).with_approver(Arc::new(queue)).layer(shelled);
    let (shell, cx) = (guarded.as_shell().expect("it has a shell"), OpContext::new());
    let in_source = |line: &str| ExecuteRequest::new(line).cwd(path("/src"));

    shell.execute(&cx, in_source("git status; ls")).await?;
    assert_eq!(files.read_text("/command").await?, "git status; ls");
    let error = shell.execute(&cx, in_source("ls; git push")).await.expect_err("denied");
    assert_eq!(error.kind(), ErrorKind::PolicyDenied);
    assert!(error.message().contains("a person does that"), "{error}");
    let error = shell.execute(&cx, in_source("ls").env("LD_PRELOAD", "x")).await.expect_err("a variable is passed");
    assert_eq!(error.kind(), ErrorKind::PolicyDenied);

    let call = shell.execute(&cx, in_source("rm x"));
    let answered = async { pending.recv().await.map(|question| question.answer(Approval::Approve)) };
    let (ran, answered) = futures::join!(call, answered);
    assert!(ran.is_ok() && answered.is_some());
    assert_eq!(files.read_text("/command").await?, "rm x");

    let streaming = guarded.as_streaming_shell().expect("it streams");
    let mut events = streaming.execute_stream(cx.clone(), in_source("sudo id"));
    let error = events.next().await.expect("an item").expect_err("denied");
    assert_eq!(error.kind(), ErrorKind::PolicyDenied);
    assert_eq!(files.read_text("/command").await?, "rm x");
    Ok(())
}

#[test]
fn a_rule_without_an_effect_is_refused() {
    let error = RuleSet::from_toml("[[rules]]\npaths = ['/secrets']\n").expect_err("it may be meant to deny");
    assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains("effect"), "{error}");
}
