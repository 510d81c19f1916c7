//! Access policies: rules on operations by actor and path, enforced by the library.
//!
//! A [`PolicyHook`] decides; [`RuleSet`] is the built-in one, read from TOML or JSON. The [`Policy`] layer consults it
//! before every operation: about the requested paths and their real locations with all links followed, about all
//! entries below a directory that is moved, copied or deleted, and about every entry that a listing or search would
//! show.

mod approval;
mod backend;
mod command_parser;
mod enforcer;
mod explain;
mod masked_error;
mod path_pattern;
mod policy;
mod policy_tree;
mod policy_writer;
mod required_permissions;
mod rule;
mod rule_set;

pub use approval::{Approval, ApprovalQueue, Approver, PendingApproval};
pub use backend::PolicyBackend;
pub use command_parser::{CommandArgument, CommandLine, SimpleCommand};
pub use explain::Explanation;
pub use policy::{Decision, Permission, Policy, PolicyHook};
pub use rule::{HardLinks, Rule, RuleEffect};
pub use rule_set::RuleSet;
