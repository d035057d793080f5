//! Every numbered rule of the design is accounted for in `tests/rules.toml`: proven by a test that
//! exists, held by the design in a sentence that the architecture page has, not ours, or part of a
//! capability that is not there yet.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what is left for later"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A list: its letter, its last number, the numbers that were never given out, and how many digits the
/// design writes.
const LISTS: &[(&str, u32, &[u32], usize)] = &[
    ("F", 94, &[], 2),
    ("I", 33, &[], 1),
    ("L", 8, &[], 1),
    ("M", 59, &[14, 15, 16, 24, 46, 57], 1),
    ("R", 100, &[], 1),
    ("S", 70, &[], 1),
    ("U", 58, &[4, 6, 15, 26, 44], 1),
];

/// What does not exist yet and will. A rule may wait for these and for nothing else; whoever builds one
/// takes it out of this list, and the rules that waited for it have to be proven.
const LATER: &[&str] = &["PostgreSQL"];

fn read(name: &str) -> Option<String> {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).ok()
}

/// Whether `source` has a test of this name that is run: a function under `#[test]`, not ignored.
fn has_test(source: &str, function: &str) -> bool {
    let head = format!("fn {function}(");
    source.match_indices(&head).any(|(at, _)| {
        let above = source.get(..at).unwrap_or_default();
        let (above, _) = above.rsplit_once('\n').unwrap_or_default();
        let attributes = above.lines().rev().map(str::trim).take_while(|line| {
            line.starts_with("#[") || line.starts_with("//") || line.ends_with(")]")
        });
        let attributes: Vec<&str> = attributes.collect();
        let is = |mark: &str| attributes.iter().any(|line| line.starts_with(mark));
        (is("#[test]") || is("#[tokio::test")) && !is("#[ignore")
    })
}

/// Why a test that a rule names proves nothing: `FILE::FUNCTION`, below `tests/` unless it begins with
/// `src/`.
fn unproven(test: &str) -> Option<String> {
    let Some((file, function)) = test.split_once("::") else {
        return Some(format!("{test} is not FILE::FUNCTION"));
    };
    let path = if file.starts_with("src/") {
        format!("{file}.rs")
    } else {
        format!("tests/{file}.rs")
    };
    let there = read(&path).is_some_and(|source| has_test(&source, function));
    (!there).then(|| format!("{test} is no test"))
}

/// Why a mark does not hold.
fn wrong(mark: &str, page: &str) -> Option<String> {
    let (kind, rest) = mark.split_once(": ").unwrap_or_default();
    let rest = rest.trim();
    match kind {
        "test" if !rest.is_empty() => rest.split_whitespace().find_map(unproven),
        "design" if !rest.is_empty() => {
            let there = page.contains(rest);
            (!there).then(|| format!("the architecture page does not say {rest:?}"))
        }
        "not ours" if !rest.is_empty() => None,
        "later" => {
            let what = rest.split_once(':').map_or(rest, |(what, _)| what);
            let known = LATER.contains(&what);
            (!known).then(|| format!("{what:?} is nothing that a rule may wait for"))
        }
        _ => Some(format!("{mark:?} is no test, design, not ours or later")),
    }
}

/// The architecture page as running text.
fn page() -> String {
    let source = read("src/lib.rs").expect("the architecture page");
    let lines = source.lines().filter_map(|l| l.strip_prefix("//!"));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

fn marks() -> toml::Table {
    let text = read("tests/rules.toml").expect("the rules");
    text.parse().expect("TOML")
}

#[test]
fn every_rule_is_proven_or_says_why_not() {
    let (marks, page) = (marks(), page());
    let mut faults = Vec::new();
    let mut waiting: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (list, last, gaps, digits) in LISTS {
        let found = marks.get(*list).and_then(toml::Value::as_table);
        let found = found.expect(list);
        let wanted: BTreeSet<String> = (1..=*last)
            .filter(|n| !gaps.contains(n))
            .map(|n| format!("{list}{n:0digits$}"))
            .collect();
        for name in &wanted {
            match found.get(name).and_then(toml::Value::as_str) {
                None => faults.push(format!("{name} has no mark")),
                Some(mark) => faults.extend(wrong(mark, &page).map(|why| format!("{name}: {why}"))),
            }
        }
        for (name, mark) in found {
            if !wanted.contains(name) {
                faults.push(format!("{name} is in no list"));
            }
            if let Some(rest) = mark.as_str().and_then(|m| m.strip_prefix("later: ")) {
                let what = rest.split_once(':').map_or(rest, |(what, _)| what);
                waiting.entry(what.to_owned()).or_default().push(name);
            }
        }
    }
    let later: usize = waiting.values().map(Vec::len).sum();
    println!("{later} rules wait for what is not there yet:");
    for (what, names) in waiting {
        println!("{:>3} {what}: {}", names.len(), names.join(" "));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The check itself: what proves nothing is noticed.
#[test]
fn a_mark_that_proves_nothing_is_noticed() {
    let page = "Nothing is sent twice.";
    for good in [
        "test: rules::a_mark_that_proves_nothing_is_noticed",
        "test: src/domain/text::safe_text_is_safe_and_making_it_safe_again_changes_nothing_i31",
        "design: Nothing is sent twice",
        "not ours: no such thing",
        "later: PostgreSQL: it is not there yet",
        "later: PostgreSQL",
    ] {
        assert_eq!(wrong(good, page), None, "{good}");
    }
    for bad in [
        "",
        "test: ",
        "test: rules",
        "test: rules::unproven",
        "test: rules::nowhere",
        "test: nowhere::nothing",
        "test: ledger/processes::as_a_child",
        "design: ",
        "design: Everything is sent twice",
        "not ours: ",
        "later: ",
        "later: tomorrow",
        "perhaps: it holds",
    ] {
        assert!(wrong(bad, page).is_some(), "{bad}");
    }
}
