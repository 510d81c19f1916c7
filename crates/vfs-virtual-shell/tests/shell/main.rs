//! Behaviour of the virtual shell over real backends.

mod execution;
mod files;
mod isolation;
mod jobs;
mod limits;
mod scripts;
mod stream;
mod support;
