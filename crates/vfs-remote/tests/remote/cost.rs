//! Cost of each operation over a local process. Run by name, with `--ignored`, on a quiet machine.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use vfs_core::{
    Backend, BackendExt, EditRequest, LsRequest, OpContext, Result, StatRequest, VfsPath, WriteMode, WriteRequest,
};

use crate::places::{all, directory};
use crate::runtime::on_runtime;

#[expect(clippy::print_stdout, reason = "the measurement is printed")]
pub(crate) fn trials() -> Vec<Trial> {
    let places = all().into_iter().filter(|place| ["remote-sh", "remote-busybox"].contains(&place.name));
    places
        .map(|place| {
            let name = format!("{}-cost::medians", place.name);
            let trial = Trial::test(name, move || {
                let root = directory();
                let files = place.files(root.path()).ok_or("its programs are not installed")?;
                on_runtime(async move {
                    for (operation, median) in medians(&files).await? {
                        println!("{} {operation}: {median:?}", place.name);
                    }
                    Ok(())
                })
            });
            trial.with_ignored_flag(true)
        })
        .collect()
}

const ROUNDS: usize = 101;

async fn medians(files: &dyn Backend) -> Result<Vec<(&'static str, Duration)>> {
    let (cx, at) = (OpContext::new(), VfsPath::parse("/d/e/file")?);
    files.create_text(at.as_str(), "round -1\n").await?;
    let mut taken = vec![Vec::new(); 6];
    for round in 0..ROUNDS {
        let mut start = Instant::now();
        let mut lap = |index: usize| {
            taken[index].push(start.elapsed());
            start = Instant::now();
        };
        files.stat(&cx, StatRequest::new(at.clone())).await?;
        lap(0);
        files.read_text(at.as_str()).await?;
        lap(1);
        files.ls(&cx, LsRequest::new(at.parent().unwrap_or_default())).await?;
        lap(2);
        files.write(&cx, WriteRequest::new(VfsPath::parse(&format!("/n/{round}"))?, "new\n")).await?;
        lap(3);
        files.write(&cx, WriteRequest::new(at.clone(), format!("round {round}\n")).mode(WriteMode::Overwrite)).await?;
        lap(4);
        files.edit(&cx, EditRequest::new(at.clone(), format!("{round}"), format!("edited {round}"))).await?;
        lap(5);
    }
    let names = ["stat", "read", "ls", "create", "overwrite", "edit"];
    let medians = taken.into_iter().map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2]
    });
    Ok(names.into_iter().zip(medians).collect())
}
