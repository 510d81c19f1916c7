//! Tests of names that are protected at any depth, and of the report of entries that commands create.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

use futures::StreamExt as _;
use vfs_core::shell::JobsRequest;
use vfs_core::{
    Backend as _, BackendExt as _, ErrorKind, ExecuteEvent, ExecuteRequest, ExecuteResponse, OpContext, Shell as _,
    VfsPath,
};
use vfs_sandbox::{
    Guarantee, HelperLocation, Mechanism, Mount, OsSandbox, OsSandboxBackend, ProtectionLevel, SandboxConfig,
    UnixSockets,
};

use super::sockets::{act_in, shown};
use super::{HANG_TIMEOUT, Outcome, config, run};

fn fill(directory: &tempfile::TempDir, files: &[(&str, &str)]) -> std::io::Result<()> {
    for (path, content) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().expect("it is below the root"))?;
        fs::write(path, content)?;
    }
    Ok(())
}

/// Returns the paths and codes of the problems of a response.
fn problems(response: &ExecuteResponse) -> Vec<(&str, ErrorKind)> {
    response.problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect()
}

pub(crate) async fn nested() -> Outcome {
    let directory = tempfile::tempdir()?;
    let files = [
        ("app/api/.env", "PASSWORD=x\n"),
        ("app/library/.git/config", "[core]\n"),
        ("app/library/.git/hooks/existing", "hook\n"),
        ("app/worktree/.git", "gitdir: ../library/.git\n"),
        ("app/vault/key", "key\n"),
        ("app/plain", "plain\n"),
    ];
    fill(&directory, &files)?;
    let config = config(&directory).protect_name("vault", ProtectionLevel::Hidden)?;
    let sandbox = OsSandbox::open(config).await?;
    assert!(sandbox.report().enforces(Guarantee::ProtectedNames), "{}", sandbox.report());
    let sandbox = sandbox.into_backend()?;
    for command in [
        "cat app/api/.env",
        "cat app/vault/key",
        "ls app/vault",
        "echo x > app/library/.git/hooks/pre-commit",
        "echo x >> app/library/.git/config",
        "echo x > app/worktree/.git",
        "rm -rf app/library/.git",
        "mv app/library/.git elsewhere",
        "mv app/api/.env elsewhere",
        "mkdir new; mv -T new app/library/.git",
        "mv app moved && cat moved/api/.env; mv moved app; exit 1",
    ] {
        let ended = run(&sandbox, &format!("({command}) && echo done")).await?;
        assert_eq!(ended.stdout, "", "{command}: {ended:?}");
        assert_eq!(problems(&ended), [], "{command}");
    }
    // A command whose working directory is below a cover is covered, too.
    for (cwd, command, code) in [
        ("/workspace/app/library/.git", "echo x > hooks/pre-commit", 2),
        ("/workspace/app/library/.git/hooks", "echo x > pre-commit", 2),
        ("/workspace/app/vault", "cat key", 126),
    ] {
        let request = ExecuteRequest::new(command).cwd(VfsPath::parse(cwd)?);
        match sandbox.shell().execute(&OpContext::new(), request).await {
            Ok(ended) => assert_eq!((ended.stdout.as_str(), ended.exit_code), ("", Some(code)), "{cwd}: {ended:?}"),
            Err(refused) => assert_eq!((refused.kind(), code), (ErrorKind::PolicyDenied, 126), "{refused}"),
        }
    }
    let ended = run(&sandbox, "cat app/library/.git/config app/plain && echo more >> app/plain").await?;
    assert_eq!((ended.stdout.as_str(), ended.exit_code), ("[core]\nplain\n", Some(0)), "{ended:?}");
    for (path, content) in &files[..5] {
        assert_eq!(fs::read_to_string(directory.path().join(path))?, *content, "{path}");
    }
    for refused in [
        sandbox.read_text("/workspace/app/api/.env").await.map(drop),
        sandbox.read_text("/workspace/app/vault/key").await.map(drop),
        sandbox.create_text("/workspace/app/library/.git/hooks/pre-commit", "x").await.map(drop),
        sandbox.create_text("/workspace/app/new/.git/config", "x").await.map(drop),
        sandbox.edit_text("/workspace/app/library/.git/config", "core", "evil").await.map(drop),
    ] {
        assert_eq!(refused.expect_err("it is protected").kind(), ErrorKind::PolicyDenied);
    }
    assert_eq!(sandbox.read_text("/workspace/app/library/.git/config").await?, "[core]\n");
    Ok(())
}

/// Command that creates a bare repository, which git recognises by its shape, and a nested one.
const LEAVE: &str = "mkdir -p build/bare/objects build/bare/refs build/clone/.git
    echo 'ref: refs/heads/main' > build/bare/HEAD
    echo '[core] fsmonitor = ./run' > build/bare/config
    echo x > build/clone/.env";

const LEFT: [(&str, ErrorKind); 3] = [
    ("/workspace/build/bare", ErrorKind::PolicyDenied),
    ("/workspace/build/clone/.env", ErrorKind::PolicyDenied),
    ("/workspace/build/clone/.git", ErrorKind::PolicyDenied),
];

pub(crate) async fn reported() -> Outcome {
    let directory = tempfile::tempdir()?;
    fill(&directory, &[("old/HEAD", "x"), ("old/objects/x", ""), ("old/refs/x", ""), ("old/config", "")])?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    assert_eq!(problems(&run(&sandbox, "true").await?), [], "existing entries are not reported");
    let left = run(&sandbox, LEAVE).await?;
    assert_eq!(problems(&left), LEFT);
    assert!(left.problems[0].message.contains("safe.bareRepository=explicit"), "{:?}", left.problems[0]);
    let again =
        run(&sandbox, "echo x >> build/bare/config && echo done; cat build/clone/.env; echo x > old/config").await?;
    assert_eq!(
        (again.stdout.as_str(), problems(&again)),
        ("", vec![]),
        "it is reported once, and protected: {again:?}"
    );
    Ok(())
}

/// A replacement of an entry that existed, or was reported, is reported.
pub(crate) async fn replaced() -> Outcome {
    let directory = tempfile::tempdir()?;
    fill(&directory, &[("app/library/.git/config", "[core]\n")])?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    let evil = "mkdir -p app/library/.git; echo '[core] fsmonitor = ./run' > app/library/.git/config";
    let ended = run(&sandbox, &format!("mv app old; {evil}")).await?;
    let moved = ["/workspace/app/library/.git", "/workspace/old/library/.git"];
    assert_eq!(problems(&ended), moved.map(|path| (path, ErrorKind::PolicyDenied)));
    assert_eq!(problems(&run(&sandbox, "true").await?), []);
    fs::remove_dir_all(directory.path().join("app"))?;
    assert_eq!(problems(&run(&sandbox, "true").await?), []);
    assert_eq!(problems(&run(&sandbox, evil).await?), [(moved[0], ErrorKind::PolicyDenied)]);
    Ok(())
}

pub(crate) async fn root_repository() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    let ended = run(&sandbox, "mkdir objects refs; echo 'ref: refs/heads/x' > HEAD; echo '[core]' > config").await?;
    assert_eq!(problems(&ended), [("/workspace", ErrorKind::PolicyDenied)]);
    let ended = run(&sandbox, "echo more >> file; cat file").await?;
    assert_eq!((ended.stdout.as_str(), problems(&ended)), ("more\n", vec![]), "it is not covered: {ended:?}");
    Ok(())
}

async fn run_job(sandbox: &OsSandboxBackend, command: &str) -> vfs_core::Result<ExecuteResponse> {
    let request = ExecuteRequest::new(command).cwd(VfsPath::parse("/workspace")?).background();
    let started = sandbox.shell().execute(&OpContext::new(), request).await?;
    let cx = OpContext::new().with_timeout(HANG_TIMEOUT);
    while sandbox.shell().jobs(&cx, JobsRequest::new()).await?.iter().any(|job| job.exit.is_none()) {
        tokio::task::yield_now().await;
        cx.check()?;
    }
    Ok(started)
}

pub(crate) async fn jobs() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    // The job may have created some entries before its own response.
    let responses = [run_job(&sandbox, LEAVE).await?, run_job(&sandbox, "true").await?];
    let mut left: Vec<_> = responses.iter().flat_map(problems).collect();
    left.sort_unstable();
    assert_eq!(left, LEFT);
    Ok(())
}

pub(crate) async fn file_tools() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    for (path, content) in [("HEAD", "ref: refs/heads/x\n"), ("objects/x", ""), ("refs/x", ""), ("config", "[core]\n")]
    {
        sandbox.create_text(&format!("/workspace/bare/{path}"), content).await?;
    }
    assert_eq!(problems(&run(&sandbox, "true").await?), [("/workspace/bare", ErrorKind::PolicyDenied)]);
    Ok(())
}

pub(crate) async fn closed() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    let left = run(&sandbox, "mkdir -p b/clone/.git; chmod 111 b").await?;
    fs::set_permissions(directory.path().join("b"), fs::Permissions::from_mode(0o755))?;
    // Root can list the directory nevertheless.
    let path = if fs::read_dir("/root").is_ok() { "/workspace/b/clone/.git" } else { "/workspace/b" };
    assert_eq!(problems(&left), [(path, ErrorKind::PolicyDenied)], "{left:?}");
    Ok(())
}

/// The target of a link outside of its mount is not examined, so that the report reveals nothing about it.
pub(crate) async fn outward_links() -> Outcome {
    let outside = tempfile::tempdir()?;
    fill(&outside, &[("there", "")])?;
    let directory = tempfile::tempdir()?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    let outside = outside.path().display();
    let up = "../".repeat(20);
    let make = format!(
        "mkdir a b c d e
        ln -s {outside}/there a/.env; ln -s {outside}/missing b/.env
        ln -s {up}{outside}/there c/.env; ln -s {up}{outside}/missing d/.env
        ln -s missing e/.env"
    );
    let ended = run(&sandbox, &make).await?;
    let left = ["a", "b", "c", "d"].map(|name| format!("/workspace/{name}/.env"));
    assert_eq!(ended.problems.iter().map(|problem| problem.path.as_str()).collect::<Vec<_>>(), left, "{ended:?}");
    let messages: std::collections::BTreeSet<_> =
        ended.problems.iter().map(|problem| problem.message.replace(problem.path.as_str(), "")).collect();
    assert_eq!(messages.len(), 1, "{messages:?}");
    let ended = run(&sandbox, "echo x > e/missing").await?;
    assert_eq!(problems(&ended), [("/workspace/e/.env", ErrorKind::PolicyDenied)], "now it leads somewhere: {ended:?}");
    Ok(())
}

pub(crate) async fn too_many_to_name() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    let make = "i=0; while [ $i -lt 150 ]; do mkdir -p $i; echo x > $i/.env; i=$((i+1)); done";
    let first = run(&sandbox, make).await?;
    assert_eq!(first.problems.len(), 101);
    assert!(first.problems[100].message.contains("and 50 more"), "{:?}", first.problems[100]);
    let second = run(&sandbox, "true").await?;
    assert_eq!(second.problems.len(), 50);
    let named = first.problems[..100].iter().chain(&second.problems);
    let named: std::collections::BTreeSet<_> = named.map(|problem| problem.path.as_str()).collect();
    assert_eq!(named.len(), 150);
    assert_eq!(problems(&run(&sandbox, "true").await?), []);
    Ok(())
}

/// Commands can read files in a read-only directory, and connect to sockets in it.
pub(crate) async fn below_read_only() -> Outcome {
    let directory = tempfile::tempdir()?;
    fill(
        &directory,
        &[
            (".git/x/config", ""),
            ("a/.git/x/.env", "PASSWORD=x\n"),
            ("a/.git/x/config", "[core]\n"),
            ("vendor/x/.env", "PASSWORD=x\n"),
        ],
    )?;
    let sockets = [".git/x/socket", "a/.git/x/socket", "vendor/x/socket"];
    let listeners: Vec<_> = sockets
        .map(|socket| UnixListener::bind(directory.path().join(socket)))
        .into_iter()
        .collect::<Result<_, _>>()?;
    let config = shown(&directory).protect_name("vendor", ProtectionLevel::ReadOnly)?.unix_sockets(UnixSockets::Allow);
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    let ended = run(&sandbox, "cat a/.git/x/.env vendor/x/.env; cat a/.git/x/config; echo x > a/.git/x/new").await?;
    assert_eq!((ended.stdout.as_str(), problems(&ended)), ("[core]\n", vec![]), "{ended:?}");
    assert!(!directory.path().join("a/.git/x/new").exists());
    for socket in sockets {
        let answer = act_in(&sandbox, &[&format!("connect {socket}")]).await?;
        assert!(["connect: ConnectionRefused\n", "connect: PermissionDenied\n"].contains(&answer.as_str()), "{answer}");
    }
    for listener in listeners {
        listener.set_nonblocking(true)?;
        assert_eq!(listener.accept().expect_err("nobody came").kind(), std::io::ErrorKind::WouldBlock);
    }
    Ok(())
}

/// Without namespaces nothing is covered, including the protected paths of the mount.
pub(crate) async fn without_namespaces() -> Outcome {
    let directory = tempfile::tempdir()?;
    let config = SandboxConfig::in_place(directory.path())?.only([Mechanism::Landlock, Mechanism::Seccomp]);
    let config = config.require(Guarantee::WITHOUT_NAMESPACES.iter().copied());
    if OsSandbox::check(config.clone()).await?.missing().next().is_some() {
        // The kernel is too old, as its report says.
        return Ok(());
    }
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    let root = VfsPath::parse(directory.path().to_str().expect("UTF-8"))?;
    let run = async |command: &str| {
        sandbox.shell().execute(&OpContext::new(), ExecuteRequest::new(command).cwd(root.clone())).await
    };
    let left = run("mkdir .git; echo '[core]' > .git/config; echo x > .env; mkdir a; echo x > a/.env").await?;
    let expected = [".env", ".git", "a/.env"].map(|name| format!("{root}/{name}"));
    assert_eq!(left.problems.iter().map(|problem| problem.path.as_str()).collect::<Vec<_>>(), expected, "{left:?}");
    assert_eq!(problems(&run("true").await?), []);
    Ok(())
}

pub(crate) async fn streamed() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    let request = ExecuteRequest::new(LEAVE).cwd(VfsPath::parse("/workspace")?);
    let shell = sandbox.as_streaming_shell().ok_or("a sandbox streams")?;
    let events: Vec<_> = shell.execute_stream(OpContext::new(), request).collect().await;
    let Some(Ok(ExecuteEvent::Exit(ended))) = events.last() else { return Err("it does not end".into()) };
    assert_eq!(problems(ended), LEFT);
    Ok(())
}

pub(crate) async fn links() -> Outcome {
    let directory = tempfile::tempdir()?;
    fill(&directory, &[(".env", "PASSWORD=x\n"), ("a/settings", "x\n"), ("b/x", "")])?;
    symlink("../.env", directory.path().join("b/.env"))?;
    symlink("settings", directory.path().join("a/.env"))?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    let ended = run(&sandbox, "cat b/.env").await?;
    assert_eq!(ended.stdout, "", "its target is hidden: {ended:?}");
    assert_eq!(problems(&ended), [("/workspace/a/.env", ErrorKind::PolicyDenied)]);
    assert!(ended.problems[0].message.contains("protect the path that it leads to"), "{:?}", ended.problems[0]);
    assert_eq!(problems(&run(&sandbox, "true").await?), []);
    Ok(())
}

pub(crate) async fn bounded() -> Outcome {
    let directory = tempfile::tempdir()?;
    fill(&directory, &[("a/1", ""), ("a/2", ""), ("b/.env", "PASSWORD=x\n")])?;
    // The two placeholders count, too.
    let sandbox = OsSandbox::open(config(&directory).max_scanned_entries(7)).await?.into_backend()?;
    assert_eq!(run(&sandbox, "cat b/.env; true").await?.stdout, "");
    let sandbox = OsSandbox::open(config(&directory).max_scanned_entries(4)).await?.into_backend()?;
    let refused = run(&sandbox, "cat b/.env; touch ran").await.expect_err("it might be missed");
    assert_eq!((refused.kind(), refused.path()), (ErrorKind::QuotaExceeded, Some("/workspace")), "{refused}");
    assert!(!directory.path().join("ran").exists());
    Ok(())
}

/// Without the helper, nothing deep in a tree is covered, which the settings have to allow; entries are still reported.
pub(crate) async fn without_helper() -> Outcome {
    let directory = tempfile::tempdir()?;
    fill(&directory, &[("old/.git/config", "")])?;
    let config = SandboxConfig::new(directory.path()).helper(HelperLocation::Unused);
    let refused = OsSandbox::open(config.clone()).await.expect_err("required guarantees are missing");
    assert!(refused.message().contains("protected_names: "), "{refused}");
    let sandbox =
        OsSandbox::open(config.require([Guarantee::Namespaces, Guarantee::UnixSockets])).await?.into_backend()?;
    assert_eq!(problems(&run(&sandbox, "true").await?), [], "existing entries are not reported");
    assert_eq!(problems(&run(&sandbox, LEAVE).await?), LEFT);
    Ok(())
}

/// The owner of a directory can change its mode, even if this process cannot list it.
pub(crate) async fn unlistable() -> Outcome {
    for mode in [0o000, 0o111, 0o444] {
        let directory = tempfile::tempdir()?;
        let closed = directory.path().join("a/closed");
        fill(
            &directory,
            &[("a/closed/.env", "PASSWORD=x\n"), ("a/closed/below/.env", "PASSWORD=x\n"), ("a/open", "open\n")],
        )?;
        fs::set_permissions(&closed, fs::Permissions::from_mode(mode))?;
        let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
        let ended = run(&sandbox, "cat a/open; chmod 755 a/closed; cat a/closed/.env a/closed/below/.env").await?;
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o755))?;
        assert_eq!(ended.stdout, "open\n", "{mode:o}: {ended:?}");
    }
    Ok(())
}

pub(crate) async fn many() -> Outcome {
    let directory = tempfile::tempdir()?;
    for number in 0..500 {
        fill(&directory, &[(&format!("package-{number}/.env"), "PASSWORD=x\n")])?;
    }
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    let ended = run(&sandbox, "cat package-*/.env; echo x > package-7/other").await?;
    assert_eq!((ended.stdout.as_str(), ended.exit_code), ("", Some(0)), "{}", ended.exit_code.unwrap_or_default());
    assert_eq!(ended.stderr.matches("Permission denied").count(), 500);
    for number in 500..4_200 {
        fill(&directory, &[(&format!("package-{number}/.env"), "PASSWORD=x\n")])?;
    }
    let refused = run(&sandbox, "true").await.expect_err("they are too many");
    assert_eq!((refused.kind(), refused.path()), (ErrorKind::QuotaExceeded, Some("/workspace")), "{refused}");
    Ok(())
}

pub(crate) async fn several_mounts() -> Outcome {
    let (one, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    fill(&one, &[("a/.env", "PASSWORD=x\n")])?;
    fill(&other, &[("b/.env", "PASSWORD=x\n"), ("b/.git/config", "[core]\n")])?;
    let config = config(&one).mount(Mount::read_only(VfsPath::parse("/data")?, other.path()));
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    let ended = run(&sandbox, "cat a/.env /data/b/.env; cat /data/b/.git/config").await?;
    assert_eq!((ended.stdout.as_str(), problems(&ended)), ("[core]\n", vec![]), "{ended:?}");
    Ok(())
}
