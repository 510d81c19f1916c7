//! A server's network, which loses connections and keeps bytes back.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

/// Stands between a store and its server.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
}

struct State {
    target: String,
    /// After how many more bytes, in either direction, a connection is cut.
    left: Mutex<u64>,
    cuts: AtomicUsize,
    most_cuts: usize,
    /// Bytes in the answer to whatever was held back.
    answered: mpsc::UnboundedSender<usize>,
    connections: AtomicU64,
    /// Connections up to this number hold back what the store sends.
    held: watch::Sender<u64>,
}

impl Proxy {
    /// A proxy that cuts `most_cuts` times, and what tells of each answer to bytes that were held back.
    pub(crate) async fn start(target: &str, most_cuts: usize) -> (Self, mpsc::UnboundedReceiver<usize>) {
        let (answered, answers) = mpsc::unbounded_channel();
        let state = Arc::new(State {
            target: target.to_owned(),
            left: Mutex::new(next_cut()),
            cuts: AtomicUsize::new(0),
            most_cuts,
            answered,
            connections: AtomicU64::new(0),
            held: watch::Sender::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let served = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(Arc::clone(&served), client));
            }
        });
        (Self { port, state }, answers)
    }

    pub(crate) fn cuts(&self) -> usize {
        self.state.cuts.load(Ordering::SeqCst)
    }

    /// Holds back what is sent by the connections that there are, but not by those to come.
    pub(crate) fn hold(&self) {
        self.state.held.send_replace(self.state.connections.load(Ordering::SeqCst));
    }

    /// Sends what was held back, though nobody waits for the answer any more.
    pub(crate) fn release(&self) {
        self.state.held.send_replace(0);
    }
}

fn next_cut() -> u64 {
    fastrand::u64(1..6000)
}

impl State {
    /// How many of `bytes` may pass before a cut, and whether there is one then.
    fn pass(&self, bytes: usize) -> (usize, bool) {
        if self.cuts.load(Ordering::SeqCst) >= self.most_cuts {
            return (bytes, false);
        }
        let mut left = self.left.lock().expect("no panic");
        if (bytes as u64) < *left {
            *left -= bytes as u64;
            return (bytes, false);
        }
        let passed = usize::try_from(*left).expect("it fits");
        *left = next_cut();
        self.cuts.fetch_add(1, Ordering::SeqCst);
        (passed, true)
    }
}

async fn serve(state: Arc<State>, client: TcpStream) {
    let number = state.connections.fetch_add(1, Ordering::SeqCst) + 1;
    let Ok(server) = TcpStream::connect(&state.target).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let was_held = Arc::new(AtomicU64::new(0));
    let asks = ask(&state, number, Arc::clone(&was_held), from_client, to_server);
    let answers = answer(&state, was_held, from_server, to_client);
    // A cut in one direction is a cut of the connection.
    tokio::select! {
        () = asks => {}
        () = answers => {}
    }
}

async fn ask(state: &State, number: u64, was_held: Arc<AtomicU64>, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut held = state.held.subscribe();
    let mut buffer = vec![0; 4096];
    while let Ok(bytes @ 1..) = from.read(&mut buffer).await {
        if *held.borrow() >= number {
            was_held.store(1, Ordering::SeqCst);
            if held.wait_for(|held| *held < number).await.is_err() {
                return;
            }
        }
        let (passed, is_cut) = state.pass(bytes);
        if to.write_all(&buffer[..passed]).await.is_err() || is_cut {
            return;
        }
    }
    if was_held.load(Ordering::SeqCst) == 1 {
        // The store has gone; the server has not answered yet.
        std::future::pending::<()>().await;
    }
}

async fn answer(state: &State, was_held: Arc<AtomicU64>, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut buffer = vec![0; 4096];
    while let Ok(bytes @ 1..) = from.read(&mut buffer).await {
        if was_held.load(Ordering::SeqCst) == 1 && state.answered.send(bytes).is_err() {
            return;
        }
        let (passed, is_cut) = state.pass(bytes);
        let has_arrived = to.write_all(&buffer[..passed]).await.is_ok();
        if is_cut || (!has_arrived && was_held.load(Ordering::SeqCst) == 0) {
            return;
        }
    }
}
