//! How many instructions `vfs` and `rg` take for the same search: unlike time, nearly the same on every run.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};

use crate::corpora::{CALL, RARE, RETURN};
use crate::lab::Lab;
use crate::rivals::{glob_arguments, grep_arguments};
use crate::run::{first_line, say};

/// The counts, and what counted.
#[derive(Debug)]
pub(crate) struct Counts {
    /// The program that counted.
    pub(crate) counter: String,
    /// Each search.
    pub(crate) counts: Vec<Count>,
}

/// The instructions of one search, by either program.
#[derive(Debug)]
pub(crate) struct Count {
    /// What is searched for.
    pub(crate) work: String,
    /// Those of `vfs`.
    pub(crate) ours: u64,
    /// Those of `rg`.
    pub(crate) theirs: u64,
}

/// Counts the instructions of a few searches of S.
pub(crate) fn count(lab: &Lab) -> Result<Counts> {
    let (counter, name) = Counter::find()?;
    let (root, vfs) = (lab.sources()?, lab.vfs()?);
    let rg = lab.rivals.rg().map_err(|reason| anyhow!(reason))?;
    let glob = "**/*.go";
    let mut searches: Vec<_> = [RARE, CALL, RETURN]
        .into_iter()
        .map(|literal| (format!("grep `{literal}`, S"), vec!["grep", "--", literal], grep_arguments(literal)))
        .collect();
    searches.push((format!("glob `{glob}`, S"), vec!["glob", glob], glob_arguments(glob)));
    let mut counts = Vec::new();
    for (work, ours, theirs) in searches {
        say(format_args!("counting instructions: {work}"));
        let ours: Vec<String> = ours.into_iter().map(str::to_owned).collect();
        let ours = counter.count(&vfs, &root, &ours)?;
        let theirs = counter.count(rg, &root, &theirs)?;
        counts.push(Count { work, ours, theirs });
    }
    Ok(Counts { counter: name, counts })
}

/// What can count the instructions of a program.
#[derive(Debug, Clone, Copy)]
enum Counter {
    Perf,
    Callgrind,
}

impl Counter {
    fn find() -> Result<(Self, String)> {
        // Virtual machines often have `perf` and nothing for it to count with.
        if Counter::Perf.count(Path::new("true"), Path::new("."), &[]).is_ok() {
            return Ok((Counter::Perf, "perf".into()));
        }
        let version = first_line(Command::new("valgrind").arg("--version"));
        Ok((Counter::Callgrind, version.context("neither perf nor valgrind can count here")?))
    }

    fn count(self, program: &Path, root: &Path, arguments: &[String]) -> Result<u64> {
        let mut command = match self {
            Counter::Perf => {
                let mut perf = Command::new("perf");
                perf.args(["stat", "-x", ",", "-e", "instructions:u", "--"]);
                perf
            }
            Counter::Callgrind => {
                let mut valgrind = Command::new("valgrind");
                valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
                valgrind
            }
        };
        command.arg(program).args(arguments).current_dir(root).stdin(Stdio::null()).stdout(Stdio::null());
        let output = command.output()?;
        if !matches!(output.status.code(), Some(0 | 1)) {
            bail!("{} failed when it was counted ({})", program.display(), output.status);
        }
        self.parse(&String::from_utf8_lossy(&output.stderr)).context("the counter did not count")
    }

    fn parse(self, said: &str) -> Option<u64> {
        match self {
            Counter::Perf => said.lines().find(|line| line.contains("instructions"))?.split(',').next()?.parse().ok(),
            Counter::Callgrind => said.lines().find_map(|line| line.split_once("Collected :"))?.1.trim().parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_found_in_what_the_counters_say() {
        let callgrind = "==7== Events    : Ir\n==7== Collected : 123456\n==7== \n";
        assert_eq!(Counter::Callgrind.parse(callgrind), Some(123_456));
        assert_eq!(Counter::Perf.parse("98765,,instructions:u,1000,100.00,,\n"), Some(98_765));
        assert_eq!(Counter::Perf.parse("<not supported>,,instructions:u,0,100.00,,\n"), None);
    }
}
