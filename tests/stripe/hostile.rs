//! Hostile text in each member of a reply to a refund request, of a refusal, of the account, and in the files of
//! profiles and scenarios: one class, one harmless sentence (I31, I33).

use std::sync::Arc;

use samekey::clock::Clock;
use samekey::domain::policy::Profile;
use samekey::domain::profile::SHIPPED;
use samekey::ledger::verify::verify_at;
use samekey::provider::Provider as _;
use serde_json::{Value, json};

use crate::cli::{Home, is_inert};
use crate::desk::{Desk, made};
use crate::server::{Server, answer, json as reply};
use crate::{free, stripe};

const ACTS: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}5m\u{202e}desrever\u{2066}END";

fn hostile() -> [Value; 3] {
    [json!(ACTS), json!("x".repeat(100_000)), json!([ACTS])]
}

/// I14, I31: a reply is a success only with every member as it was asked for; nothing hostile is kept.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_members_of_a_reply_make_no_success_and_stay_out_i14_i31() {
    for member in [
        "id",
        "object",
        "amount",
        "currency",
        "status",
        "payment_intent",
        "metadata",
    ] {
        for bad in hostile() {
            let text = Arc::new(bad);
            let told = Arc::clone(&text);
            let desk = Desk::new(move |_, seen, _| {
                let mut refund = made(seen, "re_1", "succeeded");
                refund[member] = (*told).clone();
                answer(200, "Request-Id: req_\u{202e}x\r\n", &refund.to_string())
            })
            .await;
            let said = desk.ask("t1").await;
            assert_ne!(said.status(), "refunded", "{member}: {said:?}");
            let shown = serde_json::to_string(&said).expect("JSON");
            assert!(is_inert(&shown) && shown.len() < 4_000, "{member}: {shown}");
            let path = desk.world.dir.path().join("ledger.db");
            let report = verify_at(&path, desk.world.clock.now()).await;
            assert_eq!(report.expect("a report").violations, [], "{member}");
        }
    }
}

/// I31, I33: the words of a refusal and an account's id.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_words_of_a_refusal_are_harmless_and_short_i31_i33() {
    for member in ["message", "code", "type", "param"] {
        for bad in hostile() {
            let body =
                json!({"error": {"type": "invalid_request_error", "message": "no", member: bad}});
            let desk = Desk::new(move |_, _, _| reply(400, &body.to_string())).await;
            let said = desk.ask("t1").await;
            let shown = serde_json::to_string(&said).expect("JSON");
            assert!(is_inert(&shown) && shown.len() < 4_000, "{member}: {shown}");
            let path = desk.world.dir.path().join("ledger.db");
            let report = verify_at(&path, desk.world.clock.now()).await;
            assert_eq!(report.expect("a report").violations, [], "{member}");
        }
    }
    for bad in hostile() {
        let body = json!({"object": "account", "id": bad}).to_string();
        let server = Server::always(reply(200, &body)).await;
        let stripe = stripe(&server.origin, &Clock::system());
        match stripe.account(&free()).await {
            Ok(account) => {
                let account = account.unwrap_or_default();
                assert!(is_inert(&account) && account.len() < 4_000);
            }
            Err(why) => assert!(is_inert(&why.to_string()), "{why}"),
        }
    }
}

/// I31: what stands in a file of a profile or is named as a scenario comes back harmless in the sentence that
/// refuses it.
#[test]
fn hostile_profiles_and_scenarios_are_refused_in_harmless_sentences_i31() {
    let escaped = "\"\\u001b]0;x\\u0007\\u202e\" = 1\n";
    let good = SHIPPED[0].1;
    let long = format!("about = \"{}\"\n", "x".repeat(100_000));
    for bad in [
        format!("{escaped}{good}"),
        format!("{good}\n[keys.\"\\u001b[2J\"]\n"),
        good.replace("kind = \"keyed\"", "kind = \"\\u001b[2J\\u202e\""),
        format!("{ACTS} = 1\n{good}"),
        format!("{long}{good}"),
        long,
    ] {
        let why = Profile::parse(&bad).expect_err("refused").to_string();
        assert!(is_inert(&why) && why.len() < 2_000, "{why:?}");
    }
    let home = Home::new();
    let file = home.path("plan.toml");
    std::fs::write(&file, format!("{escaped}{ACTS}")).expect("written");
    let file = file.to_string_lossy().into_owned();
    for scenario in [ACTS, "\u{1b}[2J:1", "refused:\u{202e}", file.as_str()] {
        for json in [&["--json"][..], &[]] {
            let args = [
                &["sim", "--listen", "127.0.0.1:0", "--scenario", scenario][..],
                json,
            ]
            .concat();
            let ran = home.ok(2, &args);
            assert!(is_inert(&ran.stderr) && is_inert(&ran.stdout), "{ran:?}");
        }
    }
}
