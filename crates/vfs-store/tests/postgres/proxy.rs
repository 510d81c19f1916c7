//! Stands between a store and its server, and cuts connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A proxy for one server.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// How many bytes still pass, in both directions together, until all connections are cut; negative for no end.
    left: AtomicI64,
    /// Whether what comes after is swallowed in silence instead.
    is_silent: AtomicBool,
    /// Whether the next commit is cut off before the server gets it.
    loses_commit: AtomicBool,
    cut: Notify,
}

impl Proxy {
    pub(crate) async fn new(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State { left: AtomicI64::new(i64::MIN), ..State::default() });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, server, Arc::clone(&shared)));
            }
        });
        Self { address, state }
    }

    /// Cuts all connections as soon as `bytes` more have passed.
    pub(crate) fn cut_after(&self, bytes: i64) {
        self.state.left.store(bytes, Ordering::SeqCst);
    }

    /// Whether the cut that was asked for is still to come.
    pub(crate) fn is_armed(&self) -> bool {
        self.state.left.load(Ordering::SeqCst) >= 0
    }

    /// Cuts all connections where the next commit would pass, which the server never gets.
    pub(crate) fn lose_commit(&self) {
        self.state.loses_commit.store(true, Ordering::SeqCst);
    }

    /// Swallows whatever comes, in both directions, or lets it pass again.
    pub(crate) fn silence(&self, is_silent: bool) {
        self.state.is_silent.store(is_silent, Ordering::SeqCst);
    }
}

impl State {
    /// How many of `bytes` may pass, and whether that was the end.
    fn take(&self, bytes: usize) -> (usize, bool) {
        let before = self.left.fetch_sub(bytes as i64, Ordering::SeqCst);
        if before < 0 {
            self.left.store(i64::MIN, Ordering::SeqCst);
            return (bytes, false);
        }
        if before > bytes as i64 {
            return (bytes, false);
        }
        self.left.store(i64::MIN, Ordering::SeqCst);
        (before as usize, true)
    }
}

async fn pass(client: TcpStream, server: SocketAddr, state: Arc<State>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let cut = state.cut.notified();
    // Whichever ends first takes the other with it, in the middle of whatever it does.
    tokio::select! {
        () = copy(from_client, to_server, &state) => {}
        () = copy(from_server, to_client, &state) => {}
        () = cut => {}
    }
}

async fn copy(mut from: tokio::net::tcp::OwnedReadHalf, mut to: tokio::net::tcp::OwnedWriteHalf, state: &State) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if state.is_silent.load(Ordering::SeqCst) {
            continue;
        }
        let is_commit = buffer[..read].windows(7).any(|word| word == b"COMMIT\0");
        if is_commit && state.loses_commit.swap(false, Ordering::SeqCst) {
            state.cut.notify_waiters();
            return;
        }
        let (passing, is_end) = state.take(read);
        if to.write_all(&buffer[..passing]).await.is_err() {
            return;
        }
        if is_end {
            state.cut.notify_waiters();
            return;
        }
    }
}
