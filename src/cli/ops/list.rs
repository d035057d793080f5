//! `ops list`: rows as one JSON array, or as a table. Read page by page, so that a large ledger
//! neither fills the memory nor holds a read transaction open (L7).

use super::super::args::ListArgs;
use super::super::context::{Context, Desk};
use super::super::table::{self, Column};
use crate::domain::ids::OperationId;
use crate::domain::text::SafeText;
use crate::error::{Exit, Failure};
use crate::ledger::view::{instant, status_word};
use crate::ledger::{Filter, Listed, PageQuery};

/// Rows read at once.
const PAGE: u32 = 500;

#[rustfmt::skip]
const COLUMNS: [Column; 8] = [
    Column::Left("OPERATION"), Column::Left("TOOL"), Column::Left("ORDER"), Column::Right("AMOUNT"),
    Column::Left("STATUS"), Column::Right("ATTEMPTS"), Column::Left("REASON"), Column::Left("UPDATED"),
];

pub(super) async fn run(cx: &Context, desk: &Desk, args: &ListArgs) -> Result<Exit, Failure> {
    let mut query = PageQuery {
        tab: args.status,
        filter: Filter {
            tool: args.tool.clone(),
            order: args.order.clone(),
            session: args.session.clone(),
            text: args.search.clone(),
            ..Filter::default()
        },
        sort: args.sort,
        after: args.after.clone(),
        limit: PAGE,
        ..PageQuery::default()
    };
    let mut left = args.limit.unwrap_or(u32::MAX);
    let mut printer = Printer::new(cx, desk);
    let more = loop {
        query.limit = PAGE.min(left);
        let page = desk.ledger.page(&query).await?;
        let count = u32::try_from(page.rows.len()).unwrap_or(u32::MAX);
        left = left.saturating_sub(count);
        query.after = page.rows.last().map(|r| r.row.id.clone());
        printer.page(&page.rows)?;
        if !page.more || left == 0 || count == 0 || cx.out.is_gone() {
            break page.more && !cx.out.is_gone();
        }
    };
    printer.end()?;
    if let (true, Some(last)) = (more, &query.after) {
        note_more(cx, last);
    }
    Ok(Exit::Done)
}

fn note_more(cx: &Context, last: &OperationId) {
    cx.out
        .note(&format!("more rows follow: --after {last} continues"));
}

/// Prints rows as they come.
struct Printer<'a> {
    cx: &'a Context,
    desk: &'a Desk,
    rows: usize,
}

impl<'a> Printer<'a> {
    fn new(cx: &'a Context, desk: &'a Desk) -> Self {
        Self { cx, desk, rows: 0 }
    }

    fn page(&mut self, rows: &[Listed]) -> Result<(), Failure> {
        if self.cx.out.is_json() {
            for row in rows {
                let mark = if self.rows == 0 { "[" } else { "," };
                self.cx.out.json_part(mark, &self.desk.row(row))?;
                self.rows = self.rows.saturating_add(1);
            }
            return Ok(());
        }
        if rows.is_empty() {
            return Ok(());
        }
        let cells: Vec<_> = rows.iter().map(|row| self.cells(row)).collect();
        self.rows = self.rows.saturating_add(rows.len());
        self.cx.out.text(&table::render(&COLUMNS, &cells))
    }

    fn end(&self) -> Result<(), Failure> {
        match (self.cx.out.is_json(), self.rows) {
            (true, 0) => self.cx.out.exact("[]"),
            (true, _) => self.cx.out.exact("]"),
            (false, 0) => {
                self.cx.out.note("no rows");
                Ok(())
            }
            (false, _) => Ok(()),
        }
    }

    fn cells(&self, listed: &Listed) -> Vec<String> {
        let row = &listed.row;
        let now = self.desk.clock.now();
        let word = status_word(row.status, self.desk.terms.get(&row.tool));
        let claimed = row.claimed_by(now).map(|by| format!("claimed by {by}"));
        let snoozed = row.snoozed(now);
        let snoozed = snoozed.map(|until| format!("snoozed until {}", instant(until)));
        let status: Vec<_> = [
            Some(word.to_owned()),
            row.held.then(|| "held".to_owned()),
            row.proposal.as_ref().map(|_| "proposed".to_owned()),
            row.contradicted.map(|_| "contradicted".to_owned()),
            claimed,
            snoozed,
        ]
        .into_iter()
        .flatten()
        .collect();
        let reason: &str = row.reason.map_or("", Into::into);
        let failure = row.failure_text.as_ref().map_or("", SafeText::as_str);
        vec![
            row.id.to_string(),
            row.tool.to_string(),
            row.order_id
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
            row.money.map_or_else(String::new, |m| m.to_string()),
            status.join(" "),
            format!("{}/{}", row.attempts, row.attempts_max),
            if reason.is_empty() { failure } else { reason }.to_owned(),
            instant(row.updated_at),
        ]
    }
}
