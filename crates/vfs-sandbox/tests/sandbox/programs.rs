//! Tests of the programs that a sandbox itself runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use vfs_sandbox::{Guarantee, HelperLocation, OsSandbox, ProtectionLevel, SandboxConfig};

use super::{Outcome, config, own, run};

fn program(path: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, format!("#!/bin/sh\n{text}\n"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

pub(crate) async fn programs() -> Outcome {
    use std::os::unix::fs::PermissionsExt as _;
    let (directory, elsewhere) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let ran = elsewhere.path().join("ran");
    let text = format!("touch '{}'", ran.display());
    let inside = directory.path().join("bin/bwrap");
    fs::create_dir(directory.path().join("bin"))?;
    program(&inside, &text)?;
    let linked = elsewhere.path().join("linked");
    symlink(&inside, &linked)?;
    let shared = elsewhere.path().join("shared");
    fs::create_dir(&shared)?;
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777))?;
    program(&shared.join("bwrap"), &text)?;
    for (path, why) in [
        (inside.clone(), "below /workspace"),
        (linked, "below /workspace"),
        (shared.join("bwrap"), "others may write to"),
        (elsewhere.path().join("missing"), "missing or not executable"),
    ] {
        let as_bubblewrap = config(&directory).bubblewrap(&path);
        let refused = OsSandbox::open(as_bubblewrap).await.expect_err("it could be changed");
        assert!(refused.message().contains(why), "{refused}");
        let as_helper = SandboxConfig::new(directory.path()).helper(HelperLocation::At(path));
        let report = OsSandbox::check(as_helper.clone()).await?;
        assert!(!report.enforces(Guarantee::LandlockFiles) && report.to_string().contains(why), "{report}");
        let refused =
            OsSandbox::open(as_helper.require([Guarantee::LandlockFiles])).await.expect_err("it could be changed");
        assert!(refused.message().contains(why), "{refused}");
    }
    assert!(!fs::exists(&ran)?, "none of them was run");
    Ok(())
}

pub(crate) async fn own_helper() -> Outcome {
    let own = own();
    let place = own.parent().expect("a directory");
    let config = SandboxConfig::new(place).unprotected().helper(HelperLocation::At(own.clone()));
    let sandbox = OsSandbox::open(config).await?;
    assert!(sandbox.report().enforces(Guarantee::LandlockFiles), "{}", sandbox.report());
    let name = own.file_name().and_then(|name| name.to_str()).ok_or("it has one")?;
    let open_programs = format!("ls -l /proc/self/fd | grep -c -e memfd -e {name}; ls /run");
    let ended = run(&sandbox.into_backend()?, &open_programs).await?;
    assert!(ended.stdout.starts_with("0\n"), "{ended:?}");
    Ok(())
}

/// Replaces a protected directory between its check and the cover, by a bubblewrap that binds by path.
pub(crate) async fn exchanged() -> Outcome {
    let (directory, elsewhere) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let (target, other) = (directory.path().join("target"), directory.path().join("other"));
    fs::create_dir(&target)?;
    fs::create_dir(&other)?;
    let (bubblewrap, now) = (elsewhere.path().join("bwrap"), elsewhere.path().join("now"));
    let text = format!(
        "if [ \"$1\" = --help ]; then /usr/bin/bwrap --help 2>&1 | grep -v bind-fd; exit; fi\n\
         if [ -e '{now}' ]; then /bin/mv '{target}' '{target}.moved' && /bin/mv '{other}' '{target}'; fi\n\
         exec /usr/bin/bwrap \"$@\"",
        now = now.display(),
        target = target.display(),
        other = other.display(),
    );
    program(&bubblewrap, &text)?;
    if !fs::exists("/usr/bin/bwrap")? {
        return Ok(());
    }
    let config = config(&directory).bubblewrap(&bubblewrap).protect("target", ProtectionLevel::ReadOnly)?;
    let report = OsSandbox::check(config.clone().helper(HelperLocation::Unused)).await?;
    assert!(!report.enforces(Guarantee::ProtectedPaths), "{report}");
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    let ended = run(&sandbox, "touch target/x || echo target").await?;
    assert_eq!(ended.stdout, "target\n", "{ended:?}");
    fs::write(&now, "")?;
    let ended = run(&sandbox, "echo ran").await?;
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (Some(126), ""), "{ended:?}");
    assert!(ended.stderr.contains("/workspace/target was replaced"), "{ended:?}");
    Ok(())
}
