//! The Stripe adapter against a raw TCP server that misbehaves as providers and networks do.
//!
//! `server` is the server, `attempts` proves what a sent refund comes to and that one attempt is one
//! request (I12, I14), `arbitrary` the same of any bytes, `reads` proves resolving and lookups (I22, M39),
//! `orders` who else knows an order's payment, `profiles` the shipped promises against the simulated
//! provider, `budget` what reading costs, `hostile` that no text acts, `modes` that test and real money stay apart. `desk` puts a whole engine before the server; with
//! it `keys`, `advice`, `refusals`, `objects` and `looking` prove the numbered items of the wire (S1 to S48)
//! that concern a client, each in a test that names it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own builders fail the test"
)]

mod advice;
mod arbitrary;
mod attempts;
mod budget;
#[path = "../common/cli.rs"]
mod cli;
#[path = "../common/mod.rs"]
mod common;
mod desk;
mod hostile;
mod keys;
mod looking;
mod modes;
mod objects;
mod orders;
mod profiles;
mod reads;
mod refusals;
mod server;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use samekey::clock::Clock;
use samekey::config::Secret;
use samekey::domain::Instant;
use samekey::domain::arguments::Arguments;
use samekey::domain::identity::Identity;
use samekey::domain::ids::{ChargeId, OperationId, OrderId, PaymentId, ProviderName, ToolName};
use samekey::domain::key::{IdempotencyKey, hex_digest};
use samekey::domain::money::Money;
use samekey::domain::opening::Resolved;
use samekey::domain::operation::{Effect, OperationRow, Status};
use samekey::domain::policy::Profile;
use samekey::domain::text::SafeText;
use samekey::domain::tool_call::RefundArguments;
use samekey::provider::stripe::{Stripe, StripeConfig};
use samekey::provider::{Asked, Provider as _, Purse, Reads};
use uuid::Uuid;

const API_KEY: &str = "sk_test_4eC39HqLyjWDarjtT1zdp7dc";
const VERSION: &str = "2026-08-26.dahlia";
/// The profile's longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

fn now() -> Instant {
    Instant::from_timestamp(1_790_000_000, 0).expect("an instant")
}

/// The adapter for a server at `origin`.
fn stripe(origin: &str, clock: &Clock) -> Stripe {
    let config = StripeConfig {
        name: ProviderName::parse("stripe").expect("name"),
        base_url: origin.into(),
        api_key: Secret::new(API_KEY),
        api_version: VERSION.into(),
        profile: Profile::stripe(),
        account: None,
    };
    Stripe::new(config, clock.clone()).expect("a valid configuration")
}

/// A refund of 38.00 USD for order 4417 (R3), with the bytes that `stripe` made for it.
fn row(stripe: &Stripe) -> OperationRow {
    let money = Money::from_minor(3800, "usd".parse().expect("usd")).expect("money");
    let order = OrderId::parse("4417").expect("order");
    let payment = PaymentId::parse("pi_1").expect("payment");
    let charge = ChargeId::parse("ch_1").expect("charge");
    let id = OperationId::parse("op_5521").expect("operation");
    let args = Arguments::from(RefundArguments {
        order: order.clone(),
        money,
        payment: None,
        charge: None,
        reason: None,
        after: None,
    });
    let resolved = Resolved {
        payment: payment.clone(),
        charge: Some(charge.clone()),
        currency: money.currency(),
        captured_minor: 10_000,
        refunded_minor: 0,
        refunds: Vec::new(),
    };
    let tool = ToolName::parse("issue_refund").expect("tool");
    let request = stripe.request(&Asked {
        tool: &tool,
        operation: &id,
        arguments: &args,
        resolved: Some(&resolved),
    });
    let request = request.expect("a request");
    OperationRow {
        id,
        tool,
        identity: Identity::refund(&order, money),
        order_id: Some(order),
        money: Some(money),
        provider: ProviderName::parse("stripe").expect("provider"),
        payment: Some(payment),
        charge: Some(charge),
        after: None,
        status: Status::Open,
        effect: Effect::Possible,
        held: false,
        approved_by: None,
        contradicted: None,
        key: IdempotencyKey::from_uuid(Uuid::from_u128(0xc41f)),
        request_hash: hex_digest(&request),
        request,
        attempts: 1,
        attempts_max: 6,
        key_created_at: now(),
        key_expires_at: None,
        first_authorised_at: Some(now()),
        last_authorised_at: Some(now()),
        last_outcome: None,
        reason: None,
        failure: None,
        failure_text: None,
        verdict: None,
        provider_ref: None,
        pending_since: None,
        version: 1,
        corrections: 0,
        audit_seq: 1,
        created_at: now(),
        updated_at: now(),
        unknown_at: None,
        closed_at: None,
        closed_by: None,
        proposal: None,
        claim: None,
        snoozed_until: None,
    }
}

/// A purse that is never empty.
struct Free;

#[async_trait]
impl Purse for Free {
    async fn take(&self, _: &ProviderName) -> Result<Result<(), Duration>, SafeText> {
        Ok(Ok(()))
    }
}

/// Reads that cost nothing and have all the time.
fn free() -> Reads {
    let clock = Clock::system();
    let until = clock.now() + chrono::TimeDelta::days(1);
    let name = ProviderName::parse("stripe").expect("name");
    Reads::new(Arc::new(Free), name, clock, until)
}
