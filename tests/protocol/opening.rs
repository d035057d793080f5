//! Get before check: which calls are answered by a row that exists, and which may open one.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use samekey::domain::arguments::Arguments;
use samekey::domain::ids::OperationId;
use samekey::domain::opening::{self, Got, Opened, Resolved};
use samekey::domain::operation::{Contradiction, OperationRow, Status};
use samekey::domain::policy::{Caps, ProviderKind, Repeat, ToolPolicy};
use samekey::domain::tool_call::{RefundArguments, RejectClass, ToolResult};
use std::time::Duration;

use crate::builders::*;

fn policy() -> ToolPolicy {
    terms(ProviderKind::Keyed).policy
}

fn asks(order: &str, minor: i64) -> Arguments {
    Arguments::from(RefundArguments {
        order: order.parse().expect("an order"),
        money: money(minor),
        payment: None,
        charge: None,
        reason: None,
        after: None,
    })
}

fn after(id: &OperationId) -> Arguments {
    Arguments {
        after: Some(id.clone()),
        ..asks("4417", 3800)
    }
}

fn row(n: u128, status: Status) -> OperationRow {
    let mut row = new_row(n, "4417", money(3800));
    row.status = status;
    if status == Status::Succeeded {
        row.provider_ref = Some("re_1".parse().expect("an id"));
    }
    row
}

fn paid(captured: i64, refunded: i64) -> Resolved {
    Resolved {
        payment: payment_of("4417"),
        charge: None,
        currency: usd(),
        captured_minor: captured,
        refunded_minor: refunded,
        refunds: Vec::new(),
    }
}

fn get(rows: &[OperationRow], args: &Arguments) -> Got {
    opening::get(rows, args, None, &policy())
}

fn told(got: Got) -> ToolResult {
    match got {
        Got::Answer(result) => *result,
        other => panic!("not answered: {other:?}"),
    }
}

fn rejected(result: &ToolResult) -> (RejectClass, String) {
    match result {
        ToolResult::Rejected { class, reason, .. } => (*class, reason.to_string()),
        other => panic!("not rejected: {other:?}"),
    }
}

fn check(rows: &[OperationRow], args: &Arguments, resolved: &Resolved) -> Result<(), ToolResult> {
    opening::check(rows, args, Some(resolved), &policy(), Opened::default()).map_err(|r| *r)
}

/// R12, R21, I1: an open or unknown row of the same identity answers, held or not; a failed one
/// does not.
#[test]
fn a_live_row_of_the_same_identity_answers() {
    for status in [Status::Open, Status::Unknown] {
        let rows = [row(1, status)];
        assert_eq!(get(&rows, &asks("4417", 3800)), Got::Row(op_id(1)));
        assert_eq!(
            get(&rows, &after(&op_id(9))),
            Got::Row(op_id(1)),
            "before `after` is read"
        );
    }
    assert_eq!(
        get(&[row(1, Status::Failed)], &asks("4417", 3800)),
        Got::Nothing
    );
    assert_eq!(
        get(&[row(1, Status::Open)], &asks("4418", 3800)),
        Got::Nothing
    );
}

/// F30, F31: one payment under two names of an order is one refund.
#[test]
fn two_names_of_one_payment_join() {
    let rows = [row(1, Status::Open)];
    let other_name = asks("shop-4417", 3800);
    let payment = payment_of("4417");
    let got = opening::get(&rows, &other_name, Some(&payment), &policy());
    assert_eq!(got, Got::Row(op_id(1)));
    let named = Arguments {
        payment: Some(payment.clone()),
        ..other_name.clone()
    };
    assert_eq!(get(&rows, &named), Got::Row(op_id(1)));
    assert_eq!(
        get(&rows, &other_name),
        Got::Nothing,
        "not known before it is resolved"
    );
    let other_amount = asks("shop-4417", 100);
    assert_eq!(
        opening::get(&rows, &other_amount, Some(&payment), &policy()),
        Got::Nothing
    );
}

/// Step 3: another currency, payment or charge than the row's is told, whether it is open, unknown
/// or succeeded.
#[test]
fn a_call_that_names_it_otherwise_is_told_what_differs() {
    for status in [Status::Open, Status::Unknown, Status::Succeeded] {
        let mut there = row(1, status);
        there.charge = Some("ch_1".parse().expect("a charge"));
        let rows = [there];
        let mut yen = asks("4417", 3800);
        yen.money =
            samekey::domain::money::Money::from_minor(3800, "jpy".parse().expect("jpy")).ok();
        let payment = Arguments {
            payment: Some("pi_other".parse().expect("a payment")),
            ..asks("4417", 3800)
        };
        let charge = Arguments {
            charge: Some("ch_other".parse().expect("a charge")),
            ..asks("4417", 3800)
        };
        for (args, says) in [(yen, "currency"), (payment, "payment"), (charge, "charge")] {
            let (class, reason) = rejected(&told(get(&rows, &args)));
            assert_eq!(class, RejectClass::ValidationFailure);
            assert!(
                reason.contains(says) && reason.contains(op_id(1).as_str()),
                "{reason}"
            );
        }
        let same = Arguments {
            payment: Some(payment_of("4417")),
            charge: Some("ch_1".parse().expect("a charge")),
            ..asks("4417", 3800)
        };
        assert!(!matches!(get(&rows, &same), Got::Answer(r) if r.status() == "rejected"));
    }
}

/// R24, R62, F33, M38: after a success the stored result answers; the seed's bare rule opens.
#[test]
fn a_succeeded_row_answers_with_repeat() {
    let rows = [row(2, Status::Succeeded), row(1, Status::Succeeded)];
    let ToolResult::Done {
        operation_id,
        object,
        repeat,
        ..
    } = told(get(&rows, &asks("4417", 3800)))
    else {
        panic!("refunded")
    };
    assert_eq!((operation_id, repeat), (op_id(2), true), "the newest");
    assert!(object.is_some());
    let mut bare = policy();
    bare.repeat = Repeat::Open;
    assert_eq!(
        opening::get(&rows, &asks("4417", 3800), None, &bare),
        Got::Nothing
    );
}

/// R24, F09, M33: a further equal refund is opened by naming the newest succeeded one; once. Anything
/// else in `after` is rejected.
#[test]
fn after_opens_one_further_refund() {
    let first = row(1, Status::Succeeded);
    assert_eq!(
        get(std::slice::from_ref(&first), &after(&op_id(1))),
        Got::Nothing
    );
    let follower = |status| OperationRow {
        after: Some(op_id(1)),
        ..row(2, status)
    };
    // It is asked for again: the follower answers, wherever it stands, but for a failed one.
    for status in [Status::Open, Status::Unknown] {
        let rows = [follower(status), first.clone()];
        assert_eq!(get(&rows, &after(&op_id(1))), Got::Row(op_id(2)));
    }
    let rows = [follower(Status::Succeeded), first.clone()];
    let again = told(get(&rows, &after(&op_id(1))));
    assert!(
        matches!(again, ToolResult::Done { repeat: true, ref operation_id, .. } if *operation_id == op_id(2))
    );
    assert_eq!(
        get(&rows, &after(&op_id(2))),
        Got::Nothing,
        "a third names the second"
    );
    let rows = [follower(Status::Failed), first.clone()];
    assert_eq!(
        get(&rows, &after(&op_id(1))),
        Got::Nothing,
        "a failed follower does not count"
    );

    let mut elsewhere = row(3, Status::Succeeded);
    elsewhere = OperationRow {
        money: Some(money(100)),
        identity: new_row(3, "4417", money(100)).identity,
        ..elsewhere
    };
    for (rows, named) in [
        (vec![], op_id(1)),
        (vec![first.clone()], op_id(9)),
        (vec![row(2, Status::Succeeded), first.clone()], op_id(1)),
        (vec![row(1, Status::Failed)], op_id(1)),
        (vec![elsewhere, first], op_id(3)),
    ] {
        for repeat in [Repeat::Answer, Repeat::Open] {
            let mut policy = policy();
            policy.repeat = repeat;
            let got = opening::get(&rows, &after(&named), None, &policy);
            let (class, reason) = rejected(&told(got));
            assert_eq!(class, RejectClass::ValidationFailure);
            assert!(reason.contains("after"));
        }
    }
}

/// I20: a contradicted row of the order or payment answers every call with checking; no row is opened.
#[test]
fn a_contradiction_blocks_its_whole_order() {
    let mut there = row(1, Status::Succeeded);
    there.contradicted = Some(Contradiction::FailedAfterSucceeded);
    for args in [asks("4417", 3800), asks("4417", 100), after(&op_id(1))] {
        let result = told(get(std::slice::from_ref(&there), &args));
        assert_eq!(
            (result.status(), result.operation()),
            ("checking", Some(&op_id(1)))
        );
    }
}

/// I4, R32, R33: another amount waits while one is open or unknown and not identified; the call is
/// told which, and that nothing was done.
#[test]
fn another_amount_of_a_busy_order_is_turned_away() {
    for status in [Status::Open, Status::Unknown] {
        let mut there = row(1, status);
        let busy = check(
            std::slice::from_ref(&there),
            &asks("4417", 100),
            &paid(10_000, 0),
        );
        let Err(ToolResult::Rejected {
            class,
            blocked_by,
            reason,
        }) = busy
        else {
            panic!("rejected")
        };
        assert_eq!(class, RejectClass::OrderBusy);
        let by = blocked_by.expect("named");
        assert_eq!(
            (by.operation_id, by.amount_cents, by.status),
            (op_id(1), Some(3800), status)
        );
        assert!(reason.as_str().contains("nothing was done"));
        // Identified, it only counts in the sums.
        there.provider_ref = Some("re_1".parse().expect("an id"));
        let rows = [there];
        assert_eq!(check(&rows, &asks("4417", 6200), &paid(10_000, 0)), Ok(()));
        check(&rows, &asks("4417", 6201), &paid(10_000, 0)).expect_err("too much");
    }
    for status in [Status::Succeeded, Status::Failed] {
        assert_eq!(
            check(&[row(1, status)], &asks("4417", 100), &paid(10_000, 3800)),
            Ok(())
        );
    }
}

/// I4, R24: captured − refunded anywhere − open, unknown or contradicted here ≥ the amount.
#[test]
fn the_sums_hold_to_the_cent() {
    assert_eq!(check(&[], &asks("4417", 3800), &paid(3800, 0)), Ok(()));
    check(&[], &asks("4417", 3801), &paid(3800, 0)).expect_err("more than captured");
    check(&[], &asks("4417", 3800), &paid(3800, 1)).expect_err("M39: refunded elsewhere");
    let yen = Resolved {
        currency: "jpy".parse().expect("jpy"),
        ..paid(3800, 0)
    };
    let (_, reason) = rejected(&check(&[], &asks("4417", 3800), &yen).expect_err("currency"));
    assert!(reason.contains("jpy"));

    let mut identified = row(1, Status::Open);
    identified.provider_ref = Some("re_1".parse().expect("an id"));
    let mut contradicted = row(2, Status::Failed);
    contradicted.contradicted = Some(Contradiction::EffectAfterFailed);
    let rows = [
        identified,
        contradicted,
        row(3, Status::Succeeded),
        row(4, Status::Failed),
    ];
    assert_eq!(
        opening::room(&rows, &paid(20_000, 3800), None),
        20_000 - 3800 - 2 * 3800
    );
    // A refund that the provider counts already is not counted twice.
    let counted = Resolved {
        refunds: vec!["re_1".parse().expect("an id")],
        ..paid(20_000, 2 * 3800)
    };
    assert_eq!(
        opening::room(&rows, &counted, None),
        20_000 - 2 * 3800 - 3800
    );
    assert_eq!(
        opening::room(&rows, &counted, Some(&op_id(2))),
        20_000 - 2 * 3800
    );
    assert!(
        opening::room(&rows, &paid(i64::MIN, i64::MAX), None) < 0,
        "I33: no overflow"
    );
}

/// R95–R97, M47: money caps per currency; a currency without its own is refused once any is set.
#[test]
fn money_caps_hold_per_currency() {
    let hour = Duration::from_hours(1);
    let limits = with_caps(Caps {
        max_amount: Some(5000),
        max_total: Some((10_000, hour)),
        approve_over: Some(3000),
        four_eyes_over: None,
    });
    let capped = |minor, opened| opening::caps(&limits.policy, usd(), minor, opened);
    assert_eq!(capped(5000, 5000), None);
    assert!(capped(5001, 0).expect("largest").contains("USD 50.00"));
    assert!(capped(5000, 5001).expect("total").contains("USD 100.00"));
    assert!(capped(1, i64::MAX).is_some(), "I33: no overflow");
    let jpy = "jpy".parse().expect("jpy");
    assert!(
        opening::caps(&limits.policy, jpy, 1, 0)
            .expect("no cap")
            .contains("jpy")
    );
    assert_eq!(opening::caps(&policy(), jpy, i64::MAX, 0), None);
    let too_much = opening::check(
        &[],
        &asks("4417", 3800),
        Some(&paid(3800, 0)),
        &limits.policy,
        Opened {
            minor: 9000,
            ..Opened::default()
        },
    );
    assert_eq!(
        rejected(&too_much.expect_err("capped")).0,
        RejectClass::ValidationFailure
    );
    assert!(opening::needs_approval(&limits.policy, &asks("4417", 3001)));
    assert!(
        !opening::needs_approval(&limits.policy, &asks("4417", 3000)),
        "above, not at"
    );
    assert!(!opening::needs_approval(&policy(), &asks("4417", 3001)));
}
