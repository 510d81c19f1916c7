//! Attacks on the network, and on sockets of the host.

use super::Confinement::{All, Landlock, Namespaces, Seccomp, WithoutNamespaces};
use super::Setting::{UnixSockets, UnixSocketsAndNetwork, Usual};
use super::{ExpectedErrors, Row, Target};
use crate::system::{call, outcome};
#[cfg(target_arch = "x86_64")]
use crate::system::{call_32_bit, in_child};

/// The namespace has a loopback device of its own, without servers; Landlock forbids TCP, and the filter forbids
/// sockets.
const TCP: ExpectedErrors = &[
    (All, "ECONNREFUSED|EACCES"),
    (Namespaces, "ECONNREFUSED|EADDRNOTAVAIL"),
    (Landlock, "EACCES"),
    (WithoutNamespaces, "EPERM"),
];

const RAW: ExpectedErrors = &[(All, "EPERM"), (Namespaces, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")];

/// The filter forbids all unix sockets except pairs.
const UNIX: ExpectedErrors = &[(All, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")];

/// The filter kills a process that uses the 32-bit interface with SIGSYS; a kernel without that interface, with
/// SIGSEGV.
#[cfg(target_arch = "x86_64")]
const KILLED: ExpectedErrors =
    &[(All, "signal 31|signal 11"), (Seccomp, "signal 31|signal 11"), (WithoutNamespaces, "signal 31|signal 11")];

pub(super) const ATTACKS: &[Row] = &[
    (
        "connect_by_ipv4",
        |target| connected(&ipv4([127, 0, 0, 1], target.port), libc::AF_INET, libc::SOCK_STREAM),
        TCP,
        Usual,
    ),
    ("connect_by_ipv6", |target| connected(&ipv6(target.port_v6), libc::AF_INET6, libc::SOCK_STREAM), TCP, Usual),
    (
        "send_a_datagram",
        datagram,
        &[(All, "ECONNREFUSED|silence"), (Namespaces, "ECONNREFUSED|silence"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    (
        "connect_to_the_internet",
        |_| connected(&ipv4([192, 0, 2, 1], 80), libc::AF_INET, libc::SOCK_STREAM),
        &[(All, "ENETUNREACH|EACCES"), (Namespaces, "ENETUNREACH"), (Landlock, "EACCES"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    (
        "send_to_the_internet",
        |_| connected(&ipv4([192, 0, 2, 1], 53), libc::AF_INET, libc::SOCK_DGRAM),
        &[(All, "ENETUNREACH"), (Namespaces, "ENETUNREACH"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    ("listen_for_others", listening, &[(Landlock, "EACCES"), (All, "EACCES"), (WithoutNamespaces, "EPERM")], Usual),
    (
        "connect_to_a_unix_socket",
        |target| connected(&unix(&format!("{}/socket", target.outside)), libc::AF_UNIX, libc::SOCK_STREAM),
        &[(All, "EPERM"), (Namespaces, "ENOENT"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    (
        "connect_to_a_unix_socket_inside",
        |_| connected(&unix("deep/socket"), libc::AF_UNIX, libc::SOCK_STREAM),
        UNIX,
        Usual,
    ),
    (
        "connect_to_one_inside_where_sockets_are_allowed",
        |_| connected(&unix("deep/socket"), libc::AF_UNIX, libc::SOCK_STREAM),
        &[(All, "EACCES|ECONNREFUSED")],
        UnixSockets,
    ),
    (
        "connect_to_an_abstract_socket_where_sockets_and_the_network_are_allowed",
        |target| connected(&unix(&format!("\0{}", target.name)), libc::AF_UNIX, libc::SOCK_STREAM),
        &[(All, "EPERM")],
        UnixSocketsAndNetwork,
    ),
    #[cfg(target_arch = "x86_64")]
    ("make_a_unix_socket_by_the_32_bit_numbers", |_| socket_32_bit(), KILLED, Usual),
    (
        "connect_to_an_abstract_socket",
        |target| connected(&unix(&format!("\0{}", target.name)), libc::AF_UNIX, libc::SOCK_STREAM),
        &[(All, "EPERM"), (Namespaces, "ECONNREFUSED"), (Landlock, "EPERM"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    (
        "turn_a_pair_to_a_unix_socket",
        turned,
        &[(All, "EPERM"), (Namespaces, "ENOENT"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    ("make_a_raw_socket", |_| socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP), RAW, Usual),
    ("make_a_raw_ipv6_socket", |_| socket(libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6), RAW, Usual),
    ("make_a_packet_socket", |_| socket(libc::AF_PACKET, libc::SOCK_RAW, 0x300), RAW, Usual),
    (
        "make_a_packet_socket_of_old",
        |_| socket(libc::AF_INET, 10, 0x300),
        &[(All, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    (
        "talk_to_the_hypervisor",
        |_| socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        &[(All, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    (
        "make_a_crypto_socket",
        |_| socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0),
        &[(All, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
    (
        "ask_for_the_routes_of_the_host",
        |_| socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE),
        &[(WithoutNamespaces, "EPERM")],
        Usual,
    ),
    (
        "listen_to_kernel_events",
        |_| socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT),
        &[(All, "EPERM"), (Seccomp, "EPERM"), (WithoutNamespaces, "EPERM")],
        Usual,
    ),
];

fn socket(family: i32, kind: i32, protocol: i32) -> String {
    outcome(made(family, kind, protocol))
}

#[cfg(target_arch = "x86_64")]
fn socket_32_bit() -> String {
    const SOCKET: u32 = 359;
    let made = in_child(|| call_32_bit(SOCKET, [libc::AF_UNIX as u32, libc::SOCK_STREAM as u32, 0]).min(0));
    made.unwrap_or_else(|error| error)
}

fn made(family: i32, kind: i32, protocol: i32) -> Result<i64, String> {
    call(libc::SYS_socket, [family as usize, kind as usize, protocol as usize, 0, 0, 0])
}

fn connected(address: &[u8], family: i32, kind: i32) -> String {
    let connect =
        |socket: i64| call(libc::SYS_connect, [socket as usize, address.as_ptr() as usize, address.len(), 0, 0, 0]);
    outcome(made(family, kind, 0).and_then(connect))
}

fn ipv4(host: [u8; 4], port: u16) -> Vec<u8> {
    let mut address = (libc::AF_INET as u16).to_ne_bytes().to_vec();
    address.extend(port.to_be_bytes());
    address.extend(host);
    address.extend([0; 8]);
    address
}

fn ipv6(port: u16) -> Vec<u8> {
    let mut address = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
    address.extend(port.to_be_bytes());
    address.extend([0; 4]);
    address.extend(std::net::Ipv6Addr::LOCALHOST.octets());
    address.extend([0; 4]);
    address
}

fn unix(name: &str) -> Vec<u8> {
    let mut address = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    address.extend(name.as_bytes());
    if !name.starts_with('\0') {
        address.push(0);
    }
    address
}

/// Sends a datagram. An error for one that is not delivered would appear only at the next one; the world outside checks
/// whether it arrived.
fn datagram(target: &Target) -> String {
    let address = ipv4([127, 0, 0, 1], target.port);
    let send = |socket: i64| {
        call(
            libc::SYS_sendto,
            [socket as usize, b"out".as_ptr() as usize, 3, 0, address.as_ptr() as usize, address.len()],
        )
    };
    match made(libc::AF_INET, libc::SOCK_DGRAM, 0).and_then(send) {
        Ok(_) => "silence".to_owned(),
        Err(error) => error,
    }
}

fn listening(_: &Target) -> String {
    let address = ipv4([0, 0, 0, 0], 0);
    let bind = |socket: i64| call(libc::SYS_bind, [socket as usize, address.as_ptr() as usize, address.len(), 0, 0, 0]);
    outcome(made(libc::AF_INET, libc::SOCK_STREAM, 0).and_then(bind))
}

/// Connects one socket of a pair, which is possible for datagram sockets, to another socket.
fn turned(target: &Target) -> String {
    let mut pair = [0_i32; 2];
    let kind = libc::SOCK_DGRAM as usize;
    if let Err(error) = call(libc::SYS_socketpair, [libc::AF_UNIX as usize, kind, 0, pair.as_mut_ptr() as usize, 0, 0])
    {
        return error;
    }
    let address = unix(&format!("{}/datagrams", target.outside));
    outcome(call(libc::SYS_connect, [pair[0] as usize, address.as_ptr() as usize, address.len(), 0, 0, 0]))
}
