//! Limits as data, at their very bounds: the circuit, a profile's promises, names, reasons, the report.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::domain::operation::{Effect, Status};
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::policy::{Circuit, CircuitState, Health};
use samekey::domain::profile::{Profile, ProfileError, SHIPPED};
use samekey::domain::report::{CLASSES, Fact, Fold, ReportQuery};
use samekey::domain::text::{TextError, plain};
use samekey::domain::tool_call::RefundArguments;
use strum::VariantArray as _;

use crate::builders::*;

/// "Outage": what counts towards a tool's circuit is silence, a 5xx or a 429; a refusal is a healthy answer.
#[test]
fn an_outage_is_silence_a_5xx_or_a_429() {
    for class in OutcomeClass::VARIANTS {
        let outage = matches!(
            class,
            OutcomeClass::SideEffectUnknown
                | OutcomeClass::ServerError
                | OutcomeClass::RetryableFailure
        );
        assert_eq!(class.is_outage(), outage, "{class:?}");
    }
}

/// "Outage": a trial whose attempt told nothing is free again, and only that attempt frees it.
#[test]
fn only_the_operation_on_trial_gives_the_trial_back() {
    let open = CircuitState::Open {
        since: at(0),
        probe_at: at(30),
    };
    let circuit = Circuit {
        state: open,
        ..Circuit::default()
    };
    let trial = circuit.probed(true, at(30)).admit(&op_id(4));
    let trial = trial.expect("one attempt at a time");
    let other = trial.after(&op_id(5), Health::Unclear, at(31));
    assert_eq!(other.admit(&op_id(6)), None, "4 is still under way");
    let own = trial.after(&op_id(4), Health::Unclear, at(31));
    assert!(own.admit(&op_id(6)).is_some(), "4 sent nothing");
    assert!(own.is_open(), "and proved nothing");
}

/// I33: a name of exactly the longest length is taken, and a flood of spaces around one is not even read.
#[test]
fn a_name_is_as_long_as_it_may_be_and_no_flood_is_read() {
    let nines = "9".repeat(20);
    assert_eq!(plain(&nines, 20), Ok(nines.clone()));
    let flood = |bytes: usize| format!("{}9", " ".repeat(bytes - 1));
    assert_eq!(plain(&flood(20 * 8 + 64), 20), Ok("9".into()));
    let longer = plain(&flood(20 * 8 + 65), 20);
    assert_eq!(longer, Err(TextError::TooLong { max: 20 }));
}

/// A reason is taken as the provider spells it, or refused.
#[test]
fn a_reason_is_one_that_the_provider_knows() {
    let parse = |reason: &str| {
        RefundArguments::parse(&serde_json::json!({
            "order_id": "4417", "amount_cents": 3800, "currency": "usd", "reason": reason,
        }))
    };
    for reason in ["duplicate", "fraudulent", "requested_by_customer"] {
        assert_eq!(parse(reason).expect("known").reason, Some(reason));
    }
    parse("damaged").expect_err("no reason of the provider's");
}

/// The report's last class with a bound ends after a week; what took longer has none.
#[test]
fn a_week_is_the_last_class_of_the_report() {
    assert!(CLASSES.is_sorted());
    let query = ReportQuery {
        since: Some(at(0)),
        until: at(48),
        tool: None,
    };
    let mut fold = Fold::new(&query, at(0));
    let week = 7 * 24 * 3600;
    for took in [week, week + 1] {
        fold.add(&Fact {
            tool: "issue_refund".parse().expect("a tool"),
            status: Status::Failed,
            effect: Effect::Absent,
            contradicted: false,
            money: None,
            attempts: 1,
            created_at: at(0),
            unknown_at: None,
            closed_at: Some(at(took)),
        });
    }
    let report = fold.report(None);
    let last: Vec<u64> = report.histogram.iter().skip(8).map(|(_, n)| *n).collect();
    assert_eq!(last, [1, 1]);
    let first = report.slots[0];
    assert_eq!((first.opened, first.failed, first.unknown), (2, 2, 0));
}

/// What a profile may promise at most, and at least.
#[test]
fn a_profile_is_taken_up_to_its_bounds() {
    let (_, text) = SHIPPED[0];
    let with = |from: &str, to: &str| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        Profile::parse(&changed).map(|_| ())
    };
    let year = |name: &str, more: u64| format!("{name} = {}", 366 * 24 * 3600 + more);
    let retention = |more| with("retention_s = 86_400", &year("retention_s", more));
    assert_eq!(retention(0), Ok(()));
    assert_eq!(retention(1), Err(ProfileError::Time("retention")));
    // A year is a settle time, which no keys outlast; more is a slip of the pen.
    let settle = |more| with("settle_time_s = 600", &year("settle_time_s", more));
    assert_eq!(settle(0), Err(ProfileError::Retention));
    assert_eq!(settle(1), Err(ProfileError::Time("settle_time")));
    assert_eq!(with("longest = 255", "longest = 36"), Ok(()), "our keys");
}

/// S2, S5: what the provider takes as a key, and which answers it may have saved under one.
#[test]
fn a_key_is_visible_ascii_and_a_409_is_never_a_replay() {
    let stripe = Profile::stripe();
    let (longest, longer) = ("k".repeat(255), "k".repeat(256));
    for (key, taken) in [
        ("", false),
        ("k", true),
        (&longest, true),
        (&longer, false),
        ("a key", false),
        ("ключ", false),
    ] {
        assert_eq!(stripe.takes_key(key), taken, "{key}");
    }
    for (status, saved) in [(200, true), (500, true), (409, false), (429, false)] {
        assert_eq!(stripe.may_be_replayed(status), saved, "{status}");
    }
}
