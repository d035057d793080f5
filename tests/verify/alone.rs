//! Each guard of the schema, standing alone: what only it forbids is refused by it, by plain SQL on the
//! file; with the schema made without it the same damage can be written, and `verify` names both the
//! missing guard and the damage. A guard that no case covers fails the test (`cases`).

use std::collections::BTreeSet;

use samekey::ledger::verify::Violation;
use sqlx::SqliteConnection;

use crate::cases::{Case, KEYS, Says, TRIGGERS, UNIQUE};
use crate::checks::CHECKS;
use crate::{Fixture, raw, run};

/// A guard that is in the schema: its table and its text, written as a case names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Guard {
    table: String,
    name: String,
}

async fn rows(conn: &mut SqliteConnection, sql: &'static str) -> Vec<(String, String, String)> {
    let rows = sqlx::query_as(sql).fetch_all(conn).await;
    rows.expect("the schema")
}

/// Everything in the schema that can refuse a write.
async fn guards(conn: &mut SqliteConnection) -> BTreeSet<Guard> {
    let mut all = BTreeSet::new();
    let sql = "SELECT tbl_name, name, sql FROM sqlite_schema WHERE type = 'trigger'
               OR (type = 'index' AND sql LIKE 'CREATE UNIQUE%')";
    for (table, name, _) in rows(conn, sql).await {
        all.insert(Guard { table, name });
    }
    let sql = "SELECT s.name, i.origin, (SELECT group_concat(c.name, ', ') FROM pragma_index_info(i.name) c)
               FROM sqlite_schema s JOIN pragma_index_list(s.name) i
               WHERE s.type = 'table' AND i.origin IN ('pk', 'u') AND s.name NOT GLOB '_sqlx*'";
    for (table, origin, columns) in rows(conn, sql).await {
        let kind = if origin == "pk" {
            "PRIMARY KEY"
        } else {
            "UNIQUE"
        };
        let name = format!("{table} {kind} ({columns})");
        all.insert(Guard { table, name });
    }
    let sql =
        "SELECT name, type, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%CHECK%'";
    for (table, _, sql) in rows(conn, sql).await {
        for check in checks(&sql) {
            let name = format!("{table} {check}");
            all.insert(Guard {
                table: table.clone(),
                name,
            });
        }
    }
    all
}

/// The CHECKs of a table's text, as they stand there.
fn checks(sql: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in sql.match_indices("CHECK (") {
        let mut depth = 0;
        let rest = &sql[at..];
        let end = rest.char_indices().find_map(|(n, c)| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            (n > word.len() && depth == 0).then_some(n + 1)
        });
        found.push(rest[..end.expect("it closes")].to_owned());
    }
    found
}

/// Takes a guard away: a trigger or index is dropped, a table is made anew without the rest.
async fn take_away(conn: &mut SqliteConnection, guard: &Guard) {
    let name = &guard.name;
    for kind in ["TRIGGER", "INDEX"] {
        if run(conn, &format!("DROP {kind} \"{name}\"")).await.is_ok() {
            return;
        }
    }
    let table = &guard.table;
    let mut parts = Vec::new();
    let sql =
        "SELECT tbl_name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL AND type <> 'view'";
    for (of, kind, sql) in rows(conn, sql).await {
        if of == *table {
            parts.push((kind, sql));
        }
    }
    let whole = parts.iter().find(|(kind, _)| kind == "table");
    let whole = &whole.expect("its table").1;
    let less = without(
        whole,
        name.strip_prefix(table.as_str()).expect("its name").trim(),
    );
    let columns = less.split_once('(').expect("columns").1;
    let mut script = format!(
        "PRAGMA legacy_alter_table = ON; CREATE TABLE anew ({columns};
         INSERT INTO anew SELECT * FROM {table}; DROP TABLE {table}; ALTER TABLE anew RENAME TO {table};"
    );
    for (_, sql) in parts.iter().filter(|(kind, _)| kind != "table") {
        script.push_str(sql);
        script.push(';');
    }
    run(conn, &script).await.expect(name);
}

/// A table's text without one constraint.
fn without(sql: &str, constraint: &str) -> String {
    let nothing = "CHECK (1)";
    let less = if sql.contains(constraint) {
        sql.replacen(constraint, nothing, 1)
    } else {
        // A key of one column stands beside its column.
        let (kind, columns) = constraint.split_once(" (").expect("its columns");
        let column = columns.trim_end_matches(')');
        let line = sql
            .lines()
            .find(|line| line.trim_start().starts_with(column) && line.contains(kind));
        let line = line.unwrap_or_else(|| panic!("{constraint} is not in {sql}"));
        sql.replacen(line, &line.replacen(kind, "", 1), 1)
    };
    assert_ne!(less, sql, "{constraint}");
    less
}

/// The guards that stand in the way of a case: those it names, and for a CHECK all triggers of its table.
async fn clear_the_way(conn: &mut SqliteConnection, case: &Case, guard: &Guard) {
    let mut past: Vec<String> = case.past.iter().map(|name| (*name).to_owned()).collect();
    if guard.name.contains(" CHECK (")
        || guard.name.contains(" KEY (")
        || guard.name.contains(" UNIQUE (")
    {
        let sql = "SELECT tbl_name, name, type FROM sqlite_schema WHERE type = 'trigger'";
        let triggers = rows(conn, sql).await.into_iter();
        past.extend(
            triggers
                .filter(|(table, ..)| *table == guard.table)
                .map(|(_, name, _)| name),
        );
    }
    for name in past {
        let table = guard.table.clone();
        take_away(conn, &Guard { table, name }).await;
    }
}

/// What a guard says when it refuses.
fn refusal(case: &Case, guard: &Guard) -> String {
    match case.says {
        Says::This(why) => why.to_owned(),
        Says::Itself => match guard.name.split_once(" CHECK (") {
            Some((_, check)) => {
                let check = check.strip_suffix(')').expect("it closes");
                format!("CHECK constraint failed: {check}")
            }
            None => "UNIQUE constraint failed".to_owned(),
        },
        Says::Nothing => String::new(),
    }
}

/// With the guard nothing happens; without it, it happens and is named.
async fn holds(case: &Case, guard: &Guard) -> Result<(), String> {
    let fixture = Fixture::new().await;
    let mut conn = raw(&fixture.path).await;
    clear_the_way(&mut conn, case, guard).await;
    if finds(&fixture, case).await {
        return Err("the damage is named before anything was done".into());
    }
    match run(&mut conn, case.write).await {
        Ok(()) if case.says != Says::Nothing => return Err("it let the write through".into()),
        Err(why) if !why.contains(&refusal(case, guard)) || case.says == Says::Nothing => {
            return Err(format!("the write is refused otherwise: {why}"));
        }
        _ => {}
    }
    if finds(&fixture, case).await {
        return Err("the damage was done under its eyes".into());
    }
    let fixture = Fixture::new().await;
    let mut conn = raw(&fixture.path).await;
    clear_the_way(&mut conn, case, guard).await;
    take_away(&mut conn, guard).await;
    if let Err(why) = run(&mut conn, case.write).await {
        return Err(format!("something else refuses it too: {why}"));
    }
    let found = fixture.verify().await.violations;
    let missing = |what: &str| {
        what.ends_with(&format!("{} is missing", guard.name))
            || what == format!("the table {} is not as the migrations make it", guard.table)
    };
    if !found.iter().any(|v| v.rule == "schema" && missing(&v.what)) {
        return Err(format!("it is gone and nobody says so: {found:#?}"));
    }
    if case.finds.is_empty() || finds(&fixture, case).await {
        return Ok(());
    }
    Err(format!("{:?} is not named: {found:#?}", case.finds))
}

/// Whether `verify` names the damage, in the rows: that a guard is missing is no answer.
async fn finds(fixture: &Fixture, case: &Case) -> bool {
    let found = fixture.verify().await.violations;
    let of_rows = |v: &Violation| v.rule != "schema" || v.operation.is_some();
    let named = |v: &Violation| of_rows(v) && v.what.contains(case.finds);
    !case.finds.is_empty() && found.iter().any(named)
}

async fn each(cases: &[Case]) {
    let fixture = Fixture::new().await;
    let all = guards(&mut raw(&fixture.path).await).await;
    let mut faults = Vec::new();
    for case in cases {
        let mut named = all.iter().filter(|g| case.is_of(&g.name));
        let guard = named.next();
        let guard = guard.unwrap_or_else(|| panic!("{} is no guard", case.guard));
        assert_eq!(named.next(), None, "{} names two guards", case.guard);
        if let Err(why) = holds(case, guard).await {
            faults.push(format!("{}: {why}", guard.name));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn each_trigger_refuses_and_without_it_the_damage_is_named() {
    each(TRIGGERS).await;
}

/// R20, I1, I2, I17.
#[tokio::test]
async fn each_unique_index_refuses_and_without_it_the_damage_is_named() {
    each(UNIQUE).await;
}

#[tokio::test]
async fn each_key_of_a_table_refuses_and_without_it_the_damage_is_named() {
    each(KEYS).await;
}

#[tokio::test]
async fn each_check_refuses_and_without_it_the_damage_is_named() {
    each(CHECKS).await;
}

#[tokio::test]
async fn every_guard_of_the_schema_has_its_case() {
    let fixture = Fixture::new().await;
    let all = guards(&mut raw(&fixture.path).await).await;
    let cases: Vec<&Case> = [TRIGGERS, UNIQUE, KEYS, CHECKS]
        .into_iter()
        .flatten()
        .collect();
    let missing: Vec<&str> = all
        .iter()
        .map(|guard| guard.name.as_str())
        .filter(|name| !cases.iter().any(|case| case.is_of(name)))
        .collect();
    assert!(
        missing.is_empty(),
        "nobody tries what these guard: {missing:#?}"
    );
    assert_eq!(all.len(), cases.len(), "one case for each guard");
    println!("{} guards", all.len());
}
