//! The request to run a command.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::seconds;
use crate::error::{Error, Result};
use crate::path::VfsPath;
use crate::requests::wire;

/// A request for [`Shell::execute`](super::Shell::execute).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ExecuteRequest {
    /// The command line, for a POSIX shell.
    pub command: String,
    /// The working directory. Default: the root.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub cwd: VfsPath,
    /// The variables that are added to [`base_env`](Self::base_env). Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "wire::or_default")]
    pub env: BTreeMap<String, String>,
    /// The base environment. Default: [`BaseEnvironment::Clean`].
    #[serde(default, deserialize_with = "wire::or_default")]
    pub base_env: BaseEnvironment,
    /// The maximum run time; seconds in JSON. Default: the setting of the backend, usually
    /// [`ExecuteRequest::DEFAULT_TIMEOUT`], and no limit for a background job. Zero is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "seconds::optional")]
    pub timeout: Option<Duration>,
    /// The standard input. Default: empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// The maximum size in bytes of each of `output`, `stdout` and `stderr`. Default:
    /// [`ExecuteRequest::DEFAULT_MAX_OUTPUT_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "wire::optional_whole")]
    pub max_output_bytes: Option<u64>,
    /// How output over the limit is treated. Default: the output is dropped.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub full_output: FullOutputMode,
    /// The size of the terminal. Default: no terminal; the outputs are pipes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// Whether the call waits for the command. Default: the call waits.
    #[serde(default, deserialize_with = "wire::or_default")]
    pub run: RunMode,
}

/// The base environment of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BaseEnvironment {
    /// The variables that the backend is configured to set for every command.
    #[default]
    Clean,
    /// The environment of the process that serves the backend, without variables that look like secrets.
    Inherited,
}

/// The treatment of output over the limit of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FullOutputMode {
    /// The output is dropped; the response has its size.
    #[default]
    Dropped,
    /// The whole output is also written to a [file](super::ExecuteResponse::full_output) of the backend.
    File,
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TerminalSize {
    /// The number of lines. Default: 24.
    #[serde(deserialize_with = "rows")]
    pub rows: u16,
    /// The number of columns. Default: 80.
    #[serde(deserialize_with = "columns")]
    pub columns: u16,
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

fn rows<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<u16, D::Error> {
    Ok(wire::optional_whole(deserializer)?.unwrap_or(TerminalSize::default().rows))
}

fn columns<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<u16, D::Error> {
    Ok(wire::optional_whole(deserializer)?.unwrap_or(TerminalSize::default().columns))
}

/// Whether a call waits for its command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunMode {
    /// The call returns when the command has ended.
    #[default]
    Foreground,
    /// The call returns at once; the command becomes a job.
    Background,
}

impl ExecuteRequest {
    /// The default timeout: 120 seconds.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

    /// The default limit of each output: 100,000 bytes.
    pub const DEFAULT_MAX_OUTPUT_BYTES: u64 = 100_000;

    /// Creates a request to run `command` in the root.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            cwd: VfsPath::root(),
            env: BTreeMap::new(),
            base_env: BaseEnvironment::default(),
            timeout: None,
            stdin: None,
            max_output_bytes: None,
            full_output: FullOutputMode::default(),
            terminal: None,
            run: RunMode::default(),
        }
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, cwd: VfsPath) -> Self {
        self.cwd = cwd;
        self
    }

    /// Sets one variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Inherits the environment of the serving process, without variables that look like secrets.
    #[must_use]
    pub fn inherit_env(mut self) -> Self {
        self.base_env = BaseEnvironment::Inherited;
        self
    }

    /// Sets the maximum run time.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: impl Into<String>) -> Self {
        self.stdin = Some(stdin.into());
        self
    }

    /// Sets the maximum size of each output in bytes.
    #[must_use]
    pub fn max_output_bytes(mut self, bytes: u64) -> Self {
        self.max_output_bytes = Some(bytes);
        self
    }

    /// Also writes the whole output to a file.
    #[must_use]
    pub fn keep_full_output(mut self) -> Self {
        self.full_output = FullOutputMode::File;
        self
    }

    /// Runs the command in a terminal of this size.
    #[must_use]
    pub fn terminal(mut self, size: TerminalSize) -> Self {
        self.terminal = Some(size);
        self
    }

    /// Runs the command as a background job.
    #[must_use]
    pub fn background(mut self) -> Self {
        self.run = RunMode::Background;
        self
    }

    /// Validates the request independently of the shell.
    ///
    /// # Errors
    ///
    /// `invalid_argument` for an empty command, a timeout of zero, a terminal without lines or columns, a NUL anywhere, and
    /// for a variable whose name is empty or has `=` in it.
    pub fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(Error::invalid_argument(message).with_path(&self.cwd));
        if self.command.trim().is_empty() {
            return refuse("the command is empty; give a command line".to_owned());
        }
        if self.command.contains('\0') {
            return refuse("the command contains NUL; remove it".to_owned());
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return refuse("the timeout is zero; set a longer timeout, or omit it".to_owned());
        }
        if self.terminal.is_some_and(|size| size.rows == 0 || size.columns == 0) {
            return refuse("the terminal has no lines or no columns; give at least one of each".to_owned());
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                return refuse(format!(
                    "invalid name of an environment variable: {:?}; use a name without '=' and NUL",
                    shortened(name)
                ));
            }
            if value.contains('\0') {
                return refuse(format!("the environment variable {:?} contains NUL; remove it", shortened(name)));
            }
        }
        Ok(())
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_requests_are_refused() {
        for (request, word) in [
            (ExecuteRequest::new(""), "empty"),
            (ExecuteRequest::new(" \n\t"), "empty"),
            (ExecuteRequest::new("echo \0"), "NUL"),
            (ExecuteRequest::new("true").timeout(Duration::ZERO), "zero"),
            (ExecuteRequest::new("true").env("", "x"), "variable"),
            (ExecuteRequest::new("true").env("A=B", "x"), "variable"),
            (ExecuteRequest::new("true").env("A", "x\0"), "NUL"),
            (ExecuteRequest::new("true").terminal(TerminalSize { rows: 0, columns: 80 }), "terminal"),
        ] {
            let error = request.check().expect_err("refused");
            assert!(error.to_string().contains(word), "{error}");
        }
        ExecuteRequest::new("true").env("A", "").check().expect("an empty value is a value");
    }

    #[test]
    fn timeouts_are_seconds_in_json() {
        let parse = |json: &str| serde_json::from_str::<ExecuteRequest>(json);
        for (json, expected) in [
            (r#"{"command":"true","timeout":30}"#, Some(Duration::from_secs(30))),
            (r#"{"command":"true","timeout":0.25}"#, Some(Duration::from_millis(250))),
            (r#"{"command":"true","timeout":null}"#, None),
            (r#"{"command":"true"}"#, None),
        ] {
            let request = parse(json).expect(json);
            assert_eq!(request.timeout, expected, "{json}");
            let again = parse(&serde_json::to_string(&request).expect("written")).expect("read again");
            assert_eq!(again, request, "{json}");
        }
        for json in [r#"{"command":"true","timeout":-1}"#, r#"{"command":"true","timeout":1e300}"#] {
            parse(json).expect_err(json);
        }
    }
}
