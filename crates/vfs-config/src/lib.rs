//! A whole tree of backends from one file.
//!
//! A `vfs.toml` says what is at `/`, what is mounted where, and which layers are around each and around everything:
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
//! [`open`] makes it a backend, and gives the parts that a program may want to reach beside it: see [`Built`]. An unknown
//! key or a wrong value is a [`ConfigError`] that says where it stands. [`schema`] is the form of the file for editors, and
//! `docs/vfs.example.toml` of the repository shows every layer.

mod build;
mod built;
mod check;
mod config;
mod error;
mod host;
mod mask;
mod parse;
mod recorded;
mod schema;
mod source;
pub mod suggest;
mod tables;
mod values;

pub use built::{AuditLog, Built, Place, Placed};
pub use config::{Config, open};
pub use error::{ConfigError, ConfigErrorKind, Position, unopened_directory};
pub use schema::schema;
