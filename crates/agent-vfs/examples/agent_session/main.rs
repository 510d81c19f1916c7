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

use agent_vfs::core::{edit, format};
use agent_vfs::{
    Backend, BackendExt, EditRequest, GlobRequest, GrepRequest, LocalBackend, LsRequest, OpContext, ReadRequest,
    Result, UploadRequest, Version, VfsPath,
};

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
    let agent = Agent { files: &files, cx: OpContext::new().with_actor("agent") };

    agent.copy_sources(&LocalBackend::open(REPOSITORY)?).await?;
    agent.look_around().await?;
    say("Where is the limit defined? A search for the constant, in Rust files only.");
    let (path, line) = agent.find_the_symbol().await?;
    say("It reads the lines around it, as a model is shown them.");
    let original = files.read_text(path.as_str()).await?;
    let version = agent.read_around(&path, line).await?;

    meanwhile(&files, &path).await?;
    agent.edit(&path, version).await?;
    agent.show_what_changed(&path, &original).await?;

    second_act::run(&files, &path, &memories).await?;
    third_act::run(&files).await?;
    Ok(())
}

/// The agent: its files, and who it is.
struct Agent<'a> {
    files: &'a LocalBackend,
    cx: OpContext,
}

impl Agent<'_> {
    async fn copy_sources(&self, repository: &LocalBackend) -> Result<()> {
        say("The task: let paths be 8192 bytes long instead of 4096. First, a copy of the sources to work on.");
        call("glob \"*.{rs,toml,md}\" in the repository, download_files, upload_files to the copy");
        let found = repository.glob(&self.cx, GlobRequest::new("*.{rs,toml,md}")).await?;
        let paths = found.entries.into_iter().map(|entry| entry.path).collect();
        let mut uploads = Vec::new();
        for file in repository.download_files(&self.cx, paths).await {
            match (file.content, file.cause) {
                (Some(content), _) => uploads.push(UploadRequest::new(file.path, content)),
                (None, Some(error)) => return Err(error),
                (None, None) => {}
            }
        }
        let bytes: usize = uploads.iter().map(|upload| upload.content.len()).sum();
        let written = self.files.upload_files(&self.cx, uploads).await;
        let failed = written.iter().filter(|file| file.error.is_some()).count();
        answer(&format!("{} files, {} KiB, {failed} failed", written.len(), bytes >> 10));
        Ok(())
    }

    async fn look_around(&self) -> Result<()> {
        say("The agent has not been here before and looks around.");
        for path in ["/", "/crates"] {
            call(&format!("ls {path}"));
            let listing = self.files.ls(&self.cx, LsRequest::new(VfsPath::parse(path)?)).await?;
            let names = listing.entries.iter().filter_map(|entry| {
                let name = entry.path.name()?;
                Some(if entry.is_dir { format!("{name}/") } else { name.to_owned() })
            });
            answer(&names.collect::<Vec<_>>().join("  "));
        }
        Ok(())
    }

    async fn find_the_symbol(&self) -> Result<(VfsPath, u64)> {
        call(r"grep -E -t rust 'const MAX_LEN: usize = 4096' /crates/vfs-core");
        let request = GrepRequest::regex(r"const MAX_LEN: usize = 4096").file_type("rust");
        let request = request.path(VfsPath::parse("/crates/vfs-core")?);
        let found = self.files.grep(&self.cx, request).await?;
        for line in &found.matches {
            answer(&format!("{}:{}:{}", line.path, line.line, line.text));
        }
        answer(&format!("{} files searched", found.files_searched));
        let first = found.matches.first().ok_or_else(|| agent_vfs::Error::invalid_argument("the symbol has gone"))?;
        Ok((first.path.clone(), first.line))
    }

    /// Reads the lines around `line`; the version is what an edit will be made for.
    async fn read_around(&self, path: &VfsPath, line: u64) -> Result<Version> {
        let offset = line.saturating_sub(5);
        call(&format!("read {path} --offset {offset} --limit 6"));
        let window = self.files.read(&self.cx, ReadRequest::new(path.clone()).lines(offset, 6)).await?;
        answer(&format::numbered(&window));
        answer(&format!("lines {} to {}, version {}", window.start_line, window.end_line, short(&window.version)));
        Ok(window.version)
    }

    /// Makes the change for `version`; where the file is another by now, reads again and makes it for that.
    async fn edit(&self, path: &VfsPath, mut version: Version) -> Result<()> {
        say(
            "The agent changes the constant and the documentation that names it: both or neither, and only in what it read.",
        );
        loop {
            call(&format!("edit {path} expecting version {}: 2 replacements", short(&version)));
            let request = EditRequest::new(path.clone(), "MAX_LEN: usize = 4096", "MAX_LEN: usize = 8192")
                .and("path over 4096 bytes", "path over 8192 bytes")
                .expected_version(version);
            match self.files.edit(&self.cx, request).await {
                Ok(edited) => {
                    answer(&format!("{} places changed, version {}", edited.occurrences, short(&edited.version)));
                    return Ok(());
                }
                Err(error) if error.kind() == agent_vfs::ErrorKind::Conflict => answer(&error.for_model()),
                Err(error) => return Err(error),
            }
            say("A conflict: nothing was changed. It finds its place again and looks at what is there now.");
            let (path, line) = self.find_the_symbol().await?;
            version = self.read_around(&path, line).await?;
            say("The constant is as it was, so the same edit still makes sense.");
        }
    }

    async fn show_what_changed(&self, path: &VfsPath, original: &str) -> Result<()> {
        say("Both changes are in the file, the reviewer's and the agent's:");
        let now = self.files.read_text(path.as_str()).await?;
        answer(&edit::diff(path, original.as_bytes(), now.as_bytes()));
        Ok(())
    }
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
