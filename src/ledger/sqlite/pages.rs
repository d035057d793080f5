//! Pages of operations, by keyset and each off an index, whatever the tab, sort, direction and filter.
//!
//! A page is found in two steps: first the places of its rows ([`Mark`]s), from an index alone or from
//! the few rows that the filter's index gives; then the rows. A filter that no index answers is looked
//! for slice by slice along the list, within the query's budget. Tests: `tests/ledger/pages.rs`,
//! `tests/ledger/large.rs` (no statement here scans or sorts a large ledger).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Row, Sqlite, SqliteConnection};

use super::read::{Horizons, reader};
use super::{Inner, narrow, review_list, store};
use crate::domain::{earlier, later};
use crate::ledger::query::{Filter, Key, Mark};
use crate::ledger::row::{self, Columns, micros};
use crate::ledger::{LedgerError, Listed, Page, PageQuery, Sort, Tab};

/// Rows that are looked at together for a filter without an index.
const SLICE: i64 = 2_000;

/// Places in a list, in its order.
pub(super) type Marks = Vec<Mark>;

/// The filter's conditions on a row `o`: `?11` tool, `?12` order, `?13` session, `?14` call, `?15` key,
/// `?16` provider id, `?17` reason, `?18` created before, `?19` key left until, `?20` amount over,
/// `?21` text.
macro_rules! filter_sql {
    () => {
        "(?11 IS NULL OR o.tool = ?11) AND (?12 IS NULL OR o.order_id = ?12)
         AND (?13 IS NULL OR EXISTS (SELECT 1 FROM tool_calls c WHERE c.operation_id = o.operation_id AND c.session_id = ?13))
         AND (?14 IS NULL OR EXISTS (SELECT 1 FROM tool_calls c WHERE c.operation_id = o.operation_id AND c.call_id = ?14))
         AND (?15 IS NULL OR o.idempotency_key = ?15) AND (?16 IS NULL OR o.provider_ref = ?16)
         AND (?17 IS NULL OR o.reason = ?17) AND (?18 IS NULL OR o.created_at < ?18)
         AND (?19 IS NULL OR (o.key_expires_at < ?19 AND o.status = 'open'))
         AND (?20 IS NULL OR o.amount_cents > ?20)
         AND (?21 IS NULL OR instr(lower(o.operation_id), ?21) > 0 OR instr(lower(coalesce(o.order_id, '')), ?21) > 0
              OR instr(lower(coalesce(o.payment, '')), ?21) > 0 OR instr(lower(coalesce(o.provider_ref, '')), ?21) > 0)"
    };
}
pub(super) use filter_sql;

/// A statement being bound.
pub(super) type Statement<'q> = sqlx::query::Query<'q, Sqlite, SqliteArguments>;

/// Binds `?11` to `?21`, and nothing to the numbers below that the statement leaves out.
pub(super) fn bind_filter<'q>(
    mut query: Statement<'q>,
    bound: usize,
    filter: &'q Filter,
    inner: &Inner,
) -> Statement<'q> {
    for _ in bound..10 {
        query = query.bind(None::<i64>);
    }
    let now = inner.clock.now();
    query
        .bind(&filter.tool)
        .bind(&filter.order)
        .bind(&filter.session)
        .bind(&filter.call)
        .bind(&filter.key)
        .bind(&filter.provider_ref)
        .bind(filter.reason.map(<&str>::from))
        .bind(filter.age_over.map(|age| micros(earlier(now, age))))
        .bind(filter.left_under.map(|left| micros(later(now, left))))
        .bind(filter.amount_over)
        .bind(filter.text.as_deref().map(narrow::folded))
}

/// What a list is ordered by: the first key, the second, the condition of being behind a mark (`?1`,
/// `?2`, `?3`: its keys and row number), and the direction. (Of a comparison of rows SQLite looks up no
/// part that is an expression: there the first key is compared by itself as well.)
#[rustfmt::skip]
macro_rules! by_sort {
    ($do:ident, $sort:expr, $ascending:expr $(, $status:literal)?) => {
        by_sort!(@ $do, $sort, $ascending, ($(, $status)?))
    };
    (@ $do:ident, $sort:expr, $ascending:expr, ($($more:tt)*)) => {
        match ($sort, $ascending) {
            (Sort::Updated, false) => $do!("updated_at", "o.rowid", "(updated_at, rowid) < (?1, ?3)", "DESC" $($more)*),
            (Sort::Updated, true) => $do!("updated_at", "o.rowid", "(updated_at, rowid) > (?1, ?3)", "ASC" $($more)*),
            (Sort::Created, false) => $do!("created_at", "o.rowid", "(created_at, rowid) < (?1, ?3)", "DESC" $($more)*),
            (Sort::Created, true) => $do!("created_at", "o.rowid", "(created_at, rowid) > (?1, ?3)", "ASC" $($more)*),
            (Sort::Amount, false) => $do!("coalesce(amount_cents, 0)", "created_at", "coalesce(amount_cents, 0) <= ?1 AND (coalesce(amount_cents, 0), created_at, rowid) < (?1, ?2, ?3)", "DESC" $($more)*),
            (Sort::Amount, true) => $do!("coalesce(amount_cents, 0)", "created_at", "coalesce(amount_cents, 0) >= ?1 AND (coalesce(amount_cents, 0), created_at, rowid) > (?1, ?2, ?3)", "ASC" $($more)*),
            (Sort::Attempts, false) => $do!("attempts", "created_at", "(attempts, created_at, rowid) < (?1, ?2, ?3)", "DESC" $($more)*),
            (Sort::Attempts, true) => $do!("attempts", "created_at", "(attempts, created_at, rowid) > (?1, ?2, ?3)", "ASC" $($more)*),
            (Sort::KeyLeft, false) => $do!("coalesce(key_expires_at, 9000000000000000)", "created_at", "coalesce(key_expires_at, 9000000000000000) <= ?1 AND (coalesce(key_expires_at, 9000000000000000), created_at, rowid) < (?1, ?2, ?3)", "DESC" $($more)*),
            (Sort::KeyLeft, true) => $do!("coalesce(key_expires_at, 9000000000000000)", "created_at", "coalesce(key_expires_at, 9000000000000000) >= ?1 AND (coalesce(key_expires_at, 9000000000000000), created_at, rowid) > (?1, ?2, ?3)", "ASC" $($more)*),
            (Sort::Order, false) => $do!("coalesce(order_id, '')", "created_at", "coalesce(order_id, '') <= ?1 AND (coalesce(order_id, ''), created_at, rowid) < (?1, ?2, ?3)", "DESC" $($more)*),
            (Sort::Order, true) => $do!("coalesce(order_id, '')", "created_at", "coalesce(order_id, '') >= ?1 AND (coalesce(order_id, ''), created_at, rowid) > (?1, ?2, ?3)", "ASC" $($more)*),
        }
    };
}

/// The rows of one status; `?4` how many. The status is written down: beside partial indexes SQLite
/// would plan anew for every value of a parameter.
#[rustfmt::skip]
macro_rules! one_status {
    ($key:literal, $second:literal, $behind:literal, $dir:literal, $status:literal) => {
        concat!(
            "SELECT o.rowid AS row, ", $key, " AS key, ", $second, " AS second FROM operations o WHERE status = '", $status,
            "' AND ", $behind, " ORDER BY key ", $dir, ", second ", $dir, ", row ", $dir, " LIMIT ?4"
        )
    };
}

/// All four, merged.
#[rustfmt::skip]
macro_rules! all_statuses {
    (@ $key:literal, $second:literal, $behind:literal, $status:literal) => {
        concat!(
            "SELECT o.rowid AS row, ", $key, " AS key, ", $second, " AS second FROM operations o WHERE status = '", $status,
            "' AND ", $behind
        )
    };
    ($key:literal, $second:literal, $behind:literal, $dir:literal) => {
        concat!(
            all_statuses!(@ $key, $second, $behind, "open"), " UNION ALL ",
            all_statuses!(@ $key, $second, $behind, "unknown"), " UNION ALL ",
            all_statuses!(@ $key, $second, $behind, "succeeded"), " UNION ALL ",
            all_statuses!(@ $key, $second, $behind, "failed"),
            " ORDER BY key ", $dir, ", second ", $dir, ", row ", $dir, " LIMIT ?4"
        )
    };
}

/// The marks of given rows (`?1`, a JSON list) that match and have one of the statuses `?2` (likewise).
#[rustfmt::skip]
macro_rules! given {
    ($key:literal, $second:literal, $behind:literal, $dir:literal) => {
        concat!(
            "SELECT o.rowid, ", $key, ", ", $second, " FROM json_each(?1) j CROSS JOIN operations o ON o.rowid = j.value
             WHERE o.status IN (SELECT value FROM json_each(?2)) AND ", filter_sql!()
        )
    };
}

/// Which of given rows (`?1`) match.
const MATCHING: &str = concat!(
    "SELECT o.rowid FROM json_each(?1) j CROSS JOIN operations o ON o.rowid = j.value WHERE ",
    filter_sql!()
);

/// Given rows (`?1`), as they are listed at `?2`.
const ROWS: &str = "SELECT j.key AS place, o.*,
        EXISTS (SELECT 1 FROM drives d WHERE d.operation_id = o.operation_id AND d.until > ?2) AS driven,
        (SELECT json_group_array(DISTINCT session_id) FROM tool_calls c
         WHERE c.operation_id = o.operation_id AND session_id IS NOT NULL) AS sessions
    FROM json_each(?1) j CROSS JOIN operations o ON o.rowid = j.value";

impl Mark {
    /// The place before the first row of a rank, in this direction.
    pub(super) fn start(rank: u8, reversed: bool) -> Self {
        let edge = if reversed { i64::MAX } else { i64::MIN };
        Self {
            rank,
            key: if reversed { Key::Last } else { Key::First },
            second: edge,
            row: edge,
        }
    }

    /// The place of a row that was read as number, first and second key.
    pub(super) fn of(found: &SqliteRow, rank: u8, text: bool) -> Result<Self, LedgerError> {
        let key = if text {
            found.try_get(1).map(Key::Text)
        } else {
            found.try_get(1).map(Key::Int)
        };
        Ok(Self {
            rank,
            key: key.map_err(store::failed)?,
            second: found.try_get(2).map_err(store::failed)?,
            row: found.try_get(0).map_err(store::failed)?,
        })
    }
}

impl Key {
    /// As a number beside numbers.
    pub(super) fn number(&self) -> i64 {
        match self {
            Self::First | Self::Text(_) => i64::MIN,
            Self::Int(n) => *n,
            Self::Last => i64::MAX,
        }
    }
}

/// Where a list is read, and how.
struct Reading<'a> {
    inner: &'a Inner,
    query: &'a PageQuery,
    horizons: Horizons,
    /// Against the order that the SQL of the review list is written in, or ascending.
    ascending: bool,
}

pub(super) async fn page(inner: &Arc<Inner>, query: &PageQuery) -> Result<Page, LedgerError> {
    let conn = &mut *reader(&inner.readers).await?;
    let reading = Reading {
        inner,
        query,
        horizons: Horizons::of(inner),
        // The review list begins with what is most urgent unless it is asked for in reverse.
        ascending: query.ascending != (query.tab == Tab::Review),
    };
    let limit = query.limit.clamp(1, 1000);
    let Some(from) = reading.from(conn).await? else {
        return Ok(Page::default());
    };
    let (mut marks, next) = reading.marks(conn, from, i64::from(limit) + 1).await?;
    let (more, next) = if marks.len() > limit as usize {
        marks.truncate(limit as usize);
        (true, marks.last().cloned())
    } else {
        (next.is_some(), next)
    };
    let rows = rows(conn, inner, &marks).await?;
    Ok(Page { rows, more, next })
}

impl Reading<'_> {
    /// Where the page begins; `None` behind a row that is not in the list.
    async fn from(&self, conn: &mut SqliteConnection) -> Result<Option<Mark>, LedgerError> {
        if let Some(mark) = &self.query.from {
            return Ok(Some(mark.clone()));
        }
        let Some(after) = &self.query.after else {
            let last = if self.ascending { 0 } else { u8::MAX };
            return Ok(Some(Mark::start(last, !self.ascending)));
        };
        let row: Option<i64> =
            sqlx::query_scalar("SELECT rowid FROM operations WHERE operation_id = ?")
                .bind(after.as_str())
                .fetch_optional(&mut *conn)
                .await
                .map_err(store::failed)?;
        // Its own place, whatever the filter and its status.
        let any = Filter::default();
        let rows: Vec<i64> = row.into_iter().collect();
        let marks = self.marks_of(conn, &rows, &any, &narrow::STATUSES).await?;
        Ok(marks.into_iter().next())
    }

    /// The places of the next rows that match, at most `limit`, and where to go on if fewer are given
    /// although there may be more.
    async fn marks(
        &self,
        conn: &mut SqliteConnection,
        from: Mark,
        limit: i64,
    ) -> Result<(Marks, Option<Mark>), LedgerError> {
        let filter = &self.query.filter;
        if *filter == Filter::default() {
            return Ok((self.walk(conn, &from, limit).await?, None));
        }
        let statuses = narrow::statuses(self.query.tab);
        if let Some(rows) = narrow::few(conn, self.inner, filter, statuses).await? {
            let mut marks = self.marks_of(conn, &rows, filter, statuses).await?;
            marks.retain(|mark| {
                if self.ascending {
                    *mark > from
                } else {
                    *mark < from
                }
            });
            marks.sort();
            if !self.ascending {
                marks.reverse();
            }
            marks.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            // What only begins so was not meant: then it is looked for anywhere in the texts.
            if !marks.is_empty() || filter.text.is_none() {
                return Ok((marks, None));
            }
        }
        self.search(conn, from, limit).await
    }

    /// Along the list, slice by slice, until there are enough or the budget is spent.
    async fn search(
        &self,
        conn: &mut SqliteConnection,
        mut from: Mark,
        limit: i64,
    ) -> Result<(Marks, Option<Mark>), LedgerError> {
        let mut found = Marks::new();
        let mut budget = self.query.budget.map(i64::from);
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        loop {
            let slice = self.walk(conn, &from, SLICE).await?;
            let whole = i64::try_from(slice.len()).unwrap_or(SLICE) < SLICE;
            let Some(last) = slice.last().cloned() else {
                return Ok((found, None));
            };
            let rows: Vec<i64> = slice.iter().map(|m| m.row).collect();
            let matching = self.matching(conn, &rows).await?;
            found.extend(slice.into_iter().filter(|m| matching.contains(&m.row)));
            if found.len() >= wanted {
                found.truncate(wanted);
                return Ok((found, None));
            }
            if whole {
                return Ok((found, None));
            }
            if let Some(left) = &mut budget {
                *left -= SLICE;
                if *left <= 0 {
                    return Ok((found, Some(last)));
                }
            }
            from = last;
        }
    }

    /// The next places in the list, whatever the filter.
    async fn walk(
        &self,
        conn: &mut SqliteConnection,
        from: &Mark,
        limit: i64,
    ) -> Result<Marks, LedgerError> {
        let (sort, up) = (self.query.sort, self.ascending);
        let sql = match self.query.tab {
            Tab::Review => {
                return review_list::marks(conn, self.horizons, from, !up, limit).await;
            }
            Tab::All => by_sort!(all_statuses, sort, up),
            Tab::Open => by_sort!(one_status, sort, up, "open"),
            Tab::Unknown => by_sort!(one_status, sort, up, "unknown"),
            Tab::Succeeded => by_sort!(one_status, sort, up, "succeeded"),
            Tab::Failed => by_sort!(one_status, sort, up, "failed"),
        };
        let query = sqlx::query(sql);
        // Orders are text: nothing is before the empty one, and any bytes are behind all text.
        let query = match (&from.key, sort) {
            (Key::Text(text), _) => query.bind(text.clone()),
            (Key::First, Sort::Order) => query.bind(String::new()),
            (Key::Last, Sort::Order) => query.bind(vec![0xff_u8]),
            (key, _) => query.bind(key.number()),
        };
        let rows = query
            .bind(from.second)
            .bind(from.row)
            .bind(limit)
            .fetch_all(conn)
            .await
            .map_err(store::failed)?;
        let text = sort == Sort::Order;
        rows.iter().map(|found| Mark::of(found, 0, text)).collect()
    }

    /// The places of these rows, of those that match the filter, unordered.
    async fn marks_of(
        &self,
        conn: &mut SqliteConnection,
        rows: &[i64],
        filter: &Filter,
        statuses: &[&str],
    ) -> Result<Marks, LedgerError> {
        let rows = row::to_json(&rows)?;
        if self.query.tab == Tab::Review {
            return review_list::marks_of(conn, self.horizons, &rows, filter, self.inner).await;
        }
        let (sort, up) = (self.query.sort, self.ascending);
        let query = sqlx::query(by_sort!(given, sort, up))
            .bind(rows)
            .bind(row::to_json(&statuses)?);
        let found = bind_filter(query, 2, filter, self.inner)
            .fetch_all(conn)
            .await
            .map_err(store::failed)?;
        let text = sort == Sort::Order;
        found.iter().map(|found| Mark::of(found, 0, text)).collect()
    }

    /// Which of these rows match the filter.
    async fn matching(
        &self,
        conn: &mut SqliteConnection,
        rows: &[i64],
    ) -> Result<BTreeSet<i64>, LedgerError> {
        let query = sqlx::query(MATCHING).bind(row::to_json(&rows)?);
        let found = bind_filter(query, 1, &self.query.filter, self.inner)
            .fetch_all(conn)
            .await
            .map_err(store::failed)?;
        let rows = found.iter().map(|found| found.try_get(0));
        rows.collect::<Result<_, _>>().map_err(store::failed)
    }
}

/// The rows at these places, in their order.
async fn rows(
    conn: &mut SqliteConnection,
    inner: &Inner,
    marks: &Marks,
) -> Result<Vec<Listed>, LedgerError> {
    let places: Vec<i64> = marks.iter().map(|m| m.row).collect();
    let found = sqlx::query(ROWS)
        .bind(row::to_json(&places)?)
        .bind(micros(inner.clock.now()))
        .fetch_all(conn)
        .await
        .map_err(store::failed)?;
    let mut rows = BTreeMap::new();
    for found in &found {
        let c = Columns(found);
        let listed = Listed {
            row: row::operation(found)?,
            driven: c.flag("driven")?,
            sessions: c.json("sessions")?,
        };
        rows.insert(c.int("place")?, listed);
    }
    Ok(rows.into_values().collect())
}

/// Every statement of a list, for their plans to be looked at.
#[cfg(test)]
pub(super) fn statements() -> Vec<&'static str> {
    let sorts = <Sort as strum::VariantArray>::VARIANTS;
    let both = |up: bool| sorts.iter().map(move |sort| (*sort, up));
    both(false)
        .chain(both(true))
        .flat_map(|(sort, up)| {
            [
                by_sort!(one_status, sort, up, "open"),
                by_sort!(one_status, sort, up, "succeeded"),
                by_sort!(all_statuses, sort, up),
                by_sort!(given, sort, up),
            ]
        })
        .chain([MATCHING, ROWS])
        .collect()
}
