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

use super::postgres_client::PostgresClient;
use crate::store::Sequence;

/// Capacity of the queue of notifications. A receiver that lags behind it polls the store.
const NOTIFICATION_CAPACITY: usize = 1024;
/// Delay before a lost connection is replaced.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Notification that a namespace changed.
#[derive(Debug, Clone)]
pub(super) struct ChangeNotification {
    pub(super) namespace: String,
    pub(super) sequence: Sequence,
}

impl ChangeNotification {
    /// Parses the payload of a notification: the sequence, a space, and the namespace.
    fn parse(text: &str) -> Option<Self> {
        let (sequence, namespace) = text.split_once(' ')?;
        Some(Self { namespace: namespace.to_owned(), sequence: Sequence(sequence.parse().ok()?) })
    }
}

/// Separate connection that listens for notifications, opened by the first caller and reopened when it is lost.
pub(super) struct ChangeListener {
    /// `None` behind a pooler, which does not support `LISTEN`.
    config: Option<tokio_postgres::Config>,
    tls: MakeRustlsConnect,
    channel: Arc<str>,
    sender: broadcast::Sender<ChangeNotification>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl ChangeListener {
    pub(super) fn new(server: &PostgresClient, channel: Arc<str>) -> Self {
        let (sender, _) = broadcast::channel(NOTIFICATION_CAPACITY);
        Self { config: server.config.listener(), tls: server.tls.clone(), channel, sender, task: Mutex::default() }
    }

    /// Returns the notifications from now on, or `None` behind a pooler, where the caller has to poll.
    pub(super) fn listen(&self) -> Option<broadcast::Receiver<ChangeNotification>> {
        let config = self.config.as_ref()?;
        let receiver = self.sender.subscribe();
        // No code that can panic runs while this lock is held.
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        // The task ends with the runtime on which it was spawned, and the store may outlive that runtime.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let (config, tls) = (config.clone(), self.tls.clone());
            let (channel, sender) = (Arc::clone(&self.channel), self.sender.clone());
            *task = Some(tokio::spawn(async move {
                loop {
                    if let Err(error) = run_session(&config, tls.clone(), &channel, &sender).await {
                        tracing::debug!(%error, "the connection that listens for changes was lost");
                    }
                    tokio::time::sleep(RECONNECT_DELAY).await;
                }
            }));
        }
        Some(receiver)
    }
}

impl Drop for ChangeListener {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task {
            task.abort();
        }
    }
}

impl fmt::Debug for ChangeListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeListener").field("channel", &self.channel).finish_non_exhaustive()
    }
}

/// Forwards the notifications of one connection until it is lost.
async fn run_session(
    config: &tokio_postgres::Config,
    tls: MakeRustlsConnect,
    channel: &str,
    sender: &broadcast::Sender<ChangeNotification>,
) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = config.connect(tls).await?;
    let listen = async {
        client.batch_execute(&format!("LISTEN \"{channel}\"")).await?;
        // Keep the client, as the connection ends when the client is dropped.
        pending::<Result<(), tokio_postgres::Error>>().await
    };
    let forward = async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message?
                && let Some(change) = ChangeNotification::parse(notification.payload())
            {
                // There may be no receiver.
                let _ = sender.send(change);
            }
        }
        Ok(())
    };
    select(pin!(listen), pin!(forward)).await.factor_first().0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_is_a_sequence_and_a_namespace() {
        let parse = |text| ChangeNotification::parse(text).map(|change| (change.sequence.0, change.namespace));
        assert_eq!(parse("7 acme/ann"), Some((7, "acme/ann".to_owned())));
        assert_eq!(parse("7 "), Some((7, String::new())));
        assert_eq!(parse("7"), None);
        assert_eq!(parse("x y"), None);
    }
}
