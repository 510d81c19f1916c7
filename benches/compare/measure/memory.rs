//! Memory of this process.

use std::fs;

use anyhow::{Context, Result};

use crate::timing::{Answer, Sample, measured};

/// Measures one call, and by how much the peak memory of the process exceeds what it used before.
pub(super) fn measured_with_memory(work: impl FnMut() -> Result<Answer>) -> Result<Sample> {
    let resident = memory("VmRSS:")?;
    let sample = measured(1, work)?;
    Ok(Sample { grown: (memory("VmHWM:")? - resident).max(0.0), ..sample })
}

/// Returns a size in bytes that the kernel reports of this process's memory.
fn memory(key: &str) -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)).with_context(|| format!("no {key}"))?;
    let kibibytes = line.trim().trim_end_matches(" kB").parse::<f64>()?;
    Ok(kibibytes * 1024.0)
}
