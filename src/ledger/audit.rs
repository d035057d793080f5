//! The audit chain: each entry's hash covers the entry and the hash before it, per operation, and
//! each entry carries a digest of the row it left behind (I23).
//!
//! Owns: those two numbers. Never: reads or writes. Tests: `tests/verify/`.

use super::row::micros;
use crate::domain::Instant;
use crate::domain::evidence::Verdict;
use crate::domain::ids::{ChargeId, OperationId, OrderId, PaymentId, ProviderRef, ReviewerName};
use crate::domain::key::hex_digest;
use crate::domain::money::Currency;
use crate::domain::operation::{OperationRow, Proposal};
use crate::domain::outcome::OutcomeClass;
use crate::domain::text::SafeText;

/// What one entry's hash covers, besides the hash before it.
#[derive(Debug)]
pub(super) struct Link<'a> {
    pub operation: &'a str,
    pub seq: i64,
    /// Microseconds UTC.
    pub at: i64,
    pub actor: &'a str,
    pub os_user: &'a str,
    pub action: &'a str,
    /// JSON text as stored.
    pub detail: &'a str,
}

/// The hash of an entry; `before` is the hash of the entry before it, empty for the first.
pub(super) fn hash(before: &str, link: &Link<'_>) -> String {
    let seq = link.seq.to_string();
    let at = link.at.to_string();
    let parts = [
        before,
        link.operation,
        &seq,
        &at,
        link.actor,
        link.os_user,
        link.action,
        link.detail,
    ];
    let mut text = String::new();
    for part in parts {
        measured(&mut text, part);
    }
    hex_digest(text.as_bytes())
}

/// Each part with its length, so that no two different lists of parts read the same.
fn measured(text: &mut String, part: &str) {
    text.push_str(&part.len().to_string());
    text.push(':');
    text.push_str(part);
}

fn named(text: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        measured(text, name);
        measured(text, value);
    }
}

/// A digest of every column of a row that has a value, by name: a column that a later version adds
/// does not change the digests of rows that leave it empty. The number of the audit entry itself and
/// what follows from the configuration (`decidable_at`) are left out.
pub(super) fn row_digest(row: &OperationRow) -> String {
    let at = |at: Instant| micros(at).to_string();
    let mut text = String::new();
    let mut put = |name: &str, value: Option<&str>| named(&mut text, name, value);
    put("operation_id", Some(row.id.as_str()));
    put("tool", Some(row.tool.as_str()));
    put("identity", Some(row.identity.as_str()));
    put("order_id", row.order_id.as_ref().map(OrderId::as_str));
    let minor = row.minor().map(|minor| minor.to_string());
    put("amount_cents", minor.as_deref());
    put("currency", row.currency().as_ref().map(Currency::as_str));
    put("provider", Some(row.provider.as_str()));
    put("payment", row.payment.as_ref().map(PaymentId::as_str));
    put("charge", row.charge.as_ref().map(ChargeId::as_str));
    put("after", row.after.as_ref().map(OperationId::as_str));
    put("status", Some(row.status.as_str()));
    put("effect", Some(row.effect.into()));
    put("held", row.held.then_some("1"));
    put(
        "approved_by",
        row.approved_by.as_ref().map(ReviewerName::as_str),
    );
    put("contradicted", row.contradicted.map(<&str>::from));
    put("idempotency_key", Some(&row.key.to_string()));
    put("request", Some(&hex_digest(&row.request)));
    put("attempts", Some(&row.attempts.to_string()));
    put("attempts_max", Some(&row.attempts_max.to_string()));
    put("key_created_at", Some(&at(row.key_created_at)));
    put("key_expires_at", row.key_expires_at.map(at).as_deref());
    put(
        "first_authorised_at",
        row.first_authorised_at.map(at).as_deref(),
    );
    put(
        "last_authorised_at",
        row.last_authorised_at.map(at).as_deref(),
    );
    put("last_outcome", row.last_outcome.map(OutcomeClass::as_str));
    put("reason", row.reason.map(<&str>::from));
    put("failure", row.failure.map(<&str>::from));
    put(
        "failure_text",
        row.failure_text.as_ref().map(SafeText::as_str),
    );
    put("verdict", row.verdict.map(Verdict::as_str));
    put(
        "provider_ref",
        row.provider_ref.as_ref().map(ProviderRef::as_str),
    );
    put("pending_since", row.pending_since.map(at).as_deref());
    put("version", Some(&row.version.to_string()));
    put("corrections", Some(&row.corrections.to_string()));
    put("created_at", Some(&at(row.created_at)));
    put("updated_at", Some(&at(row.updated_at)));
    put("unknown_at", row.unknown_at.map(at).as_deref());
    put("closed_at", row.closed_at.map(at).as_deref());
    put("closed_by", row.closed_by.as_deref());
    put("claimed_by", row.claim.as_ref().map(|c| c.by.as_str()));
    put(
        "claimed_until",
        row.claim.as_ref().map(|c| at(c.until)).as_deref(),
    );
    put("snoozed_until", row.snoozed_until.map(at).as_deref());
    put("proposal", row.proposal.as_ref().map(proposed).as_deref());
    hex_digest(text.as_bytes())
}

/// What a proposal is bound to; not its JSON, whose spelling may change between versions.
fn proposed(p: &Proposal) -> String {
    let (decision, at) = (p.decision.status().as_str(), micros(p.expires_at));
    format!("{} {} {} {decision} {at}", p.version, p.digest, p.by)
}
