//! Style as a test: who may use whom, file and function length, banned words.
//!
//! Reads the source as text. It is a ratchet: the exceptions below may only shrink.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it skips"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// Hard limit of a source file, lines.
const MAX_FILE: usize = 600;
/// Hard limit of a function, lines.
const MAX_FUNCTION: usize = 70;

/// Which modules a module may name as `crate::…`. A module not listed may use everything.
const MAY_USE: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("error", &[]),
    ("telemetry", &["config", "error"]),
    ("config", &["domain", "engine", "error", "http", "tool"]),
    ("tool", &["tool", "domain"]),
    ("domain", &["domain"]),
    ("kill", &["config"]),
    ("ledger", &["ledger", "domain", "clock", "config", "kill"]),
    ("http", &["http", "clock", "kill"]),
    ("program", &["domain", "clock", "config"]),
    (
        "provider",
        &[
            "provider", "domain", "clock", "config", "http", "program", "tool",
        ],
    ),
    (
        "notify",
        &[
            "notify", "ledger", "domain", "clock", "config", "http", "program",
        ],
    ),
    (
        "engine",
        &["engine", "ledger", "provider", "domain", "clock", "kill"],
    ),
    (
        "review",
        &["review", "ledger", "provider", "engine", "domain", "clock"],
    ),
    (
        "gateway",
        &[
            "gateway", "review", "engine", "ledger", "provider", "domain", "clock", "config",
            "kill",
        ],
    ),
    ("simulator", &["simulator", "clock", "http"]),
    (
        "tui",
        &["tui", "review", "ledger", "engine", "domain", "clock"],
    ),
    (
        "tui/update",
        &["tui", "review", "ledger", "engine", "domain"],
    ),
    ("tui/view", &["tui", "review", "ledger", "engine", "domain"]),
];

/// Words a module never contains, outside its tests.
const NEVER: &[(&str, &[&str])] = &[
    (
        "domain",
        &[
            "tokio::",
            "sqlx::",
            "hyper::",
            "std::env",
            "std::fs",
            "std::time::Instant",
            "rand::",
            "Uuid::new",
        ],
    ),
    ("tui", &["sqlx::", "crate::provider"]),
    (
        "tui/update",
        &["tokio::", "tracing::", "Clock", "SharedLedger"],
    ),
    (
        "tui/view",
        &["tokio::", "tracing::", "Clock", "SharedLedger"],
    ),
    ("review", &["crate::tui"]),
];

fn sources(root: &str) -> Vec<(String, String)> {
    fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
        let entries = fs::read_dir(dir).expect("a source folder");
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
    let mut paths = Vec::new();
    walk(&root, &mut paths);
    paths.sort();
    paths
        .into_iter()
        .map(|p| {
            let name = p
                .strip_prefix(&root)
                .expect("below the root")
                .display()
                .to_string();
            (name, fs::read_to_string(&p).expect("a source file"))
        })
        .collect()
}

/// The part of a file before its unit tests, with comment lines blanked.
fn product(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    code.lines()
        .map(|line| {
            if line.trim_start().starts_with("//") {
                ""
            } else {
                line
            }
        })
        .collect::<Vec<_>>()
        .join("\n")
}

fn belongs(file: &str, module: &str) -> bool {
    file == format!("{module}.rs") || file.starts_with(&format!("{module}/"))
}

#[test]
fn modules_use_only_whom_they_may() {
    let mut faults = Vec::new();
    for (file, text) in sources("src") {
        let code = product(&text);
        // The narrowest rule counts.
        let rule = MAY_USE
            .iter()
            .filter(|(module, _)| belongs(&file, module))
            .max_by_key(|(module, _)| module.len());
        let Some((_, allowed)) = rule else { continue };
        let starts = code
            .match_indices("crate::")
            .map(|(i, _)| i + "crate::".len());
        for start in starts {
            let rest = &code[start..];
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            let used = &rest[..end];
            if !used.is_empty() && !allowed.contains(&used) {
                faults.push(format!("{file} uses crate::{used}"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn modules_never_contain_what_is_not_theirs() {
    let mut faults = Vec::new();
    for (file, text) in sources("src") {
        let code = product(&text);
        for (module, words) in NEVER {
            if belongs(&file, module) {
                faults.extend(
                    words
                        .iter()
                        .filter(|w| code.contains(**w))
                        .map(|w| format!("{file}: {w}")),
                );
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn files_and_functions_stay_readable() {
    let mut faults = Vec::new();
    for (file, text) in sources("src") {
        let lines = text.lines().count();
        if lines > MAX_FILE {
            faults.push(format!("{file}: {lines} lines"));
        }
        if !text.starts_with("//!") {
            faults.push(format!("{file}: does not say what it owns"));
        }
        faults.extend(long_functions(&file, &text));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Functions above the limit, by the indentation that rustfmt keeps.
fn long_functions(file: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut open: Option<(usize, String, usize)> = None;
    for (number, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let code = line.trim_start();
        let starts = [
            "fn ",
            "pub fn ",
            "pub(super) fn ",
            "async fn ",
            "pub async fn ",
            "pub(super) async fn ",
            "pub(crate) fn ",
        ]
        .iter()
        .any(|s| code.starts_with(s));
        if starts && open.is_none() && !code.ends_with(';') {
            open = Some((number, code.chars().take(60).collect(), indent));
        } else if let Some((start, name, depth)) = &open
            && code.starts_with('}')
            && indent == *depth
        {
            let length = number - start + 1;
            if length > MAX_FUNCTION {
                faults.push(format!("{file}:{}: {length} lines: {name}", start + 1));
            }
            open = None;
        } else if let Some((_, _, depth)) = &open
            && code.ends_with(';')
            && indent == *depth
        {
            // A declaration without a body.
            open = None;
        }
    }
    faults
}

#[test]
fn no_module_is_called_after_nothing() {
    let bad = ["util", "utils", "helper", "helpers", "common", "misc"];
    for (file, _) in sources("src") {
        let stem = Path::new(&file)
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let folder = file.split('/').any(|part| bad.contains(&part));
        assert!(!bad.contains(&stem.as_str()) && !folder, "{file}");
    }
}

#[test]
fn sql_is_static_text() {
    for (file, text) in sources("src") {
        // The one word by which sqlx lets composed SQL through.
        let word = ["Assert", "SqlSafe"].concat();
        assert!(!text.contains(&word), "{file} composes SQL at run time");
    }
}

#[test]
fn migrations_end_their_lines_with_lf() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
    for entry in fs::read_dir(dir).expect("migrations") {
        let path = entry.expect("an entry").path();
        let bytes = fs::read(&path).expect("a migration");
        assert!(!bytes.contains(&b'\r'), "{} (F74)", path.display());
    }
}
