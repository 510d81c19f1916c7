//! Ports for the servers that tests start.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

/// Returns a free TCP port of the loopback device for a server that a test starts.
///
/// # Behaviour
///
/// * The port is between 20,000 and 31,999, below those that Linux assigns to outgoing connections by default. Otherwise a
///   client that connects again and again until the server listens can be assigned that port itself and be connected to itself.
/// * One process is given each port once. Other processes may pick the same one.
///
/// ```
/// let port = vfs_testkit::server_port();
/// assert!((20_000..32_000).contains(&port));
/// assert_ne!(port, vfs_testkit::server_port());
/// ```
///
/// # Panics
///
/// If none of these ports is free.
#[must_use]
pub fn server_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut ports: Vec<u16> = (20_000..32_000).filter(|port| !given.contains(port)).collect();
    fastrand::shuffle(&mut ports);
    let port = ports.into_iter().find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    let port = port.expect("one of 12,000 ports is free");
    given.insert(port);
    port
}
