//! Searching on disk: ours in process and as a command, beside ripgrep and deepagents.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Result;
use futures::StreamExt;
use serde_json::json;
use tokio::runtime::Runtime;
use vfs_core::{Backend, GlobRequest, GrepEvent, GrepRequest, GrepResult, OpContext};
use vfs_local::{LocalBackend, LocalConfig, SearchCache};

use super::{Goal, Row};
use crate::corpora::{DIRECTORY, EACH, LINUX_RARE, RETURN};
use crate::lab::Lab;
use crate::rivals::{glob_arguments, grep_arguments, spawned};
use crate::timing::{Answer, Contest, End, Sample, Unit, measured};

const IN_PROCESS: &str = "in process";
const COMMAND: &str = "`vfs`";
const RG: &str = "`rg`";
const DEEPAGENTS: &str = "deepagents";
const HEADERS: &str = "**/*.h";

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            id: "grep-rare-first-rg",
            work: "grep a rare literal, L, for the first time",
            ours: IN_PROCESS,
            theirs: RG,
            unit: Unit::Wall,
            goal: Goal::Ratio(0.8),
            prepare: |lab| grep_beside_rg(lab, &lab.linux()?, first, LINUX_RARE, collected),
        },
        Row {
            id: "grep-rare-again-rg",
            work: "grep a rare literal, L, which was searched before",
            ours: IN_PROCESS,
            theirs: RG,
            unit: Unit::Wall,
            goal: Goal::Ratio(0.8),
            prepare: |lab| grep_beside_rg(lab, &lab.linux()?, searched_before, LINUX_RARE, collected),
        },
        Row {
            id: "grep-rare-command",
            work: "grep a rare literal, L",
            ours: COMMAND,
            theirs: RG,
            unit: Unit::Wall,
            goal: Goal::Ratio(1.0),
            prepare: |lab| grep_commands(lab, lab.linux()?, LINUX_RARE),
        },
        Row {
            id: "grep-rare-first-deepagents",
            work: "grep a rare literal, L, for the first time",
            ours: IN_PROCESS,
            theirs: DEEPAGENTS,
            unit: Unit::Wall,
            goal: Goal::Ratio(0.3),
            prepare: |lab| grep_beside_deepagents(lab, &lab.linux()?, first, LINUX_RARE),
        },
        Row {
            id: "grep-rare-again-deepagents",
            work: "grep a rare literal, L, which was searched before",
            ours: IN_PROCESS,
            theirs: DEEPAGENTS,
            unit: Unit::Wall,
            goal: Goal::Ratio(0.3),
            prepare: |lab| grep_beside_deepagents(lab, &lab.linux()?, searched_before, LINUX_RARE),
        },
        Row {
            id: "grep-each-deepagents",
            work: "grep a literal once in each of 20,000 files, S",
            ours: IN_PROCESS,
            theirs: DEEPAGENTS,
            unit: Unit::Wall,
            goal: Goal::Ratio(0.05),
            prepare: |lab| grep_beside_deepagents(lab, &lab.sources()?, first, EACH),
        },
        Row {
            id: "grep-return-rg",
            work: "grep `return`, a million lines of L, streamed",
            ours: IN_PROCESS,
            theirs: RG,
            unit: Unit::Wall,
            goal: Goal::Ratio(1.2),
            prepare: |lab| grep_beside_rg(lab, &lab.linux()?, first, RETURN, streamed),
        },
        Row {
            id: "grep-return-command",
            work: "grep `return`, a million lines of L, streamed",
            ours: COMMAND,
            theirs: RG,
            unit: Unit::Wall,
            goal: Goal::Ratio(1.2),
            prepare: |lab| grep_commands(lab, lab.linux()?, RETURN),
        },
        Row {
            id: "glob-headers-rg",
            work: "glob `**/*.h`, L",
            ours: IN_PROCESS,
            theirs: "`rg --files -g`",
            unit: Unit::Wall,
            goal: Goal::Ratio(1.1),
            prepare: glob_beside_rg,
        },
        Row {
            id: "glob-headers-command",
            work: "glob `**/*.h`, L",
            ours: COMMAND,
            theirs: "`rg --files -g`",
            unit: Unit::Wall,
            goal: Goal::Ratio(1.1),
            prepare: glob_commands,
        },
        Row {
            id: "glob-headers-deepagents",
            work: "glob `**/*.h`, L",
            ours: IN_PROCESS,
            theirs: DEEPAGENTS,
            unit: Unit::Wall,
            goal: Goal::None,
            prepare: |lab| glob_beside_deepagents(lab, lab.linux()?, HEADERS),
        },
        Row {
            id: "glob-modules-deepagents",
            work: "glob `**/*.py` over 20,000 files, all of them found",
            ours: IN_PROCESS,
            theirs: DEEPAGENTS,
            unit: Unit::Wall,
            goal: Goal::Ratio(0.03),
            prepare: |lab| glob_beside_deepagents(lab, lab.modules()?, "**/*.py"),
        },
        Row {
            id: "glob-directory-disk",
            work: "glob of one directory among 20,000 files, on disk",
            ours: IN_PROCESS,
            theirs: "eino, on disk",
            unit: Unit::Cpu,
            goal: Goal::Ratio(0.02),
            prepare: glob_directory,
        },
    ]
}

/// A search of ours in this process, as a function of a backend.
type Search = fn(&Runtime, &LocalBackend, &str) -> Result<Answer>;

fn collected(runtime: &Runtime, files: &LocalBackend, literal: &str) -> Result<Answer> {
    let found = runtime.block_on(files.grep(&OpContext::new(), GrepRequest::literal(literal)))?;
    Ok(answer(&found))
}

/// The results of a collected search.
pub(super) fn answer(found: &GrepResult) -> Answer {
    let end = if found.truncated.is_some() { End::Cut } else { End::Complete };
    Answer { count: found.matches.len() as u64, end }
}

fn streamed(runtime: &Runtime, files: &LocalBackend, literal: &str) -> Result<Answer> {
    let mut events = files.grep_stream(OpContext::new(), GrepRequest::literal(literal));
    runtime.block_on(async {
        let mut count = 0;
        while let Some(event) = events.next().await {
            if let GrepEvent::Match(found) = event? {
                count += 1;
                drop(found);
            }
        }
        Ok(Answer::complete(count))
    })
}

/// How a backend comes to be searched.
type Opening = fn(&Lab, &Path) -> Result<LocalBackend>;

/// Every search of it is as the first one of a process: nothing is remembered.
pub(super) fn first(_: &Lab, root: &Path) -> Result<LocalBackend> {
    Ok(LocalConfig::new(root).search_cache(SearchCache::new(0)).open()?)
}

/// Another literal was searched for in it until nothing was left to learn.
fn searched_before(lab: &Lab, root: &Path) -> Result<LocalBackend> {
    let memory = SearchCache::new(SearchCache::DEFAULT_MAX_BYTES);
    let files = LocalConfig::new(root).search_cache(memory.clone()).open()?;
    let mut known = None;
    while known != Some(memory.files()) {
        known = Some(memory.files());
        for _ in 0..3 {
            collected(&lab.runtime, &files, "what_nobody_wrote")?;
        }
    }
    anyhow::ensure!(memory.files() > 0, "nothing is remembered: files have to be a minute old, on a local disk");
    Ok(files)
}

fn grep_beside_rg(lab: &Lab, root: &Path, open: Opening, literal: &'static str, search: Search) -> Result<Contest> {
    let (runtime, files) = (Rc::clone(&lab.runtime), open(lab, root)?);
    let ours = move || measured(1, || search(&runtime, &files, literal));
    Ok(Contest::new(ours, rg(lab, root.to_owned(), grep_arguments(literal))?))
}

fn grep_commands(lab: &Lab, root: PathBuf, literal: &str) -> Result<Contest> {
    let ours = command(lab, &root, &["grep", "--", literal])?;
    Ok(Contest::new(ours, rg(lab, root, grep_arguments(literal))?))
}

fn grep_beside_deepagents(lab: &Lab, root: &Path, open: Opening, literal: &'static str) -> Result<Contest> {
    let (runtime, files) = (Rc::clone(&lab.runtime), open(lab, root)?);
    let ours = move || measured(1, || collected(&runtime, &files, literal));
    let request = json!({ "op": "grep", "root": root, "pattern": literal });
    Ok(Contest::new(ours, lab.rivals.deepagents_process().map(|python| move || python.ask(&request))))
}

fn glob(runtime: &Runtime, files: &dyn Backend, request: &GlobRequest) -> Result<Answer> {
    let found = runtime.block_on(files.glob(&OpContext::new(), request.clone()))?;
    let end = if found.truncated.is_some() { End::Cut } else { End::Complete };
    Ok(Answer { count: found.entries.len() as u64, end })
}

fn glob_beside_rg(lab: &Lab) -> Result<Contest> {
    let root = lab.linux()?;
    let (runtime, files) = (Rc::clone(&lab.runtime), LocalBackend::open(&root)?);
    let links = links_among_headers(lab, &root)?;
    let ours = move || Ok(without(measured(1, || glob(&runtime, &files, &GlobRequest::new(HEADERS)))?, links));
    Ok(Contest::new(ours, rg(lab, root, glob_arguments(HEADERS))?))
}

fn glob_commands(lab: &Lab) -> Result<Contest> {
    let root = lab.linux()?;
    let links = links_among_headers(lab, &root)?;
    let mut command = command(lab, &root, &["glob", HEADERS])?;
    Ok(Contest::new(move || Ok(without(command()?, links)), rg(lab, root, glob_arguments(HEADERS))?))
}

/// How many of the headers that we find are symbolic links, which `rg` does not list.
fn links_among_headers(lab: &Lab, root: &Path) -> Result<u64> {
    let files = LocalBackend::open(root)?;
    let found = lab.runtime.block_on(files.glob(&OpContext::new(), GlobRequest::new(HEADERS)))?;
    let mut links = 0;
    for entry in found.entries {
        let host = root.join(entry.path.as_str().trim_start_matches('/'));
        links += u64::from(host.symlink_metadata()?.is_symlink());
    }
    Ok(links)
}

/// `sample`, with `results` left out of the count.
fn without(sample: Sample, results: u64) -> Sample {
    let answer = Answer { count: sample.answer.count.saturating_sub(results), ..sample.answer };
    Sample { answer, ..sample }
}

fn glob_beside_deepagents(lab: &Lab, root: PathBuf, pattern: &'static str) -> Result<Contest> {
    let (runtime, files) = (Rc::clone(&lab.runtime), LocalBackend::open(&root)?);
    let ours = move || measured(1, || glob(&runtime, &files, &GlobRequest::new(pattern)));
    let request = json!({ "op": "glob", "root": root, "pattern": pattern });
    Ok(Contest::new(ours, lab.rivals.deepagents_process().map(|python| move || python.ask(&request))))
}

fn glob_directory(lab: &Lab) -> Result<Contest> {
    let root = lab.sources()?;
    let (runtime, files) = (Rc::clone(&lab.runtime), LocalBackend::open(&root)?);
    let pattern = format!("{DIRECTORY}/*.go");
    let request = json!({ "op": "glob_disk", "root": root, "pattern": pattern });
    let ours = move || measured(200, || glob(&runtime, &files, &GlobRequest::new(pattern.as_str())));
    Ok(Contest::new(ours, lab.rivals.eino_on_disk().map(|eino| move || eino.ask(&request))))
}

fn rg(
    lab: &Lab,
    root: PathBuf,
    arguments: Vec<String>,
) -> Result<Result<impl FnMut() -> Result<Sample> + 'static, String>> {
    let output = lab.scratch("rg")?.join("output");
    Ok(lab.rivals.rg().map(Path::to_owned).map(|rg| move || spawned(&rg, &root, &arguments, &output)))
}

fn command(lab: &Lab, root: &Path, arguments: &[&str]) -> Result<impl FnMut() -> Result<Sample> + 'static> {
    let (vfs, root, output) = (lab.vfs()?, root.to_owned(), lab.scratch("vfs")?.join("output"));
    let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
    Ok(move || spawned(&vfs, &root, &arguments, &output))
}
