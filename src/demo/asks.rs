//! The tool calls that are made for a customer's intents.
//!
//! Owns: why an agent asks, its calls' ids and sessions, how often it asks again. Never: decides what
//! a customer wants (`customers.rs`) or how arguments are spelled (`spelling.rs`). Tests:
//! `customers.rs`.

use rand::Rng as _;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand_chacha::ChaCha8Rng;

use super::spelling;
use crate::domain::ids::{AgentName, CallId, OrderId, SessionId};
use crate::domain::text::TextError;

/// The agents of the shop; a customer's second agent is the next one (R3 names the first).
const AGENTS: [&str; 3] = ["northwind", "harbour", "lantern"];
/// Usual amounts, minor units. Small against what an order's charge captured, so that the order in
/// which two clients spend it never matters.
const AMOUNTS: [i64; 8] = [500, 1290, 1900, 2450, 3800, 4999, 6000, 8975];

/// Why an agent makes a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The customer asks for something new.
    Wanted,
    /// The model got an argument wrong; the right call follows.
    Slip,
    /// The customer writes "try again" (R11).
    TryAgain,
    /// The answer never reached the model, so it asks as if for the first time (R62, F30, F33).
    AnswerLost,
    /// A second agent is on the same conversation and asks while the first request is held.
    Meanwhile,
}

/// One tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub call: CallId,
    pub agent: AgentName,
    pub session: SessionId,
    /// As the model wrote it: any order of names, any spacing, either spelling of the amount.
    pub arguments: String,
    /// Index into the customer's intents.
    pub intent: usize,
    pub cause: Cause,
    /// A further equal refund: the call names the refund before it with `after`.
    pub names_previous: bool,
}

fn session(lots: &mut ChaCha8Rng) -> Result<SessionId, TextError> {
    SessionId::parse(&format!("chat_{:08x}", lots.random::<u32>()))
}

/// Writes the calls of one customer's agents.
pub(super) struct Writer {
    agent: usize,
    session: SessionId,
    order: OrderId,
    run: u32,
    lots: ChaCha8Rng,
    pub asks: Vec<Ask>,
}

impl Writer {
    /// For customer number `index`; `run` as in [`super::customers::Customers`].
    pub fn new(
        index: u64,
        order: OrderId,
        run: u32,
        mut lots: ChaCha8Rng,
    ) -> Result<Self, TextError> {
        Ok(Self {
            agent: usize::try_from(index).unwrap_or(0) % AGENTS.len(),
            session: session(&mut lots)?,
            order,
            run,
            lots,
            asks: Vec::new(),
        })
    }

    /// The latest call names the refund before it.
    pub fn name_previous(&mut self) {
        if let Some(ask) = self.asks.last_mut() {
            ask.names_previous = true;
        }
    }

    /// Yes in so many of a hundred cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.lots.random_range(0..100) < percent
    }

    /// A usual amount, minor units.
    pub fn amount_other_than(&mut self, other: i64) -> i64 {
        let mut amounts = AMOUNTS;
        amounts.shuffle(&mut self.lots);
        amounts.into_iter().find(|a| *a != other).unwrap_or(1)
    }

    /// A call for an intent, with an id that no other call has.
    pub fn ask(&mut self, amount: i64, intent: usize, cause: Cause) -> Result<(), TextError> {
        let arguments = if cause == Cause::Slip {
            spelling::wrong(&mut self.lots, self.order.as_str(), amount)
        } else {
            spelling::right(&mut self.lots, self.order.as_str(), amount)
        };
        let agent = if cause == Cause::Meanwhile {
            self.agent.saturating_add(1)
        } else {
            self.agent
        };
        let agent = AGENTS[agent % AGENTS.len()];
        let call = self.call_id()?;
        self.asks.push(Ask {
            call,
            agent: AgentName::parse(agent)?,
            session: self.session.clone(),
            arguments,
            intent,
            cause,
            names_previous: false,
        });
        Ok(())
    }

    fn call_id(&mut self) -> Result<CallId, TextError> {
        let lot = self.lots.random::<u128>() >> 32;
        if self.run <= 1 {
            CallId::parse(&format!("toolu_{lot:024x}"))
        } else {
            CallId::parse(&format!("toolu_{lot:024x}_{}", self.run))
        }
    }

    /// A second agent's call for the first intent.
    pub fn meanwhile(&mut self, amount: i64) -> Result<(), TextError> {
        self.ask(amount, 0, Cause::Meanwhile)
    }

    /// Asking again. After an unclear answer customers insist; after a clear one only a lost answer
    /// makes the model ask again.
    pub fn repeats(&mut self, amount: i64, intent: usize, unclear: bool) -> Result<(), TextError> {
        let (percent, most) = if unclear { (65, 3) } else { (12, 1) };
        for _ in 0..most {
            if !self.chance(percent) {
                break;
            }
            let causes = [Cause::TryAgain, Cause::AnswerLost];
            let cause = match (unclear, causes.choose(&mut self.lots)) {
                (true, Some(Cause::TryAgain)) => Cause::TryAgain,
                (_, _) => Cause::AnswerLost,
            };
            // "Tomorrow's shift" is another conversation (R5).
            if self.chance(25) {
                self.session = session(&mut self.lots)?;
            }
            self.ask(amount, intent, cause)?;
        }
        Ok(())
    }
}
