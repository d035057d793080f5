//! The support packet: everything the provider's support needs, nothing secret, nothing that acts.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

#[path = "common/tui.rs"]
mod kit;

use kit::*;
use samekey::domain::evidence::{Evidence, Seen, Source, Verdict};
use samekey::domain::operation::{Contradiction, Operation, Status};
use samekey::domain::outcome::OutcomeClass;
use samekey::review::packet::Packet;

#[test]
fn a_packet_has_what_support_needs() {
    let mut row = unknown(0x5521);
    row.verdict = Some(Verdict::Ambiguous);
    let mut view = detail(row.clone());
    view.detail.op.evidence.push(Evidence {
        stored: true,
        source: Source::Attempt,
        seen: Seen::Reply {
            attempt: 1,
            class: OutcomeClass::ServerError,
            http_status: Some(502),
            request_id: Some("req_late".into()),
            error: Some("internal words".into()),
        },
        observed_at: ago(50),
    });
    let packet = Packet::of(&view.detail, now());
    let json = packet.json();
    assert_eq!(json["operation_id"], row.id.as_str());
    assert_eq!(
        (&json["amount_cents"], &json["currency"]),
        (&3800.into(), &"usd".into())
    );
    assert_eq!(json["payment"], "pi_order_4417");
    assert_eq!(json["key_fingerprint"], row.key.fingerprint());
    let requests = json["requests"].as_array().expect("requests");
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0]["request_id"], "req_late", "what came late, too");
    assert_eq!(
        (&requests[1]["http_status"], &requests[1]["request_id"]),
        (&409.into(), &"req_409".into())
    );
    assert!(
        requests[2]["sent_at"]
            .as_str()
            .expect("an instant")
            .ends_with('Z')
    );
    assert_eq!(json["objects"][0]["id"], "re_77");
    assert!(
        json["asks"][0]
            .as_str()
            .expect("a question")
            .contains("Which of the refunds")
    );

    let text = packet.markdown();
    for part in [
        "req_500",
        "req_late",
        "409",
        "re_77",
        "pi_order_4417",
        "3800",
        "What we ask",
        "a lookup",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    for secret in [
        row.key.to_string().as_str(),
        "internal words",
        "bob",
        "northwind",
        "chat-77",
        "toolu_01",
    ] {
        assert!(!text.contains(secret), "{secret}\n{text}");
        assert!(!json.to_string().contains(secret), "{secret}");
    }
}

/// Text from outside stands in code spans that it cannot leave; tables keep their columns (I31).
#[test]
fn hostile_text_is_harmless_in_markdown() {
    let mut row = unknown(0x5521);
    row.order_id = Some(name("4417`| <b>x</b> [a](javascript:1)"));
    let mut view = detail(row);
    let hostile = "req_`|\u{1b}[2J\u{202e}\n# a heading";
    if let Some(result) = view.detail.op.attempts[0].result.as_mut() {
        result.request_id = Some(hostile.into());
    }
    let text = Packet::of(&view.detail, now()).markdown();
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
    assert!(!text.contains('\u{202e}'));
    for line in text.lines().filter(|l| l.starts_with("| ")) {
        let columns = line.matches('|').count();
        assert_eq!(columns, 8, "seven cells: {line}");
    }
    assert!(
        !text.lines().any(|l| l.starts_with("# a heading")),
        "{text}"
    );
    let order = text
        .lines()
        .find(|l| l.starts_with("- order"))
        .expect("the order");
    assert_eq!(order.matches('`').count(), 2, "one span: {order}");
}

/// What came late belongs to the attempt that it names, and to no other.
#[test]
fn a_late_reply_belongs_to_its_attempt() {
    let mut view = detail(unknown(0x5521));
    for attempt in &mut view.detail.op.attempts {
        attempt.result = None;
    }
    view.detail.op.evidence.push(Evidence {
        stored: true,
        source: Source::Attempt,
        seen: Seen::Reply {
            attempt: 2,
            class: OutcomeClass::ServerError,
            http_status: Some(502),
            request_id: Some("req_late".into()),
            error: None,
        },
        observed_at: ago(50),
    });
    let packet = Packet::of(&view.detail, now());
    let requests = packet.json()["requests"].as_array().expect("requests");
    let ids: Vec<_> = requests.iter().map(|r| r["request_id"].as_str()).collect();
    assert_eq!(ids, [None, Some("req_late"), None]);
}

/// A list that was not read to its end is said to be so; one object that a person named is no list.
#[test]
fn what_was_not_read_to_the_end_is_said() {
    let mut view = detail(unknown(0x5521));
    view.detail.op.evidence.clear();
    for source in [Source::Reconciler, Source::TypedRef] {
        view.detail.op.evidence.push(Evidence {
            stored: true,
            source,
            seen: Seen::Scan {
                began_at: ago(60),
                complete: false,
            },
            observed_at: ago(50),
        });
    }
    let packet = Packet::of(&view.detail, now());
    let said = packet.json()["evidence"].as_array().expect("sentences");
    let [line] = &said[..] else {
        panic!("one sentence: {said:?}")
    };
    let line = line.as_str().expect("a sentence");
    assert!(line.contains("a lookup could not read"), "{line}");
    // What may hold words from outside stands in a span; our own questions do not.
    let text = packet.markdown();
    assert!(text.contains(&format!("- `{line}`")), "{text}");
    assert!(text.contains("\n- Did any of the requests"), "{text}");
}

/// Whether a request may still take effect is asked only where one was sent and the row is not closed.
#[test]
fn nobody_asks_about_requests_that_are_over_or_were_never_sent() {
    let still = |change: fn(&mut Operation)| {
        let mut view = detail(unknown(0x5521));
        change(&mut view.detail.op);
        let packet = Packet::of(&view.detail, now());
        packet.json()["asks"]
            .to_string()
            .contains("still take effect")
    };
    assert!(still(|_| {}));
    assert!(!still(|op| op.row.status = Status::Failed));
    assert!(!still(|op| op.attempts.clear()));
}

#[test]
fn what_is_asked_follows_from_what_is_not_known() {
    let asks = |verdict, contradicted| {
        let mut row = unknown(0x5521);
        (row.verdict, row.contradicted) = (verdict, contradicted);
        let packet = Packet::of(&detail(row).detail, now());
        packet.json()["asks"].to_string()
    };
    assert!(asks(None, None).contains("Did any of the requests"));
    assert!(asks(None, None).contains("still take effect"));
    assert!(asks(Some(Verdict::Pending), None).contains("final"));
    assert!(
        asks(
            Some(Verdict::SecondEffect),
            Some(Contradiction::SecondEffect)
        )
        .contains("two refunds")
    );
}
