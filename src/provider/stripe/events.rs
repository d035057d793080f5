//! Stripe's events: what one says (S49–S51), and the list of the last thirty days (S47).
//!
//! Owns: the envelope and which kinds are understood. A refund inside is read by the same code as one
//! that was fetched; where its shape is another one (the event has the API version of its endpoint), its id
//! alone is taken, to be fetched. Never: takes an event on trust (who sent it is checked before), or guesses
//! what cannot be read. Tests: below, `tests/stripe/events.rs`, `tests/webhooks/`.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use strum::VariantArray as _;

use super::pages::Next;
use super::read::Reader;
use super::wire::{self, Named, Refund};
use crate::domain::Instant;
use crate::domain::ids::{ChargeId, EventId, PaymentId, ProviderRef};
use crate::domain::key::{IdempotencyKey, hex_digest};
use crate::domain::provider_event::{About, EventKind, EventRead, ProviderEvent};
use crate::domain::text::SafeText;
use crate::provider::{EventPage, NextPage, ReadError, Reads};

/// Why a list that has more cannot be gone on with.
const LOST: &str =
    "its list of events goes on, but no event on the last page has a readable id to go on from";

/// An event (S51). Members that decide nothing are not read.
#[derive(Deserialize)]
struct Envelope {
    object: String,
    id: String,
    #[serde(rename = "type")]
    kind: String,
    created: i64,
    livemode: bool,
    account: Option<String>,
    request: Option<Asked>,
    data: Data,
}

/// The request that caused it: its id alone in old API versions.
#[derive(Deserialize)]
#[serde(untagged)]
enum Asked {
    Request { idempotency_key: Option<String> },
    Id(#[allow(dead_code, reason = "only told apart")] String),
}

#[derive(Deserialize)]
struct Data {
    object: Box<RawValue>,
}

/// Enough of any object to fetch it.
#[derive(Deserialize)]
struct Thing {
    object: String,
    id: String,
}

/// Enough of a charge to look at its refunds.
#[derive(Deserialize)]
struct Charge {
    object: String,
    id: String,
    payment_intent: Option<Named>,
}

/// Reads one event.
pub(super) fn read(payload: &[u8]) -> EventRead {
    let Some(event) = wire::parse::<Envelope>(payload).filter(|e| e.object == "event") else {
        return EventRead::Unreadable("it is no event");
    };
    let Ok(kind) = event.kind.parse::<EventKind>() else {
        return EventRead::Other;
    };
    match understood(&event, kind) {
        Some(event) => EventRead::Event(Box::new(event)),
        None => EventRead::Unreadable("its members are not those of such an event"),
    }
}

fn understood(event: &Envelope, kind: EventKind) -> Option<ProviderEvent> {
    let object = event.data.object.get();
    let about = match kind {
        EventKind::RefundCreated
        | EventKind::RefundUpdated
        | EventKind::RefundFailed
        | EventKind::ChargeRefundUpdated => refund(object.as_bytes())?,
        EventKind::ChargeRefunded => charge(object.as_bytes())?,
    };
    let key = match &event.request {
        Some(Asked::Request { idempotency_key }) => idempotency_key.as_deref(),
        Some(Asked::Id(_)) | None => None,
    };
    // The same members in another order say the same.
    let said: Value = serde_json::from_str(object).ok()?;
    Some(ProviderEvent {
        id: wire::name(&event.id, EventId::parse)?,
        kind,
        created_at: wire::instant(event.created)?,
        live: event.livemode,
        account: event.account.as_deref().map(SafeText::new),
        key: key.and_then(|k| IdempotencyKey::parse(k).ok()),
        about,
        digest: hex_digest(format!("{} {said}", kind.as_str()).as_bytes()),
    })
}

fn refund(object: &[u8]) -> Option<About> {
    let thing: Thing = wire::parse(object).filter(|t: &Thing| t.object == "refund")?;
    let id = wire::name(&thing.id, ProviderRef::parse)?;
    let object = wire::parse::<Refund>(object).and_then(|r| r.read());
    Some(About::Refund {
        id,
        object: object.map(Box::new),
    })
}

fn charge(object: &[u8]) -> Option<About> {
    let charge: Charge = wire::parse(object).filter(|c: &Charge| c.object == "charge")?;
    // A charge without a payment intent is its own payment.
    let payment = charge
        .payment_intent
        .as_ref()
        .map_or(&*charge.id, Named::id);
    Some(About::Charge {
        payment: wire::name(payment, PaymentId::parse)?,
        id: wire::name(&charge.id, ChargeId::parse)?,
    })
}

/// The event without what looks like one of Stripe's secrets: somebody may have typed one into a
/// description (I30). Untouched where there is none, which is always.
pub(super) fn storable(payload: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(payload) {
        Ok(text) if wire::holds_secret(text) => wire::redact(text, &[]).into_bytes(),
        Ok(_) | Err(_) => payload.to_vec(),
    }
}

impl Reader {
    /// One page of the events of refunds, newest first.
    pub(super) async fn events(
        &self,
        (from, to): (Instant, Instant),
        after: Option<&EventId>,
        reads: &Reads,
    ) -> Result<EventPage, ReadError> {
        let first = list_path(from, to);
        let page = self.entries(&first, after.map(EventId::as_str), reads);
        let Some(page) = page.await? else {
            return match after {
                Some(_) => Ok(EventPage {
                    events: Vec::new(),
                    next: NextPage::Anew,
                }),
                None => Err(ReadError(
                    "GET /v1/events: the provider knows no such list".into(),
                )),
            };
        };
        let next = match page.next {
            Next::End => NextPage::End,
            Next::Lost => NextPage::Lost(LOST),
            Next::After(id) => match EventId::parse(id.as_str()) {
                Ok(id) => NextPage::After(id),
                Err(_) => NextPage::Lost(LOST),
            },
        };
        Ok(EventPage {
            events: page
                .all
                .iter()
                .map(|e| e.get().as_bytes().to_vec())
                .collect(),
            next,
        })
    }
}

/// Path and query of the first page: whole seconds, the first one included (S45).
fn list_path(from: Instant, to: Instant) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for kind in EventKind::VARIANTS {
        query.append_pair("types[]", kind.as_str());
    }
    let query = query
        .append_pair("created[gte]", &from.timestamp().to_string())
        .append_pair("created[lt]", &to.timestamp().to_string())
        .append_pair("limit", "100")
        .finish();
    format!("/v1/events?{query}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(with: &Value) -> Value {
        let mut base = json!({
            "object": "event", "id": "evt_1", "type": "refund.updated", "created": 1_700_000_000,
            "livemode": false, "api_version": "2026-08-26.dahlia", "pending_webhooks": 1,
            "request": {"id": "req_1", "idempotency_key": "c41f7a2e-0000-4000-8000-000000000001"},
            "data": {"object": {
                "object": "refund", "id": "re_1", "amount": 3800, "currency": "usd",
                "created": 1_700_000_000, "status": "succeeded", "payment_intent": "pi_1",
                "charge": "ch_1", "metadata": {"operation_id": "op_1"},
            }, "previous_attributes": {"status": "pending"}},
        });
        for (key, value) in with.as_object().expect("an object") {
            base[key] = value.clone();
        }
        base
    }

    fn of(with: &Value) -> EventRead {
        read(event(with).to_string().as_bytes())
    }

    #[test]
    fn an_event_is_read_with_its_object_and_key_s47_s51() {
        let EventRead::Event(event) = of(&json!({})) else {
            unreachable!("it is one");
        };
        assert_eq!(event.kind, EventKind::RefundUpdated);
        assert!(event.key.is_some() && !event.live && event.account.is_none());
        let About::Refund { id, object } = &event.about else {
            unreachable!("about a refund");
        };
        let object = object.as_ref().expect("readable");
        assert_eq!((id.as_str(), object.amount_minor), ("re_1", Some(3800)));
        for request in [
            json!(null),
            json!("req_1"),
            json!({"id": null, "idempotency_key": null}),
        ] {
            let EventRead::Event(event) = of(&json!({ "request": request })) else {
                unreachable!("{request}");
            };
            assert_eq!(event.key, None);
        }
    }

    #[test]
    fn the_same_news_has_the_same_digest_under_any_id_s56() {
        let digest = |with| match of(&with) {
            EventRead::Event(event) => event.digest,
            other => unreachable!("{other:?}"),
        };
        let one = digest(json!({}));
        assert_eq!(
            one,
            digest(json!({"id": "evt_2", "created": 1_700_000_009}))
        );
        assert_ne!(one, digest(json!({"type": "refund.created"})));
    }

    #[test]
    fn other_kinds_are_nothing_of_ours_and_bad_ones_are_never_guessed() {
        assert_eq!(of(&json!({"type": "invoice.paid"})), EventRead::Other);
        let bad = [
            json!({"object": "refund"}),
            json!({"id": ""}),
            json!({"id": "sk_live_abcd"}),
            json!({"created": i64::MAX}),
            json!({"livemode": "no"}),
            json!({"data": {}}),
            json!({"data": {"object": {"object": "charge", "id": "ch_1"}}}),
            json!({"data": {"object": {"object": "refund", "id": "re\u{202e}"}}}),
        ];
        for with in bad {
            assert!(matches!(of(&with), EventRead::Unreadable(_)), "{with}");
        }
        let twice = event(&json!({}))
            .to_string()
            .replacen("\"id\"", "\"id\":\"evt_9\",\"id\"", 1);
        assert!(matches!(read(twice.as_bytes()), EventRead::Unreadable(_)));
        let deep = format!(
            "{{\"object\":\"event\",\"data\":{{\"object\":{}1{}}}}}",
            "[".repeat(10_000),
            "]".repeat(10_000)
        );
        assert!(matches!(read(deep.as_bytes()), EventRead::Unreadable(_)));
        assert!(matches!(read(b"\xff{}"), EventRead::Unreadable(_)));
    }

    #[test]
    fn a_refund_of_an_unknown_shape_is_still_named() {
        let strange =
            json!({"data": {"object": {"object": "refund", "id": "re_1", "amount": "38.00"}}});
        let EventRead::Event(event) = of(&strange) else {
            unreachable!("it names its refund");
        };
        assert!(matches!(event.about, About::Refund { object: None, .. }));
    }

    #[test]
    fn a_charge_leads_to_its_payment_s46() {
        for (intent, payment) in [(json!("pi_1"), "pi_1"), (json!(null), "ch_1")] {
            let object = json!({"object": "charge", "id": "ch_1", "payment_intent": intent});
            let with = json!({"type": "charge.refunded", "data": {"object": object}});
            let EventRead::Event(event) = of(&with) else {
                unreachable!("it is one");
            };
            let About::Charge { payment: is, .. } = event.about else {
                unreachable!("about a charge");
            };
            assert_eq!(is.as_str(), payment);
        }
    }

    #[test]
    fn the_list_is_asked_for_by_kind_and_second_s45_s47() {
        let at = |s| Instant::from_timestamp(s, 0).expect("an instant");
        assert_eq!(
            list_path(at(10), at(20)),
            "/v1/events?types%5B%5D=refund.created&types%5B%5D=refund.updated&types%5B%5D=refund.failed\
             &types%5B%5D=charge.refunded&types%5B%5D=charge.refund.updated\
             &created%5Bgte%5D=10&created%5Blt%5D=20&limit=100"
        );
    }

    #[test]
    fn a_secret_in_an_event_is_not_kept_i30() {
        assert_eq!(storable(b"{\"a\":1}"), b"{\"a\":1}");
        let kept = storable(b"{\"description\":\"sk_live_abcdef\"}");
        assert!(!String::from_utf8_lossy(&kept).contains("abcdef"));
    }
}
