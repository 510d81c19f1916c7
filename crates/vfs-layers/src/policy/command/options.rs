//! Options of programs that run a command.

use super::CommandWord;

/// The options of a program that come before the command which it runs.
pub(super) struct Options {
    /// Letters of those without a value.
    flags: &'static str,
    /// Letters of those with one, in the same word or the next.
    values: &'static str,
    /// Those of more than a letter, without and with a value.
    long_flags: &'static [&'static str],
    long_values: &'static [&'static str],
    /// How many words stand between the options and the command.
    pub(super) operands: usize,
    /// Whether variables may be set there.
    pub(super) assigns: bool,
}

const PLAIN: Options =
    Options { flags: "", values: "", long_flags: &[], long_values: &[], operands: 0, assigns: false };

/// The options of the builtin `read`: that for an array goes before the name like a flag.
pub(super) const READ: Options = Options { flags: "ersa", values: "dinNptu", ..PLAIN };

/// What is known of a program that runs another.
pub(super) fn options(name: &str) -> Option<Options> {
    Some(match name {
        "env" => Options {
            flags: "i0v",
            values: "uC",
            long_flags: &["ignore-environment", "null", "debug"],
            long_values: &["unset", "chdir"],
            assigns: true,
            ..PLAIN
        },
        "nohup" | "builtin" | "busybox" | "toybox" => PLAIN,
        "setsid" => Options { flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..PLAIN },
        "stdbuf" => Options { values: "ioe", long_values: &["input", "output", "error"], ..PLAIN },
        "nice" => Options { flags: "0123456789", values: "n", long_values: &["adjustment"], ..PLAIN },
        "timeout" => Options {
            flags: "vf",
            values: "ks",
            long_flags: &["foreground", "preserve-status", "verbose"],
            long_values: &["kill-after", "signal"],
            operands: 1,
            ..PLAIN
        },
        "ionice" => Options {
            flags: "t",
            values: "ncpPu",
            long_flags: &["ignore"],
            long_values: &["class", "classdata", "pid", "pgid", "uid"],
            ..PLAIN
        },
        "flock" => Options {
            flags: "sexnoFu",
            values: "wE",
            long_flags: &["shared", "exclusive", "unlock", "nonblock", "nb", "close", "no-fork", "verbose"],
            long_values: &["timeout", "wait", "conflict-exit-code"],
            operands: 1,
            ..PLAIN
        },
        "taskset" => Options { flags: "apc", long_flags: &["all-tasks", "pid", "cpu-list"], operands: 1, ..PLAIN },
        "xargs" => Options {
            flags: "0rtpxo",
            values: "nPLIdEsa",
            // Those with a value that may be left out have it in the same word.
            long_flags: &[
                "null",
                "no-run-if-empty",
                "verbose",
                "interactive",
                "exit",
                "open-tty",
                "max-lines",
                "replace",
                "eof",
            ],
            long_values: &["max-args", "max-procs", "delimiter", "max-chars", "arg-file"],
            ..PLAIN
        },
        "sudo" => Options {
            flags: "nEHkKSbAPvlB",
            values: "ughpCrtTUDR",
            long_flags: &["non-interactive", "preserve-env", "set-home", "stdin", "background", "askpass"],
            long_values: &["user", "group", "host", "prompt", "chdir", "chroot"],
            assigns: true,
            ..PLAIN
        },
        "doas" => Options { flags: "nL", values: "uC", ..PLAIN },
        "command" => Options { flags: "p", ..PLAIN },
        "exec" => Options { flags: "cl", values: "a", ..PLAIN },
        "time" => Options {
            flags: "pva",
            values: "fo",
            long_flags: &["portability", "verbose", "append"],
            long_values: &["format", "output"],
            ..PLAIN
        },
        _ => return None,
    })
}

impl Options {
    /// Where the options end in `words`; none where that is not known.
    pub(super) fn end(&self, words: &[CommandWord]) -> Option<usize> {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let text = word.literal()?;
            if text == "--" {
                return Some(at + 1);
            }
            let Some(option) = text.strip_prefix('-') else { return Some(at) };
            at += 1;
            if option.is_empty() {
                // Only `env` takes it for an option.
                if self.assigns {
                    continue;
                }
                return Some(at - 1);
            }
            at += match option.strip_prefix('-') {
                Some(long) => self.long(long)?,
                None => self.short(option)?,
            };
        }
        Some(at)
    }

    /// How many more words an option takes.
    fn long(&self, option: &str) -> Option<usize> {
        match option.split_once('=') {
            Some((name, _)) if self.long_values.contains(&name) => Some(0),
            // Such as `--preserve-env=...`.
            Some((name, _)) if self.long_flags.contains(&name) => Some(0),
            Some(_) => None,
            None if self.long_flags.contains(&option) => Some(0),
            None if self.long_values.contains(&option) => Some(1),
            None => None,
        }
    }

    fn short(&self, letters: &str) -> Option<usize> {
        for (at, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                return Some(usize::from(at + letter.len_utf8() == letters.len()));
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(0)
    }
}
