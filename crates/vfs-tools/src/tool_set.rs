//! The tools of one backend.

use std::sync::Arc;

use serde_json::Value;
use vfs_core::backend::Access;
use vfs_core::{Backend, OpContext, VfsPath};

use crate::outcome::{FailureKind, ToolOutcome};
use crate::profile::Profile;
use crate::session::Session;
use crate::tool::Tool;
use crate::tool_definition::Offered;

/// The tools by which a model uses a backend.
///
/// # Behaviour
///
/// * A tool that the backend cannot serve is not offered: none that runs commands if there is no shell, and none that changes files if
///   the directory of the profile, mostly the root, is read-only. Descriptions name only tools that are there.
/// * A clone is a handle on the same backend.
///
/// ```
/// use std::sync::Arc;
///
/// use serde_json::json;
/// use vfs_core::{BackendExt, OpContext};
/// use vfs_memory::MemoryBackend;
/// use vfs_tools::{Profile, ToolSet};
///
/// # futures::executor::block_on(async {
/// let files = MemoryBackend::new();
/// files.create_text("/plan.md", "- draft\n").await?;
///
/// let tools = ToolSet::new(Arc::new(files), Profile::DeepagentsClassic);
/// let names: Vec<_> = tools.tools().iter().map(|tool| tool.name()).collect();
/// assert_eq!(names, ["ls", "read_file", "write_file", "edit_file", "glob", "grep"]);
///
/// let arguments = json!({ "file_path": "/plan.md", "old_string": "draft", "new_string": "final" });
/// let outcome = tools.call(&OpContext::new(), "edit_file", &arguments).await;
/// assert_eq!(outcome.to_text(), "Successfully replaced 1 instance(s) of the string in '/plan.md'");
/// # Ok::<(), vfs_core::Error>(())
/// # }).expect("the example runs");
/// ```
#[derive(Debug, Clone)]
pub struct ToolSet {
    tools: Vec<Tool>,
}

impl ToolSet {
    /// Creates the tools of `profile` for `backend`.
    pub fn new(backend: Arc<dyn Backend>, profile: Profile) -> Self {
        let root = VfsPath::root();
        let offered = Offered {
            changes: backend.capabilities(&profile.directory()).access == Access::ReadWrite,
            shell: backend.as_shell().is_some(),
        };
        let session = Arc::new(Session::default());
        let definitions = profile.definitions().iter().filter(|definition| offered.has(definition.needs));
        let tools = definitions.map(|definition| Tool {
            definition,
            description: (definition.description)(offered).into(),
            backend: Arc::clone(&backend),
            session: Arc::clone(&session),
            working_directory: root.clone(),
        });
        Self { tools: tools.collect() }
    }

    /// Returns the tools, in the order in which they should be offered.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns the tool `name`.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// Calls the tool `name`. A name that is no tool is a failure whose text has the names of the tools.
    pub async fn call(&self, cx: &OpContext, name: &str, arguments: &Value) -> ToolOutcome {
        match self.get(name) {
            Some(tool) => tool.call(cx, arguments).await,
            None => {
                let names: Vec<_> = self.tools.iter().map(Tool::name).collect();
                let name: String = name.chars().take(60).collect();
                let text = format!("Error: there is no tool '{name}'; the tools are {}", names.join(", "));
                ToolOutcome::failed(FailureKind::UnknownTool, text)
            }
        }
    }
}
