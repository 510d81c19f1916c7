//! What criterion has estimated at several sizes, where it has run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The sizes, in files.
pub(crate) const SIZES: [u64; 3] = [1_000, 10_000, 100_000];

/// Seconds at each size, by the name of the bench.
pub(crate) type Growth = BTreeMap<String, [Option<f64>; 3]>;

/// The benches below `criterion` that have an estimate at every size.
pub(crate) fn read(criterion: &Path) -> Growth {
    let mut growth = Growth::new();
    for group in directories(criterion) {
        for bench in directories(&group) {
            let means = SIZES.map(|size| mean(&bench.join(size.to_string()).join("new/estimates.json")));
            if means.iter().any(Option::is_some) {
                growth.insert(format!("{}/{}", name(&group), name(&bench)), means);
            }
        }
    }
    growth
}

fn directories(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn mean(estimates: &Path) -> Option<f64> {
    let text = fs::read_to_string(estimates).ok()?;
    let estimates: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(estimates["mean"]["point_estimate"].as_f64()? / 1e9)
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
        let growth = read(root.path());
        assert_eq!(growth, Growth::from([("memory/ls".to_owned(), [Some(5e-7), None, Some(7e-7)])]));
    }
}
