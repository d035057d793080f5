//! What needs a person, most urgent first (tui.md, "1 Review"): rank by rank, each off an index that
//! holds little more than the rank, by keyset across the ranks and in both directions.
//!
//! Owns: which rank a row has, and what it is ordered by within it. `review_rank!` alone decides; what a
//! piece reads beyond its rank is dropped. Tests: `tests/ledger/review_list.rs`.

use sqlx::{Row, SqliteConnection};

use super::pages::{Marks, bind_filter, filter_sql};
use super::read::Horizons;
use super::{Inner, store};
use crate::domain::ids::OperationId;
use crate::ledger::LedgerError;
use crate::ledger::query::{Filter, Mark};
use crate::ledger::row::{self, Columns};

/// More are not counted: the screen says `999+`.
const MOST_COUNTED: i64 = 1_000;
/// How many ranks there are; a row of another one is not listed.
const RANKS: u8 = 8;

/// An open row whose key may not be sent much longer.
macro_rules! key_runs_out {
    () => {
        "o.provider_ref IS NULL AND o.key_expires_at <= ?2"
    };
}

/// An open row whose outcome a lookup told, or that nobody drives or waits for although it may have had
/// an effect.
macro_rules! left_alone {
    () => {
        "o.verdict IN ('confirmed', 'refused')
         OR (o.last_authorised_at <= ?3 AND o.provider_ref IS NULL AND o.effect <> 'not_started'
             AND NOT EXISTS (SELECT 1 FROM tool_calls w INDEXED BY tool_calls_waiting_on
                             WHERE w.operation_id = o.operation_id AND w.state IN ('queued', 'running')))"
    };
}

macro_rules! open_needs {
    () => {
        concat!("(", key_runs_out!(), ") OR ", left_alone!())
    };
}

/// The first call of its operation whose delivery nobody knows of.
macro_rules! first_undelivered {
    () => {
        "c.delivery <> 'delivered' AND c.delivery = 'delivery_unknown'
         AND NOT EXISTS (SELECT 1 FROM tool_calls e WHERE e.operation_id = c.operation_id AND e.delivery = 'delivery_unknown'
                         AND (e.accepted_at, e.rowid) < (c.accepted_at, c.rowid))"
    };
}

/// The rank without regard to snoozing: `?1` now, `?2` now + 2 h, `?3` now − settle time.
macro_rules! base_rank {
    () => {
        concat!(
            "CASE WHEN o.held = 1 OR o.proposal IS NOT NULL THEN 4
              WHEN o.status = 'unknown' AND (o.decidable_at IS NULL OR o.decidable_at <= ?1
                   OR o.verdict IN ('confirmed', 'second_effect')) THEN 3
              WHEN o.status = 'unknown' THEN 6
              WHEN o.status = 'open' AND (",
            key_runs_out!(),
            ") THEN 1
              WHEN o.status = 'open' AND (",
            left_alone!(),
            ") THEN 2
              WHEN EXISTS (SELECT 1 FROM tool_calls w WHERE w.operation_id = o.operation_id
                           AND w.delivery = 'delivery_unknown') THEN 5
              ELSE 9 END"
        )
    };
}

/// 0 contradicted; 1 the key runs out; 2 undetermined, with nobody waiting for it, or told by a lookup;
/// 3 unknown and decidable; 4 held and proposed; 5 delivery unknown; 6 unknown and not decidable yet;
/// 7 put off, which what is contradicted never is.
macro_rules! review_rank {
    () => {
        concat!(
            "CASE WHEN o.contradicted IS NOT NULL THEN 0
              WHEN o.snoozed_until > ?1 AND (",
            base_rank!(),
            ") < 9 THEN 7
              ELSE ",
            base_rank!(),
            " END"
        )
    };
}

/// For each rank: where its rows are (a little more than the rank has), and the two things they are
/// ordered by, where the second may be the row's number. The index is named: without statistics SQLite
/// would rather go through all rows of the status.
macro_rules! rank {
    (0, $do:ident, $($more:tt)*) => { $do!("0", "operations o INDEXED BY operations_contradicted", "o.contradicted IS NOT NULL",
        "o.created_at", "o.rowid", $($more)*) };
    (1, $do:ident, $($more:tt)*) => { $do!("1", "operations o INDEXED BY operations_keys_open",
        "o.status = 'open' AND o.provider_ref IS NULL AND o.key_expires_at <= ?2", "o.key_expires_at", "o.rowid", $($more)*) };
    (2, $do:ident, $($more:tt)*) => { $do!("2", "operations o INDEXED BY operations_sent_open", "o.status = 'open'",
        "coalesce(o.last_authorised_at, o.created_at)", "o.rowid", $($more)*) };
    (3, $do:ident, $($more:tt)*) => { $do!("3", "operations o INDEXED BY operations_unknown", "o.status = 'unknown'",
        "o.unknown_at", "-coalesce(o.amount_cents, 0)", $($more)*) };
    (4, $do:ident, $($more:tt)*) => { $do!("4", "operations o INDEXED BY operations_to_approve",
        "(o.held = 1 OR o.proposal IS NOT NULL)", "o.created_at", "o.rowid", $($more)*) };
    // By its first such call.
    (5, $do:ident, $($more:tt)*) => { $do!("5",
        "tool_calls c INDEXED BY tool_calls_undelivered CROSS JOIN operations o ON o.operation_id = c.operation_id",
        first_undelivered!(), "c.accepted_at", "c.rowid", $($more)*) };
    (6, $do:ident, $($more:tt)*) => { $do!("6", "operations o INDEXED BY operations_not_decidable",
        "o.status = 'unknown' AND o.decidable_at > ?1", "o.decidable_at", "o.rowid", $($more)*) };
    (7, $do:ident, $($more:tt)*) => { $do!("7", "operations o INDEXED BY operations_snoozed",
        "o.snoozed_until IS NOT NULL AND o.snoozed_until > ?1", "o.snoozed_until", "o.rowid", $($more)*) };
}

/// `?4`, `?5`, `?6` the mark behind which it begins, `?7` how many.
macro_rules! piece_sql {
    ($rank:literal, $from:literal, $where:expr, $key:literal, $second:literal, $cmp:literal, $dir:literal) => {
        concat!(
            "SELECT o.rowid, ",
            $key,
            ", ",
            $second,
            " FROM ",
            $from,
            " WHERE ",
            $where,
            " AND (",
            $key,
            ", ",
            $second,
            ", o.rowid) ",
            $cmp,
            " (?4, ?5, ?6) AND (",
            review_rank!(),
            ") = ",
            $rank,
            " ORDER BY ",
            $key,
            " ",
            $dir,
            ", ",
            $second,
            " ",
            $dir,
            ", o.rowid ",
            $dir,
            " LIMIT ?7"
        )
    };
}

macro_rules! pieces {
    ($cmp:literal, $dir:literal) => {
        [
            rank!(0, piece_sql, $cmp, $dir),
            rank!(1, piece_sql, $cmp, $dir),
            rank!(2, piece_sql, $cmp, $dir),
            rank!(3, piece_sql, $cmp, $dir),
            rank!(4, piece_sql, $cmp, $dir),
            rank!(5, piece_sql, $cmp, $dir),
            rank!(6, piece_sql, $cmp, $dir),
            rank!(7, piece_sql, $cmp, $dir),
        ]
    };
}

const DOWN: [&str; RANKS as usize] = pieces!(">", "ASC");
const UP: [&str; RANKS as usize] = pieces!("<", "DESC");

/// The places of given rows (`?4`, a JSON list) that match and are in the list.
const GIVEN: &str = concat!(
        "SELECT row,
             CASE rank WHEN 0 THEN created_at WHEN 1 THEN key_expires_at WHEN 2 THEN coalesce(last_authorised_at, created_at)
                  WHEN 3 THEN unknown_at WHEN 4 THEN created_at WHEN 6 THEN decidable_at WHEN 7 THEN snoozed_until
                  WHEN 5 THEN (SELECT min(c.accepted_at) FROM tool_calls c WHERE c.operation_id = p.operation_id
                               AND c.delivery = 'delivery_unknown') END,
             CASE rank WHEN 3 THEN -amount_cents
                  WHEN 5 THEN (SELECT c.rowid FROM tool_calls c WHERE c.operation_id = p.operation_id
                               AND c.delivery = 'delivery_unknown' ORDER BY c.accepted_at, c.rowid LIMIT 1)
                  ELSE row END,
             rank
         FROM (SELECT o.rowid AS row, ", review_rank!(), " AS rank, o.* FROM json_each(?4) j CROSS JOIN operations o ON o.rowid = j.value
               WHERE ", filter_sql!(), ") p
         WHERE rank < 9"
    );

/// All ranks together, `?4` at most: every unknown row, and of the others those of their rank. Counted
/// without reading rows as far as that goes; `tests/ledger/review_list.rs` holds it to the list.
pub(super) const COUNT: &str = concat!(
    "SELECT min(?4, (SELECT n FROM tallies WHERE status = 'unknown')
       + (SELECT count(*) FROM operations o INDEXED BY operations_contradicted WHERE o.contradicted IS NOT NULL AND o.status <> 'unknown')
       + (SELECT count(*) FROM (SELECT 1 FROM operations o INDEXED BY operations_open
          WHERE o.status = 'open' AND o.contradicted IS NULL AND (", open_needs!(), ") LIMIT ?4))
       + (SELECT count(*) FROM operations o INDEXED BY operations_to_approve
          WHERE (o.held = 1 OR o.proposal IS NOT NULL) AND o.status = 'open' AND o.contradicted IS NULL
          AND (", open_needs!(), ") IS NOT TRUE)
       + (SELECT count(*) FROM tool_calls c INDEXED BY tool_calls_undelivered CROSS JOIN operations o ON o.operation_id = c.operation_id
          WHERE ", first_undelivered!(), " AND o.status <> 'unknown' AND o.contradicted IS NULL AND o.held = 0 AND o.proposal IS NULL
          AND NOT (o.status = 'open' AND (", open_needs!(), ") IS TRUE)))"
);

/// The marks of the next rows behind `after`, across the ranks, at most `limit`.
pub(super) async fn marks(
    conn: &mut SqliteConnection,
    horizons: Horizons,
    after: &Mark,
    reversed: bool,
    limit: i64,
) -> Result<Marks, LedgerError> {
    let pieces = if reversed { &UP } else { &DOWN };
    let ranks: Vec<u8> = if reversed {
        (0..=after.rank.min(RANKS - 1)).rev().collect()
    } else {
        (after.rank..RANKS).collect()
    };
    let mut marks = Vec::new();
    for rank in ranks {
        let begin = Mark::start(rank, reversed);
        let from = if rank == after.rank { after } else { &begin };
        let left = limit.saturating_sub(i64::try_from(marks.len()).unwrap_or(limit));
        let Some(sql) = pieces.get(usize::from(rank)).filter(|_| left > 0) else {
            break;
        };
        let rows = horizons
            .bind(sqlx::query(*sql))
            .bind(from.key.number())
            .bind(from.second)
            .bind(from.row)
            .bind(left)
            .fetch_all(&mut *conn)
            .await
            .map_err(store::failed)?;
        for found in &rows {
            marks.push(Mark::of(found, rank, false)?);
        }
    }
    Ok(marks)
}

/// The marks of these rows, of those that are in the list and match.
pub(super) async fn marks_of(
    conn: &mut SqliteConnection,
    horizons: Horizons,
    rows: &str,
    filter: &Filter,
    inner: &Inner,
) -> Result<Marks, LedgerError> {
    let query = horizons.bind(sqlx::query(GIVEN)).bind(rows);
    let rows = bind_filter(query, 4, filter, inner)
        .fetch_all(conn)
        .await
        .map_err(store::failed)?;
    let marks = rows.iter().map(|found| {
        let rank = found.try_get(3).map_err(store::failed)?;
        Mark::of(found, rank, false)
    });
    marks.collect()
}

/// The operations at the head of the list.
pub(super) async fn head(
    conn: &mut SqliteConnection,
    horizons: Horizons,
    limit: u32,
) -> Result<Vec<OperationId>, LedgerError> {
    let marks = marks(conn, horizons, &Mark::start(0, false), false, limit.into()).await?;
    let rows: Vec<i64> = marks.iter().map(|m| m.row).collect();
    let found = sqlx::query(IDS).bind(row::to_json(&rows)?);
    let found = found.fetch_all(conn).await.map_err(store::failed)?;
    found
        .iter()
        .map(|f| Columns(f).word("operation_id"))
        .collect()
}

/// The ids of given rows (`?1`, a JSON list).
const IDS: &str =
    "SELECT o.operation_id FROM json_each(?1) j CROSS JOIN operations o ON o.rowid = j.value";

/// How many rows are in the list, up to [`MOST_COUNTED`].
pub(super) async fn count(
    conn: &mut SqliteConnection,
    horizons: Horizons,
) -> Result<u64, LedgerError> {
    let counted = horizons
        .bind(sqlx::query(COUNT))
        .bind(MOST_COUNTED)
        .fetch_one(conn)
        .await
        .map_err(store::failed)?;
    let n: i64 = counted.try_get(0).map_err(store::failed)?;
    Ok(n.unsigned_abs())
}

/// Every statement of the list, for their plans to be looked at.
#[cfg(test)]
pub(super) fn statements() -> Vec<&'static str> {
    DOWN.into_iter()
        .chain(UP)
        .chain([GIVEN, COUNT, IDS])
        .collect()
}
