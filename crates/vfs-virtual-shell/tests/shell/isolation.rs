//! Isolation of commands from the host and from denied files.

use std::sync::Arc;

use vfs_core::shell::RunMode;
use vfs_core::{Backend, BackendExt, ErrorKind, ExecuteRequest, Layer as _, OpContext};
use vfs_layers::{Audit, MemorySink, Quota, QuotaLimits, ReadOnly};
use vfs_memory::MemoryBackend;
use vfs_policy::{Policy, RuleSet};
use vfs_virtual_shell::VirtualShellConfig;

use crate::support::{execute, in_memory, run};

/// Spellings of a path that may not be read.
const TRICKS: &[&str] = &[
    "cat /secrets/key",
    "cat < /secrets/key",
    "cd /secrets && cat key",
    "cat /public/../secrets/key",
    "cat //secrets/./key",
    "cat /SECRETS/key /Secrets/KEY",
    "cat /secrets/*",
    "cat /sec*/*",
    "cat /{secrets,x}/key",
    "x=/secrets; cat $x/key",
    "cp /secrets/key /public/copy; cat /public/copy",
    "cp -r /secrets /public/copy; cat /public/copy/key",
    "mv /secrets /public/moved; cat /public/moved/key",
    "mv /secrets/key /public/moved; cat /public/moved",
    "ln -s /secrets/key /public/link; cat /public/link",
    "ln /secrets/key /public/hard; cat /public/hard",
    "grep -r . /secrets",
    "grep -rh . /",
    "rg . /",
    "find / -type f -exec cat {} +",
    "find / -name key | xargs cat",
    "tar cf - /secrets | tar xO",
    "tar cf /public/t.tar / ; tar xOf /public/t.tar",
    "zip -r /public/z.zip /secrets; unzip -p /public/z.zip",
    "head -c 100 /secrets/key; tail /secrets/key; tac /secrets/key; od -c /secrets/key; strings /secrets/key",
    "awk '{print}' /secrets/key",
    "awk 'BEGIN { while ((getline line < \"/secrets/key\") > 0) print line }'",
    "sed -n p /secrets/key",
    "sed -n 'r /secrets/key' /public/file; echo | sed 'r /secrets/key'",
    "sort /secrets/key; uniq /secrets/key; wc /secrets/key; base64 -d <(base64 /secrets/key)",
    "while read -r line; do echo $line; done < /secrets/key",
    "mapfile -t lines < /secrets/key; echo ${lines[@]}",
    "exec 5< /secrets/key; cat <&5",
    "echo $(< /secrets/key)",
    "source /secrets/key; . /secrets/key; bash /secrets/key",
    "bash -c 'cat /secrets/key'",
    "eval 'cat /secrets/key'",
    "diff /public/file /secrets/key; cmp -l /public/file /secrets/key; comm /public/file /secrets/key",
    "cat <(cat /secrets/key)",
    "dd if=/secrets/key",
    "split /secrets/key /public/part; cat /public/part*",
    "cat /secrets/key | tee /public/out; cat /public/out",
    "cat /proc/self/root/secrets/key",
    "make -f /secrets/key; xxd /secrets/key; iconv /secrets/key; jq -R . /secrets/key; template /secrets/key",
    "env -i cat /secrets/key; timeout 5 cat /secrets/key; nohup cat /secrets/key; command cat /secrets/key",
    "touch -r /secrets/key /public/x; patch /public/file /secrets/key; cat /public/file",
];

async fn guarded() -> Arc<dyn Backend> {
    let files = MemoryBackend::new();
    files.create_text("/secrets/key", "hunter2\n").await.expect("a new file");
    files.create_text("/public/file", "open\n").await.expect("a new file");
    let rules = RuleSet::from_toml("[[rules]]\neffect = 'deny'\npaths = ['/secrets']\n").expect("valid rules");
    VirtualShellConfig::new().layer(Policy::new(Arc::new(rules)).layer(Arc::new(files)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_below_the_shell_applies_to_every_command() {
    for trick in TRICKS {
        let files = guarded().await;
        let answer = run(&*files, trick).await;
        for output in [&answer.output, &answer.stdout, &answer.stderr] {
            assert!(!output.contains("hunter2"), "{trick}: {output}");
        }
        assert!(files.grep_text("hunter2").await.expect("searched").is_empty(), "{trick}");
    }
    let answer = run(&*guarded().await, "cat /public/file; cat /secrets/key").await;
    assert_eq!(answer.stdout, "open\n");
    assert!(answer.stderr.contains("Permission denied"), "{}", answer.stderr);
}

#[tokio::test]
async fn a_policy_around_the_shell_decides_about_the_command() {
    let rules = "[[rules]]\neffect = 'allow'\noperations = ['execute']\npaths = ['/project']\n";
    let rules = RuleSet::from_toml(rules).expect("valid rules");
    let inner = in_memory();
    inner.create_text("/project/file", "x\n").await.expect("a new file");
    let files = Policy::new(Arc::new(rules)).layer(Arc::new(inner));
    let error = execute(&*files, ExecuteRequest::new("true")).await.expect_err("not in the root");
    assert_eq!(error.kind(), ErrorKind::PolicyDenied);
    let request = ExecuteRequest::new("cat file").cwd(crate::support::path("/project"));
    assert_eq!(execute(&*files, request).await.expect("allowed").stdout, "x\n");
}

#[tokio::test]
async fn read_only_and_quota_layers_apply_to_commands() {
    let files = VirtualShellConfig::new().layer(ReadOnly.layer(Arc::new(MemoryBackend::new())));
    let answer = run(&*files, "echo x > f; mkdir d; touch g; ls -A").await;
    assert_eq!((answer.stdout.as_str(), answer.exit_code), ("", Some(0)), "{answer:?}");
    assert!(answer.stderr.contains("Permission denied") && answer.stderr.contains("Read-only"), "{}", answer.stderr);

    let quota = Quota::new(QuotaLimits::new().max_bytes(1_000));
    let files = VirtualShellConfig::new().layer(quota.layer(Arc::new(MemoryBackend::new())));
    let answer = run(&*files, "seq 10000 > big; echo small > ok; cat ok; ls").await;
    assert!(answer.stdout.starts_with("small\n"), "{answer:?}");
    assert!(answer.stderr.contains("quota"), "{}", answer.stderr);
    let total: u64 = files.list_dir("/").await.expect("listed").iter().map(|entry| entry.size).sum();
    assert!(total <= 1_000, "{total}");
}

#[tokio::test]
async fn an_audit_below_the_shell_records_each_access() {
    let sink = MemorySink::new();
    let files = VirtualShellConfig::new().layer(Audit::new(sink.clone()).layer(Arc::new(MemoryBackend::new())));
    let cx = OpContext::new().with_actor("agent");
    let shell = files.as_shell().expect("it has a shell");
    let answer = shell.execute(&cx, ExecuteRequest::new("echo x > f; cat f; rm f")).await.expect("it runs");
    assert_eq!(answer.stdout, "x\n");
    let records = sink.records();
    for operation in ["write", "download", "delete"] {
        let seen = records.iter().find(|record| record.operation.code() == operation);
        assert_eq!(seen.and_then(|record| record.actor.as_deref()), Some("agent"), "{operation}");
    }
}

#[tokio::test]
async fn commands_cannot_reach_the_host() {
    let files = in_memory();
    for command in [
        "cat /etc/passwd",
        "cat /etc/hostname",
        "cat /proc/self/environ",
        "cat /proc/version",
        "ls /proc",
        "ls /usr",
        "ls /dev",
        "cat /dev/sda",
        "/bin/sh -c id",
        "curl http://localhost",
        "wget http://localhost",
        "ssh localhost",
        "git status",
        "python3 -c 'print(1)'",
        "perl -e 1",
        "cat < /dev/tcp/127.0.0.1/22",
    ] {
        let answer = run(&files, command).await;
        assert_eq!(answer.stdout, "", "{command}");
        assert_ne!(answer.exit_code, Some(0), "{command}: {answer:?}");
    }
    // In bash these paths are connections; here they are ordinary files.
    let answer =
        run(&files, "echo x > /dev/tcp/127.0.0.1/9; cat /dev/tcp/127.0.0.1/9; exec 3<>/dev/udp/127.0.0.1/9").await;
    assert_eq!((answer.stdout.as_str(), answer.exit_code), ("x\n", Some(0)));
    assert!(files.exists("/dev/tcp/127.0.0.1/9").await.expect("looked at"));
    assert_eq!(run(&files, "ls -A /; echo $HOME; cd; pwd").await.stdout.lines().last(), Some("/"));
}

#[tokio::test]
async fn the_environment_has_only_variables_of_the_request() {
    let files = in_memory();
    let answer = run(&files, "env").await;
    let names: Vec<_> = answer.stdout.lines().filter_map(|line| line.split('=').next()).collect();
    assert!(names.iter().all(|name| ["PWD", "OLDPWD", "SHLVL", "_"].contains(name)), "{names:?}");
    let request =
        ExecuteRequest::new("echo $GREETING $HOME; env | grep -c GREETING").env("GREETING", "hi").env("HOME", "/h");
    assert_eq!(execute(&files, request).await.expect("it runs").stdout, "hi /h\n1\n");
    let error = execute(&files, ExecuteRequest::new("env").inherit_env()).await.expect_err("not here");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let host = std::env::var("PATH").unwrap_or_default();
    assert!(!run(&files, "set; env; declare -p; echo $PATH").await.output.contains(&host) || host.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_commands_share_only_files() {
    let files = Arc::new(in_memory());
    let runs = (0..32).map(|number| {
        let files = Arc::clone(&files);
        tokio::spawn(async move {
            let script = format!(
                "x={number}; mkdir d{number}; cd d{number}; f() {{ echo {number}; }}; sleep 0.01; \
                 echo $x $(pwd) $(f); [ -e ../other ] ; set -u; echo ${{y:-unset}}; y={number}; export y"
            );
            (number, run(&*files, &script).await)
        })
    });
    for run in futures::future::join_all(runs).await {
        let (number, answer) = run.expect("no panic");
        assert_eq!(answer.stdout, format!("{number} /d{number} {number}\nunset\n"));
    }
}

#[tokio::test]
async fn terminals_are_unsupported_and_foreground_is_the_default() {
    assert_eq!(ExecuteRequest::new("true").run, RunMode::Foreground);
    let request = ExecuteRequest::new("true").terminal(Default::default());
    assert_eq!(execute(&in_memory(), request).await.expect_err("no terminal").kind(), ErrorKind::Unsupported);
}
