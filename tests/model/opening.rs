//! Get, check, open: how a call gets its row or its answer, as `engine::worker` and the ledger do it.

use samekey::domain::arguments::Arguments;
use samekey::domain::opening::{self, Got, Resolved};
use samekey::domain::operation::OperationRow;
use samekey::domain::tool_call::RefundArguments;

use crate::builders::{money, op_id, payment_of, usd};
use crate::guards::Guard;
use crate::model::Protocol;
use crate::world::{At, CallAt, Engine, Fate, Mark, Row, World};

impl Protocol {
    /// The rows of the order, newest first.
    fn order(&self, world: &World) -> Vec<OperationRow> {
        let rows = world.rows.iter().rev();
        rows.map(|r| self.book.op(r.op).row.clone()).collect()
    }

    fn arguments(world: &World, call: u8) -> Arguments {
        Arguments::from(RefundArguments {
            order: "4417".parse().expect("an order"),
            money: money(i64::from(world.calls[usize::from(call)].amount)),
            payment: None,
            charge: None,
            reason: None,
            after: None,
        })
    }

    fn got(&self, world: &World, call: u8) -> Got {
        if self.off(Guard::GetFirst) {
            return Got::Nothing;
        }
        let ids: Vec<_> = world.rows.iter().map(|r| r.op).collect();
        let amount = world.calls[usize::from(call)].amount;
        self.book.got((ids, amount), || {
            let args = Self::arguments(world, call);
            let payment = payment_of("4417");
            let rows = self.order(world);
            opening::get(&rows, &args, Some(&payment), &self.scope.terms.policy)
        })
    }

    /// Step 3.
    pub fn get(&self, world: &mut World, e: u8, c: u8) {
        match self.got(world, c) {
            Got::Nothing => {
                world.calls[usize::from(c)].state = CallAt::Taken(e);
                world.engines[usize::from(e)] = Engine {
                    at: At::Got0,
                    call: c,
                    row: 0,
                };
            }
            got => self.placed(world, c, &got),
        }
    }

    /// The call has its row, or its answer.
    fn placed(&self, world: &mut World, c: u8, got: &Got) {
        match got {
            Got::Row(id) => {
                let number = (0..)
                    .zip(&world.rows)
                    .find(|(n, _)| *id == op_id(u128::from(*n) + 1_u128));
                world.calls[usize::from(c)].row = number.map(|(n, _): (u8, _)| n);
                world.calls[usize::from(c)].state = CallAt::Queued;
            }
            Got::Answer(result) => self.tell(world, c, None, result),
            Got::Nothing => {}
        }
    }

    /// Step 4: what the provider has, and how the order's rows are now.
    pub fn read_provider(&self, world: &mut World, e: u8) {
        let refunds = (0..)
            .zip(&world.objects)
            .filter(|(_, o)| o.fate != Fate::Lost);
        let refunded = refunds.fold(0_u16, |mask, (n, _): (u16, _)| mask | 1 << n);
        let mark = Self::mark(world);
        world.engines[usize::from(e)].at = At::Read { refunded, mark };
    }

    fn mark(world: &World) -> u32 {
        let of = |sum: u32, r: &Row| sum.wrapping_mul(31_337).wrapping_add(r.op.0 + 1);
        world.rows.iter().fold(0, of)
    }

    /// Step 5: get and check once more, then one insert.
    pub fn open(&self, world: &mut World, e: u8) {
        let engine = world.engines[usize::from(e)];
        let At::Read { refunded, mark } = engine.at else {
            return;
        };
        let c = engine.call;
        world.engines[usize::from(e)] = Engine::IDLE;
        if world.calls[usize::from(c)].state != CallAt::Taken(e) {
            return;
        }
        let got = self.got(world, c);
        if got != Got::Nothing {
            return self.placed(world, c, &got);
        }
        // The order changed since the provider was read: again from step 3.
        world.calls[usize::from(c)].state = CallAt::Queued;
        if Self::mark(world) != mark && !self.off(Guard::MarkUnchanged) {
            return;
        }
        let args = Self::arguments(world, c);
        let policy = &self.scope.terms.policy;
        let mut rows = self.order(world);
        if self.off(Guard::OpenRowsCount) {
            rows.retain(|r| r.status.is_closed());
        }
        let resolved = self.resolved(world, refunded);
        if let Err(result) = opening::check(
            &rows,
            &args,
            Some(&resolved),
            policy,
            opening::Opened::default(),
        ) {
            return self.tell(world, c, None, &result);
        }
        let held = opening::needs_approval(policy, &args);
        let number = u8::try_from(world.rows.len()).expect("few rows");
        let amount = world.calls[usize::from(c)].amount;
        world.rows.push(Row {
            op: self.book.open(number, amount, held),
            driver: None,
            sent: 0,
            closings: 0,
            by_two: false,
        });
        world.calls[usize::from(c)].row = Some(number);
    }

    fn resolved(&self, world: &World, refunded: u16) -> Resolved {
        let seen = (0..)
            .zip(&world.objects)
            .filter(|(n, _): &(u16, _)| refunded >> n & 1 == 1);
        let (mut sum, mut refunds) = (0, Vec::new());
        for (n, object) in seen {
            sum += match object.mark {
                Mark::Row(r) | Mark::OtherAmount(r) | Mark::Unmarked(r) => {
                    self.op(world, r).row.minor().expect("money")
                }
                Mark::Foreign => 0,
            };
            refunds.push(format!("re_{n}").parse().expect("a name"));
        }
        Resolved {
            payment: payment_of("4417"),
            charge: None,
            currency: usd(),
            captured_minor: i64::from(self.scope.captured),
            refunded_minor: sum,
            refunds,
        }
    }
}
