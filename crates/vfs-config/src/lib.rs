//! A whole namespace of backends from one configuration file.
//!
//! A `vfs.toml` describes what is at `/`, what is mounted where, and the layers around each mount and around the namespace:
//!
//! ```toml
//! [default]
//! type = "local"
//! root = "."
//! layers = [{ type = "overlay", store = ".vfs/overlay" }]
//!
//! [[mounts]]
//! path = "/memories"
//! type = "memory"
//!
//! [[layers]]
//! type = "policy"
//! rules = [{ effect = "deny", paths = ["/secrets", "*.pem"] }]
//! ```
//!
//! [`open`] reads such a file and returns a [`ConfiguredBackend`]: the backend, and handles to its layers. For an unknown key
//! or an invalid value it returns a [`ConfigError`] with line and column. [`schema`] returns the JSON schema of the file for
//! editors, and `docs/vfs.example.toml` of the repository shows every layer.

mod build;
mod config;
mod config_text;
mod config_validator;
mod configured_backend;
mod error;
mod host_paths;
mod host_storage_location;
mod layer_handle;
mod layer_operations;
mod namespace_spec;
mod parse;
mod redaction;
mod schema;
mod setting_values;
pub mod suggest;
mod tables;

pub use config::{Config, open};
pub use configured_backend::ConfiguredBackend;
pub use error::{ConfigError, ConfigErrorKind, Position, describe_open_failure};
pub use layer_handle::{AuditLog, LayerHandle, LayerScope};
pub use schema::schema;
