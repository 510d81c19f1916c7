//! Tools by which a model reads, searches and edits the files of any backend.
//!
//! A tool has parameters, which are data: [`input_schema`] shows them to a model, and [`Arguments`] reads what the model sends.
//! Arguments are read leniently, as models misspell names and send numbers as text; what cannot be read is an error whose text
//! says which argument, what came, and what is allowed.

mod action;
mod annotations;
mod api_forms;
mod argument_error;
mod argument_reader;
mod arguments;
mod large_text;
mod line_window;
mod outcome;
mod parameter;
mod profile;
mod profiles;
mod python_list;
mod regex_signs;
mod request_action;
mod result_metadata;
mod result_store;
mod schema;
mod session;
mod text_file_edit;
mod tool;
mod tool_call;
mod tool_definition;
mod tool_set;
mod tool_set_state;
mod two_level_listing;
mod with_count;

pub use self::action::Effect;
pub use self::annotations::Annotations;
pub use self::argument_error::ArgumentError;
pub use self::arguments::{Argument, Arguments};
pub use self::outcome::{ChangedFile, FailureKind, Part, ToolOutcome};
pub use self::parameter::{Parameter, ParameterKind, Presence};
pub use self::profile::Profile;
pub use self::result_store::ResultStore;
pub use self::schema::{SchemaForm, input_schema};
pub use self::tool::Tool;
pub use self::tool_call::ToolCall;
pub use self::tool_set::ToolSet;
