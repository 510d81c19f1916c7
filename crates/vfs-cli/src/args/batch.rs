//! Arguments and help text of `vfs batch`.

use clap::{Args as ClapArgs, ValueEnum};

use super::execution::ShellBackendArgs;
use super::integer_parser::integer_in;

pub(super) const BATCH_EXAMPLES: &str = "\
Each line of standard input is one request, each line of standard output one answer:
  {\"id\":7,\"op\":\"read\",\"path\":\"/a\",\"offset\":0,\"limit\":10}
  {\"id\":7,\"ok\":{\"path\":\"/a\",\"content\":{\"text\":\"...\"},...}}
  {\"id\":7,\"error\":{\"code\":\"not_found\",\"path\":\"/a\",\"message\":\"...\"}}

Operations and their fields, optional ones in brackets; \
https://github.com/agent-vfs/agent-vfs/blob/main/docs/batch.md describes each field, with examples:
  stat, resolve     path
  capabilities      [path]
  ls                [path recursive max_depth limit]
  read              path [offset limit bytes max_bytes form]
  write             path, content or content_base64 [mode modified_at]
  edit              path, old and new, or replacements [replace_all
                    line_endings expected_version mode diff]
  delete (rm)       path [recursive expected_version scope]
  rename (mv)       from to [mode]
  copy (cp)         from to [mode]
  glob              pattern [path kinds hidden no_ignore links limit]
  grep              pattern [path glob file_types case whole_word multiline
                    invert before after output limit limit_per_file hidden
                    no_ignore binary links max_file_size max_line_bytes
                    max_result_bytes]
  upload_files      files, each with path, content or content_base64
                    [modified_at]
  download_files    paths
  cancel            request
With --allow exec:
  execute           command [cwd env base_env timeout stdin max_output_bytes
                    full_output terminal run]
  jobs
  job_output        job [cursor max_bytes wait]
  stop_job          job

The pattern of a grep is a text, or {\"regex\":\"...\"}. 'id' may be any JSON value or be left out; 'file_path' is 'path'. With \
\"run\":\"background\", execute starts a job, which is stopped when the batch ends.

Every request may have 'timeout_ms'. An operation that exceeds it fails with 'timeout'; a command is stopped, and its answer has \
the output until then. {\"id\":8,\"op\":\"cancel\",\"request\":7} cancels the requests with the id 7 that have no answer \
yet; they fail with 'cancelled'. Up to 256 requests, and 128 MiB, are read ahead; a cancellation beyond that waits.

Without 'limit', ls and glob return at most 10,000 entries, with it at most 1,000,000. Without 'limit' and 'max_result_bytes', grep \
returns at most 10,000 matches and 4 MiB. 'truncated' is set if there are more.

The error for a missing path has 'near', a list of similar paths in its directory, or the path that it has in a sandbox without \
/workspace, except for 'stat'. The answer to a grep without \
a match has 'hint' beside 'ok' if the pattern looks like a regular expression, or if entries were left out.

The answer to an invalid line, or one over 64 MiB, is an error, and the batch continues; blank lines get no answer. \
The exit status is 0 at the end of the input, even if answers are errors.";

/// Arguments of `vfs batch`.
#[derive(Debug, ClapArgs)]
pub(crate) struct BatchArgs {
    /// Maximum number of concurrent requests; with 1, answers have the order of the requests
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = integer_in::<u16>(1..=1024))]
    pub(crate) jobs: u16,
    /// Allow more operations: 'exec' adds execute, jobs, job_output and stop_job. Without --sandbox or --virtual, commands run on
    /// the host as your user, as with 'vfs exec'
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) allow: Option<OptInOperations>,
    #[command(flatten)]
    pub(crate) shell: ShellBackendArgs,
}

/// Operations that need `--allow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OptInOperations {
    /// Running commands.
    Exec,
}
