//! What an engine does with a call, as `engine::drive` and the ledger's transactions do it (how a call gets
//! its row stands in `opening`): drive, authorise, check again, write, record, answer; and what happens to
//! engines: their lease runs out, they crash, they stand still and go on.

use samekey::domain::answer;
use samekey::domain::policy::{ProviderKind, Words};
use samekey::domain::since;
use samekey::domain::tool_call::{RejectClass, ToolResult};
use samekey::domain::transition::{Next, Refusal};

use crate::events::Ask;
use crate::guards::Guard;
use crate::model::{Do, How, Protocol};
use crate::promises::{self, Law};
use crate::rows::instant;
use crate::world::{At, CallAt, Engine, Reader, Reply, Said, Wire, WireAt, World};

/// What the call hears, in one word.
fn said(result: &ToolResult) -> Said {
    match result {
        ToolResult::Done { repeat: true, .. } => Said::Repeat,
        ToolResult::Done { .. } => Said::Refunded,
        ToolResult::Unconfirmed { .. } => Said::Unconfirmed,
        ToolResult::Checking { .. } => Said::Checking,
        ToolResult::Held { .. } => Said::Held,
        ToolResult::Failed { .. } => Said::Failed,
        ToolResult::Rejected {
            class: RejectClass::OrderBusy,
            ..
        } => Said::Busy,
        ToolResult::Rejected { .. } => Said::Rejected,
    }
}

impl Protocol {
    pub fn engine_actions(&self, world: &World, out: &mut Vec<Do>) {
        for (c, call) in (0..).zip(&world.calls) {
            if call.state == CallAt::Ahead {
                out.push(Do::Call(c));
                // Calls to come are alike up to their amounts; they come in order.
                break;
            }
        }
        for (e, engine) in (0..).zip(&world.engines) {
            // Engines are alike: the second one starts once the first is busy or gone.
            let first = world.engines[0] == Engine::IDLE && e > 0;
            if engine.at == At::Idle {
                if !first {
                    self.idle_actions(world, e, out);
                }
                continue;
            }
            self.busy_actions(world, e, *engine, out);
            if world.left.crashes > 0 {
                out.push(Do::Crash(e));
                if world.holds(e) || world.calls[usize::from(engine.call)].state == CallAt::Taken(e)
                {
                    out.push(Do::LeaseRunsOut(e));
                }
            }
        }
    }

    fn idle_actions(&self, world: &World, e: u8, out: &mut Vec<Do>) {
        for (c, call) in (0..).zip(&world.calls) {
            match (call.state, call.row) {
                (CallAt::Queued, None) => out.push(Do::Get(e, c)),
                (CallAt::Queued, Some(_)) => out.push(Do::Drive(e, c)),
                (CallAt::Joined, Some(r)) if world.rows[usize::from(r)].driver.is_none() => {
                    out.push(Do::Drive(e, c));
                }
                _ => {}
            }
        }
    }

    fn busy_actions(&self, world: &World, e: u8, engine: Engine, out: &mut Vec<Do>) {
        match engine.at {
            At::Idle => {}
            At::Got0 => out.push(Do::ReadProvider(e)),
            At::Read { .. } => out.push(Do::Open(e)),
            At::Leased => {
                out.push(Do::Authorise(e));
                out.push(Do::GiveUp(e));
                let unsent = self.face(world, engine.row).attempts == 0;
                if unsent && !world.objects.is_empty() {
                    out.push(Do::NoRoom(e));
                }
                if self.off(Guard::CommitBeforeSend) {
                    out.push(Do::AuthoriseUncommitted(e));
                }
                if self.must_look(world, engine.row) {
                    out.extend(
                        [How::Complete, How::Partial, How::Unreachable]
                            .map(|how| Do::EngineLookup(e, how)),
                    );
                }
            }
            At::Authorised { .. } => out.push(Do::Recheck(e)),
            At::Cleared { .. } => out.push(Do::Send(e)),
            At::Waiting { .. } => {
                out.push(Do::Lose(e));
                let replied =
                    |w: &Wire| w.listener == Some(e) && matches!(w.at, WireAt::Replied(_));
                if world.wires.iter().any(replied) {
                    out.push(Do::Read(e));
                }
            }
            At::Result { .. } => out.push(Do::Record(e)),
            At::Done => out.push(Do::Answer(e)),
        }
    }

    fn must_look(&self, world: &World, row: u8) -> bool {
        let face = self.face(world, row);
        let searchable =
            self.scope.terms.profile.kind == ProviderKind::Lookup && !self.off(Guard::SearchFirst);
        face.needs_lookup || (searchable && face.undetermined)
    }

    // --- drive --------------------------------------------------------------------------------------

    pub fn drive(&self, world: &mut World, e: u8, c: u8) {
        let r = world.calls[usize::from(c)].row.expect("driven with a row");
        if !self.drivable(world, r) {
            let result = answer::of(&self.op(world, r).row, Words::REFUND);
            return self.tell(world, c, Some(r), &result);
        }
        if world.rows[usize::from(r)].driver.is_some() {
            world.calls[usize::from(c)].state = CallAt::Joined;
            return;
        }
        if self.face(world, r).in_flight > 0 {
            // Its driver is gone: what it sent has no outcome of its own.
            let _ = self.apply(world, r, &Ask::Interrupted);
            if !self.drivable(world, r) {
                return;
            }
        }
        world.rows[usize::from(r)].driver = Some(e);
        world.calls[usize::from(c)].state = CallAt::Taken(e);
        world.engines[usize::from(e)] = Engine {
            at: At::Leased,
            call: c,
            row: r,
        };
    }

    /// Read again before the first send, the order has no room any more.
    pub fn no_room(&self, world: &mut World, e: u8) -> Option<()> {
        let row = world.engines[usize::from(e)].row;
        self.apply(world, row, &Ask::NoLongerFits).ok()?;
        world.engines[usize::from(e)].at = At::Done;
        Some(())
    }

    pub fn authorise(&self, world: &mut World, e: u8) -> Option<()> {
        let engine = world.engines[usize::from(e)];
        let r = engine.row;
        let contradicted = world.rows.iter().any(|r| self.book.face(r.op).contradicted);
        let ask = Ask::Authorise {
            call: engine.call,
            lease: world.holds(e),
            contradicted,
        };
        let at = match self.apply(world, r, &ask) {
            Ok(turn) => match turn.next {
                Next::Send { attempt } => At::Authorised {
                    attempt: u8::try_from(attempt).expect("few attempts"),
                    since: world.now,
                },
                _ => At::Done,
            },
            Err(Refusal::LookupFirst) => return None,
            Err(Refusal::LeaseLost | Refusal::InFlight) => {
                self.let_go(world, e);
                return Some(());
            }
            Err(Refusal::KeyExpired | Refusal::OperationSpent) => {
                let _ = self.apply(world, r, &Ask::Swept);
                At::Done
            }
            Err(_) => At::Done,
        };
        world.engines[usize::from(e)].at = at;
        Some(())
    }

    /// The ledger did not take the authorise, and the engine does not look.
    pub fn authorise_uncommitted(&self, world: &mut World, e: u8) {
        let attempt = self
            .op(world, world.engines[usize::from(e)].row)
            .row
            .attempts
            + 1;
        world.engines[usize::from(e)].at = At::Authorised {
            attempt: u8::try_from(attempt).expect("few attempts"),
            since: world.now,
        };
    }

    /// The last check before the first byte (I9, I10, I25), on a clock that runs in its sleep too.
    pub fn recheck(&self, world: &mut World, e: u8) {
        let engine = world.engines[usize::from(e)];
        let At::Authorised {
            attempt,
            since: then,
        } = engine.at
        else {
            return;
        };
        let profile = &self.scope.terms.profile;
        let now = instant(world.now);
        let late = since(instant(then), now) > profile.send_window;
        let deadline = self.op(world, engine.row).row.key_expires_at;
        let expired = deadline.is_none_or(|deadline| now >= deadline);
        let unguarded = self.off(Guard::SendTimeCheck)
            || self.off(Guard::CommitBeforeSend)
            || (self.off(Guard::KeyDeadline) && !late && world.holds(e))
            || (self.off(Guard::LeaseEpoch) && !late && !expired);
        world.engines[usize::from(e)].at = if unguarded || !(late || expired || !world.holds(e)) {
            At::Cleared {
                attempt,
                since: then,
            }
        } else {
            let reply = Reply::NotSent;
            At::Result { attempt, reply }
        };
    }

    /// The first byte.
    pub fn send(&self, world: &mut World, e: u8) {
        let engine = world.engines[usize::from(e)];
        let At::Cleared {
            attempt,
            since: then,
        } = engine.at
        else {
            return;
        };
        let r = engine.row;
        promises::judge_send(self, world, r, attempt, then);
        let key = if self.off(Guard::SameKey) {
            r * 8 + attempt - 1
        } else {
            r * 8
        };
        world.rows[usize::from(r)].sent += 1;
        world.wires.push(Wire {
            row: r,
            attempt,
            key,
            sent: world.now,
            listener: Some(e),
            twin_in: false,
            at: WireAt::Underway,
        });
        world.engines[usize::from(e)].at = At::Waiting { attempt };
    }

    pub fn read(&self, world: &mut World, e: u8) {
        let mine = world.wires.iter().position(|w| w.listener == Some(e));
        let wire = world.wires.remove(mine.expect("a wire that was answered"));
        if let WireAt::Replied(reply) = wire.at {
            let attempt = wire.attempt;
            world.engines[usize::from(e)].at = At::Result { attempt, reply };
        }
    }

    /// Timeout, lost connection, or an answer that breaks off. The request goes on without us.
    pub fn lose(&self, world: &mut World, e: u8) {
        let At::Waiting { attempt } = world.engines[usize::from(e)].at else {
            return;
        };
        Self::hang_up(world, e);
        let reply = Reply::Nothing;
        world.engines[usize::from(e)].at = At::Result { attempt, reply };
    }

    fn hang_up(world: &mut World, e: u8) {
        for wire in &mut world.wires {
            if wire.listener == Some(e) {
                wire.listener = None;
            }
        }
    }

    pub fn record(&self, world: &mut World, e: u8) {
        let engine = world.engines[usize::from(e)];
        let At::Result { attempt, reply } = engine.at else {
            return;
        };
        match self.apply(world, engine.row, &Ask::Finished { attempt, reply }) {
            Ok(turn) => {
                world.engines[usize::from(e)].at = match turn.next {
                    Next::Retry { .. } | Next::Lookup => At::Leased,
                    _ => At::Done,
                };
            }
            // Recorded by whoever took over.
            Err(_) => self.let_go(world, e),
        }
    }

    pub fn engine_lookup(&self, world: &mut World, e: u8, how: How) -> Option<()> {
        let r = world.engines[usize::from(e)].row;
        let ask = self.listing(Reader::Engine, world.now, Self::list(world), how);
        self.apply(world, r, &ask).ok()?;
        world.engines[usize::from(e)].at = At::Done;
        Some(())
    }

    /// Ends the call with what its row says now; whoever joined hears the same.
    pub fn answer(&self, world: &mut World, e: u8) {
        let Engine { call, row, .. } = world.engines[usize::from(e)];
        if !world.holds(e) {
            return self.let_go(world, e);
        }
        let waits = |state| matches!(state, CallAt::Queued | CallAt::Taken(_));
        let others = (0..)
            .zip(&world.calls)
            .any(|(c, other): (u8, _)| c != call && other.row == Some(row) && waits(other.state));
        if !others {
            let _ = self.apply(world, row, &Ask::NeverSent);
        }
        let result = answer::of(&self.op(world, row).row, Words::REFUND);
        for c in (0..).take(world.calls.len()) {
            let joined = world.calls[usize::from(c)].row == Some(row)
                && world.calls[usize::from(c)].state == CallAt::Joined;
            if c == call || joined {
                self.tell(world, c, Some(row), &result);
            }
        }
        self.let_go(world, e);
    }

    pub fn tell(&self, world: &mut World, call: u8, row: Option<u8>, result: &ToolResult) {
        promises::judge_answer(self, world, row, result);
        let call = &mut world.calls[usize::from(call)];
        if matches!(call.state, CallAt::Answered(_)) {
            promises::fault(self, &mut world.broken, Law::AnsweredOnce);
        }
        call.state = CallAt::Answered(said(result));
    }

    /// The engine has no job any more; what it held is free.
    fn let_go(&self, world: &mut World, e: u8) {
        self.lease_runs_out_of(world, e);
        Self::hang_up(world, e);
        world.engines[usize::from(e)] = Engine::IDLE;
    }

    fn lease_runs_out_of(&self, world: &mut World, e: u8) {
        for row in &mut world.rows {
            if row.driver == Some(e) {
                row.driver = None;
            }
        }
        for call in &mut world.calls {
            if call.state == CallAt::Taken(e) {
                call.state = CallAt::Queued;
            }
        }
    }

    pub fn lease_runs_out(&self, world: &mut World, e: u8) {
        world.left.crashes -= 1;
        self.lease_runs_out_of(world, e);
    }

    pub fn crash(&self, world: &mut World, e: u8) {
        world.left.crashes -= 1;
        self.let_go(world, e);
    }
}
