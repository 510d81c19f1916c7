//! The contract of an agent's filesystem, as code.
//!
//! * [`ALL`] is the table of laws: each checks one numbered behaviour of `docs/contract.md` on any backend. [`trials`] runs
//!   them as named tests, `backend::operation::law`.
//! * [`NAMESPACE`] is that of the laws of a namespace, of several backends mounted in one tree; [`namespace_trials`] runs
//!   them as `name::namespace::law`.
//! * [`SHELL`] is that of the laws of a shell, which runs commands beside a backend's files; [`shell_trials`] runs them as
//!   `shell::subject::law`.
//! * [`StrictBackend`] is a strict double: it yields at every call and panics at a result that is not well formed.
//! * [`ReturnedUpdateApplier`] maintains an agent's state around a backend that returns its changes instead of making them.
//! * [`CallCounter`] counts the operations of the backend that it wraps.
//! * [`WithFakeFacets`] adds a shell that starts no process, and a change feed with one event.
//! * [`law_runner`] is the basis for laws of another kind. The laws of stores are in the crate `vfs-store-testkit`.
//! * [`LawTier`] determines which targets run a law by default; with `VFS_LAWS=all` in the environment, all of them run all
//!   laws.
//! * [`server_port`] finds a port for a server that a test starts.
//! * [`model`] compares random operations with a reference.
//!
//! A test target without a harness that checks a backend of yours:
//!
//! ```no_run
//! use std::sync::Arc;
//! use vfs_testkit::{Target, TargetFactory, trials};
//! # fn my_backend() -> Arc<dyn vfs_core::Backend> { unreachable!() }
//!
//! let factory = TargetFactory::new("mine", || Target::new(my_backend()));
//! libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials(factory)).exit();
//! ```

mod call_counter;
mod fault_injector;
pub mod law_runner;
mod law_tier;
mod laws;
pub mod model;
mod namespace_factory;
mod returned_update_applier;
mod server_ports;
mod shell_laws;
mod strict_backend;
mod strict_shell;
mod target;
mod trials;
mod with_fake_facets;
mod without_facets;

pub use call_counter::CallCounter;
pub use law_tier::{LawTier, runs_every_law};
pub use laws::{ALL, Law, LawResult, NAMESPACE, NamespaceLaw};
pub use namespace_factory::{MakeBackend, MakeNamespace, NamespaceFactory, namespace_trials};
pub use returned_update_applier::ReturnedUpdateApplier;
pub use server_ports::server_port;
pub use shell_laws::{
    MakeShell, SHELL, ShellFactory, ShellFeature, ShellLaw, ShellNeed, ShellTarget, plant_environment, shell_trials,
};
pub use strict_backend::StrictBackend;
pub use target::{LinkMaker, Need, Target, TargetFactory};
pub use trials::trials;
pub use with_fake_facets::WithFakeFacets;
