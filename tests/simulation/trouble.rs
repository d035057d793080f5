//! Phase one of a seed: agents ask, people meddle, and everything goes wrong that the seed has.

use std::time::Duration;

use rand::Rng;

use crate::core::{Fate, lock};
use crate::options::{Kind, between, chance, dice, pick};
use crate::people::{self, Asked, Hands};
use crate::world::{World, tool};

/// Something that is planned for a moment.
#[derive(Clone, Copy, Debug)]
enum Planned {
    Ask,
    Meddle(u32),
    Duel(u32),
    Eager(u32),
    Fate(usize, u64, Fate),
    Unreachable(Duration),
    Blackout(Duration),
    Step(usize, i64),
    PauseTool(Duration),
    SecondEngine,
}

/// Everything that is planned, in order. Each kind draws for itself, so that taking one away leaves the
/// others as they were.
fn plan(world: &World) -> Vec<(Duration, Planned)> {
    let options = &world.core.options;
    let seed = options.seed;
    let end = u64::try_from(options.trouble.as_millis()).unwrap_or(0);
    let mut all = Vec::new();
    let mut add = |kind: Option<Kind>, most: u32, make: &mut dyn FnMut(&mut _, u32) -> Planned| {
        let name = kind.map_or("asks", Kind::name);
        let mut d = dice(seed, &format!("plan {name}"));
        if kind.is_some_and(|k| !options.has(k)) {
            return;
        }
        let many = d.random_range(1..=most);
        for n in 0..many {
            let at = between(&mut d, 0, end);
            let planned = make(&mut d, n);
            all.push((at, planned));
        }
    };
    let asks = u32::try_from(options.asks).unwrap_or(1);
    add(None, asks, &mut |_, _| Planned::Ask);
    add(Some(Kind::Meddle), 8, &mut |_, n| Planned::Meddle(n));
    add(Some(Kind::Duel), 3, &mut |_, n| Planned::Duel(n));
    add(Some(Kind::Eager), 2, &mut |_, n| Planned::Eager(n));
    add(Some(Kind::Crash), 3, &mut |d, _| {
        Planned::Fate(pick(d, &[0, 0, 1]), d.random_range(1..60), Fate::Dies)
    });
    let lease = u64::try_from(options.engine.lease.as_millis()).unwrap_or(0);
    add(Some(Kind::Pause), 3, &mut |d, _| {
        let length = between(d, 500, lease * 5 / 2);
        Planned::Fate(
            pick(d, &[0, 0, 1]),
            d.random_range(1..60),
            Fate::Stops(length),
        )
    });
    let life = options.terms.profile.retention;
    add(Some(Kind::LongPause), 1, &mut |d, _| {
        let length = life + Duration::from_secs(60);
        Planned::Fate(0, d.random_range(1..60), Fate::Stops(length))
    });
    add(Some(Kind::Unreachable), 2, &mut |d, _| {
        Planned::Unreachable(between(d, 1000, 200_000))
    });
    add(Some(Kind::Blackout), 1, &mut |d, _| {
        Planned::Blackout(between(d, 60_000, 120_000))
    });
    for (kind, steps) in [
        (Kind::StepSmall, [-90, 90]),
        (Kind::StepHour, [-3600, 3600]),
        (Kind::StepDay, [25 * 3600, 25 * 3600]),
    ] {
        add(Some(kind), 2, &mut |d, _| {
            Planned::Step(d.random_range(0..3), pick(d, &steps))
        });
    }
    add(Some(Kind::ToolPause), 1, &mut |d, _| {
        Planned::PauseTool(between(d, 1000, 60_000))
    });
    add(Some(Kind::TwoEngines), 1, &mut |_, _| Planned::SecondEngine);
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Lives through the trouble.
pub fn live(world: &mut World, hands: &Hands) {
    let mut past: Vec<Asked> = Vec::new();
    let mut d = dice(world.core.options.seed, "live");
    world.start_engine(0);
    for (at, planned) in plan(world) {
        world.run_until(at);
        if world.core.violation().is_some() {
            return;
        }
        carry_out(world, hands, planned, &mut past, &mut d);
    }
    let mut end = world.core.options.trouble;
    if world.core.options.has(Kind::LongPause) {
        end += world.core.options.terms.profile.retention + Duration::from_secs(90);
    }
    world.run_until(end);
}

fn carry_out(
    world: &mut World,
    hands: &Hands,
    planned: Planned,
    past: &mut Vec<Asked>,
    d: &mut rand_chacha::ChaCha8Rng,
) {
    let seed = world.core.options.seed;
    let room = world.desk.room.runtime.handle().clone();
    let hands = hands.clone();
    match planned {
        Planned::Ask => {
            let asked = people::next_ask(d, &world.core.options, past, &hands.judge);
            past.push(asked.clone());
            room.spawn(people::ask(hands.clone(), asked.clone()));
            if world.core.options.has(Kind::AskAgain) && chance(d, 25) {
                // The same again at the same time, as another call.
                let mut twin = asked;
                twin.call = format!("toolu_{:02}", past.len());
                past.push(twin.clone());
                room.spawn(people::ask(hands, twin));
            }
        }
        Planned::Meddle(n) => {
            room.spawn(people::meddle(hands, dice(seed, &format!("meddle {n}"))));
        }
        Planned::Duel(n) => {
            room.spawn(people::duel(hands, dice(seed, &format!("duel {n}"))));
        }
        Planned::Eager(n) => {
            room.spawn(people::eager(hands, dice(seed, &format!("eager {n}"))));
        }
        Planned::Fate(n, steps, fate) => world.doom(n, steps, fate),
        Planned::Unreachable(length) => {
            world
                .core
                .note(format!("nobody reaches the provider for {length:?}"));
            *lock(&world.ground.wire.unreachable) = world.core.now() + length;
        }
        Planned::Blackout(length) => {
            let what = format!("no refund request arrives for {length:?}");
            world.core.note(what);
            *lock(&world.ground.wire.blackout) = world.core.now() + length;
        }
        Planned::Step(machine, seconds) => world.step_clock(machine, seconds),
        Planned::PauseTool(length) => {
            room.spawn(async move {
                let lea = people::person(&hands, "lea");
                let _ = hands.gate.pause(&tool(), &lea, "a look at the books").await;
                hands.clock.sleep(length).await;
                let _ = hands.gate.resume(&tool(), &lea).await;
            });
        }
        Planned::SecondEngine => {
            if !world.has_engine(1) {
                world.start_engine(1);
            }
        }
    }
}
