//! Open a directory, read, search, edit.
//!
//! `cargo run -p agent-vfs --example quickstart`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use agent_vfs::{BackendExt, LocalBackend};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let files = LocalBackend::open(directory.path())?;
    files.create_text("/src/main.rs", "fn main() {\n    println!(\"hello\");\n}\n").await?;
    print!("{}", files.read_text("/src/main.rs").await?);
    for found in files.grep_text("println").await? {
        println!("{}:{}:{}", found.path, found.line, found.text);
    }
    let edited = files.edit_text("/src/main.rs", "hello", "good morning").await?;
    println!("{} place changed; {} has {} bytes now", edited.occurrences, edited.path, edited.size);
    Ok(())
}
