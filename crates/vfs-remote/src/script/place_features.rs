//! Feature detection: the tools of a place and their variants, probed once.

use bytes::Bytes;
use vfs_core::{Error, ErrorKind, Result, Version};

use crate::script::entry_metadata::{FIND, StatFlavour, find_tests, is_fine};
use crate::script::functions;
use crate::script::reply::Reply;

/// Script that detects all features.
pub(crate) const QUESTIONS: &str = r#"top
say b
printf '\000\001\177\200\377\r\n'
say S
x=$(stat -c '%f|%.9Y' . 2>/dev/null)
case $x in
*'|'*[0-9].[0-9]*) printf gnu ;;
*)
  if x=$(stat -c '%f|%y' . 2>/dev/null); then
    case $x in *' +0000') printf busybox ;; *) printf zoneless ;; esac
  elif x=$(stat -f '%p' . 2>/dev/null); then printf bsd
  fi ;;
esac
say z
stat -c %z . 2>/dev/null || stat -f %Fc . 2>/dev/null
say f
find . -prune -printf x 2>/dev/null
say m
mv --version 2>/dev/null </dev/null
say T
mv --help 2>&1 </dev/null
say d
{
  if [ /proc/self/fd/3 -ef . ]; then printf /proc/self/fd
  elif [ /dev/fd/3 -ef . ]; then printf /dev/fd
  fi
} 3<. 2>/dev/null
say i
printf '%s:%s' "$(id -u 2>/dev/null)" "$(id -g 2>/dev/null)"
say u
umask
say h
for x in sha256sum b3sum sha1sum md5sum cksum; do
  if command -v "$x" >/dev/null 2>&1; then printf '%s' "$x"; break; fi
done
say t
for x in base64 cat chmod cp dd env find head ln mkdir mv readlink rm rmdir sh sleep touch wc; do
  if command -v "$x" >/dev/null 2>&1; then printf '%s ' "$x"; fi
done
say F
dd if=/dev/null iflag=fullblock 2>/dev/null && printf x
# Remove files that dead processes left behind long ago. No other clean-up covers them.
find . ! -name . -prune -name '.vfs-tmp-[ud]-*' -mmin +60 -exec rm -rf {} + 2>/dev/null
finish
"#;

/// Tools that every place needs in addition to the shell.
const NEEDED: [&str; 16] = [
    "cat", "chmod", "cp", "dd", "env", "find", "ln", "mkdir", "mv", "readlink", "rm", "rmdir", "sh", "sleep", "touch",
    "wc",
];

/// Features of a place.
#[derive(Debug, Clone)]
pub(crate) struct PlaceFeatures {
    pub(crate) flavour: StatFlavour,
    /// Whether `find` can print metadata itself.
    find_prints: bool,
    /// The program that hashes contents, if times are too coarse to distinguish versions.
    hash: Option<String>,
    /// Whether `dd` fills its blocks even if a read returns less.
    fills_blocks: bool,
    /// The directory of the shell's own descriptors.
    descriptors: Option<String>,
    /// The option with which `mv` renames atomically without replacing an entry.
    move_new: Option<&'static str>,
    /// The option with which `mv` never moves into a directory.
    move_exact: &'static str,
    owner: String,
    permissions: String,
    pub(crate) base64: bool,
}

impl PlaceFeatures {
    pub(crate) fn of(reply: &Reply) -> Result<Self> {
        let raw = |tag| reply.get(tag).cloned().unwrap_or_else(Bytes::new);
        let text = |tag| String::from_utf8_lossy(&raw(tag)).trim().to_owned();
        if raw(b'b') != b"\0\x01\x7f\x80\xff\r\n"[..] {
            return Err(unsupported("bytes do not come through from the sandbox as they are"));
        }
        let flavour = match text(b'S').as_str() {
            "gnu" => StatFlavour::Gnu,
            "busybox" => StatFlavour::Busybox,
            "zoneless" => StatFlavour::Zoneless,
            "bsd" => StatFlavour::Bsd,
            _ => return Err(missing("stat")),
        };
        let tools = text(b't');
        let has = |tool: &str| tools.split(' ').any(|found| found == tool);
        if let Some(tool) = NEEDED.iter().find(|tool| !has(tool)) {
            return Err(missing(tool));
        }
        let fills_blocks = text(b'F') == "x";
        if !fills_blocks && !has("head") {
            return Err(missing("head, or a dd with iflag=fullblock"));
        }
        let hash = match (is_fine(&text(b'z')), text(b'h')) {
            (true, _) => None,
            (false, tool) if tool.is_empty() => return Err(missing("sha256sum or cksum")),
            (false, tool) => Some(tool),
        };
        let move_exact = if text(b'T').contains("-T") { "-T" } else { "" };
        let umask = u32::from_str_radix(&text(b'u'), 8).unwrap_or(0o022);
        Ok(Self {
            flavour,
            find_prints: text(b'f') == "x",
            hash,
            fills_blocks,
            descriptors: Some(text(b'd')).filter(|place| !place.is_empty()),
            move_new: moves_new(&text(b'm')).then_some("-nT"),
            move_exact,
            owner: text(b'i'),
            permissions: format!("{:o}", 0o666 & !umask),
            base64: has("base64"),
        })
    }

    /// Returns the functions that inspect entries: `about PATH` prints metadata, and `below START [PREDICATES]` lists.
    pub(crate) fn inspection_functions(&self) -> String {
        let stat = self.flavour.command();
        let Some(hash) = &self.hash else {
            let below = if self.find_prints {
                format!("below() {{ find \"$@\" -printf \"${{M}}r{FIND}\"; }}")
            } else {
                let (program, format) = stat.split_at(stat.find('\'').unwrap_or_default());
                let format = format.trim_start_matches('\'');
                format!("below() {{ find \"$@\" -exec {program}\"${{M}}r{format}|%{}\" {{}} +; }}", self.name_format())
            };
            return format!("about() {{ {stat}' \"$@\"; }}\n{below}\n");
        };
        format!(
            r#"coarse=1
about() {{
  x=$({stat}' "$1") || return 1
  printf '%s' "$x"
  if [ -f "$1" ] && [ ! -L "$1" ] && [ -r "$1" ]; then
    x=$({hash} <"$1") || return 1
    printf '|%s' "${{x%% *}}"
  fi
}}
export M
below() {{
  find "$@" -exec sh -c '
    for f do
      l=$({stat_in_quotes}|%{name}" "$f" && printf x) || continue
      if [ -f "$f" ] && [ ! -L "$f" ] && [ -r "$f" ]; then printf "%s" "${{M}}H"; {hash} <"$f"; fi
      printf "%s" "${{M}}r${{l%x}}"
    done' sh {{}} +
}}
"#,
            stat_in_quotes = stat.replace('\'', "\""),
            name = self.name_format(),
        )
    }

    /// Returns the function that compares the size of a file: `has_size PATH BYTES`. Busybox's `wc -c` would read the
    /// whole file.
    pub(crate) fn size_function(&self) -> String {
        format!("has_size() {{ [ \"$({} \"$1\")\" = \"$2\" ]; }}\n", self.flavour.size_command())
    }

    fn name_format(&self) -> char {
        if self.flavour == StatFlavour::Bsd { 'N' } else { 'n' }
    }

    /// Returns whether `find` can print all parts of a version.
    fn finds_facts(&self) -> bool {
        self.find_prints && self.hash.is_none()
    }

    /// Returns the arguments of `put_at_once` for `version`, the expected or most likely one, as words of a script.
    pub(crate) fn find_tests(&self, version: &Version) -> Option<String> {
        if self.finds_facts() { find_tests(version) } else { None }
    }

    /// Returns the function that reads a file, `fetch`.
    pub(crate) fn read_functions(&self) -> String {
        let blocks = if self.fills_blocks { functions::BLOCKS_FULL } else { functions::BLOCKS_HEAD };
        let fetch = match &self.descriptors {
            Some(place) => format!("D={place}\n{}", functions::FETCH_BY_DESCRIPTOR),
            None => functions::FETCH_TWICE.to_owned(),
        };
        self.inline_about(&format!("{blocks}{}{fetch}", functions::REACHES))
    }

    /// Returns the functions that all changes share, those of `change`, and the variables that describe the place for
    /// them. A lock is polled at most `attempts` times.
    pub(crate) fn change_functions(&self, attempts: u64, change: &str) -> String {
        let new = self.move_new.unwrap_or_default();
        let steps = if self.finds_facts() {
            format!("F='{FIND}'\n{}", functions::AT_ONCE)
        } else {
            functions::STEP_BY_STEP.to_owned()
        };
        let variables = format!(
            "mvn={new}\nmvt={}\nOWNER={}\nPERM={}\nW={attempts}\n",
            self.move_exact, self.owner, self.permissions,
        );
        variables + &self.size_function() + &self.inline_about(&format!("{}{steps}{change}", functions::CHANGE))
    }

    /// Replaces calls of `about` by its command, if it consists of one: to capture the output of a function, a shell
    /// starts one process more than for a command.
    fn inline_about(&self, functions: &str) -> String {
        match self.hash {
            None => functions.replace("$(about ", &format!("$({}' ", self.flavour.command())),
            Some(_) => functions.to_owned(),
        }
    }
}

/// Returns whether `mv` of this version renames without replacing in one system call, as GNU's does since 8.30.
fn moves_new(version: &str) -> bool {
    let first = version.lines().next().unwrap_or_default();
    let number = first.strip_prefix("mv (GNU coreutils) ").unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (8, 30)
}

fn missing(tool: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("the sandbox lacks {tool}, which files are reached with; install it there"),
    )
}

fn unsupported(message: &'static str) -> Error {
    Error::new(ErrorKind::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mv_is_recognised_by_its_version() {
        for (version, expected) in [
            ("mv (GNU coreutils) 9.1\nCopyright", true),
            ("mv (GNU coreutils) 8.30", true),
            ("mv (GNU coreutils) 8.29", false),
            ("mv (uutils coreutils) 0.0.27", false),
            ("BusyBox v1.36.1", false),
            ("", false),
        ] {
            assert_eq!(moves_new(version), expected, "{version}");
        }
    }
}
