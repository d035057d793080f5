//! Every numbered rule of the design is accounted for in `tests/rules.toml`: proven by a test that
//! exists, held by the design in a sentence that the architecture page has, or not ours.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The numbers of each list; some were never given out.
const LISTS: &[(&str, u32, &[u32])] = &[("U", 58, &[4, 6, 15, 26, 44])];

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Why a mark does not hold.
fn wrong(mark: &str, page: &str) -> Option<String> {
    if let Some(tests) = mark.strip_prefix("test: ") {
        let named: Vec<&str> = tests.split_whitespace().collect();
        return named.iter().find_map(|test| {
            let (file, function) = test.split_once("::")?;
            let source = read(&format!("tests/{file}.rs"));
            let there = source.contains(&format!("fn {function}("));
            (!there).then(|| format!("{test} does not exist"))
        });
    }
    if let Some(sentence) = mark.strip_prefix("design: ") {
        let there = page.contains(sentence);
        return (!there).then(|| format!("the architecture page does not say {sentence:?}"));
    }
    let why = mark.strip_prefix("not ours: ").unwrap_or_default();
    why.is_empty()
        .then(|| format!("{mark:?} is no test, design or not ours"))
}

#[test]
fn every_rule_is_proven_or_says_why_not() {
    let marks: toml::Table = read("tests/rules.toml").parse().expect("TOML");
    // The page as running text.
    let page: Vec<String> = read("src/lib.rs")
        .lines()
        .map(|l| l.trim_start_matches("//!").trim().to_owned())
        .collect();
    let page = page.join(" ");
    let mut faults = Vec::new();
    for (list, last, gaps) in LISTS {
        let found = marks.get(*list).and_then(toml::Value::as_table);
        let found = found.expect("a list");
        let wanted: BTreeSet<String> = (1..=*last)
            .filter(|n| !gaps.contains(n))
            .map(|n| format!("{list}{n}"))
            .collect();
        for name in &wanted {
            match found.get(name).and_then(toml::Value::as_str) {
                None => faults.push(format!("{name} has no mark")),
                Some(mark) => faults.extend(wrong(mark, &page).map(|why| format!("{name}: {why}"))),
            }
        }
        let unknown = found.keys().filter(|name| !wanted.contains(*name));
        faults.extend(unknown.map(|name| format!("{name} is in no list")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
