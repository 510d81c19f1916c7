//! A scripted agent at work on this repository's own sources. First it explores, finds a symbol, edits it, meets a conflict
//! and resolves it. Then it works under an overlay, with memories beside the project: it sees its changes, takes one back,
//! lets two others work on forks, and commits. At last it runs commands in a sandbox, and discards what they did.
//!
//! `cargo run --release -p agent-vfs --example agent_session`
//!
//! Memories are in a SQLite file that is gone with the session. With `-- postgres://user:password@host/database`, or the URL of a
//! SQLite file that stays, the next session finds those of this one.
//!
//! It works on a copy, which is made through the backends too: one over the repository, one over a temporary directory.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod memories;
mod second_act;
mod third_act;

use agent_vfs::core::edit;
use agent_vfs::tools::{Profile, ToolOutcome, ToolSet};
use agent_vfs::{
    Backend, BackendExt, EditRequest, FileUploadRequest, GlobRequest, LocalBackend, OpContext, Result, Version, VfsPath,
};
use serde_json::{Value, json};

use memories::Memories;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    // The sandbox of the third act puts this program into itself, to hold what it runs.
    agent_vfs::sandbox::sandbox_helper_main();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(session())
}

async fn session() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let memories = match (arguments.next(), arguments.next()) {
        (Some(recall), url) if recall == memories::RECALL => {
            print!("{}", Memories::open(url.as_deref()).await?.recall().await?);
            return Ok(());
        }
        (url, _) => Memories::open(url.as_deref()).await?,
    };
    let directory = tempfile::tempdir()?;
    let files = LocalBackend::open(directory.path())?;
    copy_sources(&LocalBackend::open(REPOSITORY)?, &files).await?;

    let agent = Agent {
        tools: ToolSet::new(std::sync::Arc::new(files.clone()), Profile::Native),
        cx: OpContext::new().with_actor("agent"),
    };
    say("The agent has not been here before and looks around.");
    agent.call("list", json!({ "path": "/crates", "depth": 1 })).await;
    say("Where is the limit defined? A search for the constant, in Rust files only.");
    let (path, line) = agent.find_the_constant().await?;
    say("It reads the lines around it, with the documentation of the limit.");
    agent.call("read", json!({ "path": path.as_str(), "lines": lines_around(line) })).await;
    let original = files.read_text(path.as_str()).await?;

    meanwhile(&files, &path).await?;
    agent.edit(&path, line).await?;
    say("Both changes are in the file, the reviewer's and the agent's:");
    let now = files.read_text(path.as_str()).await?;
    answer(&edit::diff(&path, original.as_bytes(), now.as_bytes()));

    second_act::run(&files, &path, &memories).await?;
    third_act::run(&files).await?;
    Ok(())
}

async fn copy_sources(repository: &LocalBackend, files: &LocalBackend) -> Result<()> {
    say("The task: let paths be 8192 bytes long instead of 4096. First, a copy of the sources to work on.");
    call("glob \"*.{rs,toml,md}\" in the repository, download_files, upload_files to the copy");
    let cx = OpContext::new();
    let found = repository.glob(&cx, GlobRequest::new("*.{rs,toml,md}")).await?;
    let paths = found.entries.into_iter().map(|entry| entry.path).collect();
    let mut uploads = Vec::new();
    for file in repository.download_files(&cx, paths).await {
        match (file.content, file.cause) {
            (Some(content), _) => uploads.push(FileUploadRequest::new(file.path, content)),
            (None, Some(error)) => return Err(error),
            (None, None) => {}
        }
    }
    let bytes: usize = uploads.iter().map(|upload| upload.content.len()).sum();
    let written = files.upload_files(&cx, uploads).await;
    let failed = written.iter().filter(|file| file.error.is_some()).count();
    answer(&format!("{} files, {} KiB, {failed} failed", written.len(), bytes >> 10));
    Ok(())
}

/// The agent: its tools, and who it is.
struct Agent {
    tools: ToolSet,
    cx: OpContext,
}

impl Agent {
    /// Calls a tool, and shows the call with what the model sees.
    async fn call(&self, name: &str, arguments: Value) -> ToolOutcome {
        call(&format!("{name} {arguments}"));
        let outcome = self.tools.call(&self.cx, name, &arguments).await;
        answer(&outcome.to_text());
        outcome
    }

    /// Returns the file and the line that define the constant, from the text of a search.
    async fn find_the_constant(&self) -> Result<(VfsPath, u64)> {
        let arguments = json!({ "pattern": "const MAX_LEN: usize = 4096", "glob": "crates/vfs-core/**/*.rs" });
        let found = self.call("search", arguments).await.to_text();
        let path = found.lines().find(|line| line.starts_with('/'));
        let number = found.lines().find_map(|line| line.split_once(": ")?.0.parse().ok());
        let (path, number) =
            path.zip(number).ok_or_else(|| agent_vfs::Error::invalid_argument("the constant has gone"))?;
        Ok((VfsPath::parse(path)?, number))
    }

    /// Makes the change in what the model has seen. If the file is another one by now, it is read again.
    async fn edit(&self, path: &VfsPath, line: u64) -> Result<()> {
        say(
            "The agent changes the constant and the documentation that names it: both or neither, and only in what it read.",
        );
        let replace = |old: &str, new: &str| json!({ "path": path.as_str(), "old": old, "new": new });
        let arguments = json!({ "edits": [
            replace("MAX_LEN: usize = 4096", "MAX_LEN: usize = 8192"),
            replace("path over 4096 bytes", "path over 8192 bytes"),
        ] });
        let refused = self.call("edit", arguments.clone()).await;
        assert!(refused.failure.is_some(), "somebody has changed the file");
        say("The edit is refused as a conflict, and changes nothing. The agent reads the current lines.");
        self.call("read", json!({ "path": path.as_str(), "lines": lines_around(line) })).await;
        say("The constant is as it was, so the same edit still makes sense.");
        let edited = self.call("edit", arguments).await;
        assert_eq!(edited.failure, None, "nobody has changed the file since");
        Ok(())
    }
}

fn lines_around(line: u64) -> String {
    format!("{}-{}", line.saturating_sub(4).max(1), line + 20)
}

/// What the agent does not know: someone else works on the same file.
async fn meanwhile(files: &LocalBackend, path: &VfsPath) -> Result<()> {
    say("Meanwhile a reviewer improves a comment in the same file.");
    let cx = OpContext::new().with_actor("reviewer");
    call(&format!("edit {path}, as the reviewer"));
    let (old, new) = ("/// The maximum size of a component in bytes.", "/// The maximum size of a name in bytes.");
    let request = EditRequest::new(path.clone(), old, new);
    let edited = files.edit(&cx, request).await?;
    answer(&format!("{} place changed, version {}", edited.occurrences, short(&edited.version)));
    Ok(())
}

/// The end of a version, which is enough to tell a few of them apart.
fn short(version: &Version) -> &str {
    version.as_str().rsplit('.').next().unwrap_or_default()
}

fn say(sentence: &str) {
    println!("\n{sentence}");
}

fn call(what: &str) {
    println!("  > {what}");
}

fn answer(text: &str) {
    for line in text.lines() {
        println!("    {line}");
    }
}
