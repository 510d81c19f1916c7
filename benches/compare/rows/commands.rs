//! Commands in a sandbox, and files of a place that is reached by a shell.

use std::process::Command;
use std::rc::Rc;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use vfs_core::{
    Backend, EditRequest, ExecuteRequest, LsRequest, OpContext, ReadRequest, StatRequest, VfsPath, WriteMode,
    WriteRequest,
};
use vfs_remote::{LocalProcess, RemoteConfig, SandboxBackend};
use vfs_sandbox::{HelperLocation, OsSandbox, SandboxConfig};

use super::{Goal, Row};
use crate::lab::Lab;
use crate::timing::{Answer, Contest, Unit, measured};

const CALLS: u32 = 21;

/// What a file operation over a shell of this machine may take.
const FIVE_MILLISECONDS: Goal = Goal::AtMost(0.005);

pub(super) fn rows() -> Vec<Row> {
    let remote = |id, work, theirs, prepare| Row {
        id,
        work,
        ours: "over `sh`",
        theirs,
        unit: Unit::Wall,
        goal: FIVE_MILLISECONDS,
        prepare,
    };
    let deepagents = "deepagents, over `sh`";
    vec![
        Row {
            id: "sandbox-true",
            work: "`true` in a sandbox, beyond a bare `true`",
            ours: "in namespaces",
            theirs: "",
            unit: Unit::Wall,
            goal: Goal::AtMost(0.015),
            prepare: sandboxed,
        },
        remote("remote-stat", "stat a file of a place with a shell", "", |lab| over_shell(lab, Operation::Stat)),
        remote("remote-read", "read a file there", deepagents, |lab| over_shell(lab, Operation::Read)),
        remote("remote-ls", "list a directory there", deepagents, |lab| over_shell(lab, Operation::Ls)),
        remote("remote-create", "create a file there", deepagents, |lab| over_shell(lab, Operation::Create)),
        remote("remote-overwrite", "overwrite a file there", "", |lab| over_shell(lab, Operation::Overwrite)),
        remote("remote-edit", "edit a file there", deepagents, |lab| over_shell(lab, Operation::Edit)),
        Row {
            ours: "over `busybox sh`",
            ..remote("remote-edit-busybox", "edit a file of a place with busybox", deepagents, |lab| {
                contest(lab, LocalProcess::command(["busybox", "sh", "-c"]), Operation::Edit)
            })
        },
    ]
}

/// How much longer a command takes in a sandbox: a bare one is measured after each.
fn sandboxed(lab: &Lab) -> Result<Contest> {
    let runtime = Rc::clone(&lab.runtime);
    let root = lab.scratch("sandbox")?;
    // This program is its own helper, as the command is.
    let config = SandboxConfig::new(root).helper(HelperLocation::At(std::env::current_exe()?));
    let files = runtime.block_on(OsSandbox::open(config))?.into_backend()?;
    let ours = move || {
        let sandboxed = measured(CALLS, || {
            let shell = files.as_shell().context("a sandbox has a shell")?;
            let ended = runtime.block_on(shell.execute(&OpContext::new(), ExecuteRequest::new("true")))?;
            ensure!(ended.exit_code == Some(0), "it failed: {ended:?}");
            Ok(Answer::default())
        })?;
        let bare = measured(CALLS, || {
            ensure!(Command::new("/bin/sh").args(["-c", "true"]).output()?.status.success(), "it failed");
            Ok(Answer::default())
        })?;
        Ok(sandboxed.beyond(bare))
    };
    Ok(Contest::alone(ours))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Stat,
    Read,
    Ls,
    Create,
    Overwrite,
    Edit,
}

fn over_shell(lab: &Lab, operation: Operation) -> Result<Contest> {
    contest(lab, LocalProcess::new(), operation)
}

fn contest(lab: &Lab, place: LocalProcess, operation: Operation) -> Result<Contest> {
    let (ours, theirs) = (lab.scratch("remote")?, lab.scratch("remote-deepagents")?);
    for directory in [&ours, &theirs] {
        std::fs::write(directory.join("file"), "round old\n")?;
    }
    let root = ours.to_str().context("the cache has a plain path")?;
    let files = SandboxBackend::new(place, RemoteConfig::new(root));
    let runtime = Rc::clone(&lab.runtime);
    let mut round = 0_u32;
    let ours = move || {
        measured(CALLS, || {
            round += 1;
            let count = runtime.block_on(once(&files, operation, round))?;
            Ok(Answer::complete(count))
        })
    };
    let op = match operation {
        // Without a rival: deepagents has no such call.
        Operation::Stat | Operation::Overwrite => return Ok(Contest::alone(ours)),
        Operation::Read => "remote_read",
        Operation::Ls => "remote_ls",
        Operation::Create => "remote_create",
        Operation::Edit => "remote_edit",
    };
    let request = json!({
        "op": op, "root": theirs, "path": theirs.join("file"), "old": "old", "new": "new", "repeat": CALLS,
    });
    Ok(Contest::new(ours, lab.rivals.deepagents_process().map(|python| move || python.ask(&request))))
}

/// Makes one call, and tells how much was answered.
async fn once(files: &dyn Backend, operation: Operation, round: u32) -> Result<usize> {
    let (cx, at) = (OpContext::new(), VfsPath::parse("/file")?);
    Ok(match operation {
        Operation::Stat => usize::from(files.stat(&cx, StatRequest::new(at)).await?.version.is_some()),
        Operation::Read => {
            files.read(&cx, ReadRequest::new(at)).await?.content.as_bytes().split(|b| *b == b'\n').count() - 1
        }
        Operation::Ls => files.ls(&cx, LsRequest::new(VfsPath::root())).await?.entries.len(),
        Operation::Create => {
            files.write(&cx, WriteRequest::new(VfsPath::parse(&format!("/new/{round}"))?, "new\n")).await?;
            1
        }
        Operation::Overwrite => {
            let request = WriteRequest::new(at, format!("round {round}\n")).mode(WriteMode::Overwrite);
            files.write(&cx, request).await?;
            1
        }
        Operation::Edit => {
            let turn = if round % 2 == 1 { ("old", "new") } else { ("new", "old") };
            usize::try_from(files.edit(&cx, EditRequest::new(at, turn.0, turn.1)).await?.occurrences)?
        }
    })
}
