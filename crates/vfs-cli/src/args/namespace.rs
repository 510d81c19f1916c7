//! Arguments and help texts of commands for configured namespaces.

use clap::{Args as ClapArgs, Subcommand};

use super::integer_parser::integer_in;

pub(super) const MOVE_NOTES: &str = "\
Between mounts of a vfs.toml, files are copied, compared and then deleted. If that is interrupted, the next command with the \
same vfs.toml finishes the move, or rolls it back if nothing has arrived; a warning says so if a file was changed at both ends.";

pub(super) const WATCH_EXAMPLES: &str = "\
Lines are 'created /a', 'changed /a', 'removed /a', 'renamed /a to /b', and 'overflow' if events were lost: list the \
directory again then. Files that exist when the watch starts are not reported. Overlays and some stores have no change feed: to watch one of them is an \
error, and a mount of one below the path is named in a warning.

Example: vfs watch /src | while read -r what path; do make; done";

pub(super) const OVERLAY_EXAMPLES: &str = "\
Examples:
  vfs --config vfs.toml diff | less        the changes of an agent
  vfs --config vfs.toml diff /src > p.diff
  vfs --config vfs.toml commit             applies them to the files below
  vfs --config vfs.toml discard            or discards them
  vfs --config vfs.toml discard /src/a.rs  discards changes at and below one path

An overlay with a 'store' keeps changes between runs; without one, changes are lost when the process exits. Policies \
apply to file operations, not to 'diff', 'commit', 'discard', 'history', 'undo', 'checkpoint', 'restore' and 'log': let only those \
use these commands who may read and change every file.";

pub(super) const DISCARD_EXAMPLES: &str = "\
Examples:
  vfs --config vfs.toml discard            discards all changes
  vfs --config vfs.toml discard /src /a    discards changes at and below these paths

A move is a change of both paths: discard both to revert it. If a directory was removed, discarding a path in it restores \
only that path.";

pub(super) const COMMIT_STATUS: &str = "\
If a file below an overlay was changed after the overlay changed it, no change of that overlay is applied and each such file \
is listed as a conflict. To compare one with the file below, and to keep the file below:

  vfs --config vfs.toml diff /a
  vfs --config vfs.toml discard /a

To keep the file of the overlay, write it again over the file below:

  vfs --config vfs.toml read /a > mine &&
    vfs --config vfs.toml discard /a &&
    vfs --config vfs.toml write --mode overwrite /a < mine

To keep a deletion, discard the path and remove the file again.

Exit status: 0 if all changes are applied, 1 for conflicts, 2 for an error.";

pub(super) const UNDO_STATUS: &str = "\
A change is only undone if its files have not changed since, except by a commit. In an overlay, undoing a committed change \
is a new change, for the next commit.

Exit status: 0 if a change was undone, 1 if there is none to undo, 2 for an error.";

pub(super) const CHECKPOINT_EXAMPLES: &str = "\
Examples, with a layer of the type 'checkpoints' in vfs.toml:
  vfs --config vfs.toml checkpoint 'before the agent'
  vfs --config vfs.toml checkpoints        lists the ID of each
  vfs --config vfs.toml restore ID";

pub(super) const LOG_STATUS: &str = "\
Each record contains the hash of the one before. --verify finds the first record that was changed, removed or inserted. It \
prints the head, the hash of the last record: store that elsewhere, and --verify --until HEAD detects a log that was truncated \
afterwards. Keep rotated files next to the log.

Exit status: 0 for success, 1 if the log was modified, 2 for an error.";

pub(super) const EXPLAIN_STATUS: &str = "\
Examples:
  vfs --config vfs.toml policy explain read /secrets/key
  vfs --config vfs.toml policy explain rename /memories/a --actor intern-7
  vfs --config vfs.toml policy explain execute / --command 'git push'

Each line is about one permission at one path, and names the rule that decides; if there are several lines, the last one says what \
becomes of the operation. Targets of links are checked, too. Exit status: 0 if the operation is allowed, 1 if it \
is denied or needs an approval, 2 for an error.";

pub(super) const CONFIG_EXAMPLES: &str = "\
Examples:
  vfs --config vfs.toml config check       opens the whole namespace
  vfs config schema > vfs.schema.json      for an editor: '#:schema ./vfs.schema.json' in the first line
  vfs config example                       a file with every setting

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

vfs does not look for a vfs.toml by itself: pass --config vfs.toml.";

/// Arguments of `vfs mounts`.
#[derive(Debug, ClapArgs)]
pub(crate) struct MountsArgs {
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Selects one of several layers of the same type.
#[derive(Debug, ClapArgs)]
pub(crate) struct LayerSelector {
    /// Select the layer of this mount [default: the outermost]
    #[arg(long, value_name = "PATH")]
    pub(crate) mount: Option<String>,
}

/// Arguments of `vfs diff`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DiffArgs {
    /// Print one JSON object per file
    #[arg(long)]
    pub(crate) json: bool,
    /// Show only changes at and below this path [default: all]
    pub(crate) path: Option<String>,
}

/// Arguments of `vfs commit`, and options of `vfs discard`.
#[derive(Debug, ClapArgs)]
pub(crate) struct OverlayArgs {
    /// Print one JSON object per file
    #[arg(long)]
    pub(crate) json: bool,
    /// Select only the overlays of this mount [default: all]
    #[arg(long, value_name = "PATH")]
    pub(crate) mount: Option<String>,
}

/// Arguments of `vfs discard`.
#[derive(Debug, ClapArgs)]
pub(crate) struct DiscardArgs {
    #[command(flatten)]
    pub(crate) of: OverlayArgs,
    /// Discard only changes at and below these paths, as 'vfs diff' prints them [default: all]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,
}

/// Arguments of `vfs undo`.
#[derive(Debug, ClapArgs)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    pub(crate) of: LayerSelector,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Number of changes
    #[arg(value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = integer_in(1..=usize::MAX))]
    pub(crate) operations: usize,
}

/// Arguments of `vfs history`.
#[derive(Debug, ClapArgs)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) of: LayerSelector,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Maximum number of changes [default: all]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, value_parser = integer_in(0..=usize::MAX))]
    pub(crate) limit: Option<usize>,
}

/// Arguments of `vfs checkpoint`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CheckpointArgs {
    #[command(flatten)]
    pub(crate) of: LayerSelector,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The label of the snapshot in lists
    pub(crate) label: Option<String>,
}

/// Arguments of `vfs checkpoints`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CheckpointsArgs {
    #[command(flatten)]
    pub(crate) of: LayerSelector,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `vfs restore`.
#[derive(Debug, ClapArgs)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) of: LayerSelector,
    /// The id of the snapshot, as 'vfs checkpoints' prints it
    pub(crate) id: String,
}

/// Arguments of `vfs log`.
#[derive(Debug, ClapArgs)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    pub(crate) of: LayerSelector,
    /// Print only the last N records [default: all]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, value_parser = integer_in(0..=usize::MAX))]
    pub(crate) limit: Option<usize>,
    /// Print the records as JSON, one per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Verify the hash chain, and print only the number and hash of the last record
    #[arg(long, conflicts_with = "limit")]
    pub(crate) verify: bool,
    /// Verify that the log contains HEAD, a hash that --verify printed earlier
    #[arg(long, value_name = "HEAD", requires = "verify", value_parser = head)]
    pub(crate) until: Option<String>,
}

/// Parses the hash of a record.
fn head(text: &str) -> Result<String, String> {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err("expected 64 hexadecimal digits, as 'vfs log --verify' prints them".to_owned())
}

/// Arguments of `vfs watch`.
#[derive(Debug, ClapArgs)]
pub(crate) struct WatchArgs {
    /// Print one JSON event per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Start after the event with this cursor, as --json prints it
    #[arg(long, value_name = "CURSOR")]
    pub(crate) since: Option<String>,
    /// The file or directory [default: the root]
    pub(crate) path: Option<String>,
}

/// Subcommands of `vfs policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Print which rule decides about an operation, and why
    #[command(after_help = EXPLAIN_STATUS)]
    Explain(ExplainArgs),
}

/// Arguments of `vfs policy explain`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// With 'execute': the command line to check
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    pub(crate) command: Option<String>,
    /// A permission (read, write, delete, execute) or an operation (rename, grep, ...)
    pub(crate) operation: String,
    /// The path; it stands for both paths of an operation with two
    pub(crate) path: String,
}

/// Subcommands of `vfs config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Open the whole namespace of a configuration file, and list its mounts
    Check,
    /// Print the JSON schema of configuration files
    Schema,
    /// Print a configuration file that shows every setting
    Example,
}
