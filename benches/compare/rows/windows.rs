//! Windows of large files: each read in a fresh process, so that time and memory are those of a first read.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::{Goal, Row};
use crate::corpora::{HUGE, LARGE, SMALL};
use crate::lab::Lab;
use crate::measure::{self, Window};
use crate::timing::{Contest, Unit};

const LINES: u64 = 100;
const LATE: u64 = 900_000;
const FRESH: &str = "a fresh process";
const DEEPAGENTS: &str = "deepagents";
const MEGABYTE: f64 = 1e6;

pub(super) fn rows() -> Vec<Row> {
    let row = |id, work, theirs, unit, goal, prepare| Row { id, work, ours: FRESH, theirs, unit, goal, prepare };
    let (start, late) = ("100 lines at the start of 93 MB", "100 lines at line 900,000 of 93 MB");
    let huge = "100 lines at the start of 10 GB";
    let limits = (Goal::AtMost(5e-3), Goal::AtMost(60e-3), Goal::AtMost(10.0 * MEGABYTE));
    vec![
        row("window-start", start, DEEPAGENTS, Unit::Wall, limits.0, |lab| beside_deepagents(lab, 0)),
        row("window-start-memory", start, DEEPAGENTS, Unit::Memory, limits.2, |lab| beside_deepagents(lab, 0)),
        row("window-late", late, DEEPAGENTS, Unit::Wall, limits.1, |lab| beside_deepagents(lab, LATE)),
        row("window-late-memory", late, DEEPAGENTS, Unit::Memory, limits.2, |lab| beside_deepagents(lab, LATE)),
        row("window-huge", huge, "", Unit::Wall, limits.0, of_the_huge_file),
        row("window-huge-memory", huge, "", Unit::Memory, limits.2, of_the_huge_file),
    ]
}

fn window(root: &Path, file: &str, offset: u64) -> Window {
    Window { root: root.to_owned(), warm_up: SMALL.into(), file: file.into(), offset, limit: LINES }
}

fn beside_deepagents(lab: &Lab, offset: u64) -> Result<Contest> {
    let root = lab.lines()?;
    let ours = window(&root, LARGE, offset);
    // Eight lines of the smallest file would do; what counts is that nothing is imported within the measured call.
    let warm_up = json!({ "op": "read", "root": root, "path": format!("/{SMALL}"), "offset": 0, "limit": 8 });
    let request = json!({ "op": "read", "root": root, "path": format!("/{LARGE}"), "offset": offset, "limit": LINES });
    let theirs = lab.rivals.deepagents().cloned().map(|deepagents| {
        move || {
            let python = deepagents.start()?;
            python.ask(&warm_up)?;
            python.ask(&request)
        }
    });
    Ok(Contest::new(move || measure::window_in_a_child(&ours), theirs))
}

fn of_the_huge_file(lab: &Lab) -> Result<Contest> {
    let ours = window(&lab.lines()?, HUGE, 0);
    Ok(Contest::alone(move || measure::window_in_a_child(&ours)))
}
