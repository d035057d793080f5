//! What is told: once per event, with the facts, harmless, and the end to whoever heard something else.

use samekey::config::Env;
use samekey::domain::evidence::{ObjectStatus, Source};
use samekey::domain::message::Language;
use samekey::domain::operation::{Closing, Status};
use samekey::domain::policy::Caps;
use samekey::domain::review_event::Act;
use samekey::domain::transition::Lookup;
use samekey::ledger::Opening;
use samekey::notify::round;
use serde_json::json;

use super::receiver::Receiver;
use super::{common::*, events, news, notifier, notifier_in, settled, stored};

#[tokio::test]
async fn an_unknown_row_is_told_once_with_its_facts() {
    for_each_store(async |w| {
        let receiver = Receiver::start(&[]).await;
        let deps = notifier(&w, w.ledger.clone(), &receiver.line());
        let id = w.unknown("t1", "4417", 3800).await;
        assert_eq!(round(&deps).await.expect("a round").taken, 1);
        // Neither this one nor another process says it again.
        let other = notifier(&w, w.other().await, &receiver.line());
        assert_eq!(round(&deps).await.expect("a round").taken, 0);
        assert_eq!(round(&other).await.expect("a round").taken, 0);
        let at = w.row(&id).await.updated_at;
        let wanted = json!({
            "notice_id": 1, "event": "unknown", "at": samekey::ledger::view::instant(at),
            "operation_id": id, "tool": "issue_refund", "order_id": "4417", "amount_cents": 3800,
            "currency": "usd", "status": "unknown", "reason": "server_error",
            "session_ids": ["conversation"], "provider": "stripe", "mode": "test", "ledger": "ledger.db",
        });
        assert_eq!(receiver.got(), [wanted]);
        let head = &receiver.heads()[0];
        assert!(head.starts_with("POST /hook/T0K3N?x=1 HTTP/1.1"), "{head}");
        assert!(head.contains("content-type: application/json"), "{head}");
        assert_eq!(stored(&w).await[0].state, "sent");
    })
    .await;
}

#[tokio::test]
async fn whoever_heard_checking_hears_the_end_in_their_language_r57() {
    for (language, says) in [
        (
            Language::En,
            "Your refund of USD 38.00 for order 4417 has been made. It can take some days to appear in your account.",
        ),
        (
            Language::Ru,
            "Возврат на сумму 38,00\u{a0}USD по заказу 4417 выполнен. Деньги могут поступить на ваш счёт через несколько дней.",
        ),
    ] {
        for_each_store(async |w| {
            let receiver = Receiver::start(&[]).await;
            let mut deps = notifier(&w, w.ledger.clone(), &receiver.line());
            deps.language = language;
            settled(&w, "t1", "4417").await;
            assert_eq!(events(&w).await, ["unknown", "resolved"]);
            round(&deps).await.expect("a round");
            let got = receiver.got();
            assert!(got[0].get("customer_message").is_none(), "{got:?}");
            let resolved = &got[1];
            assert_eq!(resolved["event"], "resolved");
            assert_eq!(resolved["status"], "succeeded");
            assert_eq!(resolved["session_ids"], json!(["conversation"]));
            assert_eq!(resolved["customer_message"], says);
        })
        .await;
    }
}

#[tokio::test]
async fn who_heard_the_end_first_hand_is_told_nothing_more() {
    for_each_store(async |w| {
        w.refunded("t1", "4417", 3800).await;
        assert_eq!(events(&w).await, Vec::<String>::new());
        // Unconfirmed, then refunded by a later call: the first caller hears it.
        let (first, id) = w.driven("t2", "9", 500).await;
        w.attempt(&id, &first, lost()).await;
        assert_eq!(w.finish(&first).await.status(), "unconfirmed");
        let second = w.leased("t3", "9", 500).await;
        w.drive(&id, &second).await;
        let outcome = succeeded(&w.row(&id).await);
        w.attempt(&id, &second, outcome).await;
        assert_eq!(w.finish(&second).await.status(), "refunded");
        assert_eq!(events(&w).await, ["resolved"]);
    })
    .await;
}

#[tokio::test]
async fn an_approval_and_a_rejection_are_ends_too() {
    let mut held = terms();
    let caps = Caps {
        approve_over: Some(1_000),
        ..Caps::default()
    };
    held.policy.caps.insert(usd(), caps);
    for_each_store_with(held, async |w| {
        let call = w.leased("t1", "4417", 3800).await;
        let id = w.opened(&call).await;
        assert_eq!(w.finish(&call).await.status(), "held");
        w.decide(&id, &lea(), Act::Approve { caps: None })
            .await
            .expect("approved");
        assert_eq!(events(&w).await, Vec::<String>::new(), "not the end yet");
        let mut calls = w
            .ledger
            .lease_calls(&w.engine, LEASE, 10)
            .await
            .expect("leased");
        let approval = calls.pop().expect("the approval's own call");
        w.drive(&id, &approval).await;
        let outcome = succeeded(&w.row(&id).await);
        w.attempt(&id, &approval, outcome).await;
        w.finish(&approval).await;
        assert_eq!(events(&w).await, ["resolved"]);

        let call = w.leased("t2", "9", 3800).await;
        let other = w.opened(&call).await;
        w.finish(&call).await;
        w.decide(&other, &lea(), Act::Reject)
            .await
            .expect("rejected");
        assert_eq!(events(&w).await, ["resolved", "resolved"]);
        let receiver = Receiver::start(&[]).await;
        let deps = notifier(&w, w.ledger.clone(), &receiver.line());
        round(&deps).await.expect("a round");
        let got = receiver.got();
        assert_eq!(got[1]["reason"], "permission_denied");
        assert_eq!(
            got[1]["customer_message"],
            "Your refund of USD 38.00 for order 9 was not authorised, so it was not made."
        );
    })
    .await;
}

#[tokio::test]
async fn a_correction_is_told_and_while_contradicted_nothing_is_called_an_end() {
    for_each_store(async |w| {
        // The bank returned the money of a refund that its customer was told of.
        let id = w.refunded("t1", "4417", 3800).await;
        w.wait(SETTLE);
        news(&w, &id, ObjectStatus::Failed).await;
        assert_eq!(events(&w).await, ["contradicted"]);
        let act = Act::Correct {
            decision: Some(Closing::Failed),
        };
        w.decide(&id, &lea(), act).await.expect("corrected");
        assert_eq!(events(&w).await, ["contradicted", "resolved"]);

        // Two effects, and somebody asked meanwhile: closed with the contradiction standing, callers
        // still hear `checking`; the end comes with the acknowledgement, which changes no status.
        let twice = w.unknown("t2", "9", 500).await;
        let row = w.row(&twice).await;
        let objects = [refund_id(&row), "re_second".into()]
            .map(|id| (object(&row, &id, ObjectStatus::Succeeded), false));
        let seen = Lookup::Listed {
            began_at: w.clock.now(),
            complete: true,
            objects: objects.into(),
        };
        w.observe(&twice, Source::ReviewLookup, seen).await;
        w.decide(&twice, &ann(), close_as(Closing::Succeeded))
            .await
            .expect("closed");
        let row = w.row(&twice).await;
        assert_eq!(row.status, Status::Succeeded);
        assert!(row.contradicted.is_some());
        let before = ["contradicted", "resolved", "unknown", "contradicted"];
        assert_eq!(events(&w).await, before, "no end yet");
        w.decide(&twice, &lea(), Act::Correct { decision: None })
            .await
            .expect("acknowledged");
        assert_eq!(events(&w).await, [&before[..], &["resolved"]].concat());
    })
    .await;
}

#[tokio::test]
async fn a_key_that_runs_out_is_told_once_per_deadline() {
    for_each_store(async |w| {
        let (call, id) = w.driven("t1", "4417", 3800).await;
        w.attempt(&id, &call, lost()).await;
        w.finish(&call).await;
        let (pending_call, pending_row) = w.driven("t2", "9", 500).await;
        let outcome = pending(&w.row(&pending_row).await);
        w.attempt(&pending_row, &pending_call, outcome).await;
        w.finish(&pending_call).await;
        let deadline = w.row(&id).await.key_expires_at.expect("a deadline");
        let left = || samekey::domain::since(w.clock.now(), deadline);
        w.wait(left().saturating_sub(seconds(7201)));
        assert_eq!(w.ledger.tell_expiring().await.expect("told"), 0, "early");
        w.wait(seconds(1));
        assert_eq!(w.ledger.tell_expiring().await.expect("told"), 1);
        assert_eq!(w.ledger.tell_expiring().await.expect("told"), 0, "again");
        assert_eq!(
            events(&w).await,
            ["key_expiring"],
            "the other is identified"
        );
        w.wait(left());
        assert_eq!(w.ledger.tell_expiring().await.expect("told"), 0);
    })
    .await;
}

#[tokio::test]
async fn an_outage_is_told_once_however_often_its_trials_fail() {
    for_each_store(async |w| {
        let operation =
            |n: u128| samekey::domain::ids::OperationId::from_uuid(uuid::Uuid::from_u128(n));
        for n in 0..6 {
            let id = operation(n % 3);
            w.ledger
                .connection_failed(&tool(), &id)
                .await
                .expect("noted");
        }
        assert_eq!(events(&w).await, ["circuit_open"]);
        w.wait(seconds(30));
        w.ledger.probed(&tool(), true).await.expect("noted");
        w.ledger
            .connection_failed(&tool(), &operation(1))
            .await
            .expect("the trial fails");
        assert_eq!(events(&w).await, ["circuit_open"], "the same outage");
        let receiver = Receiver::start(&[]).await;
        let deps = notifier(&w, w.ledger.clone(), &receiver.line());
        round(&deps).await.expect("a round");
        let got = &receiver.got()[0];
        assert_eq!(got["tool"], "issue_refund");
        assert!(got["operation_id"].is_null() && got["order_id"].is_null());
    })
    .await;
}

#[tokio::test]
async fn a_reached_cap_is_told_once_an_hour_and_currency() {
    let mut capped = terms();
    let caps = Caps {
        max_amount: Some(5_000),
        ..Caps::default()
    };
    capped.policy.caps.insert(usd(), caps);
    for_each_store_with(capped, async |w| {
        let refuse = async |call: &str, cents: i64| {
            let leased = w.leased(call, call, cents).await;
            let Opening::Answer(answer) = w.hand().open(&leased).await else {
                panic!("over the cap");
            };
            w.ledger
                .answer_call(&leased, *answer)
                .await
                .expect("answered");
        };
        refuse("t1", 5_001).await;
        refuse("t2", 9_000).await;
        assert_eq!(events(&w).await, ["cap_reached"]);
        w.wait(seconds(3600));
        refuse("t3", 5_001).await;
        assert_eq!(events(&w).await, ["cap_reached", "cap_reached"]);
        // More than the payment has is another matter.
        refuse("t4", 200_000).await;
        assert_eq!(events(&w).await.len(), 2);
        let receiver = Receiver::start(&[]).await;
        let lines = format!("{}\nwebhook_format = \"slack\"", receiver.line());
        let deps = notifier(&w, w.ledger.clone(), &lines);
        round(&deps).await.expect("a round");
        assert_eq!(
            receiver.got()[0]["text"],
            "[samekey test stripe] issue_refund: a call was rejected: the largest amount of this tool is USD 50.00"
        );
    })
    .await;
}

#[tokio::test]
async fn a_chat_cannot_be_made_to_shout_and_json_is_exact_i31() {
    let order = "<!channel> @here & <https://evil.example|4417>";
    for_each_store(async |w| {
        let receiver = Receiver::start(&[]).await;
        let lines = format!("{}\nwebhook_format = \"slack\"", receiver.line());
        let chat = notifier(&w, w.ledger.clone(), &lines);
        let id = settled(&w, "t1", order).await;
        round(&chat).await.expect("a round");
        for got in receiver.got() {
            let text = got["text"].as_str().expect("text");
            assert!(!text.contains(['<', '>', '@']), "{text}");
            assert!(
                text.contains("&lt;!channel&gt; \u{ff20}here &amp;"),
                "{text}"
            );
            assert!(text.contains(id.as_str()), "{text}");
            assert_eq!(got["mrkdwn"], false);
        }
        let end = &receiver.got()[1]["text"];
        assert!(
            end.as_str()
                .expect("text")
                .contains("conversation conversation")
        );

        let plain = Receiver::start(&[]).await;
        let json = notifier(&w, w.ledger.clone(), &plain.line());
        w.unknown("t2", &format!("{order}2"), 500).await;
        round(&json).await.expect("a round");
        assert_eq!(plain.got()[0]["order_id"], format!("{order}2"));
    })
    .await;
}

#[tokio::test]
async fn a_webhooks_url_is_a_secret_i30() {
    for_each_store(async |w| {
        let receiver = Receiver::start(&[super::receiver::Reply::Status(404)]).await;
        let env = Env::fixed([("HOOK", &receiver.url())]);
        let deps = notifier_in(&w, w.ledger.clone(), "webhook_env = \"HOOK\"", &env);
        w.unknown("t1", "4417", 3800).await;
        let round = round(&deps).await.expect("a round");
        let said = format!("{:?} {:?}", round.trouble, stored(&w).await);
        assert!(said.contains("404") && !said.contains("T0K3N"), "{said}");
        let body = receiver.got()[0].to_string();
        assert!(!body.contains("T0K3N"), "{body}");
    })
    .await;
}
