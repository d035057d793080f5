//! What the provider does, as Stripe's documentation states it (S1–S9): a key's first result is saved,
//! 500 included, and replayed; refusals before execution are not saved; a running key answers 409; keys
//! are kept for the retention; a request ends within the stated time, whoever still listens.

use samekey::domain::later;

use crate::guards::Guard;
use crate::model::{Do, Door, End, Protocol};
use crate::rows::instant;
use crate::world::{Fate, Key, Mark, Object, Reply, Thing, WireAt, World};

impl Protocol {
    pub fn provider_actions(&self, world: &World, out: &mut Vec<Do>) {
        for (n, wire) in (0..).zip(&world.wires) {
            match wire.at {
                WireAt::Underway => {
                    out.push(Do::Vanish(n));
                    if world.left.copies > 0 {
                        out.push(Do::Copy(n));
                    }
                    for door in self.scope.doors {
                        // What is told before the key is looked up is told to first requests; others
                        // follow their key.
                        let refunded = world.objects.iter().any(|o| !o.by_us);
                        let told = *door != Door::AlreadyRefunded || refunded;
                        // What lets a request in lets its copies in.
                        let shared = !wire.twin_in || self.off(Guard::CopiesShareRefusal);
                        if *door == Door::In || (told && shared) {
                            out.push(Do::Arrive(n, *door));
                        }
                    }
                }
                WireAt::Running => {
                    out.extend(self.scope.ends.iter().map(|end| Do::Finish(n, *end)));
                }
                WireAt::Replied(_) => {}
            }
        }
        for (n, key) in (0..).zip(&world.keys) {
            let kept = later(instant(key.first_seen), self.scope.terms.profile.retention);
            if key.saved.is_some() && instant(world.now) >= kept {
                out.push(Do::Prune(n));
            }
        }
        for (n, object) in (0..).zip(&world.objects) {
            if !self.scope.fates {
                break;
            }
            match object.fate {
                Fate::Pending => {
                    out.extend([Do::Become(n, Fate::Succeeded), Do::Become(n, Fate::Lost)]);
                }
                Fate::Succeeded => out.push(Do::Become(n, Fate::Lost)),
                Fate::Lost => {}
            }
        }
        if world.left.strangers > 0 {
            out.extend(self.scope.strangers.iter().map(|mark| Do::Stranger(*mark)));
        }
    }

    /// A request reaches the provider twice.
    pub fn copy(&self, world: &mut World, n: u8) {
        world.left.copies -= 1;
        let mut copy = world.wires[usize::from(n)];
        copy.listener = None;
        world.wires.push(copy);
    }

    pub fn arrive(&self, world: &mut World, n: u8, door: Door) {
        let wire = world.wires[usize::from(n)];
        if door == Door::In {
            for twin in &mut world.wires {
                let same = (twin.row, twin.attempt) == (wire.row, wire.attempt);
                twin.twin_in |= same && twin.at == WireAt::Underway;
            }
        }
        let known = world.key(wire.key).map(|k| world.keys[k].saved);
        let reply = match (door, known) {
            (Door::Limited, _) => Reply::Limited,
            (Door::Denied, _) => Reply::Denied,
            (Door::OtherParameters, _) => Reply::OtherParameters,
            (Door::In | Door::Invalid | Door::AlreadyRefunded, Some(None)) => Reply::Busy,
            (Door::In | Door::Invalid | Door::AlreadyRefunded, Some(Some(saved))) => saved,
            (Door::Invalid, None) => Reply::Invalid,
            (Door::AlreadyRefunded, None) => Reply::AlreadyRefunded,
            (Door::In, None) => {
                world.wires[usize::from(n)].at = WireAt::Running;
                if self.keyed() {
                    world.keys.push(Key {
                        number: wire.key,
                        first_seen: world.now,
                        saved: None,
                    });
                }
                return;
            }
        };
        world.wires[usize::from(n)].at = WireAt::Replied(reply);
        let unsaved = matches!(
            reply,
            Reply::Denied | Reply::Invalid | Reply::AlreadyRefunded
        );
        if unsaved && !self.off(Guard::CopiesShareRefusal) {
            // What refused a request refuses its copies.
            world.wires.retain(|w| {
                (w.row, w.attempt) != (wire.row, wire.attempt) || w.at != WireAt::Underway
            });
        }
    }

    pub fn finish(&self, world: &mut World, n: u8, end: End) {
        let wire = world.wires[usize::from(n)];
        let mut make = |fate| {
            let id = u8::try_from(world.objects.len()).expect("few objects");
            let mark = Mark::Row(wire.row);
            world.objects.push(Object {
                mark,
                fate,
                by_us: true,
                was: None,
            });
            Thing { id, mark, fate }
        };
        let reply = match end {
            End::Done => Reply::Object {
                thing: make(Fate::Succeeded),
                replayed: false,
            },
            End::Pending => Reply::Object {
                thing: make(Fate::Pending),
                replayed: false,
            },
            End::BrokenWithEffect => {
                make(Fate::Succeeded);
                Reply::Broken
            }
            End::BrokenWithout => Reply::Broken,
            End::Refused => Reply::Refused { replayed: false },
        };
        let saved = match reply {
            Reply::Object { thing, .. } => Reply::Object {
                thing,
                replayed: true,
            },
            Reply::Refused { .. } => Reply::Refused { replayed: true },
            other => other,
        };
        if let Some(key) = world.key(wire.key) {
            world.keys[key].saved = Some(saved);
        }
        world.wires[usize::from(n)].at = WireAt::Replied(reply);
    }

    /// Somebody else makes an object on the payment.
    pub fn stranger(&self, world: &mut World, mark: Mark) {
        world.left.strangers -= 1;
        world.objects.push(Object {
            mark,
            fate: Fate::Succeeded,
            by_us: false,
            was: None,
        });
    }
}
