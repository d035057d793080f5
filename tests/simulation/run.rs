//! One seed from beginning to end, many seeds on all cores, and what is printed of a failing one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::core::{Violation, lock};
use crate::options::{Guard, Kind, Options};
use crate::store::{Disk, Store};
use crate::world::World;
use crate::{healing, people, trouble};

/// Events shown of a failing seed.
const SHOWN: usize = 50;

/// How a seed ended.
pub struct Ended {
    pub options: Options,
    pub violation: Option<Violation>,
    pub log: Vec<String>,
    pub seen: BTreeMap<&'static str, u64>,
}

/// Lives through one seed.
pub fn seed(store: &Arc<Store>, options: Options, disk: Disk) -> Ended {
    let mut world = World::new(options, store, disk);
    let hands = people::hands(&world);
    *lock(&world.ground.wire.people) = Some(hands.clone());
    trouble::live(&mut world, &hands);
    if world.core.violation().is_none() {
        healing::heal(&mut world, &hands);
    }
    // They hold the world that holds them.
    lock(&world.ground.wire.people).take();
    Ended {
        options: world.core.options.clone(),
        violation: world.core.violation(),
        log: world.core.log(),
        seen: world.core.seen(),
    }
}

/// A failing seed with as few kinds of faults as still break the same law.
pub fn shrink(store: &Arc<Store>, failed: Ended) -> Ended {
    let law = failed.violation.as_ref().map(|v| v.law);
    let mut best = failed;
    loop {
        let mut smaller = None;
        for kind in best.options.kinds.clone() {
            let mut off = best.options.off.clone();
            off.insert(kind);
            let options = Options::derive(best.options.seed, &off, best.options.without);
            let ended = seed(store, options, Disk::Memory);
            if ended.violation.as_ref().map(|v| v.law) == law {
                smaller = Some(ended);
                break;
            }
        }
        match smaller {
            Some(ended) => best = ended,
            None => return best,
        }
    }
}

/// Everything a reader needs of a failing seed, and the one command that lives it again.
pub fn report(ended: &Ended) -> String {
    let mut text = String::new();
    let seed = ended.options.seed;
    let violation = ended.violation.as_ref();
    let (law, what) = violation.map_or(("none", ""), |v| (v.law, v.what.as_str()));
    let _ = writeln!(text, "seed {seed} breaks {law}: {what}\n{}", ended.options);
    let from = ended.log.len().saturating_sub(SHOWN);
    for line in &ended.log[from..] {
        let _ = writeln!(text, "  {line}");
    }
    let off: Vec<&str> = ended.options.off.iter().map(|k| k.name()).collect();
    let off = if off.is_empty() {
        String::new()
    } else {
        format!(" SAMEKEY_WITHOUT={}", off.join(","))
    };
    let guard = ended.options.without.map_or(String::new(), |g| {
        let name: &str = g.into();
        format!(" SAMEKEY_GUARD_OFF={name}")
    });
    let _ = write!(
        text,
        "replay: SAMEKEY_SEED={seed}{off}{guard} cargo test --test simulation replay -- --nocapture"
    );
    text
}

/// What many seeds came to.
#[derive(Default)]
pub struct Many {
    pub seen: BTreeMap<&'static str, u64>,
    pub failed: Vec<u64>,
    pub done: u64,
}

/// Keeps this thread, and those it starts, on one core: the threads of a seed take turns, and a turn that
/// goes to another core takes twice as long.
fn stay_on(core: usize) {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        let Ok(allowed) = sched_getaffinity(None) else {
            return;
        };
        let mut cores = (0..CpuSet::MAX_CPU).filter(|n| allowed.is_set(*n));
        if let Some(own) = cores.nth(core) {
            let mut set = CpuSet::new();
            set.set(own);
            // It only makes things faster.
            let _ = sched_setaffinity(None, &set);
        }
    }
    let _ = core;
}

/// Lives through `seeds`, on all cores; stops early after a few failures. Prints its pace.
pub fn many(
    seeds: std::ops::Range<u64>,
    without: Option<Guard>,
    disk: Disk,
    most_failures: usize,
) -> Many {
    let began = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let all = Mutex::new(Many::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let (next, all) = (&next, &all);
        for core in 0..cores {
            scope.spawn(move || {
                stay_on(core);
                let store = Arc::new(Store::new());
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= seeds.end || lock(all).failed.len() >= most_failures {
                        return;
                    }
                    let options = Options::derive(n, &BTreeSet::new(), without);
                    let ended = seed(&store, options, disk);
                    let mut all = lock(all);
                    all.done += 1;
                    for (what, count) in ended.seen {
                        *all.seen.entry(what).or_default() += count;
                    }
                    if let Some(violation) = &ended.violation {
                        println!("seed {n} breaks {}: {}", violation.law, violation.what);
                        all.failed.push(n);
                    }
                    if all.done % 500 == 0 {
                        let rate = f64::from(u32::try_from(all.done).unwrap_or(0))
                            / began.elapsed().as_secs_f64();
                        println!("{} seeds, {rate:.1} a second", all.done);
                    }
                }
            });
        }
    });
    let all = all.into_inner().expect("all threads ended");
    let rate = f64::from(u32::try_from(all.done).unwrap_or(0)) / began.elapsed().as_secs_f64();
    println!(
        "{} seeds in {:.1} s, {rate:.1} a second on {cores} cores",
        all.done,
        began.elapsed().as_secs_f64()
    );
    all
}

/// The kinds named in a comma-separated list.
pub fn kinds(text: &str) -> BTreeSet<Kind> {
    text.split(',')
        .filter(|name| !name.is_empty())
        .map(|name| name.parse().expect("a kind of fault"))
        .collect()
}
