//! Programs that are installed on this machine.

use std::path::PathBuf;

/// Returns the path of a program in `PATH` or in the directories of servers.
pub fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    places.map(|directory| directory.join(program)).find(|place| place.is_file())
}

/// Which of `programs` is missing, in words.
pub fn missing_of(programs: &[&str]) -> Option<String> {
    programs.iter().find(|program| found(program).is_none()).map(|program| format!("{program} is not installed"))
}
