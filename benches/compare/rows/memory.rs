//! Operations on files in memory, beside eino's.

use std::rc::Rc;

use anyhow::Result;
use serde_json::{Value, json};
use vfs_core::{Backend, CaseMode, GlobRequest, GrepRequest, LsRequest, OpContext, Pattern, VfsPath};
use vfs_memory::MemoryBackend;

use super::disk::answer;
use super::{Goal, Row};
use crate::corpora::{DIRECTORY, RARE, RETURN};
use crate::lab::Lab;
use crate::timing::{Answer, Contest, Unit, measured};

const IN_PROCESS: &str = "in process";
const EINO: &str = "eino";
/// Words that stand nowhere or in 20 files: what costs is to look for all of them.
const ALTERNATION: &str = "quartz_xylophone|granite_clarinet|feldspar_bassoon";

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            id: "glob-directory-memory",
            work: "glob `*.go` below one directory among 20,000 files, in memory",
            ours: IN_PROCESS,
            theirs: EINO,
            unit: Unit::Cpu,
            goal: Goal::Ratio(0.02),
            prepare: |lab| glob(lab, GlobRequest::new("*.go").path(VfsPath::parse(&format!("/{DIRECTORY}"))?)),
        },
        Row {
            id: "glob-prefix-memory",
            work: "glob of one directory from the root of 20,000 files, in memory",
            ours: IN_PROCESS,
            theirs: EINO,
            unit: Unit::Cpu,
            goal: Goal::Ratio(0.02),
            prepare: |lab| glob(lab, GlobRequest::new(format!("{DIRECTORY}/*.go"))),
        },
        Row {
            id: "ls-memory",
            work: "ls of 10 entries among 20,000 files, in memory",
            ours: IN_PROCESS,
            theirs: EINO,
            unit: Unit::Cpu,
            goal: Goal::AtMost(10e-6),
            prepare: ls,
        },
        Row {
            id: "grep-rare-memory",
            work: "grep a rare literal, S, in memory",
            ours: IN_PROCESS,
            theirs: EINO,
            unit: Unit::Cpu,
            goal: Goal::Ratio(0.1),
            prepare: |lab| grep(lab, GrepRequest::literal(RARE)),
        },
        Row {
            id: "grep-insensitive-memory",
            work: "grep a rare literal in any case, S, in memory",
            ours: IN_PROCESS,
            theirs: EINO,
            unit: Unit::Cpu,
            goal: Goal::Ratio(0.02),
            prepare: |lab| grep(lab, GrepRequest::literal(RARE).case(CaseMode::Insensitive)),
        },
        Row {
            id: "grep-alternation-memory",
            work: "grep one of three literals, S, in memory",
            ours: IN_PROCESS,
            theirs: EINO,
            unit: Unit::Cpu,
            goal: Goal::Ratio(0.02),
            prepare: |lab| grep(lab, GrepRequest::regex(ALTERNATION)),
        },
        Row {
            id: "grep-return-memory",
            work: "grep `return`, 373,000 lines of S, in memory",
            ours: IN_PROCESS,
            theirs: EINO,
            unit: Unit::Cpu,
            goal: Goal::Ratio(0.5),
            prepare: |lab| grep(lab, GrepRequest::literal(RETURN).max_result_bytes(u64::MAX)),
        },
        Row {
            id: "snapshot",
            work: "snapshot of 100,000 files in memory",
            ours: IN_PROCESS,
            theirs: "",
            unit: Unit::Wall,
            goal: Goal::AtMost(10e-6),
            prepare: |_| snapshot(),
        },
    ]
}

/// `ours` beside eino's answer to `request` about the same files.
fn beside_eino(
    lab: &Lab,
    repeat: u32,
    work: impl FnMut() -> Result<Answer> + 'static,
    mut request: Value,
) -> Result<Contest> {
    request["root"] = json!(lab.sources()?);
    let mut work = work;
    let ours = move || measured(repeat, &mut work);
    Ok(Contest::new(ours, lab.rivals.eino().map(|eino| move || eino.ask(&request))))
}

fn glob(lab: &Lab, request: GlobRequest) -> Result<Contest> {
    let (runtime, files) = (Rc::clone(&lab.runtime), lab.memory()?);
    let asked = json!({ "op": "glob", "path": request.path.as_str(), "pattern": request.pattern, "repeat": 10 });
    let work = move || {
        let found = runtime.block_on(files.glob(&OpContext::new(), request.clone()))?;
        Ok(Answer::complete(found.entries.len()))
    };
    beside_eino(lab, 500, work, asked)
}

fn ls(lab: &Lab) -> Result<Contest> {
    let (runtime, files) = (Rc::clone(&lab.runtime), lab.memory()?);
    let path = VfsPath::parse(&format!("/{DIRECTORY}"))?;
    let asked = json!({ "op": "ls", "path": path.as_str(), "repeat": 50 });
    let work = move || {
        let found = runtime.block_on(files.ls(&OpContext::new(), LsRequest::new(path.clone())))?;
        Ok(Answer::complete(found.entries.len()))
    };
    beside_eino(lab, 5_000, work, asked)
}

fn grep(lab: &Lab, request: GrepRequest) -> Result<Contest> {
    let (runtime, files) = (Rc::clone(&lab.runtime), lab.memory()?);
    let pattern = match &request.pattern {
        Pattern::Regex(regex) => regex,
        // The literals of these rows have no character that means something in a regular expression.
        other => other.as_str(),
    };
    let case = if request.case == CaseMode::Insensitive { "insensitive" } else { "sensitive" };
    let asked = json!({ "op": "grep", "path": "/", "pattern": pattern, "case": case });
    let work = move || {
        let found = runtime.block_on(files.grep(&OpContext::new(), request.clone()))?;
        Ok(answer(&found))
    };
    beside_eino(lab, 1, work, asked)
}

fn snapshot() -> Result<Contest> {
    let files = vfs_benches::source_tree(100_000).and_then(MemoryBackend::from_files)?;
    Ok(Contest::alone(move || {
        measured(10_000, || {
            drop(files.snapshot());
            Ok(Answer::complete(100_000))
        })
    }))
}
