//! A filesystem for AI agents: one contract in memory, on disk and beyond.
//!
//! An agent's tools want to list, read, write, edit and search files; where those files live should not matter. Here
//! every place for files implements one trait, [`Backend`], and behaves alike: the same paths, the same line numbers,
//! the same errors. This crate gathers the parts; each is a crate of its own, and a module here.
//!
//! # A first look
//!
//! [`BackendExt`] has a short call for the common case of each operation.
//!
//! ```
//! use agent_vfs::{BackendExt, MemoryBackend};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_vfs::Result<()> {
//! let files = MemoryBackend::new();
//! files.create_text("/src/main.rs", "fn main() {\n    run();\n}\n").await?;
//!
//! let found = files.grep_text("run()").await?;
//! assert_eq!((found[0].path.as_str(), found[0].line), ("/src/main.rs", 2));
//!
//! files.edit_text("/src/main.rs", "run()", "start()").await?;
//! assert!(files.read_text("/src/main.rs").await?.contains("start()"));
//! # Ok(())
//! # }
//! ```
//!
//! # Operations in full
//!
//! Each operation of [`Backend`] takes an [`OpContext`] (who asks, until when, how to stop) and a request. Requests and
//! results are plain structs with serde: they are the wire format, too.
//!
//! ```
//! use std::time::Duration;
//!
//! use agent_vfs::{Backend, BackendExt, GrepRequest, MemoryBackend, OpContext, ReadRequest, VfsPath};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_vfs::Result<()> {
//! # let files = MemoryBackend::new();
//! # files.create_text("/log.txt", "ok\nwarning: disk\nok\n").await?;
//! let cx = OpContext::new().with_actor("planner").with_timeout(Duration::from_secs(5));
//!
//! let request = GrepRequest::regex(r"^warning: \w+").glob("*.txt").context(1, 1).limit(100);
//! let result = files.grep(&cx, request).await?;
//! assert_eq!(result.matches.len(), 3, "one match and two lines of context");
//!
//! let request = ReadRequest::new(VfsPath::parse("/log.txt")?).lines(1, 1);
//! let window = files.read(&cx, request).await?;
//! assert_eq!((window.start_line, window.next_offset), (2, Some(2)));
//! let shown = agent_vfs::core::format::numbered(&window);
//! assert_eq!(shown, "     2\twarning: disk\n[truncated: continue with offset 2]");
//! # Ok(())
//! # }
//! ```
//!
//! # Concurrent changes
//!
//! Every file has a [`Version`]. A write or edit may name the version that it was made for, and is refused with `conflict`
//! if the file has changed since.
//!
//! ```
//! use agent_vfs::{Backend, BackendExt, EditRequest, ErrorKind, MemoryBackend, OpContext, VfsPath};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_vfs::Result<()> {
//! let files = MemoryBackend::new();
//! let seen = files.create_text("/plan.md", "- draft\n").await?.version;
//! files.append_text("/plan.md", "- a line of someone else\n").await?;
//!
//! let request = EditRequest::new(VfsPath::parse("/plan.md")?, "draft", "final").expected_version(seen);
//! let error = files.edit(&OpContext::new(), request).await.expect_err("it changed since");
//! assert_eq!(error.kind(), ErrorKind::Conflict);
//! println!("{}", error.for_model());
//! # Ok(())
//! # }
//! ```
//!
//! # A directory of this machine
//!
//! [`LocalBackend::open`] confines every operation to a directory; [`LocalConfig`] has the settings.
//!
//! ```
//! use agent_vfs::{BackendExt, LocalBackend};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let directory = tempfile::tempdir()?;
//! let files = LocalBackend::open(directory.path())?;
//! files.write_text("/notes/today.md", "hello\n").await?;
//! assert_eq!(files.glob_files("*.md").await?[0].path.as_str(), "/notes/today.md");
//! assert!(files.read_text("/../etc/passwd").await.is_err());
//! # Ok(())
//! # }
//! ```
//!
//! # An agent's state
//!
//! [`StateBackend`] works on files that an agent runtime keeps in its checkpoints. In the form shown here a change
//! returns an update and the runtime merges it; the other form gathers updates over a session.
//!
//! ```
//! use agent_vfs::{Backend, FilesState, OpContext, StateBackend, VfsPath, WriteRequest};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_vfs::Result<()> {
//! let mut state = FilesState::new();
//! let files = StateBackend::pure(state.clone());
//! let request = WriteRequest::new(VfsPath::parse("/todo.md")?, "- everything\n");
//! let update = files.write(&OpContext::new(), request).await?.files_update.expect("a state returns its change");
//! state.merge(update)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Mounts and layers
//!
//! [`CompositeBackend`] makes one namespace of many backends, and every [`Layer`] goes around any of them.
//!
//! ```
//! use std::sync::Arc;
//!
//! use agent_vfs::layers::ReadOnly;
//! use agent_vfs::policy::{Policy, RuleSet};
//! use agent_vfs::{BackendExt, CompositeBackend, ErrorKind, Layer, MemoryBackend};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_vfs::Result<()> {
//! let shared = ReadOnly.layer(Arc::new(MemoryBackend::new()));
//! let files = CompositeBackend::new(Arc::new(MemoryBackend::new())).with_mount("/shared", shared)?;
//!
//! let rules = RuleSet::from_toml("[[rules]]\neffect = 'deny'\npaths = ['/secrets']\n")?;
//! let files = Policy::new(Arc::new(rules)).layer(Arc::new(files));
//! assert_eq!(files.write_text("/secrets/key", "x").await.expect_err("denied").kind(), ErrorKind::PolicyDenied);
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `config`, `from_config("vfs.toml")` opens all of that from a file.
//!
//! # Files that outlive the process
//!
//! With the feature `sqlite` (or `postgres`, `redis`, `object-store`) `StoreBackend` keeps files where many processes find
//! them.
//!
#![cfg_attr(feature = "sqlite", doc = "```")]
#![cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
//! use agent_vfs::{BackendExt, StoreBackend, StoreUrl, open_store};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_vfs::Result<()> {
//! let files = StoreBackend::new(open_store(&StoreUrl::parse("sqlite::memory:")?).await?);
//! files.write_text("/memories/ann.md", "likes short answers\n").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Commands
//!
//! A backend may have a [`Shell`] beside its files. With the feature `shell` those of a directory run on this machine, with
//! `sandbox` they are confined, and with `virtual-shell` any backend has one, in which no process is started.
//!
#![cfg_attr(feature = "virtual-shell", doc = "```")]
#![cfg_attr(not(feature = "virtual-shell"), doc = "```ignore")]
//! use std::sync::Arc;
//!
//! use agent_vfs::virtual_shell::{VirtualShell, VirtualShellConfig};
//! use agent_vfs::{Backend, BackendExt, ExecuteRequest, MemoryBackend, OpContext};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_vfs::Result<()> {
//! let files = VirtualShell::new(Arc::new(MemoryBackend::new()), VirtualShellConfig::new());
//! files.write_text("/todo.md", "- write\n- test\n").await?;
//! let shell = files.as_shell().expect("it has one");
//! let ended = shell.execute(&OpContext::new(), ExecuteRequest::new("grep -c '^-' /todo.md")).await?;
//! assert_eq!((ended.stdout.as_str(), ended.exit_code), ("2\n", Some(0)));
//! # Ok(())
//! # }
//! ```
//!
//! # Tools of a model
//!
//! With the feature `tools` a model gets tools for the files of any backend, and the feature `rig` adapts them for agents of rig.
//!
#![cfg_attr(feature = "tools", doc = "```")]
#![cfg_attr(not(feature = "tools"), doc = "```ignore")]
//! use std::sync::Arc;
//!
//! use agent_vfs::tools::{Profile, SchemaForm, ToolSet};
//! use agent_vfs::{BackendExt, MemoryBackend, OpContext};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> agent_vfs::Result<()> {
//! let files = MemoryBackend::new();
//! files.create_text("/plan.md", "- draft\n").await?;
//! let tools = ToolSet::new(Arc::new(files), Profile::Native);
//! let declared = tools.to_openai(SchemaForm::Plain);
//!
//! let edit = serde_json::json!({ "path": "/plan.md", "old": "draft", "new": "final" });
//! let outcome = tools.call(&OpContext::new(), "edit", &edit).await;
//! println!("{declared}\n{}", outcome.to_text());
//! # assert!(outcome.failure.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | default | what it brings |
//! |---|---|---|
//! | `composite` | yes | `composite`: mounts, one namespace over many backends |
//! | `config` | no | `config` and `from_config`: a whole tree of backends from one file; brings `composite`, `layers`, `local`, `memory`, `policy`, `store` and `versions`; a store also needs its own feature |
//! | `layers` | yes | `layers`: read-only, audit, quota, cache, retry, timeout and the like, around any backend |
//! | `local` | yes | `local`: files on a local disk (needs tokio, and opens on Linux only) |
//! | `memory` | yes | `memory`: files in memory, and an agent's state |
//! | `policy` | yes | `policy`: rules about who may do what, approvals and command rules |
//! | `remote` | no | `remote`: files and commands of any place that has a POSIX shell: containers, SSH hosts, services that run code |
//! | `rig` | no | `rig`: the tools of `tools` for agents of [rig](https://docs.rs/rig-core/0.44) 0.44; brings `tools` |
//! | `sandbox` | no | `sandbox`: commands in a sandbox of this system (Linux only) |
//! | `search` | yes | `search`: the search engine, for backends of your own |
//! | `shell` | no | `shell`: commands on the host, beside the files of a local root (Linux only) |
//! | `store` | no | `store`: files in a store; `sqlite`, `postgres`, `redis` and `object-store` (also `gcp`, `azure`) include it |
//! | `tools` | no | `tools`: tools that a model calls, over any backend |
//! | `versions` | yes | `versions`: copy-on-write overlays, checkpoints and undo |
//! | `virtual-shell` | no | `virtual_shell`: commands without processes, on the files of any backend |
//!
//! Without any, this crate is [`core`]: the trait, requests, results and text logic, and no runtime.
#![cfg_attr(
    not(all(feature = "composite", feature = "local", feature = "memory")),
    allow(rustdoc::broken_intra_doc_links, reason = "this page links to types of these features")
)]

#[cfg(feature = "composite")]
pub use vfs_composite as composite;
#[cfg(feature = "config")]
pub use vfs_config as config;
pub use vfs_core as core;
#[cfg(feature = "local")]
pub use vfs_local as local;
#[cfg(feature = "memory")]
pub use vfs_memory as memory;
#[cfg(feature = "policy")]
pub use vfs_policy as policy;
#[cfg(feature = "remote")]
pub use vfs_remote as remote;
#[cfg(feature = "search")]
pub use vfs_search as search;
#[cfg(feature = "shell")]
pub use vfs_shell as shell;
#[cfg(feature = "store")]
pub use vfs_store as store;
#[cfg(feature = "tools")]
pub use vfs_tools as tools;
#[cfg(feature = "versions")]
pub use vfs_versions as versions;
#[cfg(feature = "virtual-shell")]
pub use vfs_virtual_shell as virtual_shell;

/// Layers around any backend: the crate `vfs-layers`, with the layers of the other crates.
#[cfg(feature = "layers")]
pub mod layers {
    #[doc(no_inline)]
    pub use vfs_core::operation::layered;
    #[doc(inline)]
    pub use vfs_layers::*;
    #[cfg(feature = "policy")]
    #[doc(no_inline)]
    pub use vfs_policy::*;
    #[cfg(feature = "versions")]
    #[doc(no_inline)]
    pub use vfs_versions::*;
}

#[cfg(feature = "rig")]
pub mod rig;
#[cfg(feature = "sandbox")]
pub use vfs_sandbox as sandbox;

#[cfg(feature = "composite")]
pub use vfs_composite::CompositeBackend;
#[cfg(feature = "config")]
pub use vfs_config::{Config, ConfigError, ConfiguredBackend, open as from_config};
pub use vfs_core::operation::Intercepted;
pub use vfs_core::{
    Backend, BackendExt, CancelToken, Capabilities, CaseMode, Content, CopyRequest, CopyResult, DeleteRequest,
    DeleteResult, EditRequest, EditResult, Error, ErrorKind, ExecuteEvent, ExecuteRequest, ExecuteResponse,
    FileDownloadResponse, FileInfo, FileUploadRequest, FileUploadResponse, FileWriter, GlobRequest, GlobResult,
    GrepEvent, GrepMatch, GrepOutput, GrepRequest, GrepResult, Interceptor, Layer, LsRequest, LsResult,
    MultiModalReader, OpContext, OpenWriterRequest, Operation, OperationId, Pattern, Problem, ReadRequest, ReadResult,
    RenameRequest, RenameResult, ResolveRequest, ResolveResult, Result, Shell, Snapshots, StatRequest, StreamingShell,
    TreeProvider, TruncationReason, Version, VfsPath, Watch, WriteMode, WriteRequest, WriteResult,
};
#[cfg(feature = "local")]
pub use vfs_local::{LocalBackend, LocalConfig};
#[cfg(feature = "memory")]
pub use vfs_memory::{FilesState, MemoryBackend, MemoryConfig, StateBackend};
#[cfg(feature = "policy")]
pub use vfs_policy::{Policy, RuleSet};
#[cfg(feature = "remote")]
pub use vfs_remote::{RemoteConfig, RemoteExec, SandboxBackend};
#[cfg(feature = "sandbox")]
pub use vfs_sandbox::{OsSandbox, SandboxConfig};
#[cfg(feature = "shell")]
pub use vfs_shell::{LocalShellBackend, ShellConfig};
#[cfg(feature = "store")]
pub use vfs_store::{NamespaceSource, Store, StoreBackend, StoreConfig, StoreUrl, open_store};
#[cfg(feature = "tools")]
pub use vfs_tools::{ToolOutcome, ToolSet};
#[cfg(feature = "versions")]
pub use vfs_versions::{Checkpoints, CommitResult, OverlayBackend};
#[cfg(feature = "virtual-shell")]
pub use vfs_virtual_shell::{VirtualShell, VirtualShellConfig};
