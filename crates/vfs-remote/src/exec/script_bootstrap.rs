//! Bootstrap script of a remote shell: framing of outputs, and transfer of standard input.

use std::fmt::Write as _;

use bytes::Bytes;
use vfs_core::{Error, ErrorKind, Result};

use crate::exec::ScriptInvocation;

/// The bootstrap script, which runs in the place as `sh -c BOOTSTRAP sh MARKER BLOCKS REST [SCRIPT]`, in a process
/// group of its own.
///
/// The left side of the pipeline reads the client's standard input as long as the client runs. It copies the script's
/// input, and closes the pipe only at the line `go`, so that input which breaks off never looks complete to the script.
/// The left side exits at the line `bye`, which the client sends when the script has ended. If the input ends before
/// that line, the client has exited, and the left side ends the process group. The right side runs the script, and
/// discards the message that its shell prints about a script which a signal ended.
///
/// The text has no single quotes, newlines, `!` or doubled backslashes, so that every usual login shell, csh and fish
/// included, passes it on unchanged in single quotes.
const BOOTSTRAP: &str = concat!(
    "_m=$1; echo $_m; echo $_m >&2; ",
    "if [ $# -gt 3 ]; then _e=$4; else IFS= read -r _e; fi; ",
    "_s=$(printf %b_ \"$_e\"); _s=${_s%_}; ",
    "{ _d() { dd bs=$1 count=$2 iflag=fullblock 2>/dev/null || [ $? -gt 128 ] || ",
    "{ echo ${_m}input >&2; kill -9 -$$; }; }; ",
    "[ $2 -eq 0 ] || _d 65536 $2; [ $3 -eq 0 ] || _d $3 1; ",
    "while IFS= read -r _l; do case $_l in ${_m}go) exec >&-;; ${_m}bye) exit;; esac; done; ",
    "trap \"\" 15; kill -15 -$$; sleep 0.3 2>/dev/null || sleep 1; kill -9 -$$; } | ",
    "{ exec 3>&2 2>/dev/null; (exec sh -c -- \"$_s\" 2>&3 3>&-); _c=$?; echo $_m$_c; echo $_m$_c >&3; }",
);

/// Size of the blocks that `dd` copies before it copies the rest as one block, in bytes.
const BLOCK: usize = 65_536;

/// Maximum size in bytes of an encoded script that is passed as an argument, for which Linux has a limit of 128 KiB. A
/// longer script is passed on standard input.
const MAX_ARGUMENT: usize = 100_000;

/// The bootstrap of one script: its arguments, its standard input, and the marker of its outputs.
#[derive(Debug)]
pub(super) struct ScriptBootstrap {
    /// Random marker that separates the outputs of the script from all else.
    pub(super) marker: String,
    /// Arguments of `sh -c` in the place.
    pub(super) words: Vec<String>,
    /// First bytes of standard input, written at once.
    pub(super) input: [Bytes; 3],
    /// Bytes written when the script has ended.
    pub(super) exit_message: Bytes,
}

impl ScriptBootstrap {
    pub(super) fn new(invocation: &ScriptInvocation) -> Result<Self> {
        if invocation.script.contains('\0') {
            return Err(Error::invalid_argument("the command contains NUL; remove it"));
        }
        let marker = random_marker()?;
        let encoded = encode(&invocation.script);
        let stdin = &invocation.stdin;
        let mut words = vec![
            BOOTSTRAP.to_owned(),
            "sh".to_owned(),
            marker.clone(),
            (stdin.len() / BLOCK).to_string(),
            (stdin.len() % BLOCK).to_string(),
        ];
        // Every user of this machine can see the arguments of a process.
        let first = if encoded.len() <= MAX_ARGUMENT && !invocation.has_secrets {
            words.push(encoded);
            Bytes::new()
        } else {
            Bytes::from(encoded + "\n")
        };
        let input = [first, stdin.clone(), Bytes::from(format!("{marker}go\n"))];
        let exit_message = Bytes::from(format!("\n{marker}bye\n"));
        Ok(Self { marker, words, input, exit_message })
    }

    /// Returns the command line for a login shell.
    pub(super) fn command(&self) -> String {
        let mut command = "exec sh -c".to_owned();
        for word in &self.words {
            // No word contains a quote: neither the bootstrap, nor a number, nor an encoded script.
            command.push_str(" '");
            command.push_str(word);
            command.push('\'');
        }
        command
    }
}

/// Encodes `script` as an argument of `printf %b`, without characters that are special to a shell inside single quotes.
fn encode(script: &str) -> String {
    let mut encoded = String::with_capacity(script.len() + script.len() / 8);
    for c in script.chars() {
        match c {
            '\n' => encoded.push_str("\\n"),
            '\\' | '\'' | '!' | '\0'..='\x1f' | '\x7f' => {
                // Writing to a string cannot fail.
                let _ = write!(encoded, "\\0{:03o}", u32::from(c));
            }
            _ => encoded.push(c),
        }
    }
    encoded
}

/// Returns a marker of 128 random bits.
pub(super) fn random_marker() -> Result<String> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Error::new(ErrorKind::Internal, "the system gave no random bytes").with_source(error))?;
    Ok(format!("vfs{:032x}", u128::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    fn is_plain(text: &str) -> bool {
        !text.contains(['\'', '!', '\n', '\r', '\0']) && !text.contains("\\\\") && !text.contains("\\'")
    }

    #[test]
    fn the_bootstrap_is_plain_for_every_login_shell() {
        assert!(is_plain(BOOTSTRAP), "{BOOTSTRAP}");
    }

    #[test]
    fn a_nul_is_refused() {
        let error = ScriptBootstrap::new(&ScriptInvocation::new("a\0b")).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn a_long_script_goes_by_standard_input() {
        let bootstrap = ScriptBootstrap::new(&ScriptInvocation::new("'".repeat(30_000))).expect("a bootstrap");
        assert_eq!(bootstrap.words.len(), 5);
        assert!(bootstrap.command().len() < 2_000);
        assert_eq!(bootstrap.input[0].len(), 5 * 30_000 + 1);
    }

    #[test]
    fn a_script_with_secrets_is_no_argument() {
        let mut invocation = ScriptInvocation::new("env TOKEN=hunter2 true");
        invocation.has_secrets = true;
        let bootstrap = ScriptBootstrap::new(&invocation).expect("a bootstrap");
        assert!(!bootstrap.command().contains("hunter2"));
        assert_eq!(bootstrap.input[0], "env TOKEN=hunter2 true\n");
    }

    /// Returns the arguments that `shell` passes to a program of the login shell's command line, as the bootstrap decodes them.
    fn through(shell: &[&str], text: &str) -> Vec<u8> {
        let line = format!("exec sh -c 's=$(printf %b_ \"$1\"); printf %s \"${{s%_}}\"' sh '{}'", encode(text));
        let output = Command::new(shell[0])
            .args(&shell[1..])
            .args(["-c", &line])
            .stderr(Stdio::inherit())
            .output()
            .expect("a shell");
        assert!(output.status.success());
        output.stdout
    }

    fn shells() -> Vec<Vec<&'static str>> {
        let all: [&[&str]; 7] = [&["sh"], &["dash"], &["bash"], &["busybox", "sh"], &["zsh"], &["fish"], &["tcsh"]];
        let is_there = |shell: &&[&str]| Command::new(shell[0]).args(&shell[1..]).args(["-c", ":"]).output().is_ok();
        all.iter().filter(|shell| is_there(shell)).map(|shell| shell.to_vec()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_text_arrives_unchanged(text in "[^\0]{0,80}") {
            prop_assert!(is_plain(&encode(&text)));
            for shell in shells() {
                let arrived = through(&shell, &text);
                prop_assert_eq!(arrived, text.as_bytes(), "{:?}", shell);
            }
        }

        #[test]
        fn text_of_shell_metacharacters_arrives_unchanged(text in r#"[\\'"!$`%\n\r\t0-9cnbx{}~*?\[\]();&|<>#^ é😀-]{0,60}"#) {
            for shell in shells() {
                let arrived = through(&shell, &text);
                prop_assert_eq!(arrived, text.as_bytes(), "{:?}", shell);
            }
        }
    }
}
