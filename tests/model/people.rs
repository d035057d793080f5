//! What people do, and what the provider's lists and events tell: looks, decisions, lookups that take
//! time, the reconciler, webhooks, typed ids, the sweep.

use crate::events::{Ask, What, person};
use crate::guards::Guard;
use crate::model::{Do, How, Protocol};
use crate::promises::{self, Law};
use crate::world::{Fate, Look, Mark, Reader, Reading, Thing, Tick, World};

/// The row that an object's event is matched with.
pub fn told(mark: Mark) -> u8 {
    match mark {
        Mark::Row(r) | Mark::OtherAmount(r) | Mark::Unmarked(r) => r,
        Mark::Foreign => 0,
    }
}

const HOWS: [How; 3] = [How::Complete, How::Partial, How::Unreachable];

impl Protocol {
    pub fn people_actions(&self, world: &World, out: &mut Vec<Do>) {
        for (n, object) in (0..).zip(&world.objects) {
            if world.left.webhooks > 0 && usize::from(told(object.mark)) < world.rows.len() {
                out.push(Do::Webhook(n, object.fate));
                out.extend(object.was.map(|was| Do::Webhook(n, was)));
            }
        }
        for r in world.row_numbers() {
            self.row_actions(world, r, out);
        }
        if world.reading.is_some() {
            out.extend(HOWS.map(Do::EndList));
        }
        for (p, look) in (0..).zip(&world.people) {
            if *look == Look::Away {
                continue;
            }
            out.extend(self.scope.whats.iter().map(|what| Do::Decide(p, *what)));
        }
    }

    fn row_actions(&self, world: &World, r: u8, out: &mut Vec<Do>) {
        let face = self.face(world, r);
        if world.rows[usize::from(r)].driver.is_none() && face.in_flight > 0 {
            out.push(Do::Interrupt(r));
        }
        out.push(Do::Sweep(r));
        if face.awaits_fetch {
            out.extend(HOWS.map(|how| Do::FetchTyped(r, how)));
        }
        if world.left.lookups > 0 && world.reading.is_none() && face.moved() {
            out.extend([Do::BeginList(r), Do::BeginReconcile(r)]);
        }
        if world.left.looks > 0 && !self.scope.whats.is_empty() && face.moved() {
            for (p, look) in (0..).zip(&world.people) {
                if *look == Look::Away {
                    out.push(Do::Look(p, r));
                }
            }
        }
    }

    // --- lists --------------------------------------------------------------------------------------

    /// Everything on the payment.
    pub fn list(world: &World) -> Vec<Thing> {
        world.object_numbers().map(|id| world.thing(id)).collect()
    }

    /// What a list that began at `began` and held `list` tells, once it ends `how`.
    pub fn listing(&self, by: Reader, began: Tick, list: Vec<Thing>, how: How) -> Ask {
        match how {
            How::Complete => Ask::Listed {
                by,
                began,
                complete: true,
                list,
            },
            // The part that was read had nothing of ours on it.
            How::Partial => Ask::Listed {
                by,
                began,
                complete: self.off(Guard::CompleteList),
                list: Vec::new(),
            },
            How::Unreachable => Ask::Unanswered { by },
        }
    }

    pub fn begin_list(world: &mut World, row: u8, by: Reader) {
        world.left.lookups -= 1;
        world.reading = Some(Reading {
            row,
            began: world.now,
            by,
            list: Self::list(world),
        });
    }

    pub fn end_list(&self, world: &mut World, how: How) -> Option<()> {
        let reading = world.reading.take()?;
        let ask = self.listing(reading.by, reading.began, reading.list, how);
        self.apply(world, reading.row, &ask).ok()?;
        Some(())
    }

    /// The provider answers about an id that was typed unseen, or still does not.
    pub fn fetch_typed(&self, world: &mut World, r: u8, how: How) -> Option<()> {
        let op = self.op(world, r);
        let id = op
            .awaits_fetch()?
            .as_str()
            .trim_start_matches("re_")
            .to_owned();
        let id: u8 = id.parse().ok()?;
        let exists = usize::from(id) < world.objects.len();
        let found = match how {
            How::Unreachable => return None,
            How::Complete => exists.then(|| world.thing(id)),
            // There is no such object.
            How::Partial if exists => return None,
            How::Partial => None,
        };
        self.apply(world, r, &Ask::Fetched(found)).ok()?;
        Some(())
    }

    // --- people -------------------------------------------------------------------------------------

    pub fn decide(&self, world: &mut World, p: u8, what: What) -> Option<()> {
        let look = world.people[usize::from(p)];
        let (r, fresh, blind) = match look {
            Look::Away => return None,
            Look::Fresh(r) => (r, true, None),
            Look::Stale(r, blind) => (r, false, blind),
        };
        let what = Self::typed(world, what)?;
        let by_the_same = self
            .op(world, r)
            .row
            .proposal
            .as_ref()
            .is_some_and(|waiting| what == What::Approve && waiting.by == person(p).name);
        if let Some(seen) = blind {
            // Decided on a copy, and written over whatever is there.
            let ask = Ask::Decided {
                by: p,
                fresh: true,
                what,
            };
            let turn = self.book.ask(seen, &ask, world.now).ok()?;
            self.write(world, r, &ask, &turn);
        } else {
            let ask = Ask::Decided { by: p, fresh, what };
            self.apply(world, r, &ask).ok()?;
        }
        if !fresh && blind.is_none() {
            promises::fault(self, &mut world.broken, Law::DecidedAsSeen);
        }
        if by_the_same {
            promises::fault(self, &mut world.broken, Law::TwoPeople);
        }
        world.people[usize::from(p)] = Look::Away;
        Some(())
    }

    /// A typed id as the provider has it now.
    fn typed(world: &World, what: What) -> Option<What> {
        match what {
            What::SucceededSeen(thing) => {
                let found = usize::from(thing.id) < world.objects.len();
                found.then(|| What::SucceededSeen(world.thing(thing.id)))
            }
            other => Some(other),
        }
    }
}

/// Whether the provider has, or had, a refund of ours for row `r` that went through.
pub fn went_through(world: &World, r: u8) -> bool {
    let through =
        |o: &&crate::world::Object| o.fate == Fate::Succeeded || o.was == Some(Fate::Succeeded);
    let ours = |o: &&crate::world::Object| o.mark == Mark::Row(r);
    world.objects.iter().filter(ours).any(|o| through(&o))
}

/// Whether a refund that one of our requests made stands.
pub fn stands(world: &World, r: u8) -> bool {
    world.effects(r).any(|o| o.fate != Fate::Lost)
}
