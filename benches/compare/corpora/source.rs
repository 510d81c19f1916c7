//! Corpus S: 20,000 source-like files; and P, as many names that end in `.py`.

use std::fs;
use std::path::Path;

use anyhow::Result;
use vfs_benches::Seeded;

/// How many files there are, ten to a directory, 20 of those in each of 100.
pub(crate) const FILES: u64 = 20_000;
/// Stands in 20 files.
pub(crate) const RARE: &str = "quartz_xylophone";
/// Stands on 10,000 lines.
pub(crate) const CALL: &str = "register_handler(";
/// Stands on 373,000 lines.
pub(crate) const RETURN: &str = "return";
/// Stands once in each file.
pub(crate) const EACH: &str = "Copyright of the corpus";
/// A directory in the middle, with ten files, half of them `.go`.
pub(crate) const DIRECTORY: &str = "a042/b07";

/// Writes S below `root`.
pub(super) fn write_sources(root: &Path) -> Result<()> {
    write(root, |file| if file % 2 == 0 { "go" } else { "rs" }, text)
}

/// Writes P below `root`.
pub(super) fn write_modules(root: &Path) -> Result<()> {
    write(root, |_| "py", |file| format!("def function_{file}():\n    pass\n"))
}

fn write(root: &Path, extension: impl Fn(u64) -> &'static str, text: impl Fn(u64) -> String) -> Result<()> {
    for file in 0..FILES {
        let directory = root.join(directory(file));
        if file % 10 == 0 {
            fs::create_dir_all(&directory)?;
        }
        fs::write(directory.join(format!("file{file:05}.{}", extension(file))), text(file))?;
    }
    Ok(())
}

fn directory(file: u64) -> String {
    format!("a{:03}/b{:02}", file / 200, file / 10 % 20)
}

fn text(file: u64) -> String {
    let mut seeded = Seeded::new(file + 1);
    let mut lines = vec![format!("// {EACH}, file {file}.")];
    let returns = if file % 20 < 13 { 19 } else { 18 };
    lines.extend((0..returns).map(|_| {
        let value = seeded.below(100_000);
        format!("\t{RETURN} compute_{value}(context, {value})")
    }));
    if file % 4 == 1 {
        lines.extend((0..2).map(|at| format!("\t{CALL}\"event-{at}\", on_event_{file})")));
    }
    if file % 1_000 == 17 {
        lines.push(format!("\tlet {RARE} = lookup({file});"));
    }
    let wanted = 3_600 + seeded.index(1_001);
    let mut size: usize = lines.iter().map(|line| line.len() + 1).sum();
    while size < wanted {
        let line = filler(&mut seeded);
        size += line.len() + 1;
        lines.insert(1 + seeded.index(lines.len()), line);
    }
    lines.join("\n") + "\n"
}

fn filler(seeded: &mut Seeded) -> String {
    let value = seeded.below(1_000_000);
    match seeded.below(5) {
        0 => format!("func handle{value}(request *Request, reply *Reply) error {{"),
        1 => format!("\tlet value_{value} = load(\"key-{value}\");"),
        2 => format!("\t// Case {value} is rare: see the table above."),
        3 => "}".into(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_corpus_has_the_counts_that_the_table_names() {
        let (mut bytes, mut rare, mut calls, mut returns, mut each, mut directories) = (0, 0, 0, 0, 0, BTreeSet::new());
        for file in 0..FILES {
            let text = text(file);
            let lines_with = |needle: &str| text.lines().filter(|line| line.contains(needle)).count();
            bytes += text.len();
            rare += lines_with(RARE);
            calls += lines_with(CALL);
            returns += lines_with(RETURN);
            each += usize::from(lines_with(EACH) == 1);
            directories.insert(directory(file));
        }
        assert_eq!((rare, calls, returns, each), (20, 10_000, 373_000, 20_000));
        assert_eq!(directories.len(), 2_000);
        assert!(directories.contains(DIRECTORY));
        assert!((81_000_000..84_000_000).contains(&bytes), "{bytes} bytes");
    }

    #[test]
    fn a_file_is_the_same_every_time() {
        assert_eq!(text(4_217), text(4_217));
        assert_ne!(text(4_217), text(4_218));
    }
}
