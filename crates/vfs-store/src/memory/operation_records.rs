//! Records of mutations with an operation id.

use std::collections::{HashMap, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};

use crate::store::OperationRecord;

/// Time after which a record is removed.
const RECORD_LIFETIME: TimeDelta = TimeDelta::days(1);

/// The operations of the last day.
#[derive(Debug, Default)]
pub(super) struct MemoryOperationRecords {
    records: HashMap<String, OperationRecord>,
    /// Keys with the times at which their records were added, oldest first.
    made: VecDeque<(DateTime<Utc>, String)>,
}

impl MemoryOperationRecords {
    pub(super) fn get(&self, key: &str) -> Option<&OperationRecord> {
        self.records.get(key)
    }

    pub(super) fn insert(&mut self, record: OperationRecord) {
        let now = Utc::now();
        while let Some((_, key)) = self.made.pop_front_if(|(made_at, _)| now - *made_at > RECORD_LIFETIME) {
            self.records.remove(&key);
        }
        self.made.push_back((now, record.key.clone()));
        self.records.insert(record.key.clone(), record);
    }
}
