//! The requests that are not answered yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use serde_json::value::RawValue;
use vfs_core::CancelToken;

/// Requests by their ids, so that they can be cancelled. A clone has the same.
#[derive(Debug, Clone)]
pub(super) struct UnderWay {
    all: CancelToken,
    tokens: Arc<Mutex<Tokens>>,
}

/// Ids are those of JSON values as they are written out again: spaces and escapes do not tell two apart.
type Tokens = HashMap<String, Vec<(u64, CancelToken)>>;

/// A request that is under way until this is dropped.
#[derive(Debug)]
pub(super) struct Entry {
    /// What ends it.
    pub(super) token: CancelToken,
    place: Option<(String, u64, UnderWay)>,
}

impl UnderWay {
    /// None; all that are to come end with `all`.
    pub(super) fn new(all: CancelToken) -> Self {
        Self { all, tokens: Arc::default() }
    }

    /// Adds a request.
    pub(super) fn enter(&self, id: Option<&RawValue>) -> Entry {
        let token = self.all.child();
        let id = id.and_then(|id| serde_json::from_str::<Value>(id.get()).ok());
        let place = id.map(|id| {
            let id = id.to_string();
            let mut tokens = self.tokens();
            let same = tokens.entry(id.clone()).or_default();
            let number = same.last().map_or(0, |(number, _)| number + 1);
            same.push((number, token.clone()));
            drop(tokens);
            (id, number, self.clone())
        });
        Entry { token, place }
    }

    /// Cancels the requests with this id; whether there is one.
    pub(super) fn cancel(&self, id: &Value) -> bool {
        let tokens = self.tokens();
        let Some(same) = tokens.get(&id.to_string()) else { return false };
        same.iter().for_each(|(_, token)| token.cancel());
        true
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Some((id, number, under_way)) = self.place.take() else { return };
        let mut tokens = under_way.tokens();
        if let Some(same) = tokens.get_mut(&id) {
            same.retain(|(other, _)| *other != number);
            if same.is_empty() {
                tokens.remove(&id);
            }
        }
    }
}
