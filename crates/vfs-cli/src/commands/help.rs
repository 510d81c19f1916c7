//! Command `vfs help`: prints the help of a command, or a topic.

use std::io::Write;

use clap::builder::StyledStr;
use clap::{Command, CommandFactory};
use vfs_core::suggest::similar;

use crate::args::Args;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;

/// A page about something that several commands share.
struct Topic {
    name: &'static str,
    summary: &'static str,
    text: &'static str,
}

/// The name under which the topics are listed.
const TOPIC_LIST: &str = "topics";

const TOPICS: [Topic; 4] = [
    Topic { name: "paths", summary: "How files are named", text: include_str!("../topics/paths.txt") },
    Topic { name: "patterns", summary: "Globs and texts to search for", text: include_str!("../topics/patterns.txt") },
    Topic {
        name: "versions",
        summary: "Versions of files, and how to return to earlier contents",
        text: include_str!("../topics/versions.txt"),
    },
    Topic { name: "policies", summary: "Who may do what", text: include_str!("../topics/policies.txt") },
];

pub(super) fn run(out: &mut StandardOutput, words: &[String]) -> Result<Exit, Failure> {
    let help = match words {
        [word] if word == TOPIC_LIST => topic_list(),
        [word] if let Some(topic) = TOPICS.iter().find(|topic| topic.name == word) => page(topic.text),
        words => command_help(words)?,
    };
    if out.has_colours() {
        write!(out, "{}", help.ansi())?;
    } else {
        write!(out, "{help}")?;
    }
    Ok(Exit::Success)
}

/// Returns the subcommand that `words` name, such as `store` and `check`; the whole command for no words.
pub(super) fn find_command(words: &[String]) -> Result<Command, Failure> {
    let mut command = Args::command();
    // Completes the names and usages of subcommands.
    command.build();
    for word in words {
        let found = command.get_subcommands().find(|subcommand| subcommand.get_name() == word).cloned();
        command = found.ok_or_else(|| unknown(&command, word))?;
    }
    Ok(command)
}

/// Returns the error of a name that is neither a command nor a topic.
fn unknown(parent: &Command, word: &str) -> Failure {
    let commands = parent.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
    let topics = TOPICS.iter().map(|topic| topic.name).chain([TOPIC_LIST]);
    let near = similar(word, commands.chain(topics), 1).first().map(|name| format!("; did you mean '{name}'?"));
    Failure::UnknownHelp(format!("there is no command or topic '{word}'{}", near.unwrap_or_default()))
}

/// Returns what the option `--help` of the command prints.
fn command_help(words: &[String]) -> Result<StyledStr, Failure> {
    find_command(words)?;
    let arguments = ["vfs"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]);
    match Args::command().try_get_matches_from(arguments) {
        Err(help) => Ok(help.render()),
        Ok(_) => Err(Failure::UnknownHelp(format!("'{}' has no help", words.join(" ")))),
    }
}

fn topic_list() -> StyledStr {
    let width = TOPICS.iter().map(|topic| topic.name.len()).max().unwrap_or_default();
    let lines = TOPICS.iter().map(|topic| format!("  {:width$}  {}\n", topic.name, topic.summary));
    page(&format!("Topics:\n{}\nPrint one with 'vfs help TOPIC'.\n", lines.collect::<String>()))
}

/// Returns `text` with its lines broken where the terminal ends, as clap does it.
fn page(text: &str) -> StyledStr {
    let mut page = Command::new("vfs").help_template("{about-with-newline}").about(text.trim_end().to_owned());
    page.render_long_help()
}
