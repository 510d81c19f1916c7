//! `vfs config`.

use std::io::Write;

use crate::escape::escaped;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;

pub(super) fn check(session: &Session, out: &mut Output) -> Result<Exit, Failure> {
    let built = session.built()?;
    for mount in built.composite.mounts() {
        writeln!(out, "{} is {}", escaped(mount.path.as_str()), escaped(&mount.backend))?;
    }
    writeln!(out, "everything is {}", built.backend)?;
    writeln!(out, "all of it can be opened")?;
    Ok(Exit::Success)
}

pub(super) fn schema(out: &mut Output) -> Result<Exit, Failure> {
    out.write_all(vfs_config::schema().as_bytes())?;
    Ok(Exit::Success)
}
