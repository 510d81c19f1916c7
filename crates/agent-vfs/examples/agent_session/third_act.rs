//! The same project once more: now the agent runs commands on it, and nothing of what they do stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_vfs::sandbox::{HelperLocation, OsSandbox, SandboxConfig, Workspace};
use agent_vfs::versions::OverlayBackend;
use agent_vfs::{Backend, BackendExt, ErrorKind, ExecuteRequest, LocalBackend, OpContext, Result, VfsPath};

use super::{answer, call, say};

/// A file of this repository that needs no other to be compiled, and has tests.
const SMALL: &str = "crates/vfs-search/src/searcher/aligned_buffer.rs";

/// Works on `project`.
pub(super) async fn run(project: &LocalBackend) -> std::result::Result<(), Box<dyn std::error::Error>> {
    say(
        "Third act. The agent wants to run commands. They get a copy of what it sees, in a sandbox: no network, nothing of \
         this machine but its programs, and nothing to write to but the copy.",
    );
    let cx = OpContext::new().with_actor("agent");
    let overlay = OverlayBackend::new(Arc::new(project.clone()));
    overlay
        .create_text("/tests.sh", &format!("set -e\nrustc --edition 2024 --test {SMALL} -o /tmp/test\n/tmp/test\n"))
        .await?;
    let mut workspace =
        Workspace::checkout(&cx, Arc::new(overlay.clone()), VfsPath::root(), std::env::temp_dir()).await?;
    let mut config = SandboxConfig::new(workspace.directory()).helper(HelperLocation::At(std::env::current_exe()?));
    let programs = programs();
    if let Some(programs) = &programs {
        config = config.tool(programs);
    }
    let sandbox = match OsSandbox::open(config).await {
        Ok(sandbox) => sandbox,
        // Not every machine lets its users have one.
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            answer(&format!("no commands are run: {error}"));
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    answer(&sandbox.report().to_string());
    let commands = Commands { backend: Arc::new(sandbox.into_backend()?), path: search_path(programs.as_deref()) };

    commands
        .run(&cx, "cargo metadata --offline --no-deps --format-version 1 > metadata.json && wc -c < metadata.json")
        .await?;
    commands.run(&cx, "sh tests.sh").await?;
    say("What it must not be able to do, it cannot:");
    commands.run(&cx, "echo gone > /etc/passwd; cat ~/.ssh/id_rsa; cat < /dev/tcp/127.0.0.1/22").await?;

    let collected = workspace.collect(&cx).await?;
    say("What the commands changed is in the overlay now, beside what the agent wrote itself:");
    for change in &overlay.diff(&cx).await?.changes {
        answer(&format!("{:?} {}: {} lines", change.kind, change.path, change.diff.lines().count()));
    }
    answer(&format!("{} conflicts", collected.conflicts.len()));
    say("It was an experiment. The overlay is discarded, and the project is as it was:");
    call("discard");
    overlay.discard(&cx).await?;
    answer(&format!("/metadata.json is there: {}", overlay.exists("/metadata.json").await?));
    Ok(())
}

/// The sandbox, and where its programs are.
struct Commands {
    backend: Arc<dyn Backend>,
    path: String,
}

impl Commands {
    async fn run(&self, cx: &OpContext, command: &str) -> Result<()> {
        call(command);
        let request = ExecuteRequest::new(command)
            .cwd(VfsPath::parse(SandboxConfig::WORKSPACE)?)
            .env("PATH", &self.path)
            .timeout(Duration::from_secs(60));
        let Some(shell) = self.backend.as_shell() else { return Ok(()) };
        let ended = shell.execute(cx, request).await?;
        answer(ended.output.trim_end());
        let code = ended.exit_code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        answer(&format!("exit code {code}, after {:.1?}", ended.duration));
        Ok(())
    }
}

/// The directory of the Rust programs that run this example, where cargo runs it.
fn programs() -> Option<PathBuf> {
    let cargo = PathBuf::from(std::env::var_os("CARGO")?);
    Some(cargo.parent()?.parent()?.to_owned())
}

fn search_path(programs: Option<&Path>) -> String {
    match programs {
        Some(programs) => format!("{}/bin:/usr/bin:/bin", programs.display()),
        None => "/usr/bin:/bin".to_owned(),
    }
}
