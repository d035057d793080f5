//! The words that columns, JSON and people read: each has one spelling, and says what it stands for.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use std::fmt::Debug;
use std::str::FromStr;

use samekey::domain::evidence::{Bearing, ObjectStatus, ProviderObject, Seen, Source, Verdict};
use samekey::domain::findings::{Field, Proven, agrees, proven};
use samekey::domain::guard::{self, Role, Ruling};
use samekey::domain::message::{self, Language};
use samekey::domain::money::Money;
use samekey::domain::notice::NoticeEvent;
use samekey::domain::operation::{Closing, Status};
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::policy::ProviderKind;
use samekey::domain::provider_event::{About, EventKind};
use samekey::domain::review_event::{Act, ReviewRefusal};
use samekey::domain::transition::Action;
use serde::Serialize;
use strum::VariantArray as _;

use crate::builders::*;
use crate::correcting::{closed_unseen, fetch};
use crate::deciding::{correct, keyed};

/// A column's word reads back, and JSON has the same.
fn one_word<T: Copy + Debug + PartialEq + FromStr + Serialize>(value: T, word: &str) {
    assert_eq!(T::from_str(word).ok(), Some(value), "{word}");
    let json = serde_json::to_value(value).expect("JSON");
    assert_eq!(json.as_str(), Some(word), "{value:?}");
}

#[test]
fn a_word_reads_back_as_what_it_was_written_for() {
    for status in Status::VARIANTS {
        one_word(*status, status.as_str());
    }
    for verdict in Verdict::VARIANTS {
        one_word(*verdict, verdict.as_str());
    }
    for class in OutcomeClass::VARIANTS {
        one_word(*class, class.as_str());
        assert_eq!(class.to_string(), class.as_str());
    }
    for source in [
        Source::Attempt,
        Source::ReviewLookup,
        Source::EngineLookup,
        Source::Reconciler,
        Source::Webhook,
        Source::TypedRef,
    ] {
        one_word(source, source.as_str());
    }
    for event in NoticeEvent::VARIANTS {
        one_word(*event, event.as_str());
    }
    for kind in EventKind::VARIANTS {
        assert_eq!(EventKind::from_str(kind.as_str()), Ok(*kind));
    }
    for action in [Action::Opened, Action::NoLongerFits, Action::Snoozed] {
        assert_eq!(Action::from_str(action.as_str()), Ok(action));
    }
}

/// The column `kind` and the member `kind` of one entry of the evidence are one word.
#[test]
fn a_kind_of_evidence_is_one_word() {
    let story = Story::seed();
    let object = story.ours("re_1", ObjectStatus::Pending);
    for seen in [
        Seen::Object {
            object,
            bearing: Bearing::Ours,
        },
        Seen::Scan {
            began_at: story.now,
            complete: true,
        },
        Seen::Unreachable { why: "dns".into() },
        Seen::Reply {
            attempt: 1,
            class: OutcomeClass::ServerError,
            http_status: None,
            request_id: None,
            error: None,
        },
    ] {
        let json = serde_json::to_value(&seen).expect("JSON");
        assert_eq!(json["kind"], seen.kind());
    }
}

/// I32: people read money with its currency, and an identity as it is compared.
#[test]
fn money_and_identity_are_shown_as_they_are() {
    let yen = Money::from_minor(5000, "jpy".parse().expect("jpy")).expect("yen");
    assert_eq!(money(3800).to_string(), "USD 38.00");
    assert_eq!(yen.to_string(), "JPY 5000");
    let identity = Story::seed().op.row.identity;
    assert_eq!(identity.to_string(), identity.as_str());
}

/// M55: who may not is told which role it takes, and which they have.
#[test]
fn a_missing_role_is_named() {
    let mut story = Story::held(terms(ProviderKind::Keyed), 3800);
    let refusal = story.decide(&ann(), Act::Reject).expect_err("a lead's");
    assert!(matches!(refusal, ReviewRefusal::NotPermitted { .. }));
    assert_eq!(
        refusal.to_string(),
        "this needs the role lead; ann is reviewer"
    );
    assert_eq!(Role::Viewer.to_string(), "viewer");
}

/// A row that fails by evidence says which object failed, and why the provider says so.
#[test]
fn a_lost_object_is_named_with_the_providers_reason() {
    for (reason, told) in [
        (Some("insufficient_funds"), "insufficient_funds"),
        (None, "no reason given"),
    ] {
        for status in [ObjectStatus::Failed, ObjectStatus::Canceled] {
            let mut story = Story::seed();
            story.attempt("toolu_01", timeout());
            let lost = ProviderObject {
                failure_reason: reason.map(Into::into),
                ..story.ours("re_1", status)
            };
            story.observe(Source::Webhook, event_of(&lost));
            let text = story.op.row.failure_text.expect("a reason");
            assert_eq!(
                text.as_str(),
                format!("the provider's refund re_1 failed: {told}")
            );
        }
    }
}

/// What the screen compares: a closed row's status with the object's.
#[test]
fn a_closed_row_agrees_with_an_object_of_its_status() {
    let story = Story::lost_and_stopped(keyed(), 3800);
    let agree = |closed, seen| {
        let mut row = story.op.row.clone();
        row.status = closed;
        agrees(&row, &story.ours("re_1", seen), Field::Status)
    };
    for seen in [
        ObjectStatus::Pending,
        ObjectStatus::RequiresAction,
        ObjectStatus::Succeeded,
        ObjectStatus::Failed,
        ObjectStatus::Canceled,
        ObjectStatus::Other,
    ] {
        let happened = seen == ObjectStatus::Succeeded;
        let lost = matches!(seen, ObjectStatus::Failed | ObjectStatus::Canceled);
        assert_eq!(agree(Status::Succeeded, seen), Some(happened), "{seen:?}");
        assert_eq!(agree(Status::Failed, seen), Some(lost), "{seen:?}");
        assert_eq!(agree(Status::Open, seen), None);
    }
}

#[test]
fn nothing_sent_is_proven_where_nothing_was_sent() {
    let mut story = Story::seed();
    assert_eq!(proven(&story.op, &story.terms), Proven::NothingSent);
    story.decide(&ann(), Act::Stop).expect("stopped");
    assert_eq!(proven(&story.op, &story.terms), Proven::NothingSent);
}

/// A closed row is not closed again; where evidence contradicts it, the screen says what to do instead.
#[test]
fn a_contradicted_closed_row_is_told_to_be_corrected() {
    let mut story = Story::seed();
    let refund = story.ours("re_1", ObjectStatus::Succeeded);
    story.attempt("toolu_01", reply(OutcomeClass::Succeeded, refund));
    let says = |story: &Story| {
        let ruling = guard::closing(&story.op, Closing::Failed, &story.terms, story.now);
        let Ruling::Refused { why, .. } = ruling else {
            panic!("closed is closed")
        };
        why
    };
    assert_eq!(says(&story), "the row is closed");
    let lost = story.ours("re_1", ObjectStatus::Failed);
    story.observe(Source::Webhook, event_of(&lost));
    assert!(says(&story).contains("`ops correct`"));
}

/// A correction says what happened: the bank returned the money, or a person was wrong.
#[test]
fn a_correction_says_why() {
    let mut returned = Story::seed();
    let refund = returned.ours("re_1", ObjectStatus::Succeeded);
    returned.attempt("toolu_01", reply(OutcomeClass::Succeeded, refund));
    let lost = returned.ours("re_1", ObjectStatus::Failed);
    returned.observe(Source::Webhook, event_of(&lost));
    returned.wait_until_decidable();
    returned
        .decide(&lea(), correct(Closing::Failed))
        .expect("corrected");
    let mut wrong = closed_unseen();
    fetch(&mut wrong, None, false);
    wrong.wait_until_decidable();
    let list = wrong.list(&[]);
    wrong.observe(Source::ReviewLookup, list);
    wrong
        .decide(&lea(), correct(Closing::Failed))
        .expect("proposed");
    wrong.decide(&max(), APPROVE).expect("another lead");
    let why = |story: &Story| story.op.row.failure_text.clone().map(|t| t.to_string());
    assert_eq!(
        why(&returned).as_deref(),
        Some("the bank returned the money")
    );
    assert_eq!(why(&wrong).as_deref(), Some("a person corrected it"));
}

/// What everybody who asked may be told of a row is what its own call would hear.
#[test]
fn a_row_is_told_as_its_call_is() {
    let mut story = Story::seed();
    let arguments = r#"{"order_id":"4417","amount_cents":3800,"currency":"usd"}"#;
    for _ in 0..2 {
        let told = message::of_row(&story.op.row, Language::En);
        assert!(told.contains("USD 38.00 for order 4417"), "{told}");
        let heard = message::of_call(&story.answer(), &story.op.row.tool, arguments, Language::En);
        assert_eq!(told, heard);
        let refund = story.ours("re_1", ObjectStatus::Succeeded);
        story.observe(Source::Webhook, event_of(&refund));
    }
    assert_eq!(story.status(), Status::Succeeded);
}

/// An event is named by the object that it is about.
#[test]
fn an_event_is_about_its_object() {
    let refund = About::Refund {
        id: "re_1".parse().expect("an id"),
        object: None,
    };
    let charge = About::Charge {
        id: "ch_1".parse().expect("an id"),
        payment: payment_of("4417"),
    };
    assert_eq!((refund.id(), charge.id()), ("re_1", "ch_1"));
}
