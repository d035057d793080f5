//! Rows that were there before the demo began, for looking at long lists.
//!
//! Every row goes through the ledger's own doors, so that no invariant is bypassed; each costs
//! about ten small transactions, so a hundred thousand take minutes. Their orders (`P0000001` …)
//! belong to no simulated customer, and the simulated provider knows nothing of their refunds.
//!
//! Owns: what those rows look like. Tests: `tests/demo.rs`.

use std::time::Duration;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use uuid::Uuid;

use super::DemoError;
use super::stage::{Stage, prefill_agent};
use crate::domain::evidence::{ObjectStatus, ProviderObject};
use crate::domain::identity::Identity;
use crate::domain::ids::{
    CallId, EngineId, OperationId, OrderId, PaymentId, ProviderRef, SessionId,
};
use crate::domain::key::IdempotencyKey;
use crate::domain::opening::Resolved;
use crate::domain::outcome::{Outcome, OutcomeClass};
use crate::domain::tool_call::RefundArguments;
use crate::domain::transition::Event;
use crate::ledger::{Accepted, Drive, LeasedCall, NewCall, OpenRow, Opening};

/// How long the filling engine may hold a call (virtual time).
const LEASE: Duration = Duration::from_hours(1);

/// Adds `rows` rows: most refunded, a few failed, unknown or open.
pub(super) async fn fill(stage: &Stage, rows: u32) -> Result<(), DemoError> {
    let engine = EngineId::parse("eng_earlier")?;
    let known = stage.ledger.counts().await?.all();
    let mut lots = ChaCha8Rng::seed_from_u64(known);
    for number in 0..rows {
        let number = known.saturating_add(u64::from(number));
        one(stage, &engine, number, &mut lots).await?;
    }
    Ok(())
}

async fn one(
    stage: &Stage,
    engine: &EngineId,
    number: u64,
    lots: &mut ChaCha8Rng,
) -> Result<(), DemoError> {
    let order = OrderId::parse(&format!("P{number:07}"))?;
    let amount = lots.random_range(100..20_000);
    let arguments = json!({ "amount_cents": amount, "currency": "usd", "order_id": order });
    let args = RefundArguments::parse(&arguments);
    let args = args.map_err(|e| DemoError::Restless(e.to_string()))?;
    let Some(call) = leased(stage, engine, number, &arguments.to_string()).await? else {
        return Ok(());
    };
    let id = OperationId::from_uuid(Uuid::new_v4());
    let key = IdempotencyKey::from_uuid(Uuid::new_v4());
    let resolved = Resolved {
        payment: PaymentId::parse(&format!("pi_order_{order}"))?,
        charge: None,
        currency: args.money.currency(),
        captured_minor: 100_000,
        refunded_minor: 0,
        refunds: Vec::new(),
    };
    let rows = stage.ledger.get(&stage.tool, &args, None).await?;
    let request = stage
        .providers
        .get(&stage.provider_name)
        .map(|p| p.request(&id, &args, &resolved))
        .unwrap_or_default();
    let row = OpenRow {
        id,
        key,
        tool: stage.tool.clone(),
        provider: stage.provider_name.clone(),
        identity: Identity::refund(&args.order, args.money),
        arguments: args,
        resolved,
        request,
        mark: rows.mark,
    };
    let object = object(stage, &row, number)?;
    if let Opening::Opened(id) = stage.ledger.open(&call, row).await? {
        send(stage, &call, &id, outcome(lots, object)).await?;
    }
    stage.ledger.finish_call(&call).await?;
    stage
        .ledger
        .delivered(&call.call.agent, &call.call.id)
        .await?;
    Ok(())
}

async fn leased(
    stage: &Stage,
    engine: &EngineId,
    number: u64,
    arguments: &str,
) -> Result<Option<LeasedCall>, DemoError> {
    let (agent, id) = (
        prefill_agent()?,
        CallId::parse(&format!("toolu_p{number:07}"))?,
    );
    let call = NewCall {
        id: id.clone(),
        agent: agent.clone(),
        tool: stage.tool.clone(),
        arguments: arguments.to_owned(),
        session: Some(SessionId::parse(&format!("chat_p{number:07}"))?),
    };
    match stage.ledger.accept_call(call).await? {
        Accepted::New(_) => Ok(stage.ledger.lease_call(engine, LEASE, &agent, &id).await?),
        Accepted::Known(_) | Accepted::Conflict => Ok(None),
    }
}

/// The refund that a prefilled row made.
fn object(stage: &Stage, row: &OpenRow, number: u64) -> Result<ProviderObject, DemoError> {
    Ok(ProviderObject {
        id: ProviderRef::parse(&format!("re_p{number:07}"))?,
        operation: Some(row.id.clone()),
        payment: Some(row.resolved.payment.clone()),
        charge: None,
        amount_minor: row.arguments.money.minor(),
        currency: row.arguments.money.currency(),
        status: ObjectStatus::Succeeded,
        created_at: stage.limits.clock.now(),
        failure_reason: None,
    })
}

fn outcome(lots: &mut ChaCha8Rng, object: ProviderObject) -> Outcome {
    let (class, status) = match lots.random_range(0..100) {
        0..90 => (OutcomeClass::Succeeded, Some(200)),
        90..95 => (OutcomeClass::ValidationFailure, Some(400)),
        95..98 => (OutcomeClass::ServerError, Some(500)),
        _ => (OutcomeClass::SideEffectUnknown, None),
    };
    Outcome {
        http_status: status,
        object: (class == OutcomeClass::Succeeded).then_some(object),
        ..Outcome::of(class)
    }
}

async fn send(
    stage: &Stage,
    call: &LeasedCall,
    id: &OperationId,
    outcome: Outcome,
) -> Result<(), DemoError> {
    if let Drive::Mine(_) = stage.ledger.drive(id, call, LEASE).await?
        && stage.ledger.authorise(id, call).await?.is_ok()
    {
        let finished = Event::Finished {
            attempt: 1,
            outcome,
            taken: false,
        };
        // A refusal would mean that somebody else had ended the attempt; nobody else is here.
        let _ = stage.ledger.apply(id, finished).await?;
    }
    Ok(())
}
