//! A thousand tasks on one backend: what more cores give, and how long the unlucky wait.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result};

use super::{Goal, Row};
use crate::lab::Lab;
use crate::measure::{self, Class, Cores, Report, Store, Tasks};
use crate::timing::{Answer, Contest, Sample, Unit};

const P99: &str = "p99 of a call";
const P50: &str = "p50 of the same call";

pub(super) fn rows() -> Vec<Row> {
    let growth = |id, work, prepare| Row {
        id,
        work,
        ours: "all cores, time an operation",
        theirs: "one core",
        unit: Unit::Wall,
        goal: Goal::Ratio(1.0),
        prepare,
    };
    let waits = |id, work, prepare| Row {
        id,
        work,
        ours: P99,
        theirs: P50,
        unit: Unit::Wall,
        goal: Goal::Ratio(10.0),
        prepare,
    };
    let (memory, disk) = ("1,000 tasks on one backend, in memory", "1,000 tasks on one backend, on disk");
    vec![
        growth("tasks-memory", memory, |lab| more_cores(lab, Store::Memory)),
        waits("tasks-memory-read", "1,000 tasks in memory: read", |lab| tail(lab, Store::Memory, Class::Read)),
        waits("tasks-memory-edit", "1,000 tasks in memory: edit", |lab| tail(lab, Store::Memory, Class::Edit)),
        waits("tasks-memory-search", "1,000 tasks in memory: search", |lab| tail(lab, Store::Memory, Class::Search)),
        growth("tasks-disk", disk, |lab| more_cores(lab, Store::Disk)),
        waits("tasks-disk-read", "1,000 tasks on disk: read", |lab| tail(lab, Store::Disk, Class::Read)),
        waits("tasks-disk-edit", "1,000 tasks on disk: edit", |lab| tail(lab, Store::Disk, Class::Edit)),
        waits("tasks-disk-search", "1,000 tasks on disk: search", |lab| tail(lab, Store::Disk, Class::Search)),
    ]
}

fn run(root: &Path, store: Store, cores: Cores) -> Result<Report> {
    if root.exists() {
        std::fs::remove_dir_all(root)?;
    }
    std::fs::create_dir_all(root)?;
    measure::tasks_in_a_child(&Tasks { store, cores, root: root.to_owned() })
}

fn more_cores(lab: &Lab, store: Store) -> Result<Contest> {
    let root = lab.scratch("tasks")?;
    let side = |cores| {
        let root = root.clone();
        move || {
            let report = run(&root, store, cores)?;
            #[expect(clippy::cast_precision_loss, reason = "some thousands of operations")]
            let wall = report.wall / report.operations as f64;
            Ok(Sample { wall, answer: Answer { count: report.operations, ..Answer::default() }, ..Sample::default() })
        }
    };
    Ok(Contest::new(side(Cores::All), Ok(side(Cores::One))))
}

/// Both sides are of the same run: the one that is asked first makes it.
fn tail(lab: &Lab, store: Store, class: Class) -> Result<Contest> {
    let root = lab.scratch("tasks")?;
    let half = Rc::new(Cell::new(0.0));
    let median = Rc::clone(&half);
    let ours = move || {
        let report = run(&root, store, Cores::All)?;
        let found = report.latencies.into_iter().find(|(of, _)| *of == class);
        let (_, latency) = found.context("every class of operations took place")?;
        half.set(latency.p50);
        Ok(Sample { wall: latency.p99, ..Sample::default() })
    };
    Ok(Contest::new(ours, Ok(move || Ok(Sample { wall: median.get(), ..Sample::default() }))))
}
