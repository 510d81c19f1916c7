//! Listener for change notifications.

use std::fmt;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::select;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio_postgres::AsyncMessage;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::server::Server;
use crate::store::Sequence;

/// How many notifications wait for whoever is slow; then he looks for himself.
const NOTIFICATION_CAPACITY: usize = 1024;
/// How long after a connection was lost the next is made.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// That a namespace changed.
#[derive(Debug, Clone)]
pub(super) struct ChangeNotification {
    pub(super) namespace: String,
    pub(super) position: Sequence,
}

impl ChangeNotification {
    /// Reads the text of a notification: the position, a space, and the namespace.
    fn read(text: &str) -> Option<Self> {
        let (position, namespace) = text.split_once(' ')?;
        Some(Self { namespace: namespace.to_owned(), position: Sequence(position.parse().ok()?) })
    }
}

/// A connection of its own that listens, from the first time that somebody wants to know. It is made again where it is lost.
pub(super) struct Listener {
    /// `None` behind a pooler, where nobody can listen.
    config: Option<tokio_postgres::Config>,
    tls: MakeRustlsConnect,
    channel: Arc<str>,
    news: broadcast::Sender<ChangeNotification>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Listener {
    pub(super) fn new(server: &Server, channel: Arc<str>) -> Self {
        let (news, _) = broadcast::channel(NOTIFICATION_CAPACITY);
        Self { config: server.config.listener(), tls: server.tls.clone(), channel, news, task: Mutex::default() }
    }

    /// Notifications from now on; `None` behind a pooler, where the caller has to poll.
    pub(super) fn listen(&self) -> Option<broadcast::Receiver<ChangeNotification>> {
        let config = self.config.as_ref()?;
        let receiver = self.news.subscribe();
        // Nothing that can panic runs while it is held.
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        // The task ends with the runtime that it was begun on, which may not be the last.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let (config, tls) = (config.clone(), self.tls.clone());
            let (channel, news) = (Arc::clone(&self.channel), self.news.clone());
            *task = Some(tokio::spawn(async move {
                loop {
                    if let Err(error) = session(&config, tls.clone(), &channel, &news).await {
                        tracing::debug!(%error, "the connection that listens for changes was lost");
                    }
                    tokio::time::sleep(RECONNECT_DELAY).await;
                }
            }));
        }
        Some(receiver)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task {
            task.abort();
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("channel", &self.channel).finish_non_exhaustive()
    }
}

/// Passes on the notifications of one connection, until it is lost.
async fn session(
    config: &tokio_postgres::Config,
    tls: MakeRustlsConnect,
    channel: &str,
    news: &broadcast::Sender<ChangeNotification>,
) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = config.connect(tls).await?;
    let listen = async {
        client.batch_execute(&format!("LISTEN \"{channel}\"")).await?;
        // The connection lasts as long as its client.
        pending::<Result<(), tokio_postgres::Error>>().await
    };
    let record = async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message?
                && let Some(read) = ChangeNotification::read(notification.payload())
            {
                // Nobody may be waiting.
                let _ = news.send(read);
            }
        }
        Ok(())
    };
    select(pin!(listen), pin!(record)).await.factor_first().0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_is_a_position_and_a_namespace() {
        let read = |text| ChangeNotification::read(text).map(|news| (news.position.0, news.namespace));
        assert_eq!(read("7 acme/ann"), Some((7, "acme/ann".to_owned())));
        assert_eq!(read("7 "), Some((7, String::new())));
        assert_eq!(read("7"), None);
        assert_eq!(read("x y"), None);
    }
}
