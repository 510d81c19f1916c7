//! Bytes that a model sends and receives in six tasks, with the native tools and with `vfs batch`.
//!
//! A call counts with its name and arguments as JSON, and with the whole of its result. The calls of both sides are fixed, except
//! for paths and line numbers that an earlier result has.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use vfs_core::search::GrepMatch;
use vfs_core::{GrepResult, OpContext, VfsPath, edit};
use vfs_shell::{LocalShellBackend, ShellConfig};
use vfs_tools::{FailureKind, Profile, ToolSet};

use super::{Goal, Row};
use crate::lab::Lab;
use crate::run::{checked, say};
use crate::timing::{Contest, Sample, Unit};

pub(super) fn rows() -> Vec<Row> {
    let row = |id, work, goal, prepare| Row {
        id,
        work,
        ours: "native tools",
        theirs: "`vfs batch --allow exec`",
        unit: Unit::Exchange,
        goal,
        prepare,
    };
    vec![
        row("tool-bytes", "six tasks of a model, L", Goal::Ratio(0.5), |lab| exchange(lab, &TASKS)),
        row("tool-bytes-callers", "a definition and its callers", Goal::None, |lab| exchange(lab, &[CALLERS])),
        row("tool-bytes-rename", "rename a function in many files", Goal::None, |lab| exchange(lab, &[RENAME])),
        row("tool-bytes-function", "one function of a long file", Goal::None, |lab| exchange(lab, &[FUNCTION])),
        row("tool-bytes-bug", "test, find a bug, fix it, test", Goal::None, |lab| exchange(lab, &[BUG])),
        row("tool-bytes-largest", "the largest and the newest files", Goal::None, |lab| exchange(lab, &[LARGEST])),
        row("tool-bytes-patch", "a change of its own in many files", Goal::None, |lab| exchange(lab, &[PATCH])),
    ]
}

const TASKS: [Task; 6] = [CALLERS, RENAME, FUNCTION, BUG, LARGEST, PATCH];

/// A task, and how either side does it.
#[derive(Debug, Clone, Copy)]
struct Task {
    /// Returns the root of the files. If the task changes them, it is a scratch directory of this name.
    files: fn(&Lab, &str) -> Result<PathBuf>,
    native: fn(&mut NativeTools) -> Result<()>,
    batch: fn(&mut Batch) -> Result<()>,
}

fn exchange(lab: &Lab, tasks: &[Task]) -> Result<Contest> {
    let (mut ours, mut theirs) = (Traffic::default(), Traffic::default());
    for task in tasks {
        let mut native = NativeTools::new(lab, (task.files)(lab, "exchange-native")?, ours)?;
        (task.native)(&mut native)?;
        let mut batch = Batch { vfs: lab.vfs()?, root: (task.files)(lab, "exchange-batch")?, traffic: theirs };
        (task.batch)(&mut batch)?;
        (ours, theirs) = (native.traffic, batch.traffic);
    }
    say(format_args!("    native: {ours:?}; batch: {theirs:?}"));
    // The next calls would have the same sizes, except for the durations of commands.
    let side = |traffic: Traffic| {
        move || Ok(Sample { exchanged: (traffic.sent + traffic.received) as f64, ..Sample::default() })
    };
    Ok(Contest::new(side(ours), Ok(side(theirs))))
}

/// The calls of a model, and the bytes of their arguments and results.
#[derive(Debug, Clone, Copy, Default)]
struct Traffic {
    calls: usize,
    sent: usize,
    received: usize,
}

impl Traffic {
    fn add(&mut self, sent: &str, received: &str) {
        self.calls += 1;
        self.sent += sent.len();
        self.received += received.len();
    }
}

struct NativeTools {
    runtime: Rc<Runtime>,
    root: PathBuf,
    tools: ToolSet,
    traffic: Traffic,
}

impl NativeTools {
    fn new(lab: &Lab, root: PathBuf, traffic: Traffic) -> Result<Self> {
        let files = LocalShellBackend::open(&root, ShellConfig::new())?;
        let tools = ToolSet::new(Arc::new(files), Profile::Native);
        Ok(Self { runtime: Rc::clone(&lab.runtime), root, tools, traffic })
    }

    fn call(&mut self, name: &str, arguments: Value) -> Result<String> {
        let outcome = self.runtime.block_on(self.tools.call(&OpContext::new(), name, &arguments));
        let text = outcome.to_text();
        // A command that fails has an output.
        ensure!(matches!(outcome.failure, None | Some(FailureKind::Command)), "`{name}` failed: {text}");
        self.traffic.add(&json!({ "name": name, "input": arguments }).to_string(), &text);
        Ok(text)
    }
}

struct Batch {
    vfs: PathBuf,
    root: PathBuf,
    traffic: Traffic,
}

impl Batch {
    fn request(&mut self, request: Value) -> Result<Value> {
        let request = request.to_string();
        let mut command = Command::new(&self.vfs);
        command.arg("--root").arg(&self.root).args(["batch", "--allow", "exec"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        // Dropping its input ends it after the answer.
        writeln!(process.stdin.take().context("its input is piped")?, "{request}")?;
        let output = String::from_utf8(process.wait_with_output()?.stdout)?;
        let answer = output.trim_end();
        self.traffic.add(&request, answer);
        match serde_json::from_str::<Value>(answer)?.get_mut("ok") {
            Some(result) => Ok(result.take()),
            None => bail!("{request} failed: {answer}"),
        }
    }

    fn grep(&mut self, request: Value) -> Result<Vec<GrepMatch>> {
        Ok(serde_json::from_value::<GrepResult>(self.request(request)?)?.matches)
    }
}

/// Corpus L, which a task only reads.
fn linux(lab: &Lab, _: &str) -> Result<PathBuf> {
    lab.linux()
}

const CALLEE: &str = "find_get_task_by_vpid";
/// The file of its definition.
const DEFINITION: &str = "/kernel/pid.c";
/// Lines before a call that show the function around it.
const LINES_BEFORE: u64 = 20;

const CALLERS: Task = Task {
    files: linux,
    native: |tools| tools.call("search", json!({ "pattern": CALLEE })).map(drop),
    batch: |batch| {
        let found = batch.grep(json!({ "op": "grep", "pattern": CALLEE }))?;
        let calls = found.iter().filter(|found| found.path.as_str() != DEFINITION);
        for call in calls.filter(|call| call.path.as_str().ends_with(".c")) {
            let offset = call.line.saturating_sub(LINES_BEFORE);
            batch.request(json!({ "op": "read", "path": call.path, "offset": offset, "limit": LINES_BEFORE }))?;
        }
        Ok(())
    },
};

/// The directory of L that is copied for changes of many files.
const EDITED_DIRECTORY: &str = "kernel";
/// On 25 lines of 14 files there.
const OLD: &str = "housekeeping_cpumask";
const NEW: &str = "housekeeping_cpus";

/// Returns a copy of a directory of L.
fn copy(lab: &Lab, name: &str) -> Result<PathBuf> {
    let root = lab.scratch(name)?;
    checked(Command::new("cp").arg("-r").arg(lab.linux()?.join(EDITED_DIRECTORY)).arg(&root))?;
    Ok(root)
}

const RENAME: Task = Task {
    files: copy,
    native: |tools| {
        tools.call("search", json!({ "pattern": OLD }))?;
        tools.call("edit", json!({ "path": "/**/*.[ch]", "old": OLD, "new": NEW }))?;
        expect_none(tools)
    },
    batch: |batch| {
        let mut files: Vec<_> = batch.grep(old())?.into_iter().map(|found| found.path).collect();
        files.dedup();
        for path in files {
            batch.request(json!({ "op": "edit", "path": path, "old": OLD, "new": NEW, "replace_all": true }))?;
        }
        ensure!(batch.grep(old())?.is_empty(), "the old name is still there");
        Ok(())
    },
};

fn old() -> Value {
    json!({ "op": "grep", "pattern": OLD })
}

fn expect_none(tools: &mut NativeTools) -> Result<()> {
    let found = tools.call("search", json!({ "pattern": OLD }))?;
    ensure!(found.starts_with("no matches"), "the old name is still there: {found}");
    Ok(())
}

const LONG_FILE: &str = "/fs/namespace.c";
const SYMBOL: &str = "copy_mnt_ns";

const FUNCTION: Task = Task {
    files: linux,
    native: |tools| {
        tools.call("read", json!({ "path": LONG_FILE, "outline": true }))?;
        tools.call("read", json!({ "path": LONG_FILE, "symbol": SYMBOL }))?;
        tools.call("search", json!({ "pattern": SYMBOL })).map(drop)
    },
    batch: |batch| {
        let first_lines = json!({ "regex": r"^[a-z].*\w\([^;]*$" });
        let outline = batch.grep(json!({ "op": "grep", "pattern": first_lines, "path": LONG_FILE }))?;
        let at = outline.iter().position(|found| found.text.contains(&format!("{SYMBOL}(")));
        let at = at.with_context(|| format!("{LONG_FILE} does not define {SYMBOL}"))?;
        let (first, next) = (outline[at].line, outline.get(at + 1).context("a function is after it")?.line);
        batch.request(json!({ "op": "read", "path": LONG_FILE, "offset": first - 1, "limit": next - first }))?;
        batch.request(json!({ "op": "grep", "pattern": SYMBOL })).map(drop)
    },
};

const PROGRAM: &str = "unifdef.c";
const HEAD: &str = "op_le(int *p, Linetype at, int a, Linetype bt, int b) {";
const RIGHT: &str = "return op_strict(p, a <= b, at, bt);";
const WRONG: &str = "return op_strict(p, a < b, at, bt);";
const RUN_TEST: &str = "sh test.sh";
const TEST: &str = "\
cc -w -o unifdef unifdef.c || exit 2
printf '#if V <= 3\\nkept\\n#endif\\n' | ./unifdef -DV=3 | grep -q kept && echo ok && exit
echo \"FAIL: 'V <= 3' is false for V=3\"
exit 1
";

/// Returns a directory with a program that has a bug, and its test.
fn bug(lab: &Lab, name: &str) -> Result<PathBuf> {
    let program = fs::read_to_string(lab.linux()?.join("scripts").join(PROGRAM))?;
    let (right, wrong) = (format!("{HEAD}\n\t{RIGHT}"), format!("{HEAD}\n\t{WRONG}"));
    ensure!(program.contains(&right), "{PROGRAM} of L has no such lines");
    let root = lab.scratch(name)?;
    fs::write(root.join(PROGRAM), program.replace(&right, &wrong))?;
    fs::write(root.join("test.sh"), TEST)?;
    Ok(root)
}

const BUG: Task = Task {
    files: bug,
    native: |tools| {
        tools.call("run", json!({ "command": RUN_TEST }))?;
        tools.call("search", json!({ "pattern": "\"<=\"" }))?;
        tools.call("read", json!({ "path": PROGRAM, "symbol": "op_le" }))?;
        let (old, new) = (format!("{HEAD}\n\t{WRONG}"), format!("{HEAD}\n\t{RIGHT}"));
        tools.call("edit", json!({ "path": PROGRAM, "old": old, "new": new }))?;
        let output = tools.call("run", json!({ "command": RUN_TEST }))?;
        ensure!(output.starts_with("ok"), "the test fails: {output}");
        Ok(())
    },
    batch: |batch| {
        batch.request(json!({ "op": "execute", "command": RUN_TEST }))?;
        batch.grep(json!({ "op": "grep", "pattern": "\"<=\"" }))?;
        let definition = batch.grep(json!({ "op": "grep", "pattern": "op_le(" }))?;
        let line = definition.first().context("it is defined")?.line;
        batch.request(json!({ "op": "read", "path": PROGRAM, "offset": line - 1, "limit": 10 }))?;
        let (old, new) = (format!("{HEAD}\n\t{WRONG}"), format!("{HEAD}\n\t{RIGHT}"));
        batch.request(json!({ "op": "edit", "path": PROGRAM, "old": old, "new": new }))?;
        let output = batch.request(json!({ "op": "execute", "command": RUN_TEST }))?;
        ensure!(output["exit_code"] == 0, "the test fails: {output}");
        Ok(())
    },
};

const LARGEST_AND_NEWEST: &str = "\
find kernel -type f -printf '%s %p\\n' | sort -rn | head -10; find kernel -type f -printf '%T+ %p\\n' | sort -r | head -10";

const LARGEST: Task = Task {
    files: linux,
    native: |tools| {
        for sort in ["size", "modified"] {
            tools.call("list", json!({ "path": "/kernel", "sort": sort, "limit": 10 }))?;
        }
        Ok(())
    },
    batch: |batch| batch.request(json!({ "op": "execute", "command": LARGEST_AND_NEWEST })).map(drop),
};

const PATCH: Task = Task {
    files: copy,
    native: |tools| {
        let mut edits = Vec::new();
        for Change { path, old, new } in changes(&tools.root)? {
            let lines = old.lines().zip(new.lines()).filter(|(old, new)| old != new);
            let mut lines: Vec<_> = lines.map(|(old, new)| (old.trim(), new.trim())).collect();
            // A line that is a part of another one is there once only when the longer one has changed.
            lines.sort_by(|(one, _), (other, _)| other.len().cmp(&one.len()).then(one.cmp(other)));
            for same in lines.chunk_by(|one, other| one == other) {
                let mut edit = json!({ "path": path, "old": same[0].0, "new": same[0].1 });
                if same.len() > 1 {
                    edit["all"] = true.into();
                }
                edits.push(edit);
            }
        }
        tools.call("edit", json!({ "edits": edits }))?;
        expect_none(tools)
    },
    batch: |batch| {
        let patch = changes(&batch.root)?.into_iter();
        let patch: String =
            patch.map(|change| edit::diff(&change.path, change.old.as_bytes(), change.new.as_bytes())).collect();
        batch.request(json!({ "op": "execute", "command": "patch -p1", "stdin": patch }))?;
        ensure!(batch.grep(old())?.is_empty(), "the old name is still there");
        Ok(())
    },
};

/// A file before and after a change.
struct Change {
    path: VfsPath,
    old: String,
    new: String,
}

/// Returns the files of a copy that have the old name.
fn changes(root: &Path) -> Result<Vec<Change>> {
    let files = checked(Command::new("grep").args(["-rlF", "--", OLD, "."]).current_dir(root))?;
    let mut changes = Vec::new();
    for file in files.lines() {
        let old = fs::read_to_string(root.join(file))?;
        let path = VfsPath::parse(file.trim_start_matches('.'))?;
        changes.push(Change { path, new: old.replace(OLD, NEW), old });
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(changes)
}
