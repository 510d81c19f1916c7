//! What the figures were measured on.

use std::fs;
use std::process::Command;

use crate::rivals::tool;
use crate::run::first_line;

/// The machine, as words and values.
pub(crate) fn describe() -> Vec<(&'static str, String)> {
    let value = |file: &str, key: &str| {
        let text = fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = value("/proc/meminfo", "MemTotal").and_then(|total| {
        let kibibytes: u64 = total.strip_suffix(" kB")?.parse().ok()?;
        Some(format!("{} GiB", kibibytes.div_ceil(1 << 20)))
    });
    let cores = std::thread::available_parallelism().ok().map(|cores| cores.to_string());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|text| text.trim().to_owned());
    let describe = ["describe", "--always", "--dirty"];
    let commit = first_line(Command::new("git").args(describe).current_dir(env!("CARGO_MANIFEST_DIR")));
    let facts = [
        ("processor", value("/proc/cpuinfo", "model name")),
        ("cores", cores),
        ("memory", memory),
        ("kernel", kernel),
        ("compiler", tool("rustc")),
        ("commit", commit),
    ];
    facts.into_iter().map(|(name, fact)| (name, fact.unwrap_or_else(|| "unknown".into()))).collect()
}
