//! What criterion has estimated at several sizes, where it has run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context as _, Result};

/// The sizes, in files.
pub(crate) const SIZES: [u64; 3] = [1_000, 10_000, 100_000];

/// Seconds at each size, by the name of the bench.
pub(crate) type Growth = BTreeMap<String, [Option<f64>; 3]>;

/// The benches below `criterion` that have an estimate at one of the sizes; none where criterion has not run.
pub(crate) fn read(criterion: &Path) -> Result<Growth> {
    let mut growth = Growth::new();
    for (group, path) in directories(criterion)? {
        for (bench, path) in directories(&path)? {
            let mut means = [None; 3];
            for (mean, size) in means.iter_mut().zip(SIZES) {
                *mean = estimate(&path.join(size.to_string()).join("new/estimates.json"))?;
            }
            if means.iter().any(Option::is_some) {
                growth.insert(format!("{group}/{bench}"), means);
            }
        }
    }
    Ok(growth)
}

fn directories(parent: &Path) -> Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("{} cannot be listed", parent.display()))?,
    };
    let mut directories = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            directories.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
    }
    Ok(directories)
}

/// The mean in seconds; `None` where there is no such estimate.
fn estimate(path: &Path) -> Result<Option<f64>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("{} cannot be read", path.display()))?,
    };
    let estimates: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
    let nanoseconds = estimates["mean"]["point_estimate"].as_f64();
    let nanoseconds = nanoseconds.with_context(|| format!("{} has no mean", path.display()))?;
    Ok(Some(nanoseconds / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bench_with_sizes_is_read_and_others_are_not() {
        let root = tempfile::tempdir().unwrap();
        let estimate = |bench: &str, nanoseconds: f64| {
            let directory = root.path().join(bench).join("new");
            fs::create_dir_all(&directory).unwrap();
            let json = format!(r#"{{"mean":{{"point_estimate":{nanoseconds}}}}}"#);
            fs::write(directory.join("estimates.json"), json).unwrap();
        };
        estimate("memory/ls/1000", 500.0);
        estimate("memory/ls/100000", 700.0);
        estimate("disk/edit", 9.0);
        let growth = read(root.path()).unwrap();
        assert_eq!(growth, Growth::from([("memory/ls".to_owned(), [Some(5e-7), None, Some(7e-7)])]));
    }
}
