//! Tests of protected paths, while commands try to access them.

use std::fs;
use std::os::unix::fs::symlink;

use libtest_mimic::Failed;
use vfs_core::{BackendExt as _, ErrorKind, ExecuteRequest, OpContext, Shell as _, VfsPath};
use vfs_sandbox::{Guarantee, HelperLocation, OsSandbox, ProtectionLevel, SandboxConfig};

use super::{HANG_TIMEOUT, Outcome, config, names, own, run, until};

pub(crate) async fn protected() -> Outcome {
    let directory = tempfile::tempdir()?;
    fs::create_dir_all(directory.path().join(".git/hooks"))?;
    fs::write(directory.path().join(".git/config"), "[core]\n")?;
    fs::write(directory.path().join(".env"), "PASSWORD=x\n")?;
    fs::create_dir(directory.path().join("keys"))?;
    fs::write(directory.path().join("keys/private"), "x")?;
    let config = config(&directory).protect("keys", ProtectionLevel::Hidden)?;
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    assert_eq!(sandbox.read_text("/workspace/.git/config").await?, "[core]\n");
    for refused in [
        sandbox.create_text("/workspace/.git/hooks/pre-commit", "#!/bin/sh\n").await.map(drop),
        sandbox.edit_text("/workspace/.git/config", "core", "evil").await.map(drop),
        sandbox.delete_file("/workspace/.git/config").await.map(drop),
        sandbox.read_text("/workspace/.env").await.map(drop),
        sandbox.read_text("/workspace/keys/private").await.map(drop),
    ] {
        assert_eq!(refused.expect_err("it is protected").kind(), ErrorKind::PolicyDenied);
    }
    let ended = run(&sandbox, "cat .git/config; ls keys; cat keys/private .env; echo x > .git/config").await?;
    assert_eq!(ended.stdout, "[core]\n", "{ended:?}");
    assert_eq!(fs::read_to_string(directory.path().join(".git/config"))?, "[core]\n");
    Ok(())
}

pub(crate) async fn links() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    symlink("/etc/passwd", directory.path().join(".env"))?;
    let refused = run(&sandbox, "true").await.expect_err("a link cannot be protected");
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert_eq!(refused.path(), Some("/workspace/.env"));
    fs::remove_file(directory.path().join(".env"))?;
    symlink("elsewhere", directory.path().join(".git"))?;
    run(&sandbox, "true").await.expect_err("a link cannot be protected");
    Ok(())
}

pub(crate) async fn missing() -> Outcome {
    let directory = tempfile::tempdir()?;
    fs::create_dir(directory.path().join("there"))?;
    let mut config = config(&directory);
    for path in ["keys/", "some/deep/place/private", "there/private", "there/private/below"] {
        config = config.protect(path, ProtectionLevel::ReadOnly)?;
    }
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    for command in [
        "mkdir .git",
        "echo x > .git/config",
        "ln -s /etc/passwd .env",
        "echo x > .env",
        "rm -f .env",
        "rmdir .git",
        "mv .git moved",
        "mkdir new; mv -T new .git",
        "echo x > keys/private",
        "mv some moved",
        "echo x > some/deep/place/private",
        "mv there moved",
    ] {
        let ended = run(&sandbox, &format!("{command} && echo done")).await?;
        assert_eq!(ended.stdout, "", "{command}: {ended:?}");
    }
    // Unprotected entries can be created beside protected ones.
    let ended = run(&sandbox, "cat .git/config; echo x > there/other; echo x > some/deep/other; rmdir new").await?;
    assert!(ended.stderr.contains("No such file"), "{ended:?}");
    assert_eq!(names(&directory)?, ["some", "there"]);
    assert_eq!(sandbox.read_text("/workspace/some/deep/other").await?, "x\n");
    sandbox.read_text("/workspace/there/private").await.expect_err("it was not made");
    Ok(())
}

pub(crate) async fn planted() -> Outcome {
    let directory = tempfile::tempdir()?;
    symlink("/etc/passwd", directory.path().join(".env"))?;
    let less = SandboxConfig::in_place(directory.path())?.require(Guarantee::WITHOUT_NAMESPACES.iter().copied());
    let refused =
        OsSandbox::open(less.helper(HelperLocation::At(own()))).await.expect_err("a weaker sandbox would be used");
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    let at = directory.path().join(".env");
    assert_eq!(refused.path(), at.to_str(), "{refused}");
    Ok(())
}

/// A command swaps links between protected and other targets, while file tools follow them.
pub(crate) async fn swapped() -> Outcome {
    let directory = tempfile::tempdir()?;
    for (name, content) in [(".git/hooks/existing", "hook\n"), (".env", "PASSWORD\n"), ("d/existing", "file\n")] {
        let file = directory.path().join(name);
        fs::create_dir_all(file.parent().ok_or("it has one")?)?;
        fs::write(file, content)?;
    }
    fs::write(directory.path().join("d/plain"), "plain\n")?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    let swaps = "
        lead() { ln -s $1 new; mv -T new swapped; ln -s $2 d/new; mv -T d/new d/env; }
        lead d plain; touch started
        while [ ! -e stop ]; do lead .git/hooks ../.env; lead d plain; done";
    let race = async {
        until("it has started", || Ok(directory.path().join("started").exists())).await?;
        let (mut written, mut refused) = (0_u32, 0_u32);
        // Continue until writes have both succeeded and failed.
        for round in 0..200_000 {
            if round >= 2_000 && written > 0 && refused > 0 {
                break;
            }
            match sandbox.create_text(&format!("/workspace/swapped/{round}"), "#!/bin/sh\n").await {
                Ok(_) => written += 1,
                Err(_) => refused += 1,
            }
            if let Ok(text) = sandbox.read_text("/workspace/d/env").await {
                assert_eq!(text, "plain\n");
            }
        }
        fs::write(directory.path().join("stop"), "")?;
        assert!(written > 0 && refused > 0, "nothing was raced: {written} written, {refused} refused");
        Ok::<_, Failed>(())
    };
    // More time than thousands of files need on the slowest disk.
    let request = ExecuteRequest::new(swaps).cwd(VfsPath::parse("/workspace")?).timeout(20 * HANG_TIMEOUT);
    let (cx, shell) = (OpContext::new(), sandbox.shell());
    let (ended, raced) = futures::future::join(shell.execute(&cx, request), race).await;
    raced?;
    assert_eq!(ended?.exit_code, Some(0));
    let hooks: Vec<_> = fs::read_dir(directory.path().join(".git/hooks"))?.collect::<Result<_, _>>()?;
    assert_eq!(hooks.len(), 1, "{hooks:?}");
    Ok(())
}
