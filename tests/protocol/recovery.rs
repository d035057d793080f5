//! The recovery branch of an outcome is decided beforehand, and a tool may be stricter than the protocol
//! (R90 to R94).

use std::collections::BTreeMap;

use samekey::domain::operation::{Status, UnknownReason};
use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::domain::policy::{ProviderKind, Terms};
use samekey::domain::recovery::{CLASSES, Recovery, default_branch};
use samekey::domain::transition::{Next, Refusal};

use crate::builders::*;

/// The protocol's branches of a provider with keys, but for one class.
fn stricter(class: OutcomeClass, branch: &str) -> Result<Terms, String> {
    let mut terms = terms(ProviderKind::Keyed);
    let table: BTreeMap<String, String> = CLASSES
        .iter()
        .map(|c| {
            let ours = default_branch(*c, ProviderKind::Keyed).as_str();
            let branch = if *c == class { branch } else { ours };
            (c.to_string(), branch.to_owned())
        })
        .collect();
    terms.policy.recovery = Recovery::new(&table, ProviderKind::Keyed, true)?;
    Ok(terms)
}

/// R91, R94: where a blind retry is too dangerous, the first doubt stops the row.
#[test]
fn a_tool_may_ask_a_person_instead_of_trying_again_r91_r94() {
    for (class, outcome) in [
        (OutcomeClass::SideEffectUnknown, timeout()),
        (OutcomeClass::KeyInProgress, in_progress()),
        (
            OutcomeClass::RetryableFailure,
            Outcome::of(OutcomeClass::RetryableFailure),
        ),
    ] {
        let mut story = Story::of(stricter(class, "ask_person").expect("a table"), 3800);
        story.attempt("toolu_01", outcome);
        assert_eq!(story.status(), Status::Unknown, "{class}");
        assert_eq!(story.op.row.reason, Some(UnknownReason::Stopped));
        assert!(matches!(
            story.authorise("toolu_02"),
            Err(Refusal::NotOpen { .. })
        ));
    }
}

/// R76, R91: a provider with keys may be searched first all the same.
#[test]
fn a_tool_may_look_up_before_it_tries_again_r76_r91() {
    let terms = stricter(OutcomeClass::SideEffectUnknown, "look_up").expect("a table");
    let mut story = Story::of(terms, 3800);
    assert_eq!(story.attempt("toolu_01", timeout()), Next::EndCall);
    assert_eq!(story.authorise("toolu_02"), Err(Refusal::LookupFirst));
    story.wait_until_decidable();
    let list = story.list(&[]);
    story.observe(samekey::domain::evidence::Source::EngineLookup, list);
    assert!(story.authorise("toolu_03").is_ok(), "proven absent");
}

/// R93: a refusal that the tool does not believe is a person's to settle.
#[test]
fn a_refusal_may_be_left_to_a_person_r93() {
    for class in [
        OutcomeClass::ValidationFailure,
        OutcomeClass::PermissionDenied,
    ] {
        let mut story = Story::of(stricter(class, "ask_person").expect("a table"), 3800);
        story.attempt("toolu_01", Outcome::of(class));
        assert_eq!(story.status(), Status::Unknown, "{class}");
    }
}
