//! Single calls on small files, on disk.

use std::fs;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use vfs_core::operation::{Intercepted, ResultStream, StreamCall, StreamRequest, UnaryRequest};
use vfs_core::{Backend, EditRequest, Interceptor, OpContext, ReadRequest, VfsPath};
use vfs_local::{Durability, LocalBackend, LocalConfig};

use super::{Goal, Row};
use crate::lab::Lab;
use crate::timing::{Answer, Contest, Unit, measured};

const LAYERS: usize = 5;
const READS: u32 = 5_000;
const EDITS: u32 = 100;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            id: "read-layers",
            work: "read 4 KiB, confined, through `Arc<dyn Backend>` and five layers",
            ours: "in process",
            theirs: "`std::fs::read` in `spawn_blocking`",
            unit: Unit::Wall,
            goal: Goal::Ratio(1.3),
            prepare: read,
        },
        Row {
            id: "edit-line",
            work: "edit one line of a 4 KiB file on disk, without syncing",
            ours: "in process",
            theirs: "deepagents",
            unit: Unit::Wall,
            goal: Goal::Ratio(0.1),
            prepare: edit,
        },
    ]
}

/// A layer that looks at every operation and lets it through.
#[derive(Debug)]
struct LetThrough;

impl Interceptor for LetThrough {
    fn name(&self) -> &'static str {
        "let-through"
    }

    async fn call<Q: UnaryRequest>(
        &self,
        inner: &dyn Backend,
        cx: &OpContext,
        request: Q,
    ) -> vfs_core::Result<Q::Output> {
        request.send(inner, cx).await
    }

    fn stream<Q: StreamRequest>(self: Arc<Self>, cx: OpContext, call: StreamCall<Q>) -> ResultStream<Q::Output> {
        call.start(cx)
    }
}

/// 4 KiB, in lines that are all different.
fn text() -> String {
    (0..64).map(|line| format!("line {line:02} of a file that is read and edited over and over again\n")).collect()
}

fn read(lab: &Lab) -> Result<Contest> {
    let directory = lab.scratch("read")?;
    let host = directory.join("file");
    fs::write(&host, text())?;
    let local: Arc<dyn Backend> = Arc::new(LocalBackend::open(&directory)?);
    let layered = (0..LAYERS).fold(local, |inner, _| Arc::new(Intercepted::new(inner, Arc::new(LetThrough))));
    let (runtime, path) = (Rc::clone(&lab.runtime), VfsPath::parse("/file")?);
    // Both loops run on a worker of the runtime, as an agent's tools do.
    let ours = move || {
        measured(1, || {
            let (files, path) = (Arc::clone(&layered), path.clone());
            let reads = runtime.spawn(async move {
                let mut bytes = 0;
                for _ in 0..READS {
                    let read = files.read(&OpContext::new(), ReadRequest::new(path.clone())).await?;
                    bytes = read.content.as_bytes().len();
                }
                anyhow::Ok(Answer::complete(bytes))
            });
            runtime.block_on(reads)?
        })
        .map(|all| all.each(READS))
    };
    let runtime = Rc::clone(&lab.runtime);
    let theirs = move || {
        measured(1, || {
            let host = host.clone();
            let reads = runtime.spawn(async move {
                let mut bytes = 0;
                for _ in 0..READS {
                    let host = host.clone();
                    bytes = tokio::task::spawn_blocking(move || fs::read(host)).await??.len();
                }
                anyhow::Ok(Answer::complete(bytes))
            });
            runtime.block_on(reads)?
        })
        .map(|all| all.each(READS))
    };
    Ok(Contest::new(ours, Ok(theirs)))
}

fn edit(lab: &Lab) -> Result<Contest> {
    let (ours, theirs) = (lab.scratch("edit")?, lab.scratch("edit-deepagents")?);
    for directory in [&ours, &theirs] {
        fs::write(directory.join("file.txt"), text())?;
    }
    let (old, new) = ("line 32", "LINE 32");
    let request = json!({
        "op": "edit", "root": theirs, "path": "/file.txt", "old": old, "new": new, "repeat": EDITS,
    });
    let files = LocalConfig::new(&ours).durability(Durability::Atomic).open()?;
    let (runtime, path) = (Rc::clone(&lab.runtime), VfsPath::parse("/file.txt")?);
    let ours = move || {
        let mut turn = (old, new);
        measured(EDITS, || {
            let edit = EditRequest::new(path.clone(), turn.0, turn.1);
            turn = (turn.1, turn.0);
            Ok(Answer {
                count: runtime.block_on(files.edit(&OpContext::new(), edit))?.occurrences,
                ..Answer::default()
            })
        })
    };
    Ok(Contest::new(ours, lab.rivals.deepagents_process().map(|python| move || python.ask(&request))))
}
