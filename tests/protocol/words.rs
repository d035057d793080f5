//! The words that columns, JSON and people read: each has one spelling, and reads back as what it is.

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

use samekey::domain::evidence::{Seen, Source, Verdict};
use samekey::domain::guard::Role;
use samekey::domain::money::Money;
use samekey::domain::operation::Status;
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::review_event::{Act, ReviewRefusal};
use samekey::domain::transition::Action;
use serde::Serialize;
use strum::VariantArray as _;

use crate::builders::*;

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
    for action in [Action::Opened, Action::NoLongerFits, Action::Snoozed] {
        assert_eq!(Action::from_str(action.as_str()), Ok(action));
    }
}

/// The column `kind` and the member `kind` of one entry of the evidence are one word.
#[test]
fn a_kind_of_evidence_is_one_word() {
    let story = Story::seed();
    let object = story.ours("re_1", samekey::domain::evidence::ObjectStatus::Pending);
    for seen in [
        Seen::Object {
            object,
            bearing: samekey::domain::evidence::Bearing::Ours,
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
    let mut story = Story::held(terms(samekey::domain::policy::ProviderKind::Keyed), 3800);
    let refusal = story.decide(&ann(), Act::Reject).expect_err("a lead's");
    assert!(matches!(refusal, ReviewRefusal::NotPermitted { .. }));
    assert_eq!(
        refusal.to_string(),
        "this needs the role lead; ann is reviewer"
    );
    assert_eq!(Role::Viewer.to_string(), "viewer");
}
