//! The commands for namespaces that a file describes.

use clap::{Args as ClapArgs, Subcommand};

use super::number::whole;

pub(super) const MOVE_NOTES: &str = "\
Between mounts of a vfs.toml, files are copied, compared and then deleted. If that is interrupted, the next command with the \
same vfs.toml finishes the move, or rolls it back if nothing has arrived; a warning says so if a file was changed at both ends.";

pub(super) const WATCH_EXAMPLES: &str = "\
Lines are 'created /a', 'changed /a', 'removed /a', 'renamed /a to /b', and 'overflow' where events were lost: list again \
then. Files that exist when the watch starts are not reported. Overlays and some stores have no change feed: to watch one of them is an \
error, and a mount of one below the path is named in a warning.

Example: vfs watch /src | while read -r what path; do make; done";

pub(super) const OVERLAY_EXAMPLES: &str = "\
Examples:
  vfs --config vfs.toml diff | less        what an agent has changed
  vfs --config vfs.toml diff /src > p.diff
  vfs --config vfs.toml commit             writes it to the files beneath
  vfs --config vfs.toml discard            or forgets it
  vfs --config vfs.toml discard /src/a.rs  forgets the changes of one file, or below one directory

An overlay with a 'store' keeps changes from one run to the next; without one they are gone with the process. Policies \
apply to file operations, not to 'diff', 'commit', 'discard', 'history', 'undo', 'checkpoint', 'restore' and 'log': let only those \
use these commands who may read and change every file.";

pub(super) const DISCARD_EXAMPLES: &str = "\
Examples:
  vfs --config vfs.toml discard            forgets every change
  vfs --config vfs.toml discard /src /a    forgets what was changed at and below these

What was moved was changed in both places: discard both to take it back. Of a directory that was removed, the paths come back \
alone.";

pub(super) const COMMIT_STATUS: &str = "\
If somebody else has changed a file of an overlay meanwhile, nothing of that overlay is applied and each such file is listed as \
a conflict. To compare one with the file beneath, and to keep that:

  vfs --config vfs.toml diff /a
  vfs --config vfs.toml discard /a

To keep the file of the overlay, write it again, on top of what is beneath now:

  vfs --config vfs.toml read /a > mine &&
    vfs --config vfs.toml discard /a &&
    vfs --config vfs.toml write --mode overwrite /a < mine

To keep a deletion, discard the path and remove the file again.

Exit status: 0 where all is applied, 1 for conflicts, 2 for an error.";

pub(super) const UNDO_STATUS: &str = "\
A change is only taken back if the files are as it left them, or as a commit brought them to the files beneath. In an overlay, \
what is taken back after a commit is a change again, for the next commit.

Exit status: 0 where something was taken back, 1 where there is nothing to take back, 2 for an error.";

pub(super) const CHECKPOINT_EXAMPLES: &str = "\
Examples, with a layer of the type 'checkpoints' in vfs.toml:
  vfs --config vfs.toml checkpoint 'before the agent'
  vfs --config vfs.toml checkpoints        lists the ID of each
  vfs --config vfs.toml restore ID";

pub(super) const LOG_STATUS: &str = "\
Each record is tied to the one before by a hash. --verify finds the first that was changed, removed or added since. What \
was cut off at the end shows only where the head that it prints is kept elsewhere: --verify --until HEAD then says whether the \
log still has it. Files that the log was rotated into have to be kept beside it.

Exit status: 0 for success, 1 where the log is not as it was written, 2 for an error.";

pub(super) const EXPLAIN_STATUS: &str = "\
Examples:
  vfs --config vfs.toml policy explain read /secrets/key
  vfs --config vfs.toml policy explain rename /memories/a --actor intern-7
  vfs --config vfs.toml policy explain execute / --command 'git push'

Each line is about one permission at one path, and names the rule that decides; if there are several lines, the last one says what \
becomes of the operation. What a link leads to is judged, too. Exit status: 0 where it is allowed, 1 where it \
is denied or somebody is asked, 2 for an error.";

pub(super) const CONFIG_EXAMPLES: &str = "\
Examples:
  vfs --config vfs.toml config check       whether everything that it describes can be opened
  vfs config schema > vfs.schema.json      for an editor: '#:schema ./vfs.schema.json' in the first line

A short vfs.toml:
  [default]
  type = \"local\"
  root = \".\"
  layers = [{ type = \"overlay\", store = \".vfs/overlay\" }]

  [[layers]]
  type = \"policy\"
  rules = [
      { effect = \"deny\", paths = [\"/secrets\", \"*.pem\"] },
      { effect = \"allow\", operations = [\"execute\"] },
  ]

Every setting is in docs/vfs.example.toml.";

#[derive(Debug, ClapArgs)]
pub(crate) struct JsonArgs {
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which of several layers of one kind is meant.
#[derive(Debug, ClapArgs)]
pub(crate) struct OfMount {
    /// The layers of this mount [default: the outermost]
    #[arg(long, value_name = "PATH")]
    pub(crate) mount: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DiffArgs {
    /// Print one JSON object a file
    #[arg(long)]
    pub(crate) json: bool,
    /// Only what was changed at and below it [default: everything]
    pub(crate) path: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ChangesArgs {
    /// Print one JSON object a file
    #[arg(long)]
    pub(crate) json: bool,
    /// Only the overlays of this mount [default: all]
    #[arg(long, value_name = "PATH")]
    pub(crate) mount: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DiscardArgs {
    #[command(flatten)]
    pub(crate) of: ChangesArgs,
    /// Only what was changed at and below these, as 'vfs diff' names them [default: everything]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    pub(crate) of: OfMount,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// How many changes
    #[arg(value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = whole(1..=usize::MAX))]
    pub(crate) operations: usize,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) of: OfMount,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Most changes [default: all]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, value_parser = whole(0..=usize::MAX))]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckpointArgs {
    #[command(flatten)]
    pub(crate) of: OfMount,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// What it is called in lists
    pub(crate) label: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckpointsArgs {
    #[command(flatten)]
    pub(crate) of: OfMount,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) of: OfMount,
    /// The state, as 'vfs checkpoints' lists it
    pub(crate) id: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    pub(crate) of: OfMount,
    /// Only the last records [default: all]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, value_parser = whole(0..=usize::MAX))]
    pub(crate) limit: Option<usize>,
    /// Print the records as they are in the log, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Check that the log is as it was written, and print no records but the number of the last one and its hash
    #[arg(long, conflicts_with = "limit")]
    pub(crate) verify: bool,
    /// Check that the log has this head, the hash that --verify printed at an earlier time
    #[arg(long, value_name = "HEAD", requires = "verify", value_parser = head)]
    pub(crate) until: Option<String>,
}

/// The hash of a record.
fn head(text: &str) -> Result<String, String> {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err("a head is 64 hexadecimal digits, as 'vfs log --verify' prints it".to_owned())
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WatchArgs {
    /// Print one JSON event a line
    #[arg(long)]
    pub(crate) json: bool,
    /// What happened after the event with this cursor, too, as --json prints it
    #[arg(long, value_name = "CURSOR")]
    pub(crate) since: Option<String>,
    /// The file or directory [default: the root]
    pub(crate) path: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Say which rule decides about an operation, and why
    #[command(after_help = EXPLAIN_STATUS)]
    Explain(ExplainArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// With 'execute': the command line that is judged
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) command: Option<String>,
    /// A permission (read, write, delete, execute) or an operation (rename, grep, ...)
    pub(crate) operation: String,
    /// Where; of an operation with two paths it stands for both
    pub(crate) path: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Open everything that a file describes, and say what there is
    Check,
    /// Print the JSON schema of such files
    Schema,
}
