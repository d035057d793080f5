//! The provider's own log: one JSON line for each request that was read, each effect that was made and
//! each reply that was given, in that order, appended to a file.
//!
//! Owns: its form. Each line is one write of its own, so that whoever kills a process finds whole lines.
//! Never: is read here. Tests: `tests/torture/` judges the ledger by it.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::records::{EffectRecord, RequestRecord};

/// Where lines go, if anywhere.
#[derive(Debug)]
pub(super) struct Journal(pub Option<Arc<File>>);

impl Journal {
    pub fn request(&self, id: &str, record: &RequestRecord) {
        self.line("request", || with_id(id, json!(record)));
    }

    pub fn effect(&self, record: &EffectRecord) {
        self.line("effect", || json!(record));
    }

    /// `None`: the connection was closed without a reply.
    pub fn reply(&self, id: &str, status: Option<u16>) {
        self.line("reply", || json!({ "id": id, "status": status }));
    }

    fn line(&self, what: &str, value: impl FnOnce() -> Value) {
        let Some(file) = &self.0 else { return };
        let mut value = value();
        if let Value::Object(members) = &mut value {
            members.insert("what".into(), json!(what));
        }
        if let Err(error) = (&**file).write_all(format!("{value}\n").as_bytes()) {
            tracing::error!(%error, "the simulator's log has a gap");
        }
    }
}

fn with_id(id: &str, mut value: Value) -> Value {
    if let Value::Object(members) = &mut value {
        members.insert("id".into(), json!(id));
    }
    value
}
