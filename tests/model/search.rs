//! Running a search and saying what it found.

use std::fmt::Write as _;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model, Path};

use crate::guards::Guard;
use crate::model::{Do, Protocol, Scope};
use crate::promises::Law;
use crate::world::World;

/// Whether something was asked for on the command line.
#[allow(
    clippy::disallowed_methods,
    reason = "how long to search is asked of the one who starts the tests"
)]
fn asked(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

/// Explores everything within `scope`: every law must hold, every place must be reached. Answers how many
/// different worlds that were.
pub fn explore(scope: Scope) -> usize {
    let name = scope.name;
    let depth = if asked("SAMEKEY_LONG") {
        scope.long_depth
    } else {
        scope.depth
    };
    let began = Instant::now();
    let model = Protocol::new(scope);
    let mut builder = model.checker().threads(1);
    if let Some(depth) = depth {
        builder = builder.target_max_depth(depth);
    }
    let checker = builder.spawn_bfs().join();
    let worlds = checker.unique_state_count();
    let model = checker.model();
    let (ops, questions) = model.book.size();
    println!(
        "{name}: {worlds} states ({} steps), {} deep, {ops} operations, {questions} questions to the domain, {:.1} s",
        checker.state_count(),
        checker.max_depth(),
        began.elapsed().as_secs_f32(),
    );
    let discoveries = checker.discoveries();
    let mut missing = Vec::new();
    for property in model.properties() {
        let discovery = discoveries.get(property.name);
        match (property.expectation.discovery_is_failure(), discovery) {
            (true, Some(path)) => panic!(
                "{name}: broken: {}\n{}",
                property.name,
                told(model, path.clone())
            ),
            (false, None) => missing.push(property.name),
            _ => {}
        }
    }
    assert!(missing.is_empty(), "{name}: never reached: {missing:#?}");
    worlds
}

/// Searches `scope` with `guard` missing for the shortest way to break one of `laws`.
pub fn break_without(
    scope: Scope,
    guard: Guard,
    laws: &'static [Law],
) -> Option<(&'static str, Path<World, Do>)> {
    let began = Instant::now();
    let model = Protocol::without(scope, Some(guard), Some(laws));
    let checker = model
        .checker()
        .threads(1)
        .finish_when(HasDiscoveries::Any)
        .spawn_bfs()
        .join();
    let found = checker.discoveries().into_iter().next();
    let states = checker.unique_state_count();
    let took = began.elapsed().as_secs_f32();
    match &found {
        Some((law, path)) => {
            let steps = path.clone().into_actions().len();
            println!(
                "without {guard:?}: broken in {steps} steps: {law} ({states} states, {took:.1} s)"
            );
            if asked("SAMEKEY_PATHS") {
                println!("{}", told(checker.model(), path.clone()));
            }
        }
        None => println!("without {guard:?}: nothing breaks ({states} states, {took:.1} s)"),
    }
    found
}

/// A path, one step a line, with what became of the rows.
pub fn told(model: &Protocol, path: Path<World, Do>) -> String {
    let mut out = String::new();
    let mut action = None;
    for (n, (world, next)) in path.into_vec().into_iter().enumerate() {
        let step = action.take().map_or("begin".into(), |a| format!("{a:?}"));
        write!(out, "{n:3}. {step:<36} at {:>2}", world.now).expect("text");
        for row in &world.rows {
            let op = model.book.op(row.op);
            let attempts: Vec<_> = op
                .attempts
                .iter()
                .map(|a| a.class().map_or("in flight", |c| c.as_str()))
                .collect();
            let verdict = op.row.verdict.map_or("-", |v| v.as_str());
            let status = op.row.status.as_str();
            write!(out, "  [{status} {attempts:?} {verdict}]").expect("text");
        }
        writeln!(out).expect("text");
        action = next;
    }
    out
}
