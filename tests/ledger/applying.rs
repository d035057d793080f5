//! Applying other events: outcomes, evidence and deadlines, with what only the ledger knows.

use samekey::domain::evidence::{Bearing, ObjectStatus, Seen, Source, Verdict};
use samekey::domain::ids::{Actor, OperationId};
use samekey::domain::operation::{Contradiction, Effect, Status, UnknownReason};
use samekey::domain::outcome::OutcomeClass;
use samekey::domain::transition::{Event, Lookup, Observed, Refusal};
use samekey::ledger::LedgerError;
use uuid::Uuid;

use crate::common::*;

#[tokio::test]
async fn each_change_has_one_audit_entry_with_its_actor_i23() {
    for_each_store(async |w| {
        let id = w.unknown("t1", "4417", 3800).await;
        w.wait(SETTLE);
        w.nothing_there(&id).await;
        let detail = w.ledger.detail(&id).await.expect("read").expect("there");
        let told: Vec<(i64, &str, &str)> = detail
            .audit
            .iter()
            .map(|a| (a.seq, a.action.as_str(), a.actor.as_str()))
            .collect();
        let wanted = [
            (1, "opened", "agent:agent"),
            (2, "authorised", "engine"),
            (3, "finished", "engine"),
            (4, "observed", "reviewer:ann"),
        ];
        assert_eq!(told, wanted);
        assert_eq!(detail.op.row.audit_seq, 4);
        assert!(
            detail
                .audit
                .iter()
                .all(|a| !a.os_user.is_empty() && a.hash.len() == 64)
        );
        let refused = w.apply(&id, Event::NeverSent).await;
        assert_eq!(refused.expect_err("nothing is due"), Refusal::NothingDue);
        let after = w.ledger.detail(&id).await.expect("read").expect("there");
        assert_eq!(after.audit.len(), 4, "a refusal writes nothing");
    })
    .await;
}

#[tokio::test]
async fn an_operation_that_is_not_there_is_an_error_not_a_refusal() {
    for_each_store(async |w| {
        let none = OperationId::from_uuid(Uuid::from_u128(7));
        assert_eq!(
            w.ledger.detail(&none).await.expect("read").map(|d| d.op),
            None
        );
        assert_eq!(
            w.ledger
                .rows(std::slice::from_ref(&none))
                .await
                .expect("read"),
            []
        );
        let applied = w.ledger.apply(&none, Event::Swept).await;
        assert!(
            matches!(applied, Err(LedgerError::Damaged(_))),
            "{applied:?}"
        );
        let looked = w.ledger.begin_lookup(&none, &ann().name).await;
        assert!(matches!(looked, Err(LedgerError::Damaged(_))), "{looked:?}");
    })
    .await;
}

#[tokio::test]
async fn an_object_of_another_operation_is_never_taken_for_ours_i17() {
    for_each_store(async |w| {
        let first = w.refunded("t1", "4417", 3800).await;
        let (call, second) = w.driven("t2", "9", 3800).await;
        let number = w.authorise(&second, &call).await.expect("authorised");
        // The provider shows the first one's refund under the second one's name.
        let copied = object(
            &w.row(&second).await,
            "re_4417_3800",
            ObjectStatus::Succeeded,
        );
        w.end(
            &second,
            number,
            with_object(OutcomeClass::Succeeded, copied),
        )
        .await;
        let op = w.op(&second).await;
        assert_eq!(
            (op.row.status, op.row.provider_ref),
            (Status::Unknown, None)
        );
        assert_eq!(op.row.reason, Some(UnknownReason::ReplyMismatch));
        assert_eq!(op.row.verdict, Some(Verdict::Ambiguous));
        let seen = op.evidence.first().map(|e| e.seen.clone());
        assert!(matches!(
            seen,
            Some(Seen::Object {
                bearing: Bearing::Ambiguous,
                ..
            })
        ));
        let refs = ["re_4417_3800".parse().expect("an id")];
        let owners = w.ledger.owners(&stripe(), &refs).await.expect("read");
        assert_eq!(owners, [(refs[0].clone(), first)]);
    })
    .await;
}

#[tokio::test]
async fn of_two_operations_that_see_one_object_at_once_one_has_it_i17() {
    for_each_store(async |w| {
        let a = w.unknown("t1", "1", 3800).await;
        let b = w.unknown("t2", "2", 3800).await;
        let event = async |id: &OperationId, ledger: samekey::ledger::SharedLedger| {
            let object = object(&w.row(id).await, "re_same", ObjectStatus::Succeeded);
            let observed = samekey::domain::transition::Observed {
                source: Source::Reconciler,
                actor: samekey::domain::ids::Actor::Reconciler,
                seen: Lookup::One {
                    object,
                    taken: false,
                },
            };
            ledger
                .apply(id, Event::Observed(observed))
                .await
                .expect("answered")
                .expect("observed")
        };
        let (one, two) = (w.other().await, w.other().await);
        let (x, y) = tokio::join!(event(&a, one), event(&b, two));
        let mut statuses = [x.op.row.status, y.op.row.status].map(Status::as_str);
        statuses.sort_unstable();
        assert_eq!(statuses, ["succeeded", "unknown"]);
    })
    .await;
}

#[tokio::test]
async fn confirmed_news_closes_in_flight_and_the_outcome_is_written_after_it_f03() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        let number = w.authorise(&id, &call).await.expect("authorised");
        let row = w.row(&id).await;
        let event = Lookup::One {
            object: object(&row, &refund_id(&row), ObjectStatus::Succeeded),
            taken: false,
        };
        let step = w.observe(&id, Source::Webhook, event).await;
        assert_eq!(step.op.row.status, Status::Succeeded);
        assert!(w.op(&id).await.in_flight());
        w.end(&id, number, succeeded(&row)).await;
        let op = w.op(&id).await;
        assert_eq!(
            (op.row.status, op.row.contradicted, op.in_flight()),
            (Status::Succeeded, None, false)
        );
        assert_eq!(op.row.effect, Effect::Identified);
        assert_eq!(w.finish(&call).await.status(), "refunded");
    })
    .await;
}

/// M7: after a timeout the provider's object comes by another way; its id is kept, not only its status.
#[tokio::test]
async fn news_after_a_timeout_names_the_object_m7() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        w.attempt(&id, &call, lost()).await;
        let row = w.row(&id).await;
        assert_eq!(row.provider_ref, None);
        let event = Lookup::One {
            object: object(&row, &refund_id(&row), ObjectStatus::Succeeded),
            taken: false,
        };
        w.observe(&id, Source::Webhook, event).await;
        let row = w.row(&id).await;
        let named = row.provider_ref.as_ref().map(ToString::to_string);
        assert_eq!(
            (row.status, named),
            (Status::Succeeded, Some(refund_id(&row)))
        );
    })
    .await;
}

/// F43, M13: the sweep and the outcome of an attempt come at the same moment; the row ends once, and as
/// the outcome says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_sweep_and_an_outcome_at_once_f43_m13() {
    for_each_store(async |w| {
        let mut rows = Vec::new();
        for n in 0..100 {
            let (call, id) = w.driven(&format!("t{n}"), &n.to_string(), 100).await;
            rows.push((w.authorise(&id, &call).await.expect("authorised"), id));
        }
        w.wait(seconds(24 * 3600));
        let other = w.other().await;
        let mut swept_first = 0;
        for (n, (attempt, id)) in rows.into_iter().enumerate() {
            let finished = Event::Finished {
                attempt,
                outcome: succeeded(&w.row(&id).await),
                taken: false,
            };
            let (end, sweep) = (
                w.ledger.apply(&id, finished),
                other.apply(&id, Event::Swept),
            );
            // Each begins as often as the other.
            let (end, sweep) = if n % 2 == 0 {
                tokio::join!(end, sweep)
            } else {
                let (sweep, end) = tokio::join!(sweep, end);
                (end, sweep)
            };
            end.expect("answered").expect("recorded");
            let sweep = sweep.expect("answered");
            if let Err(refusal) = &sweep {
                assert_eq!(*refusal, Refusal::NothingDue);
            }
            swept_first += usize::from(sweep.is_ok());
            let detail = w.ledger.detail(&id).await.expect("read").expect("there");
            assert_eq!(detail.op.row.status, Status::Succeeded);
            assert_eq!(detail.audit.len(), 3 + usize::from(sweep.is_ok()));
        }
        assert!((1..100).contains(&swept_first), "no race: {swept_first}");
    })
    .await;
}

#[tokio::test]
async fn an_outcome_is_written_once() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        w.attempt(&id, &call, lost()).await;
        for attempt in [1, 2] {
            let again = Event::Finished {
                attempt,
                outcome: refused(),
                taken: false,
            };
            assert_eq!(
                w.apply(&id, again).await.expect_err("once"),
                Refusal::NoSuchAttempt
            );
        }
        let op = w.op(&id).await;
        assert_eq!(
            op.attempts
                .first()
                .and_then(samekey::domain::attempt::Attempt::class),
            Some(OutcomeClass::SideEffectUnknown)
        );
    })
    .await;
}

#[tokio::test]
async fn evidence_against_a_closed_row_flags_it_and_changes_no_status_i20_f25() {
    for_each_store(async |w| {
        let id = w.refunded("t1", "4417", 3800).await;
        let row = w.row(&id).await;
        let event = Lookup::One {
            object: object(&row, &refund_id(&row), ObjectStatus::Failed),
            taken: false,
        };
        w.observe(&id, Source::Webhook, event).await;
        let after = w.row(&id).await;
        assert_eq!(after.status, Status::Succeeded);
        assert_eq!(
            after.contradicted,
            Some(Contradiction::FailedAfterSucceeded)
        );
        assert_eq!(after.version, row.version + 1);
    })
    .await;
}

#[tokio::test]
async fn what_only_repeats_is_not_kept_twice_i33() {
    for_each_store(async |w| {
        let id = w.refunded("t1", "4417", 3800).await;
        let row = w.row(&id).await;
        let known = w.op(&id).await.evidence.len();
        for _ in 0..20 {
            let event = Lookup::One {
                object: object(&row, &refund_id(&row), ObjectStatus::Succeeded),
                taken: false,
            };
            let observed = Observed {
                source: Source::Webhook,
                actor: Actor::Webhook,
                seen: event,
            };
            let again = w.apply(&id, Event::Observed(observed)).await;
            assert_eq!(again.expect_err("nothing new"), Refusal::NothingNew);
        }
        let op = w.op(&id).await;
        assert_eq!((op.evidence.len(), op.row.version), (known, row.version));
        assert_eq!(op.row.audit_seq, row.audit_seq, "nor is it audited");
    })
    .await;
}

#[tokio::test]
async fn credentials_that_do_not_work_pause_the_tool() {
    for_each_store(async |w| {
        let denied = |status| http(OutcomeClass::PermissionDenied, status);
        let paused = async || {
            let tools = w.ledger.tools().await.expect("read");
            tools.into_iter().find_map(|t| t.paused)
        };
        for n in 0..3 {
            assert_eq!(paused().await, None);
            let (call, id) = w.driven(&format!("t{n}"), &n.to_string(), 100).await;
            w.attempt(&id, &call, denied(403)).await;
            assert_eq!(w.row(&id).await.status, Status::Failed);
        }
        let credentials = Some(("engine".to_owned(), "credentials".to_owned()));
        assert_eq!(paused().await, credentials, "three orders in a row");
        w.ledger.pause(&tool(), None).await.expect("resumed");
        let (call, id) = w.driven("t9", "9", 100).await;
        w.attempt(&id, &call, denied(401)).await;
        assert_eq!(paused().await, credentials, "401 at once");
    })
    .await;
}

#[tokio::test]
async fn a_terminal_never_gets_what_a_provider_wrote_i31() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        w.attempt(
            &id,
            &call,
            refused().because("\u{1b}]0;pwned\u{7} \u{202e}no"),
        )
        .await;
        let row = w.row(&id).await;
        let text = row.failure_text.expect("a reason").to_string();
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    })
    .await;
}
