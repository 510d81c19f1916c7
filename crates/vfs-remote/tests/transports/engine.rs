//! Container transport with a real engine, on an image of this machine's busybox.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use libtest_mimic::Trial;
use vfs_core::{Backend as _, BackendExt as _, ExecuteRequest, GrepRequest, OpContext, Shell as _};
use vfs_remote::{ContainerExec, ContainerExecConfig, RemoteConfig, SandboxBackend, ScriptInvocation};

use crate::{exited, laws, program, run, trial};

/// Arguments with which an engine starts a container: none, and those that work with control groups of version 1 or
/// without permission to set limits.
const WAYS: [&[&str]; 2] = [&[], &["--runtime=runc", "--cgroup-manager=cgroupfs"]];

/// Arguments that replace defaults which an engine started in the second way is not permitted to set.
const LIMITS: [&str; 3] =
    ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--security-opt=seccomp=unconfined"];

/// A running container, which is removed with the last handle.
struct Container {
    engine: &'static str,
    way: &'static [&'static str],
    name: String,
    /// The image, if it has to be removed with the container.
    image: Option<String>,
}

impl Container {
    /// Starts a container that shares the temporary files of this machine, or returns the reason for which none starts.
    fn start(engine: &'static str) -> Result<Self, String> {
        output_of(Command::new(engine).arg("info"))?;
        let busybox = program("busybox").ok_or("busybox")?;
        let root = tempfile::tempdir().map_err(|error| error.to_string())?;
        let tree = |name: &str| root.path().join(name);
        for directory in ["bin", "workspace", "proc"] {
            std::fs::create_dir(tree(directory)).map_err(|error| error.to_string())?;
        }
        std::fs::copy(&busybox, tree("bin/busybox")).map_err(|error| error.to_string())?;
        for applet in output_of(Command::new(&busybox).arg("--list"))?.lines().filter(|name| *name != "busybox") {
            std::os::unix::fs::symlink("busybox", tree("bin").join(applet)).map_err(|error| error.to_string())?;
        }
        let (name, archive) = (format!("vfs-test-{}", std::process::id()), tree("archive"));
        output_of(Command::new("tar").arg("-C").arg(root.path()).arg("-cf").arg(&archive).args([
            "bin",
            "workspace",
            "proc",
        ]))?;
        let imported = output_of(Command::new(engine).arg("import").arg(&archive))?;
        let image = imported.lines().last().unwrap_or_default().to_owned();
        let mut last_error = String::new();
        for (way, limits) in WAYS.into_iter().zip([&[][..], &LIMITS[..]]) {
            let mut container = Self { engine, way, name: name.clone(), image: None };
            // A busybox that needs shared libraries starts, and exits at once.
            let run = container.run(&image, limits, &std::env::temp_dir()).and_then(|_| container.does_nothing());
            match run {
                Ok(_) => {
                    container.image = Some(image);
                    return Ok(container);
                }
                Err(reason) => last_error = reason,
            }
        }
        output_of(Command::new(engine).arg("rmi").arg(&image))?;
        Err(last_error)
    }

    fn run(&self, image: &str, limits: &[&str], shared: &Path) -> Result<String, String> {
        let shared = format!("{0}:{0}", shared.display());
        let mut command = Command::new(self.engine);
        command.args(self.way).args(["run", "--detach", "--network=none", "--name", &self.name, "--volume", &shared]);
        output_of(command.args(limits).args([image, "/bin/sleep", "100000"]))
    }

    fn does_nothing(&self) -> Result<String, String> {
        output_of(Command::new(self.engine).args(self.way).args(["exec", &self.name, "/bin/true"]))
    }

    fn place(&self) -> ContainerExec {
        let config = ContainerExecConfig::with_program(self.engine, &self.name);
        let config = self.way.iter().fold(config, |config, argument| config.engine_argument(argument));
        ContainerExec::new(config).expect("a transport")
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // A container that never ran does not exist.
        let own = [(&["kill"][..], &self.name), (&["rm", "--force"], &self.name)].into_iter();
        for (arguments, of) in own.chain(self.image.iter().map(|image| (&["rmi"][..], image))) {
            let _ = output_of(Command::new(self.engine).args(self.way).args(arguments).arg(of));
        }
    }
}

/// Returns the output of a program, or its error message.
fn output_of(command: &mut Command) -> Result<String, String> {
    let Output { status, stdout, stderr } = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if status.success() {
        Ok(words(&stdout))
    } else {
        Err(words(&stderr).lines().next().unwrap_or_default().to_owned())
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    ["docker", "podman"].into_iter().flat_map(of).collect()
}

fn of(engine: &'static str) -> Vec<Trial> {
    let (container, missing) = match Container::start(engine) {
        Ok(container) => (Some(Arc::new(container)), None),
        Err(reason) => (None, Some(format!("an engine behind `{engine}` ({reason})"))),
    };
    let named = |name: &str| format!("container::{engine}::{name}");
    let place = |container: &Option<Arc<Container>>| container.clone().expect("it runs, else this is ignored");
    let mut trials = Vec::new();
    for (name, law) in laws::ALL {
        let container = container.clone();
        trials.push(trial(named(name), missing.as_deref(), move || async move {
            let container = place(&container);
            law(Arc::new(container.place())).await;
        }));
    }
    for (name, body) in [("files_and_commands", Body::Files), ("a_container_that_stops", Body::Stopped)] {
        let container = container.clone();
        trials.push(trial(named(name), missing.as_deref(), move || async move {
            let container = place(&container);
            match body {
                Body::Files => files(&container).await,
                Body::Stopped => stopped(&container).await,
            }
        }));
    }
    trials
}

#[derive(Clone, Copy)]
enum Body {
    Files,
    Stopped,
}

async fn files(container: &Container) {
    let files = SandboxBackend::new(container.place(), RemoteConfig::new("/workspace"));
    let text = "first line\r\nsecond \u{e9} line\n";
    files.create_text("/d e/it's [a] file", text).await.expect("it is written");
    assert_eq!(files.read_text("/d e/it's [a] file").await.expect("it is read"), text);
    files.create_text("/plain", "some text\n").await.expect("it is written");
    files.edit_text("/plain", "some", "other").await.expect("it is edited");
    let found = files.grep(&OpContext::new(), GrepRequest::literal("other")).await.expect("it is searched");
    assert_eq!(found.matches.len(), 1, "{found:?}");
    files.create_text("/plain", "again").await.expect_err("it is there");
    let request = ExecuteRequest::new("cat plain; id -u; exit 3");
    let ended = files.execute(&OpContext::new(), request).await.expect("it runs");
    assert_eq!((ended.stdout.as_str(), ended.exit_code), ("other text\n0\n", Some(3)));
}

/// The engine's message about a missing container becomes a typed error.
async fn stopped(container: &Container) {
    let gone = ContainerExec::new(ContainerExecConfig::with_program(container.engine, "vfs-test-is-not-there"));
    let error = vfs_remote::RemoteExec::run(&gone.expect("a transport"), ScriptInvocation::new("true")).await;
    let error = error.expect_err("it is not there");
    assert_eq!(error.kind(), vfs_core::ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("no such container") && error.message().contains("was not run"), "{error}");
    assert_eq!(run(&container.place(), "echo here").await, exited(0, "here\n", ""));
}
