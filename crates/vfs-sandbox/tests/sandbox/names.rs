//! Names that are protected at any depth, and what is told of those that commands make.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use futures::StreamExt as _;
use vfs_core::{
    Backend as _, BackendExt as _, ErrorKind, ExecuteEvent, ExecuteRequest, ExecuteResponse, OpContext, Shell as _,
    VfsPath,
};
use vfs_sandbox::os::{Belt, Helper, Mount, OsSandbox, Protection, SandboxConfig};

use super::{Outcome, config, run};

fn fill(directory: &tempfile::TempDir, files: &[(&str, &str)]) -> std::io::Result<()> {
    for (path, content) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().expect("it is below the root"))?;
        fs::write(path, content)?;
    }
    Ok(())
}

fn told(response: &ExecuteResponse) -> Vec<(&str, ErrorKind)> {
    response.problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect()
}

pub(crate) async fn nested() -> Outcome {
    let directory = tempfile::tempdir()?;
    let files = [
        ("app/api/.env", "PASSWORD=x\n"),
        ("app/library/.git/config", "[core]\n"),
        ("app/library/.git/hooks/kept", "kept\n"),
        ("app/worktree/.git", "gitdir: ../library/.git\n"),
        ("app/vault/key", "key\n"),
        ("app/plain", "plain\n"),
    ];
    fill(&directory, &files)?;
    let config = config(&directory).protect_name("vault", Protection::Hidden)?;
    let sandbox = OsSandbox::open(config).await?;
    assert!(sandbox.report().enforces(Belt::ProtectedNames), "{}", sandbox.report());
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
        assert_eq!(told(&ended), [], "{command}");
    }
    // Who starts below a cover is not beneath it.
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

/// A repository that git finds without being told of it, and a nested one.
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
    assert_eq!(told(&run(&sandbox, "true").await?), [], "what was there is no news");
    let left = run(&sandbox, LEAVE).await?;
    assert_eq!(told(&left), LEFT);
    assert!(left.problems[0].message.contains("safe.bareRepository=explicit"), "{:?}", left.problems[0]);
    let again =
        run(&sandbox, "echo x >> build/bare/config && echo done; cat build/clone/.env; echo x > old/config").await?;
    assert_eq!((again.stdout.as_str(), told(&again)), ("", vec![]), "it is told once, and protected: {again:?}");
    Ok(())
}

pub(crate) async fn streamed() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    let request = ExecuteRequest::new(LEAVE).cwd(VfsPath::parse("/workspace")?);
    let shell = sandbox.as_streaming_shell().ok_or("a sandbox streams")?;
    let events: Vec<_> = shell.execute_stream(OpContext::new(), request).collect().await;
    let Some(Ok(ExecuteEvent::Exit(ended))) = events.last() else { return Err("it does not end".into()) };
    assert_eq!(told(ended), LEFT);
    Ok(())
}

pub(crate) async fn links() -> Outcome {
    let directory = tempfile::tempdir()?;
    fill(&directory, &[(".env", "PASSWORD=x\n"), ("a/settings", "x\n"), ("b/x", "")])?;
    symlink("../.env", directory.path().join("b/.env"))?;
    symlink("settings", directory.path().join("a/.env"))?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    let ended = run(&sandbox, "cat b/.env").await?;
    assert_eq!(ended.stdout, "", "what it leads to is hidden: {ended:?}");
    assert_eq!(told(&ended), [("/workspace/a/.env", ErrorKind::PolicyDenied)]);
    assert!(ended.problems[0].message.contains("protect the path that it leads to"), "{:?}", ended.problems[0]);
    assert_eq!(told(&run(&sandbox, "true").await?), []);
    Ok(())
}

pub(crate) async fn bounded() -> Outcome {
    let directory = tempfile::tempdir()?;
    fill(&directory, &[("a/1", ""), ("a/2", ""), ("b/.env", "PASSWORD=x\n")])?;
    // The two that stand for what is missing count, too.
    let sandbox = OsSandbox::open(config(&directory).max_scanned_entries(7)).await?.into_backend()?;
    assert_eq!(run(&sandbox, "cat b/.env; true").await?.stdout, "");
    let sandbox = OsSandbox::open(config(&directory).max_scanned_entries(4)).await?.into_backend()?;
    let refused = run(&sandbox, "cat b/.env; touch ran").await.expect_err("it might be missed");
    assert_eq!((refused.kind(), refused.path()), (ErrorKind::QuotaExceeded, Some("/workspace")), "{refused}");
    assert!(!directory.path().join("ran").exists());
    Ok(())
}

/// Where the helper is not used, nothing deep in a tree is covered, which has to be asked for; it is reported all the same.
pub(crate) async fn without_helper() -> Outcome {
    let directory = tempfile::tempdir()?;
    fill(&directory, &[("old/.git/config", "")])?;
    let config = SandboxConfig::new(directory.path()).helper(Helper::Unused);
    let refused = OsSandbox::open(config.clone()).await.expect_err("that is less than is required");
    assert!(refused.message().contains("protected_names: "), "{refused}");
    let sandbox = OsSandbox::open(config.require([Belt::Namespaces, Belt::UnixSockets])).await?.into_backend()?;
    assert_eq!(told(&run(&sandbox, "true").await?), [], "what was there is no news");
    assert_eq!(told(&run(&sandbox, LEAVE).await?), LEFT);
    Ok(())
}

/// Whoever owns a directory can open it to himself, also where this process could not look into it.
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
    assert_eq!((ended.stdout.as_str(), told(&ended)), ("[core]\n", vec![]), "{ended:?}");
    Ok(())
}
