//! Tools that a model calls, beside the requests that they make.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use serde_json::{Value, json};
use vfs_core::search::{CaseMode, GrepOutput};
use vfs_core::{Backend, GrepEvent, GrepRequest, OpContext, ReadRequest, VfsPath, format};
use vfs_memory::MemoryBackend;
use vfs_tools::{Profile, ToolSet};

use super::{Goal, Row, disk};
use crate::corpora::RETURN;
use crate::lab::Lab;
use crate::measure::{self, ToolSearch, counted_matches};
use crate::timing::{Answer, Contest, Unit, measured};

const IN_PROCESS: &str = "in process";
const FILE: &str = "/src/file.rs";
const CALLS: u32 = 1_000;

/// Maximum time of a tool that reads 4 KiB, beyond the read.
const TWENTY_MICROSECONDS: Goal = Goal::AtMost(20e-6);

/// Bytes that are numbered in a second, at least.
const NUMBERED_A_SECOND: f64 = 500e6;

/// Size in bytes of a text whose numbered lines fit into one result of eino's tool.
const EINO_BYTES: usize = 50_000;

pub(super) fn rows() -> Vec<Row> {
    let alone =
        |id, work, goal, prepare| Row { id, work, ours: IN_PROCESS, theirs: "", unit: Unit::Cpu, goal, prepare };
    vec![
        alone("tool-read", "the native `read` of 4 KiB in memory, beyond the read", TWENTY_MICROSECONDS, |lab| {
            let call = Call { profile: Profile::Native, tool: "read", arguments: json!({ "path": FILE }) };
            beyond_the_read(lab, 4 << 10, call, request()?.limit(250).max_bytes(16_000))
        }),
        alone(
            "tool-read-deepagents",
            "deepagents' `read_file` of 4 KiB in memory, beyond the read",
            TWENTY_MICROSECONDS,
            |lab| {
                let arguments = json!({ "file_path": FILE, "limit": 250 });
                let call = Call { profile: Profile::Deepagents, tool: "read_file", arguments };
                beyond_the_read(lab, 4 << 10, call, request()?.limit(250).max_bytes(16_000))
            },
        ),
        alone(
            "tool-number-lines",
            "number the lines of 1 MB, at 500 MB/s",
            Goal::AtMost(1e6 / NUMBERED_A_SECOND),
            |_| number_lines(1_000_000),
        ),
        alone(
            "tool-number-lines-eino",
            "eino's `read_file` of 50 kB in memory, beyond the read, at 500 MB/s",
            Goal::AtMost(EINO_BYTES as f64 / NUMBERED_A_SECOND),
            |lab| {
                let arguments = json!({ "file_path": FILE, "limit": 10_000 });
                let call = Call { profile: Profile::Eino, tool: "read_file", arguments };
                beyond_the_read(lab, EINO_BYTES, call, request()?.limit(10_000))
            },
        ),
        Row {
            id: "tool-search-million",
            work: "the native `search` for `return`, a million lines of L, for the first time",
            ours: IN_PROCESS,
            theirs: "the counts of the backend, streamed",
            unit: Unit::Wall,
            goal: Goal::Ratio(1.1),
            prepare: search,
        },
        Row {
            ours: "a fresh process",
            unit: Unit::Memory,
            ..alone("tool-search-million-memory", "the same", Goal::AtMost(64e6), |lab| {
                let search = ToolSearch { root: lab.linux()?, warm_up: "/init".into(), pattern: RETURN.into() };
                Ok(Contest::alone(move || measure::tool_search_in_a_child(&search)))
            })
        },
    ]
}

/// A call of a tool.
struct Call {
    profile: Profile,
    tool: &'static str,
    arguments: Value,
}

fn request() -> Result<ReadRequest> {
    Ok(ReadRequest::new(VfsPath::parse(FILE)?))
}

/// Returns `size` bytes of text like source code.
fn source(size: usize) -> Result<String> {
    let files = vfs_benches::source_tree(size as u64 / (4 << 10) + 1)?;
    let text: Vec<u8> = files.into_iter().flat_map(|(_, text)| text).take(size).collect();
    Ok(String::from_utf8(text)?)
}

/// How much longer a tool takes than its read of a file of `size` bytes, which is measured after each sample.
fn beyond_the_read(lab: &Lab, size: usize, call: Call, request: ReadRequest) -> Result<Contest> {
    let runtime = Rc::clone(&lab.runtime);
    let file = (request.path.clone(), source(size)?.into());
    let files: Arc<dyn Backend> = Arc::new(MemoryBackend::from_files([file])?);
    Ok(Contest::alone(move || {
        // A second read of the same lines is answered in one line, so that each call is the first one of a conversation.
        let new = || ToolSet::new(Arc::clone(&files), call.profile);
        let conversations: Vec<ToolSet> = std::iter::repeat_with(new).take(CALLS as usize).collect();
        let mut unused = conversations.iter();
        let by_tool = measured(CALLS, || {
            let tools = unused.next().context("there is a conversation for each call")?;
            let outcome = runtime.block_on(tools.call(&OpContext::new(), call.tool, &call.arguments));
            let text = outcome.to_text();
            ensure!(
                outcome.failure.is_none() && !outcome.is_truncated && text.len() > size,
                "not all is shown: {text}"
            );
            Ok(Answer::complete(text.len()))
        })?;
        let by_backend = measured(CALLS, || {
            let read = runtime.block_on(files.read(&OpContext::new(), request.clone()))?;
            Ok(Answer::complete(read.content.as_bytes().len()))
        })?;
        Ok(by_tool.beyond(by_backend))
    }))
}

fn number_lines(size: usize) -> Result<Contest> {
    let files = MemoryBackend::from_files([(VfsPath::parse(FILE)?, source(size)?.into())])?;
    let read = futures::executor::block_on(files.read(&OpContext::new(), request()?))?;
    Ok(Contest::alone(move || measured(50, || Ok(Answer::complete(format::numbered(&read).len())))))
}

fn search(lab: &Lab) -> Result<Contest> {
    let files = Arc::new(disk::first(lab, &lab.linux()?)?);
    let tools = ToolSet::new(Arc::clone(&files) as Arc<dyn Backend>, Profile::Native);
    let runtime = Rc::clone(&lab.runtime);
    let ours = move || {
        measured(1, || {
            let arguments = json!({ "pattern": RETURN });
            counted_matches(&runtime.block_on(tools.call(&OpContext::new(), "search", &arguments)))
        })
    };
    let runtime = Rc::clone(&lab.runtime);
    let theirs = move || {
        measured(1, || {
            let request = GrepRequest::literal(RETURN).case(CaseMode::Smart).output(GrepOutput::Counts);
            let mut events = files.grep_stream(OpContext::new(), request);
            runtime.block_on(async {
                let mut count = 0;
                while let Some(event) = events.next().await {
                    if let GrepEvent::File(file) = event? {
                        count += file.count.unwrap_or(0);
                    }
                }
                Ok(Answer { count, ..Answer::default() })
            })
        })
    };
    Ok(Contest::new(ours, Ok(theirs)))
}
