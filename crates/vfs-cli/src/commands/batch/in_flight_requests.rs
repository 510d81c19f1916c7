//! Registry of the requests in flight, by id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use serde_json::value::RawValue;
use vfs_core::CancelToken;

/// Cancellation tokens of requests without an answer, by request id. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct InFlightRequests {
    parent: CancelToken,
    tokens: Arc<Mutex<CancelTokensById>>,
}

/// Tokens by serialised id, so that ids which differ only in spaces or escapes are equal. Several requests can have one id.
type CancelTokensById = HashMap<String, Vec<(u64, CancelToken)>>;

/// Registration of one request, removed on drop.
#[derive(Debug)]
pub(super) struct RequestRegistration {
    /// Cancels the request.
    pub(super) token: CancelToken,
    key: Option<(String, u64, InFlightRequests)>,
}

impl InFlightRequests {
    /// Creates an empty registry. Cancelling `parent` cancels every request.
    pub(super) fn new(parent: CancelToken) -> Self {
        Self { parent, tokens: Arc::default() }
    }

    /// Registers a request; one without an id can only be cancelled by its parent token.
    pub(super) fn register(&self, id: Option<&RawValue>) -> RequestRegistration {
        let token = self.parent.child();
        let id = id.and_then(|id| serde_json::from_str::<Value>(id.get()).ok());
        let key = id.map(|id| {
            let id = id.to_string();
            let mut tokens = self.tokens();
            let same = tokens.entry(id.clone()).or_default();
            let number = same.last().map_or(0, |(number, _)| number + 1);
            same.push((number, token.clone()));
            drop(tokens);
            (id, number, self.clone())
        });
        RequestRegistration { token, key }
    }

    /// Cancels the requests with this id, and returns whether there is one.
    pub(super) fn cancel(&self, id: &Value) -> bool {
        let tokens = self.tokens();
        let Some(same) = tokens.get(&id.to_string()) else { return false };
        same.iter().for_each(|(_, token)| token.cancel());
        true
    }

    fn tokens(&self) -> MutexGuard<'_, CancelTokensById> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestRegistration {
    fn drop(&mut self) {
        let Some((id, number, in_flight)) = self.key.take() else { return };
        let mut tokens = in_flight.tokens();
        if let Some(same) = tokens.get_mut(&id) {
            same.retain(|(other, _)| *other != number);
            if same.is_empty() {
                tokens.remove(&id);
            }
        }
    }
}
