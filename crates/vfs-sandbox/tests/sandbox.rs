//! The local sandbox as a whole: what it shows, what it refuses, and the way of an overlay's files through it.
//!
//! Where there is no bubblewrap, or it may make no namespaces, these trials show as ignored.
#![expect(clippy::disallowed_methods, reason = "what a sandbox shows is the host's own")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use vfs_core::{
    BackendExt as _, ChangeKind, ErrorKind, ExecuteRequest, ExecuteResponse, OpContext, Shell as _, VfsPath,
};
use vfs_layers::OverlayBackend;
use vfs_memory::MemoryBackend;
use vfs_sandbox::os::{
    Belt, Helper, Mechanism, Mount, OsSandbox, OsSandboxBackend, Protection, SandboxConfig, SandboxReport, Workspace,
    become_confine_if_asked,
};
use vfs_shell::ShellConfig;

type Outcome = Result<(), Failed>;

fn main() -> ExitCode {
    become_confine_if_asked();
    let report = runtime().block_on(async {
        let directory = tempfile::tempdir()?;
        OsSandbox::check(config(&directory)).await.map_err(std::io::Error::other)
    });
    let report = report.expect("a report");
    let missing = (!report.enforces(Belt::Namespaces)).then(|| format!("ignored: {report}"));
    let trials = TRIALS.iter().map(|&(name, run)| {
        let trial = Trial::test(format!("sandbox::{name}"), run);
        match &missing {
            Some(why) => trial.with_kind(why.replace('\n', "; ")).with_ignored_flag(true),
            None => trial,
        }
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

type Run = fn() -> Outcome;

const TRIALS: &[(&str, Run)] = &[
    ("files_and_commands_see_the_same_paths", || runtime().block_on(same_paths())),
    ("every_mount_is_where_it_is_said_to_be", || runtime().block_on(several_mounts())),
    ("what_is_protected_from_commands_is_from_file_tools", || runtime().block_on(protected())),
    ("a_link_in_place_of_what_is_protected_stops_commands", || runtime().block_on(links())),
    ("what_is_missing_and_protected_cannot_be_made", || runtime().block_on(missing())),
    ("what_stands_for_it_goes_with_the_last_command", || runtime().block_on(placeholders())),
    ("a_planted_link_is_no_reason_for_less", || runtime().block_on(planted())),
    ("what_commands_can_change_is_not_run", || runtime().block_on(programs())),
    ("the_running_program_is_its_helper_wherever_it_lies", || runtime().block_on(own_helper())),
    ("what_is_exchanged_while_a_command_starts_stops_it", || runtime().block_on(exchanged())),
    ("what_lies_in_one_another_is_refused", || runtime().block_on(nested())),
    ("a_lower_bound_of_processes_stays", || runtime().block_on(lower_bound())),
    ("more_than_can_be_covered_is_refused", || runtime().block_on(too_many())),
    ("an_environment_that_is_too_long_is_refused", || runtime().block_on(too_long())),
    ("what_is_required_and_missing_is_named", || runtime().block_on(required())),
    ("mounts_that_cannot_be_shown_are_refused", || runtime().block_on(unshowable())),
    ("a_command_starts_in_what_is_shown_only", || runtime().block_on(directories())),
    ("the_environment_reaches_nothing_but_the_command", || runtime().block_on(environment())),
    ("what_a_command_leaves_running_is_gone", || runtime().block_on(leftovers())),
    ("without_the_helper_namespaces_and_the_filter_hold", || runtime().block_on(without_helper())),
    ("without_namespaces_landlock_and_the_filter_hold", || runtime().block_on(without_namespaces())),
    ("a_report_is_read_back_as_it_was_written", || runtime().block_on(reports())),
    ("an_overlay_is_worked_on_and_collected", || runtime().block_on(overlay())),
    ("what_changed_on_both_sides_is_a_conflict", || runtime().block_on(conflicts())),
];

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

fn own() -> PathBuf {
    std::env::current_exe().expect("this program has a path")
}

fn config(directory: &tempfile::TempDir) -> SandboxConfig {
    SandboxConfig::new(directory.path()).helper(Helper::At(own()))
}

async fn run(sandbox: &OsSandboxBackend, command: &str) -> vfs_core::Result<ExecuteResponse> {
    let request = ExecuteRequest::new(command).cwd(VfsPath::parse("/workspace")?);
    sandbox.shell().execute(&OpContext::new(), request).await
}

async fn same_paths() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    sandbox.create_text("/workspace/src/main.rs", "fn main() {}\n").await?;
    let ended = run(&sandbox, "cat /workspace/src/main.rs && pwd && echo made > made && ls -A /workspace").await?;
    assert_eq!(ended.output, "fn main() {}\n/workspace\n.env\n.git\nmade\nsrc\n", "{ended:?}");
    assert_eq!(sandbox.read_text("/workspace/made").await?, "made\n");
    assert_eq!(fs::read_to_string(directory.path().join("made"))?, "made\n");
    let refused = sandbox.create_text("/elsewhere", "x").await.expect_err("nothing is there");
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused}");
    let kept = ExecuteRequest::new("echo all").cwd(VfsPath::parse("/workspace")?).keep_full_output();
    let path = sandbox.shell().execute(&OpContext::new(), kept).await?.full_output.expect("a file");
    assert_eq!(sandbox.read_text(path.as_str()).await?, "all\n", "{path}");
    Ok(())
}

async fn several_mounts() -> Outcome {
    let (one, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    fs::write(other.path().join("given"), "given\n")?;
    let config = config(&one).mount(Mount::read_only(VfsPath::parse("/data/set")?, other.path()));
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    let ended = run(&sandbox, "cat /data/set/given; (echo x > /data/set/new) 2>&1; echo y > new; ls /data").await?;
    assert!(ended.output.starts_with("given\n"), "{ended:?}");
    assert!(ended.output.contains("Read-only file system"), "{ended:?}");
    assert!(ended.output.ends_with("set\n"), "{ended:?}");
    assert_eq!(sandbox.read_text("/workspace/new").await?, "y\n");
    assert_eq!(sandbox.read_text("/data/set/given").await?, "given\n");
    let refused = sandbox.create_text("/data/set/new", "x").await.expect_err("it is read-only");
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused}");
    Ok(())
}

async fn protected() -> Outcome {
    let directory = tempfile::tempdir()?;
    fs::create_dir_all(directory.path().join(".git/hooks"))?;
    fs::write(directory.path().join(".git/config"), "[core]\n")?;
    fs::write(directory.path().join(".env"), "PASSWORD=x\n")?;
    fs::create_dir(directory.path().join("keys"))?;
    fs::write(directory.path().join("keys/private"), "x")?;
    let config = config(&directory).protect("keys", Protection::Hidden)?;
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    assert_eq!(sandbox.read_text("/workspace/.git/config").await?, "[core]\n");
    for refused in [
        sandbox.create_text("/workspace/.git/hooks/pre-commit", "#!/bin/sh\n").await.map(drop),
        sandbox.edit_text("/workspace/.git/config", "core", "evil").await.map(drop),
        sandbox.remove("/workspace/.git/config").await.map(drop),
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

async fn links() -> Outcome {
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

fn names(directory: &tempfile::TempDir) -> std::io::Result<Vec<String>> {
    let mut names: Vec<_> = fs::read_dir(directory.path())?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<std::io::Result<_>>()?;
    names.sort_unstable();
    Ok(names)
}

async fn missing() -> Outcome {
    let directory = tempfile::tempdir()?;
    fs::create_dir(directory.path().join("there"))?;
    let mut config = config(&directory);
    for path in ["keys/", "some/deep/place/private", "there/private", "there/private/below"] {
        config = config.protect(path, Protection::ReadOnly)?;
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
    // What is not protected can be made beside it.
    let ended = run(&sandbox, "cat .git/config; echo x > there/other; echo x > some/deep/other; rmdir new").await?;
    assert!(ended.stderr.contains("No such file"), "{ended:?}");
    assert_eq!(names(&directory)?, ["some", "there"]);
    assert_eq!(sandbox.read_text("/workspace/some/deep/other").await?, "x\n");
    sandbox.read_text("/workspace/there/private").await.expect_err("it was not made");
    Ok(())
}

async fn placeholders() -> Outcome {
    let directory = tempfile::tempdir()?;
    let (one, other) = (OsSandbox::open(config(&directory)).await?, OsSandbox::open(config(&directory)).await?);
    assert_eq!(names(&directory)?, [""; 0], "a trial leaves nothing");
    let (one, other) = (one.into_backend()?, other.into_backend()?);
    for _ in 0..20 {
        run(&one, "true").await?;
        assert_eq!(names(&directory)?, [""; 0]);
    }
    // As one ends, a command of the other still has its covers.
    let waits = async {
        let ended = run(&one, "until [ -e ended ]; do sleep 0.01; done; mkdir .git || ls -A").await;
        ended.map(|ended| ended.stdout)
    };
    let ends = async {
        while !names(&directory)?.contains(&".git".to_owned()) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        for sandbox in [&other, &one] {
            run(sandbox, "true").await?;
        }
        fs::write(directory.path().join("ended"), "")?;
        Ok::<_, Failed>(())
    };
    let (waited, ended) = tokio::join!(waits, ends);
    ended?;
    assert_eq!(waited?, ".env\n.git\nended\n");
    assert_eq!(names(&directory)?, ["ended"]);
    Ok(())
}

async fn planted() -> Outcome {
    let directory = tempfile::tempdir()?;
    symlink("/etc/passwd", directory.path().join(".env"))?;
    let less = SandboxConfig::in_place(directory.path())?.require(Belt::WITHOUT_NAMESPACES.iter().copied());
    let refused = OsSandbox::open(less.helper(Helper::At(own()))).await.expect_err("it would be held by less");
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    let at = directory.path().join(".env");
    assert_eq!(refused.path(), at.to_str(), "{refused}");
    Ok(())
}

fn program(path: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, format!("#!/bin/sh\n{text}\n"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

async fn programs() -> Outcome {
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
        (elsewhere.path().join("missing"), "not there"),
    ] {
        let as_bubblewrap = config(&directory).bubblewrap(&path);
        let refused = OsSandbox::open(as_bubblewrap).await.expect_err("it could be changed");
        assert!(refused.message().contains(why), "{refused}");
        let as_helper = SandboxConfig::new(directory.path()).helper(Helper::At(path));
        let report = OsSandbox::check(as_helper.clone()).await?;
        assert!(!report.enforces(Belt::LandlockFiles) && report.to_string().contains(why), "{report}");
        let refused = OsSandbox::open(as_helper.require([Belt::LandlockFiles])).await.expect_err("it could be changed");
        assert!(refused.message().contains(why), "{refused}");
    }
    assert!(!fs::exists(&ran)?, "none of them was run");
    Ok(())
}

async fn own_helper() -> Outcome {
    let own = own();
    let place = own.parent().expect("a directory");
    let config = SandboxConfig::new(place).unprotected().helper(Helper::At(own.clone()));
    let sandbox = OsSandbox::open(config).await?;
    assert!(sandbox.report().enforces(Belt::LandlockFiles), "{}", sandbox.report());
    let ended = run(&sandbox.into_backend()?, "ls -l /proc/self/fd | grep -c memfd; ls /run").await?;
    assert!(ended.stdout.starts_with("0\n"), "{ended:?}");
    Ok(())
}

/// A bubblewrap that covers by path, and is fast enough for whoever exchanges what it is to cover.
async fn exchanged() -> Outcome {
    let (directory, elsewhere) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let (kept, other) = (directory.path().join("kept"), directory.path().join("other"));
    fs::create_dir(&kept)?;
    fs::create_dir(&other)?;
    let (bubblewrap, now) = (elsewhere.path().join("bwrap"), elsewhere.path().join("now"));
    let text = format!(
        "if [ \"$1\" = --help ]; then /usr/bin/bwrap --help 2>&1 | grep -v bind-fd; exit; fi\n\
         if [ -e '{now}' ]; then /bin/mv '{kept}' '{kept}.moved' && /bin/mv '{other}' '{kept}'; fi\n\
         exec /usr/bin/bwrap \"$@\"",
        now = now.display(),
        kept = kept.display(),
        other = other.display(),
    );
    program(&bubblewrap, &text)?;
    if !fs::exists("/usr/bin/bwrap")? {
        return Ok(());
    }
    let config = config(&directory).bubblewrap(&bubblewrap).protect("kept", Protection::ReadOnly)?;
    let report = OsSandbox::check(config.clone().helper(Helper::Unused)).await?;
    assert!(!report.enforces(Belt::ProtectedPaths), "{report}");
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    let ended = run(&sandbox, "touch kept/x || echo kept").await?;
    assert_eq!(ended.stdout, "kept\n", "{ended:?}");
    fs::write(&now, "")?;
    let ended = run(&sandbox, "echo ran").await?;
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (Some(126), ""), "{ended:?}");
    assert!(ended.stderr.contains("/workspace/kept was replaced"), "{ended:?}");
    Ok(())
}

async fn nested() -> Outcome {
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

/// A process with a lower hard limit runs one of these trials.
async fn lower_bound() -> Outcome {
    let trial = "sandbox::files_and_commands_see_the_same_paths";
    let started =
        std::process::Command::new("prlimit").args(["--nproc=700:700"]).arg(own()).args(["--exact", trial]).output();
    let Ok(ended) = started else { return Ok(()) };
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && !said.contains("1 ignored"), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    Ok(())
}

async fn too_many() -> Outcome {
    let directory = tempfile::tempdir()?;
    let mut config = SandboxConfig::in_place(directory.path())?.helper(Helper::At(own()));
    for number in 0..100 {
        config = config.protect(&format!("secret-{number}"), Protection::Hidden)?;
    }
    let config = config.require(Belt::WITHOUT_NAMESPACES.iter().copied());
    let refused = OsSandbox::open(config).await.expect_err("descriptors would be placed over others");
    assert_eq!(refused.kind(), ErrorKind::QuotaExceeded, "{refused}");
    assert_eq!(names(&directory)?, [""; 0]);
    Ok(())
}

async fn too_long() -> Outcome {
    let directory = tempfile::tempdir()?;
    for helper in [Helper::At(own()), Helper::Unused] {
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

async fn required() -> Outcome {
    let directory = tempfile::tempdir()?;
    let config = SandboxConfig::new(directory.path()).helper(Helper::Unused).unprotected();
    let refused = OsSandbox::open(config.clone().require([Belt::LandlockFiles])).await.expect_err("it is missing");
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.message().contains("landlock_files: "), "{refused}");
    OsSandbox::open(config.clone()).await?;
    let direct = config.only([Mechanism::Landlock, Mechanism::Seccomp]);
    let refused = OsSandbox::open(direct).await.expect_err("it cannot be shown elsewhere");
    assert!(refused.message().contains("/workspace"), "{refused}");
    Ok(())
}

async fn unshowable() -> Outcome {
    let directory = tempfile::tempdir()?;
    for at in ["/", "/usr", "/usr/share/new", "/etc", "/proc/1", "/tmp", "/dev/shm"] {
        let mount = Mount::writable(VfsPath::parse(at)?, directory.path());
        let refused = OsSandbox::open(SandboxConfig::with_mount(mount)).await.expect_err(at);
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{at}");
    }
    let inner = Mount::writable(VfsPath::parse("/workspace/inner")?, directory.path());
    let refused = OsSandbox::open(config(&directory).mount(inner)).await.expect_err("they overlap");
    assert_eq!(refused.path(), Some("/workspace/inner"));
    let missing = SandboxConfig::new(directory.path().join("missing"));
    assert_eq!(OsSandbox::open(missing).await.expect_err("it is not there").kind(), ErrorKind::NotFound);
    Ok(())
}

async fn directories() -> Outcome {
    let directory = tempfile::tempdir()?;
    fs::write(directory.path().join("file"), "")?;
    symlink("/etc", directory.path().join("out"))?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    for (cwd, kind) in [
        ("/workspace/missing", ErrorKind::NotFound),
        ("/workspace/file", ErrorKind::NotADirectory),
        ("/workspace/out", ErrorKind::PathEscape),
        ("/usr", ErrorKind::NotFound),
        ("/root", ErrorKind::NotFound),
    ] {
        let request = ExecuteRequest::new("true").cwd(VfsPath::parse(cwd)?);
        let refused = sandbox.shell().execute(&OpContext::new(), request).await.expect_err(cwd);
        assert_eq!((refused.kind(), refused.path()), (kind, Some(cwd)));
    }
    for cwd in ["/", "/tmp"] {
        let request = ExecuteRequest::new("pwd").cwd(VfsPath::parse(cwd)?);
        assert_eq!(sandbox.shell().execute(&OpContext::new(), request).await?.stdout, format!("{cwd}\n"));
    }
    Ok(())
}

/// A library that is not there is complained about by every program that is started with its name, and so tells which are.
async fn environment() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox =
        OsSandbox::open(config(&directory)).await?.into_backend_with(ShellConfig::new().environment([].into()))?;
    let request = ExecuteRequest::new("echo \"$GIVEN\"").cwd(VfsPath::parse("/workspace")?);
    let request = request.env("GIVEN", "a = b\nc").env("LD_PRELOAD", "/workspace/missing.so");
    let ended = sandbox.shell().execute(&OpContext::new(), request).await?;
    assert_eq!(ended.stdout, "a = b\nc\n");
    assert_eq!(ended.stderr.matches("missing.so").count(), 1, "only the shell is started with it: {}", ended.stderr);
    let ended = run(&sandbox, "/usr/bin/env").await?;
    let names: Vec<&str> = ended.stdout.lines().filter_map(|line| line.split('=').next()).collect();
    assert!(names.iter().all(|name| ["PWD", "_", "OLDPWD", "SHLVL"].contains(name)), "{names:?}");
    Ok(())
}

async fn leftovers() -> Outcome {
    let directory = tempfile::tempdir()?;
    let sandbox = OsSandbox::open(config(&directory)).await?.into_backend()?;
    // Its arguments are how it is known outside, where it has another number.
    let seconds = format!("1000.{}", std::process::id());
    let command = format!("setsid sleep {seconds} & until [ -e seen ]; do sleep 0.01; done; echo out");
    let runs = || -> std::io::Result<bool> {
        let named = |process: fs::DirEntry| fs::read(process.path().join("cmdline")).unwrap_or_default();
        let sleeps = |line: Vec<u8>| line == format!("sleep\0{seconds}\0").into_bytes();
        Ok(fs::read_dir("/proc")?.flatten().any(|process| sleeps(named(process))))
    };
    let watching = async {
        while !runs()? {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        fs::write(directory.path().join("seen"), "")
    };
    let watching = tokio::time::timeout(std::time::Duration::from_secs(60), watching);
    let (ended, seen) = tokio::join!(run(&sandbox, &command), watching);
    seen.expect("it runs")?;
    assert_eq!(ended?.stdout, "out\n");
    assert!(!runs()?, "it is still there");
    Ok(())
}

async fn without_helper() -> Outcome {
    let directory = tempfile::tempdir()?;
    let config = SandboxConfig::new(directory.path()).helper(Helper::Unused).unprotected();
    let sandbox = OsSandbox::open(config).await?;
    assert!(!sandbox.report().enforces(Belt::LandlockFiles));
    let sandbox = sandbox.into_backend()?;
    let request = ExecuteRequest::new("echo \"$GIVEN\"; ls /proc/self/fd | wc -l").cwd(VfsPath::parse("/workspace")?);
    let ended = sandbox.shell().execute(&OpContext::new(), request.env("GIVEN", "a = b\nc")).await?;
    // The three standard ones, and the directory that is listed.
    assert_eq!(ended.stdout, "a = b\nc\n4\n", "{ended:?}");
    Ok(())
}

async fn without_namespaces() -> Outcome {
    let directory = tempfile::tempdir()?;
    let config = SandboxConfig::in_place(directory.path())?.only([Mechanism::Landlock, Mechanism::Seccomp]);
    let refused = OsSandbox::open(config.clone()).await.expect_err("that is less than is required");
    assert!(refused.message().contains("private_tmp: "), "{refused}");
    let report = OsSandbox::check(config.clone()).await?;
    if Belt::WITHOUT_NAMESPACES.iter().any(|belt| !report.enforces(*belt)) {
        // An older kernel, which says so.
        return Ok(());
    }
    let sandbox = OsSandbox::open(config.require(Belt::WITHOUT_NAMESPACES.iter().copied())).await?.into_backend()?;
    let cwd = VfsPath::parse(directory.path().to_str().expect("UTF-8"))?;
    let request =
        ExecuteRequest::new("echo x > file; cat /etc/hostname 2>&1 || ls -d /tmp/. 2>&1; id -u").cwd(cwd.clone());
    let ended = sandbox.shell().execute(&OpContext::new(), request).await?;
    assert!(ended.output.contains("Permission denied"), "{ended:?}");
    assert_eq!(sandbox.read_text(cwd.join("file")?.as_str()).await?, "x\n");
    Ok(())
}

async fn reports() -> Outcome {
    let directory = tempfile::tempdir()?;
    let report = OsSandbox::check(config(&directory)).await?;
    let json = serde_json::to_string(&report)?;
    assert_eq!(serde_json::from_str::<SandboxReport>(&json)?, report);
    let table = report.to_string();
    for belt in Belt::ALL {
        assert!(table.lines().any(|line| line.starts_with(belt.code())), "{belt} is in\n{table}");
    }
    Ok(())
}

async fn overlay() -> Outcome {
    let cx = OpContext::new();
    let project = Arc::new(MemoryBackend::new());
    project.create_text("/project/src/main.rs", "fn main() {}\n").await?;
    project.create_text("/project/old", "old\n").await?;
    project.create_text("/project/run", "#!/bin/sh\necho ran > \"$1\"\n").await?;
    project.create_text("/elsewhere", "x").await?;
    let overlay = OverlayBackend::new(Arc::<MemoryBackend>::clone(&project) as _);
    overlay.edit_text("/project/src/main.rs", "main", "start").await?;
    let from = VfsPath::parse("/project")?;
    let mut workspace = Workspace::checkout(&cx, Arc::new(overlay.clone()), from, std::env::temp_dir()).await?;
    let directory = workspace.directory().to_owned();
    let config = SandboxConfig::new(&directory).helper(Helper::At(own()));
    let sandbox = OsSandbox::open(config).await?.into_backend()?;
    let ended =
        run(&sandbox, "ls; cat src/main.rs; ./run made; rm old; touch run; echo '// end' >> src/main.rs").await?;
    assert_eq!(ended.output, "old\nrun\nsrc\nfn start() {}\n", "{ended:?}");

    let found = workspace.changes(&cx).await?;
    let kinds: Vec<_> = found.changes.changes.iter().map(|change| (change.path.as_str(), change.kind)).collect();
    let expected = [
        ("/project/made", ChangeKind::Added),
        ("/project/old", ChangeKind::Removed),
        ("/project/src/main.rs", ChangeKind::Changed),
    ];
    assert_eq!(kinds, expected);
    assert!(found.changes.unified().contains("+// end"), "{}", found.changes.unified());
    assert_eq!(overlay.read_text("/project/old").await?, "old\n");

    let collected = workspace.collect(&cx).await?;
    assert_eq!(collected.changes, found.changes);
    assert_eq!(overlay.read_text("/project/made").await?, "ran\n");
    assert_eq!(overlay.read_text("/project/src/main.rs").await?, "fn start() {}\n// end\n");
    assert_eq!(overlay.read_text("/project/old").await.expect_err("removed").kind(), ErrorKind::NotFound);
    assert_eq!(project.read_text("/project/src/main.rs").await?, "fn main() {}\n");
    assert!(workspace.changes(&cx).await?.changes.is_empty());

    overlay.discard(&cx).await?;
    assert_eq!(overlay.read_text("/project/old").await?, "old\n");
    drop(workspace);
    assert!(!directory.exists());
    Ok(())
}

async fn conflicts() -> Outcome {
    let cx = OpContext::new();
    let files = Arc::new(MemoryBackend::new());
    for name in ["/both", "/here", "/gone"] {
        files.create_text(name, "before\n").await?;
    }
    let mut workspace =
        Workspace::checkout(&cx, Arc::<MemoryBackend>::clone(&files) as _, VfsPath::root(), std::env::temp_dir())
            .await?;
    for name in ["both", "here", "gone", "new"] {
        fs::write(workspace.directory().join(name), "inside\n")?;
    }
    symlink("/etc/passwd", workspace.directory().join("out"))?;
    files.edit_text("/both", "before", "outside").await?;
    files.remove("/gone").await?;
    files.create_text("/new", "outside\n").await?;
    for collected in [workspace.changes(&cx).await?, workspace.collect(&cx).await?] {
        let changed: Vec<_> = collected.changes.changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(changed, ["/here"]);
        let mut conflicts: Vec<_> = collected.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
        conflicts.sort_unstable();
        assert_eq!(conflicts, ["/both", "/gone", "/new"]);
        assert_eq!(collected.problems.len(), 1, "{:?}", collected.problems);
        assert_eq!(collected.problems[0].path, "/out");
    }
    assert_eq!(files.read_text("/both").await?, "outside\n");
    assert_eq!(files.read_text("/new").await?, "outside\n");
    assert_eq!(files.read_text("/here").await?, "inside\n");
    Ok(())
}
