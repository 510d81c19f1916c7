//! Arguments and help texts of `vfs tool`.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args as ClapArgs, Subcommand};
use vfs_tools::Profile;

use super::batch::OptInOperations;
use super::execution::ShellBackendArgs;

pub(super) const TOOL_EXAMPLES: &str = "\
Examples:
  vfs tool list                                        the tools, with their descriptions
  vfs tool list --json                                 what a model is given
  vfs tool list --profile deepagents                   the tools of LangChain deepagents
  vfs tool schema read                                 the arguments of one tool
  vfs tool call read '{\"path\": \"/README.md\"}'
  echo '{\"pattern\": \"fn main\"}' | vfs tool call search -
  vfs tool --sandbox --allow exec call run '{\"command\": \"make\"}'

Exit status of 'call': 0 for a result, 1 for an error that the model sees, 2 if the tool could not be called.";

/// Arguments of `vfs tool`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ToolArgs {
    /// The names, parameters and words of the tools
    #[arg(long, global = true, value_name = "PROFILE", default_value = "native", value_parser = profile())]
    pub(crate) profile: Profile,
    /// Allow more tools: 'exec' adds the one that runs commands. Without --sandbox or --virtual, commands run on the host as your
    /// user, as with 'vfs exec'. A command in the background ends with the call
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) allow: Option<OptInOperations>,
    #[command(flatten)]
    pub(crate) shell: ShellBackendArgs,
    #[command(subcommand)]
    pub(crate) command: ToolCommand,
}

/// What to do with the tools.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolCommand {
    /// List the tools
    List {
        /// Print the JSON that a model is given: name, description and schema of the arguments
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON schema of the arguments of a tool
    Schema {
        /// Require every argument, with null for one that is left out, as strict modes of services demand
        #[arg(long)]
        strict: bool,
        /// The tool
        tool: String,
    },
    /// Call a tool, and print the text that a model sees
    Call {
        /// The tool
        tool: String,
        /// The arguments as a JSON object; '-' for standard input
        #[arg(value_name = "JSON", allow_hyphen_values = true, default_value = "{}")]
        arguments: String,
    },
}

fn profile() -> impl clap::builder::TypedValueParser<Value = Profile> {
    let names = PossibleValuesParser::new(Profile::ALL.iter().map(|profile| profile.name()));
    names.try_map(|name| Profile::from_name(&name).ok_or("no such profile"))
}
