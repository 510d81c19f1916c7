//! Tests of opening a sandbox: refused settings, missing mechanisms and reports.

use std::fs;
use std::os::unix::fs::symlink;

use vfs_core::{BackendExt as _, ErrorKind, ExecuteRequest, OpContext, Shell as _, VfsPath};
use vfs_sandbox::{
    EnforcementStatus, Guarantee, HelperLocation, Mechanism, Mount, OsSandbox, ProtectionLevel, SandboxConfig,
    SandboxReport,
};

use super::{Outcome, config, names, own};

pub(crate) async fn nested() -> Outcome {
    let directory = tempfile::tempdir()?;
    let inner = directory.path().join("inner");
    fs::create_dir(&inner)?;
    let beside = tempfile::tempdir()?;
    symlink(&inner, beside.path().join("linked"))?;
    let at = || VfsPath::parse("/other");
    for other in [directory.path().to_owned(), inner.clone(), beside.path().join("linked")] {
        for mount in [Mount::read_only(at()?, &other), Mount::writable(at()?, &other)] {
            let refused =
                OsSandbox::open(config(&directory).mount(mount)).await.expect_err("they have files in common");
            assert_eq!((refused.kind(), refused.path()), (ErrorKind::InvalidArgument, Some("/other")));
            assert!(refused.message().contains("/workspace"), "{refused}");
        }
        let refused = OsSandbox::open(config(&directory).tool(&other)).await.expect_err("they have files in common");
        assert_eq!((refused.kind(), refused.path()), (ErrorKind::InvalidArgument, Some("/workspace")));
        assert!(refused.message().contains(other.to_str().expect("UTF-8")), "{refused}");
    }
    let above = SandboxConfig::new(&inner).tool(directory.path());
    assert_eq!(OsSandbox::open(above).await.expect_err("above it").kind(), ErrorKind::InvalidArgument);
    let sandbox = OsSandbox::open(config(&directory).mount(Mount::writable(at()?, beside.path()))).await?;
    drop(sandbox);
    Ok(())
}

/// Runs one of these trials in a process with a lower hard limit.
pub(crate) async fn lower_bound() -> Outcome {
    let trial = "sandbox::files_and_commands_see_the_same_paths";
    let started =
        std::process::Command::new("prlimit").args(["--nproc=700:700"]).arg(own()).args(["--exact", trial]).output();
    let Ok(ended) = started else { return Ok(()) };
    let stdout = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success() && !stdout.contains("1 ignored"),
        "{stdout}{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    Ok(())
}

pub(crate) async fn too_many() -> Outcome {
    let directory = tempfile::tempdir()?;
    let mut config = SandboxConfig::in_place(directory.path())?.helper(HelperLocation::At(own()));
    for number in 0..100 {
        let name = format!("secret-{number}");
        fs::write(directory.path().join(&name), "")?;
        config = config.protect(&name, ProtectionLevel::Hidden)?;
    }
    let config = config.require(Guarantee::WITHOUT_NAMESPACES.iter().copied());
    let refused = OsSandbox::open(config).await.expect_err("descriptors would be placed over others");
    assert_eq!(refused.kind(), ErrorKind::QuotaExceeded, "{refused}");
    assert!(names(&directory)?.iter().all(|name| name.starts_with("secret-")), "no placeholder is left");
    Ok(())
}

pub(crate) async fn too_long() -> Outcome {
    let directory = tempfile::tempdir()?;
    for helper in [HelperLocation::At(own()), HelperLocation::Unused] {
        let config = SandboxConfig::new(directory.path()).helper(helper).unprotected();
        let sandbox = OsSandbox::open(config).await?.into_backend()?;
        let command = || ExecuteRequest::new("echo x > ran").cwd(VfsPath::parse("/workspace").expect("a path"));
        let many = (0..100).fold(command(), |request, number| request.env(format!("N{number}"), "x".repeat(100_000)));
        for request in [command().env("LONG", "x".repeat(3 << 20)), command().env("N".repeat(1 << 18), "x"), many] {
            let refused = sandbox.shell().execute(&OpContext::new(), request).await.expect_err("it is too long");
            assert_eq!((refused.kind(), refused.path()), (ErrorKind::TooLarge, Some("/workspace")), "{refused}");
        }
        let ended = sandbox.shell().execute(&OpContext::new(), command().env("LONG", "x".repeat(120_000))).await?;
        assert_eq!(ended.exit_code, Some(0), "{ended:?}");
        fs::remove_file(directory.path().join("ran"))?;
    }
    Ok(())
}

pub(crate) async fn required() -> Outcome {
    let directory = tempfile::tempdir()?;
    let config = SandboxConfig::new(directory.path()).helper(HelperLocation::Unused).unprotected();
    let refused = OsSandbox::open(config.clone().require([Guarantee::LandlockFiles])).await.expect_err("it is missing");
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.message().contains("landlock_files: "), "{refused}");
    OsSandbox::open(config.clone()).await?;
    let direct = config.only([Mechanism::Landlock, Mechanism::Seccomp]);
    let refused = OsSandbox::open(direct).await.expect_err("it cannot be shown elsewhere");
    assert!(refused.message().contains("/workspace"), "{refused}");
    Ok(())
}

pub(crate) async fn without_helper() -> Outcome {
    let directory = tempfile::tempdir()?;
    let config = SandboxConfig::new(directory.path()).helper(HelperLocation::Unused).unprotected();
    let sandbox = OsSandbox::open(config).await?;
    assert!(!sandbox.report().enforces(Guarantee::LandlockFiles));
    let sandbox = sandbox.into_backend()?;
    let request = ExecuteRequest::new("echo \"$GIVEN\"; ls /proc/self/fd | wc -l").cwd(VfsPath::parse("/workspace")?);
    let ended = sandbox.shell().execute(&OpContext::new(), request.env("GIVEN", "a = b\nc")).await?;
    // The three standard descriptors, and that of the listed directory.
    assert_eq!(ended.stdout, "a = b\nc\n4\n", "{ended:?}");
    Ok(())
}

pub(crate) async fn without_namespaces() -> Outcome {
    let directory = tempfile::tempdir()?;
    let config = SandboxConfig::in_place(directory.path())?.only([Mechanism::Landlock, Mechanism::Seccomp]);
    let refused = OsSandbox::open(config.clone()).await.expect_err("required guarantees are missing");
    assert!(refused.message().contains("private_tmp: "), "{refused}");
    let report = OsSandbox::check(config.clone()).await?;
    if Guarantee::WITHOUT_NAMESPACES.iter().any(|guarantee| !report.enforces(*guarantee)) {
        // The kernel is too old, as its report says.
        return Ok(());
    }
    let sandbox =
        OsSandbox::open(config.require(Guarantee::WITHOUT_NAMESPACES.iter().copied())).await?.into_backend()?;
    let cwd = VfsPath::parse(directory.path().to_str().expect("UTF-8"))?;
    let request =
        ExecuteRequest::new("echo x > file; cat /etc/hostname 2>&1 || ls -d /tmp/. 2>&1; id -u").cwd(cwd.clone());
    let ended = sandbox.shell().execute(&OpContext::new(), request).await?;
    assert!(ended.output.contains("Permission denied"), "{ended:?}");
    assert_eq!(sandbox.read_text(cwd.join("file")?.as_str()).await?, "x\n");
    Ok(())
}

pub(crate) async fn reports() -> Outcome {
    let directory = tempfile::tempdir()?;
    let report = OsSandbox::check(config(&directory)).await?;
    let json = serde_json::to_string(&report)?;
    assert_eq!(serde_json::from_str::<SandboxReport>(&json)?, report);
    let host_paths = &report.result(Guarantee::HostPaths).ok_or("a result")?.enforcement;
    assert!(
        matches!(host_paths, EnforcementStatus::Missing(why) if why.contains("/proc/self/mountinfo")),
        "{host_paths:?}"
    );
    assert!(report.missing().next().is_none(), "that is not required: {report}");
    let table = report.to_string();
    for guarantee in Guarantee::ALL {
        assert!(table.lines().any(|line| line.starts_with(guarantee.code())), "{guarantee} is in\n{table}");
    }
    Ok(())
}
