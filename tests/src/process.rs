//! Resource usage of this process, according to the kernel.

use std::fs;

/// Resource usage of this process at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of memory in use.
    pub resident: u64,
    /// Bytes of memory in use that belong to no file.
    pub anonymous: u64,
    /// Most bytes of memory that were ever in use at once.
    pub peak: u64,
    /// Threads.
    pub threads: u64,
    /// Open descriptors.
    pub descriptors: u64,
}

impl Usage {
    /// Returns the current usage.
    pub fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").expect("the kernel provides the status");
        let field = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the field is there");
            line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("it is a number")
        };
        let descriptors = fs::read_dir("/proc/self/fd").expect("the kernel lists the descriptors").count() as u64;
        Self {
            resident: field("VmRSS:") << 10,
            anonymous: field("RssAnon:") << 10,
            peak: field("VmHWM:") << 10,
            threads: field("Threads:"),
            // One of them is the directory that is being read.
            descriptors: descriptors - 1,
        }
    }
}
