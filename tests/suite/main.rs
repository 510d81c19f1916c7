//! Tests of the workspace as a whole.

mod claude_tools;
mod commands;
mod configured_commands;
mod contract_coverage;
mod conventions;
mod doubles;
mod emptied;
mod layering;
mod links;
mod model;
mod modules;
mod mounts;
mod native_edits;
mod native_tools;
mod operation_ids;
mod overlay_commits;
mod overlay_links;
mod overlays;
mod policy;
mod quota_links;
mod shadows;
mod sources;
mod tool_results;
mod tool_sessions;
mod tools;
mod undo;
