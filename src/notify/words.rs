//! What is said: one notice as JSON, as a line for a chat, and as variables for a program.
//!
//! Pure. Outside text in it (order, sessions) is made harmless for each of the three: JSON quotes it; a
//! chat gets it without its control characters, mentions and markup; a program gets ids alone, no
//! payload and no text of a provider.

use serde_json::{Value, json};

use super::Place;
use crate::domain::ids::SessionId;
use crate::domain::message::{self, Language};
use crate::domain::notice::NoticeEvent;
use crate::domain::operation::{OperationRow, Status};
use crate::domain::text::SafeText;
use crate::ledger::Notice;
use crate::ledger::view::instant;

/// Conversations that a chat is shown.
const SHOWN_SESSIONS: usize = 5;

/// A notice on its way out.
pub(super) struct Told<'a> {
    notice: &'a Notice,
    place: &'a Place,
    /// Only with the end of a row: what whoever was told something else may hear now.
    customer: Option<String>,
}

impl<'a> Told<'a> {
    pub(super) fn of(notice: &'a Notice, place: &'a Place, language: Language) -> Self {
        let row = notice.row.as_ref();
        let ends = notice.event == NoticeEvent::Resolved;
        Self {
            notice,
            place,
            customer: row
                .filter(|_| ends)
                .map(|row| message::of_row(row, language)),
        }
    }

    /// A member per fact; `null` where the event has none.
    pub(super) fn json(&self) -> Value {
        let n = self.notice;
        let row = n.row.as_ref();
        let mut value = json!({
            "notice_id": n.id, "event": n.event, "at": instant(n.at),
            "operation_id": row.map(|r| &r.id), "tool": n.tool, "order_id": row.and_then(|r| r.order_id.as_ref()),
            "amount_cents": row.and_then(OperationRow::minor), "currency": row.and_then(OperationRow::currency),
            "status": row.map(|r| r.status), "reason": n.reason, "session_ids": n.sessions,
            "provider": self.place.provider, "mode": self.place.mode, "ledger": self.place.ledger,
        });
        if let (Some(customer), Value::Object(map)) = (&self.customer, &mut value) {
            map.insert("customer_message".into(), customer.as_str().into());
        }
        value
    }

    /// `{"text": …}` without markup or previews, as Slack and those who speak like it take it.
    pub(super) fn slack(&self) -> Value {
        let text = harmless_in_chat(&self.line());
        json!({ "text": text, "mrkdwn": false, "unfurl_links": false, "unfurl_media": false })
    }

    /// One line for people.
    fn line(&self) -> String {
        let n = self.notice;
        let reason = n.reason.as_ref().map(SafeText::as_str);
        let because = reason.map_or(String::new(), |r| format!(" ({r})"));
        let says = match (&n.row, n.event) {
            (Some(row), event) => self.of_row(row, event, &because),
            (None, NoticeEvent::CircuitOpen) => {
                "the provider has an outage; nothing is sent until it answers again".to_owned()
            }
            (None, NoticeEvent::CapReached) => {
                let cap = reason.unwrap_or("a money cap is reached");
                format!("a call was rejected: {cap}")
            }
            (None, event) => format!("{}{because}", event.as_str()),
        };
        let Place { mode, provider, .. } = self.place;
        format!("[samekey {mode} {provider}] {}: {says}", n.tool)
    }

    fn of_row(&self, row: &OperationRow, event: NoticeEvent, because: &str) -> String {
        let what = match (row.money, &row.order_id) {
            (Some(money), Some(order)) => format!("{money} for order {order}"),
            _ => row.subject(),
        };
        let status = row.status.as_str();
        let says = match event {
            NoticeEvent::Unknown => format!(
                "{what} became unknown{because}; nothing more is sent until a person settles it"
            ),
            NoticeEvent::Resolved => format!("{what} is settled: {status}{because}"),
            NoticeEvent::KeyExpiring => {
                let at = row.key_expires_at.map_or(String::new(), instant);
                format!("the key of {what} may be sent until {at}; after that it is unknown")
            }
            NoticeEvent::Contradicted => {
                format!("evidence contradicts {what}{because}; a lead has to correct it")
            }
            NoticeEvent::CircuitOpen | NoticeEvent::CapReached => what,
        };
        // A late notice says how things stand by now.
        let meanwhile = match (event, row.status) {
            (NoticeEvent::Unknown, Status::Unknown)
            | (NoticeEvent::KeyExpiring, Status::Open)
            | (NoticeEvent::Resolved | NoticeEvent::Contradicted, _) => String::new(),
            _ => format!("; meanwhile it is {status}"),
        };
        let customer = self.customer.as_ref().map_or(String::new(), |text| {
            format!(". For the customer{}: {text}", self.sessions())
        });
        format!("{says}{meanwhile}{customer} – samekey ops show {}", row.id)
    }

    fn sessions(&self) -> String {
        let all = &self.notice.sessions;
        let shown: Vec<&str> = all
            .iter()
            .take(SHOWN_SESSIONS)
            .map(SessionId::as_str)
            .collect();
        let more = all.len().saturating_sub(shown.len());
        match (shown.is_empty(), more) {
            (true, _) => String::new(),
            (false, 0) => format!(" (conversation {})", shown.join(", ")),
            (false, _) => format!(" (conversation {} and {more} more)", shown.join(", ")),
        }
    }

    /// Ids and words, and with the end of a row the customer's sentence. Absent is unset. Conversations
    /// stand one on a line: no id holds a line break.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        let n = self.notice;
        let mut variables = vec![
            ("SAMEKEY_EVENT", n.event.as_str().to_owned()),
            ("SAMEKEY_NOTICE_ID", n.id.to_string()),
            ("SAMEKEY_TOOL", n.tool.to_string()),
            ("SAMEKEY_MODE", self.place.mode.clone()),
        ];
        if let Some(row) = &n.row {
            variables.push(("SAMEKEY_OPERATION_ID", row.id.to_string()));
            if let Some(order) = &row.order_id {
                variables.push(("SAMEKEY_ORDER_ID", order.to_string()));
            }
            variables.push(("SAMEKEY_STATUS", row.status.as_str().to_owned()));
        }
        if let Some(reason) = &n.reason {
            variables.push(("SAMEKEY_REASON", reason.to_string()));
        }
        if !n.sessions.is_empty() {
            let ids: Vec<&str> = n.sessions.iter().map(SessionId::as_str).collect();
            variables.push(("SAMEKEY_SESSION_IDS", ids.join("\n")));
        }
        if let Some(customer) = &self.customer {
            variables.push(("SAMEKEY_CUSTOMER_MESSAGE", customer.clone()));
        }
        variables
    }
}

/// Text that a chat shows and does not act on: Slack's three control characters are escaped, and no `@`
/// calls anybody.
fn harmless_in_chat(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push('\u{ff20}'),
            c => out.push(c),
        }
    }
    out
}
