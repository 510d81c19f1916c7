//! Session settings of connections.

use std::time::Duration;

use tokio_postgres::config::SslMode;

use super::config::{PostgresConfig, PostgresTls};
use super::statement::StatementMode;

impl PostgresConfig {
    /// Returns the configuration of the connections of the pool.
    pub(super) fn session(&self) -> tokio_postgres::Config {
        let mut session = self.connection(self.server.clone());
        if !self.is_pooled {
            session.options(
                self.settings().map(|(name, value)| format!("-c {name}={}", value.replace(' ', "\\ "))).join(" "),
            );
        }
        session
    }

    /// Returns the configuration of the connection that listens for changes, or `None` if a pooler would drop its
    /// subscriptions.
    pub(super) fn listener(&self) -> Option<tokio_postgres::Config> {
        let direct = self.listener.clone().or_else(|| (!self.is_pooled).then(|| self.server.clone()));
        direct.map(|server| self.connection(server))
    }

    /// Returns how statements are sent.
    pub(super) fn sending(&self) -> StatementMode {
        if !self.is_pooled {
            return StatementMode::Session;
        }
        let set = self.settings().map(|(name, value)| format!("SET LOCAL {name} = '{value}'"));
        StatementMode::Transaction { settings: set.join("; ") }
    }

    /// Returns the settings of the server for each transaction.
    ///
    /// The server ends an idle transaction, because its client may have disconnected without notice and its namespace
    /// would stay locked. Every statement has an index, and a plan made for small tables must not be used for larger
    /// ones. JIT compilation takes half a second per statement; the server uses it if it expects much work, which it
    /// does without sequential scans.
    fn settings(&self) -> [(&'static str, String); 10] {
        [
            ("search_path", self.schema.clone()),
            ("statement_timeout", self.statement_timeout.as_millis().to_string()),
            ("lock_timeout", self.lock_timeout.as_millis().to_string()),
            ("idle_in_transaction_session_timeout", "30s".to_owned()),
            ("default_transaction_isolation", "read committed".to_owned()),
            ("enable_seqscan", "off".to_owned()),
            ("jit", "off".to_owned()),
            ("plan_cache_mode", "force_generic_plan".to_owned()),
            ("client_min_messages", "error".to_owned()),
            ("synchronous_commit", "on".to_owned()),
        ]
    }

    fn connection(&self, mut server: tokio_postgres::Config) -> tokio_postgres::Config {
        server
            .ssl_mode(match self.tls {
                PostgresTls::Disable => SslMode::Disable,
                PostgresTls::Prefer => SslMode::Prefer,
                PostgresTls::Require | PostgresTls::VerifyFull => SslMode::Require,
            })
            .connect_timeout(self.connect_timeout)
            .keepalives_idle(Duration::from_secs(30))
            .keepalives_interval(Duration::from_secs(10))
            .keepalives_retries(3);
        if server.get_application_name().is_none() {
            server.application_name("vfs");
        }
        server
    }
}
