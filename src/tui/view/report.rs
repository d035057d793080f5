//! The report: outcomes, money, how the span went, and how long resolution took.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;
use strum::VariantArray as _;

use super::super::board;
use super::super::format;
use super::super::model::Model;
use super::super::theme::Role;
use super::grid::{Cell, Grid, numbers, words};
use super::ink::{self, span};
use crate::domain::report::{Figures, Report, Slot, Sums};

type Spans = Vec<Span<'static>>;

/// Columns of the names on the left.
const NAMES: usize = 12;

/// Draws it.
pub fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let lines = lines(model, usize::from(area.width));
    let first = model
        .boards
        .report
        .scroll
        .min(last_scroll(lines.len(), area));
    for (n, spans) in lines.into_iter().skip(first).enumerate() {
        ink::line(frame, ink::row(area, n), spans, model.theme.glyphs.ellipsis);
    }
    frame.set_cursor_position((area.x, area.y));
}

fn last_scroll(lines: usize, area: Rect) -> usize {
    lines.saturating_sub(usize::from(area.height))
}

/// How far the report can be scrolled.
pub fn scroll_limit(model: &Model) -> usize {
    let area = super::layout::of(model).board;
    last_scroll(lines(model, usize::from(area.width)).len(), area)
}

/// Which lines are on the screen: first, last, all.
pub fn position(model: &Model) -> (usize, usize, usize) {
    let area = super::layout::of(model).board;
    let all = lines(model, usize::from(area.width)).len();
    let first = model.boards.report.scroll.min(last_scroll(all, area));
    (first + 1, (first + usize::from(area.height)).min(all), all)
}

fn lines(model: &Model, width: usize) -> Vec<Spans> {
    let mut out = vec![switch(model)];
    let Some(report) = &model.boards.report.report else {
        let text = format!("   adding up the ledger{}", model.theme.glyphs.wait);
        out.push(Vec::new());
        out.push(vec![span(&model.theme, Role::Dim, text)]);
        return out;
    };
    if report.total.operations() == 0 {
        out.push(Vec::new());
        let text = "   No operation was opened in this span.";
        out.push(vec![span(&model.theme, Role::Dim, text)]);
        oldest(model, report, &mut out);
        return out;
    }
    out.push(Vec::new());
    outcomes(model, report, width, &mut out);
    out.push(Vec::new());
    money(model, report, width, &mut out);
    oldest(model, report, &mut out);
    out.push(Vec::new());
    course(model, report, width, &mut out);
    out.push(Vec::new());
    histogram(model, report, width, &mut out);
    out
}

/// The spans to choose from, and when the figures were read.
fn switch(model: &Model) -> Spans {
    let theme = &model.theme;
    let page = &model.boards.report;
    let mut out = vec![span(theme, Role::Dim, " opened within ")];
    for choice in board::Span::VARIANTS {
        let here = *choice == page.span;
        let role = if here { Role::Cursor } else { Role::Text };
        out.push(span(theme, role, format!(" {} ", choice.word())));
    }
    if let Some(report) = &page.report {
        let (at, sep) = (model.stamp().clock(report.until), theme.glyphs.sep);
        let took = format::took(page.took);
        out.push(span(
            theme,
            Role::Dim,
            format!("  {sep}  as of {at}, read in {took}"),
        ));
    }
    out
}

fn everybody(report: &Report) -> impl Iterator<Item = (String, &Figures)> {
    let tools = report.tools.iter().map(|(tool, f)| (tool.to_string(), f));
    let several = report.tools.len() > 1;
    let all = several.then(|| ("all tools".to_owned(), &report.total));
    all.into_iter().chain(tools)
}

fn outcomes(model: &Model, report: &Report, width: usize, out: &mut Vec<Spans>) {
    let glyphs = &model.theme.glyphs;
    let count = |n: u64, role| {
        let role = if n == 0 { Role::Dim } else { role };
        (format::grouped(&n.to_string()), role)
    };
    let time = |t: Option<Duration>| match t {
        Some(t) => (format::took(t), Role::Text),
        None => (glyphs.dash.to_owned(), Role::Dim),
    };
    let rows = everybody(report).map(|(name, f)| {
        let each = f.attempts_each();
        let each = each.map_or_else(String::new, |n| format!("{}.{:02}", n / 100, n % 100));
        let cells: Vec<Cell> = vec![
            (name, Role::Text),
            count(f.operations(), Role::Strong),
            count(f.succeeded, Role::Succeeded),
            count(f.failed, Role::Failed),
            count(f.open, Role::Open),
            count(f.unknown, Role::Unknown),
            count(f.contradicted, Role::Alarm),
            (each, Role::Text),
            time(f.p50),
            time(f.p95),
        ];
        cells
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    let wide = width >= 120;
    let heads = vec![
        words("TOOL", 0),
        numbers(if wide { "OPERATIONS" } else { "OPS" }, 0),
        numbers(if wide { "SUCCEEDED" } else { "SUCC" }, 0),
        numbers(if wide { "FAILED" } else { "FAIL" }, 0),
        numbers("OPEN", 0),
        numbers(if wide { "UNKNOWN" } else { "UNK" }, 0),
        numbers(if wide { "CONTRADICTED" } else { "CONTRA" }, 0),
        numbers(if wide { "ATTEMPTS EACH" } else { "ATT" }, 4),
        numbers("P50", 2),
        numbers("P95", 1),
    ];
    let grid = Grid {
        theme: &model.theme,
        heads,
        rows,
    };
    out.extend(grid.lines(width));
}

/// The four sums by name.
fn sums(s: &Sums) -> [(&'static str, i128, Role); 4] {
    [
        ("REFUNDED", s.refunded, Role::Succeeded),
        ("AT RISK", s.at_risk, Role::Unknown),
        ("REFUSED", s.refused, Role::Failed),
        ("WAITING", s.waiting, Role::Text),
    ]
}

fn money(model: &Model, report: &Report, width: usize, out: &mut Vec<Spans>) {
    let theme = &model.theme;
    let rows = everybody(report)
        .flat_map(|(name, f)| f.money.iter().map(move |(c, s)| (name.clone(), *c, s)))
        .map(|(name, currency, s)| {
            let mut cells = vec![(name, Role::Text), (currency.code(), Role::Text)];
            cells.extend(sums(s).map(|(_, minor, role)| {
                let role = if minor == 0 { Role::Dim } else { role };
                let decimal = crate::domain::money::decimal(minor, currency);
                (format::grouped(&decimal), role)
            }));
            cells
        });
    let mut heads = vec![words("MONEY", 0), words("", 0)];
    heads.extend(sums(&Sums::default()).map(|(name, _, _)| numbers(name, 0)));
    let grid = Grid {
        theme,
        heads,
        rows: rows.collect(),
    };
    out.extend(grid.lines(width));
}

fn oldest(model: &Model, report: &Report, out: &mut Vec<Spans>) {
    let Some((id, at)) = &report.oldest_unknown else {
        return;
    };
    let (theme, age) = (&model.theme, format::age(*at, model.now));
    let id = format::short_id(id, theme.glyphs.ellipsis);
    out.push(Vec::new());
    out.push(vec![
        span(theme, Role::Dim, " OLDEST UNKNOWN  "),
        span(
            theme,
            Role::Unknown,
            format!("{} {id}", theme.glyphs.unknown),
        ),
        span(
            theme,
            Role::Text,
            format!("  unknown for {age}, whenever it was opened"),
        ),
    ]);
}

/// How the span went, slot by slot.
fn course(model: &Model, report: &Report, width: usize, out: &mut Vec<Spans>) {
    let theme = &model.theme;
    let marks = width
        .saturating_sub(NAMES + 12)
        .clamp(1, report.slots.len().max(1));
    let of = |pick: fn(&Slot) -> u64| report.slots.iter().map(pick).collect::<Vec<u64>>();
    let rows = [
        ("opened", of(|s| s.opened), Role::Open),
        ("unknown", of(|s| s.unknown), Role::Unknown),
        ("failed", of(|s| s.failed), Role::Failed),
    ];
    let each = report.slots.len().div_ceil(marks);
    let each = u32::try_from(each).unwrap_or(1);
    let slot = format::span(report.slot.saturating_mul(each));
    let head = format!(" OVER TIME, each mark {slot}");
    out.push(vec![span(theme, Role::Dim, head)]);
    for (name, values, role) in rows {
        let total: u64 = values.iter().fold(0, |sum, n| sum.saturating_add(*n));
        let spark = format::spark(&values, marks, &theme.glyphs.spark);
        let role = if total == 0 { Role::Dim } else { role };
        out.push(vec![
            span(
                theme,
                Role::Text,
                format!(" {}", format::cell(name, NAMES, false, "")),
            ),
            span(theme, role, spark),
            span(
                theme,
                Role::Text,
                format!(" {}", format::grouped(&total.to_string())),
            ),
        ]);
    }
}

fn histogram(model: &Model, report: &Report, width: usize, out: &mut Vec<Spans>) {
    let theme = &model.theme;
    out.push(vec![span(theme, Role::Dim, " TIME TO RESOLUTION")]);
    let most = report.histogram.iter().map(|(_, n)| *n).max().unwrap_or(0);
    let room = width.saturating_sub(NAMES + 12).min(60);
    let full = theme.glyphs.spark[7];
    for (bound, n) in &report.histogram {
        let name = bound.map_or_else(
            || "longer".to_owned(),
            |b| format!("to {}", format::span(b)),
        );
        let share = u128::from(*n) * room as u128 / u128::from(most.max(1));
        let marks = usize::try_from(share)
            .unwrap_or(room)
            .max(usize::from(*n > 0));
        let role = if *n == 0 { Role::Dim } else { Role::Text };
        out.push(vec![
            span(
                theme,
                Role::Text,
                format!(" {}", format::cell(&name, NAMES, false, "")),
            ),
            span(theme, Role::Open, full.repeat(marks)),
            span(theme, role, format!(" {}", format::grouped(&n.to_string()))),
        ]);
    }
}
