//! Command `vfs config`: checks a configuration file, or prints its schema or an example.

use std::io::Write;

use crate::backend_session::BackendSession;
use crate::escape::escape;
use crate::exit::{Exit, Failure};
use crate::standard_output::StandardOutput;

pub(super) fn check(session: &BackendSession, out: &mut StandardOutput) -> Result<Exit, Failure> {
    let configured = session.configured()?;
    for mount in configured.composite.mounts() {
        writeln!(out, "{} is {}", escape(mount.path.as_str()), escape(&mount.backend))?;
    }
    writeln!(out, "the namespace is {}", configured.backend)?;
    writeln!(out, "the configuration is valid")?;
    Ok(Exit::Success)
}

pub(super) fn schema(out: &mut StandardOutput) -> Result<Exit, Failure> {
    out.write_all(vfs_config::schema().as_bytes())?;
    Ok(Exit::Success)
}

pub(super) fn example(out: &mut StandardOutput) -> Result<Exit, Failure> {
    out.write_all(include_bytes!("../vfs.example.toml"))?;
    Ok(Exit::Success)
}
