//! Whatever bytes come back, an attempt has one class, and success needs everything to match (I14): the
//! same property that `src/provider/stripe/classify/tests.rs` proves of readable answers, through the wire.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use samekey::clock::Clock;
use samekey::domain::outcome::{Outcome, OutcomeClass};
use samekey::provider::Provider as _;
use serde_json::{Value, json};

use crate::server::{Act, Server};
use crate::{row, stripe};

/// An answer, and whether it is our refund, succeeded, whole and 2xx.
#[derive(Clone, Debug)]
struct Said {
    bytes: Vec<u8>,
    ours: bool,
}

fn refund() -> Value {
    json!({
        "object": "refund", "id": "re_1", "amount": 3800, "currency": "usd", "created": 1_790_000_000,
        "status": "succeeded", "payment_intent": "pi_1", "charge": "ch_1",
        "metadata": { "operation_id": "op_5521", "order_id": "4417" },
    })
}

fn said() -> impl Strategy<Value = Said> {
    let field = prop::sample::select(vec![
        "amount",
        "currency",
        "status",
        "payment_intent",
        "metadata",
    ]);
    let other = prop::sample::select(vec![
        Value::Null,
        json!(3801),
        json!("eur"),
        json!("pi_2"),
        json!({ "operation_id": "op_1" }),
        json!("pending"),
        json!(38.5),
        json!([]),
    ]);
    let change = prop::option::weighted(0.6, (field, other));
    let near = (
        prop_oneof![Just(200_u16), Just(201), 100..1000_u16],
        change,
        prop::option::weighted(0.3, any::<prop::sample::Index>()),
        prop::sample::select(vec![
            "",
            "Stripe-Should-Retry: true\r\n",
            "Location: http://x/\r\n",
        ]),
    );
    let near = near.prop_map(|(status, change, cut, header)| {
        let mut body = refund();
        let changed = change.is_some();
        if let Some((field, other)) = change {
            body[field] = other;
        }
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\n{header}Content-Length: {}\r\n\r\n",
            body.len()
        );
        let mut bytes = [head.as_bytes(), body.as_bytes()].concat();
        let length = bytes.len();
        let kept = cut.map_or(length, |cut| cut.index(length));
        bytes.truncate(kept);
        let ours = !changed && kept == length && (200..300).contains(&status);
        Said { bytes, ours }
    });
    let noise =
        prop::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| Said { bytes, ours: false });
    let headed = prop::collection::vec(any::<u8>(), 0..300).prop_map(|body| Said {
        bytes: [b"HTTP/1.1 200 OK\r\n".as_slice(), &body].concat(),
        ours: false,
    });
    prop_oneof![3 => near, 1 => noise, 1 => headed]
}

async fn attempt(bytes: Vec<u8>) -> Outcome {
    let server = Server::always(Act::Say(bytes)).await;
    let stripe = stripe(&server.origin, &Clock::system());
    let outcome = stripe
        .connect()
        .await
        .expect("connects")
        .send(&row(&stripe))
        .await;
    assert_eq!(
        server.requests().len(),
        1,
        "I12: one attempt is one request"
    );
    outcome
}

#[test]
fn any_bytes_have_one_class_and_success_needs_everything_i14() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let mut runner = TestRunner::new(Config::with_cases(400));
    let seen = std::cell::Cell::new((0_u32, 0_u32));
    runner
        .run(&said(), |said| {
            let outcome = runtime.block_on(attempt(said.bytes.clone()));
            prop_assert_ne!(outcome.class, OutcomeClass::NotSent, "bytes had left");
            // A 1xx is no answer yet, whatever follows it.
            let succeeded = outcome.class == OutcomeClass::Succeeded;
            prop_assert!(!succeeded || said.ours, "{:?}", outcome);
            let (yes, no) = seen.get();
            seen.set(if succeeded {
                (yes + 1, no)
            } else {
                (yes, no + 1)
            });
            Ok(())
        })
        .expect("the property holds");
    let (yes, no) = seen.get();
    assert!(
        yes > 10 && no > 100,
        "{yes} successes and {no} others are no test"
    );
}
