//! One operation: how it stands, what settles it, the provider's objects beside it, its timeline.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use ratatui::widgets::Clear;

use super::super::format;
use super::super::message::DetailView;
use super::super::model::{Focus, Model};
use super::super::theme::Role;
use super::ink::{self, span};
use super::layout::Regions;
use super::{evidence, facts, rule_role, table, timeline};

type Spans = Vec<Span<'static>>;

/// Draws it where the layout has room for it.
pub fn draw(model: &Model, frame: &mut Frame<'_>, regions: &Regions) {
    let area = regions.detail;
    if area.is_empty() {
        return;
    }
    frame.render_widget(Clear, area);
    let inner = frame_of(model, frame, regions);
    let lines = lines(model, usize::from(inner.width));
    let first = model
        .detail
        .scroll
        .min(last_scroll(lines.len(), inner.height));
    for (n, spans) in lines.into_iter().skip(first).enumerate() {
        ink::line(
            frame,
            ink::row(inner, n),
            spans,
            model.theme.glyphs.ellipsis,
        );
    }
    if model.focus == Focus::Detail {
        frame.set_cursor_position((inner.x, inner.y));
    }
}

/// Which lines are on the screen: first, last, all.
pub fn position(model: &Model) -> (usize, usize, usize) {
    let regions = super::layout::of(model);
    let inner = inner(regions.detail, &regions);
    let all = lines(model, usize::from(inner.width)).len();
    let first = model.detail.scroll.min(last_scroll(all, inner.height));
    (first + 1, (first + usize::from(inner.height)).min(all), all)
}

/// How far the detail of `model` can be scrolled.
pub fn scroll_limit(model: &Model) -> usize {
    let regions = super::layout::of(model);
    let inner = inner(regions.detail, &regions);
    last_scroll(lines(model, usize::from(inner.width)).len(), inner.height)
}

fn last_scroll(lines: usize, height: u16) -> usize {
    lines.saturating_sub(usize::from(height))
}

/// The area within the line that sets the detail apart from the list.
fn inner(area: Rect, regions: &Regions) -> Rect {
    if !regions.both() {
        area
    } else if area.x > 0 {
        Rect {
            x: area.x + 2,
            width: area.width.saturating_sub(2),
            ..area
        }
    } else {
        Rect {
            y: area.y + 1,
            height: area.height.saturating_sub(1),
            ..area
        }
    }
}

fn frame_of(model: &Model, frame: &mut Frame<'_>, regions: &Regions) -> Rect {
    let (area, glyphs, theme) = (regions.detail, &model.theme.glyphs, &model.theme);
    let role = if model.focus == Focus::Detail {
        Role::Key
    } else {
        rule_role(model)
    };
    if regions.both() && area.x > 0 {
        for n in 0..usize::from(area.height) {
            ink::line(
                frame,
                ink::row(area, n),
                vec![span(theme, role, glyphs.bar)],
                "",
            );
        }
    } else if regions.both() {
        let text = glyphs.rule.repeat(usize::from(area.width));
        ink::line(frame, ink::row(area, 0), vec![span(theme, role, text)], "");
    }
    inner(area, regions)
}

/// All lines for a width.
pub fn lines(model: &Model, width: usize) -> Vec<Spans> {
    let theme = &model.theme;
    let Some(view) = model.detail_view() else {
        let text = match (&model.detail.problem, model.list.cursor()) {
            (Some(problem), _) => problem.clone(),
            (None, cursor) if cursor.is_some() || !model.list.loaded => {
                format!("reading the operation{}", theme.glyphs.wait)
            }
            (None, _) => "No operation is selected.".to_owned(),
        };
        return vec![vec![span(theme, Role::Dim, format!(" {text}"))]];
    };
    let mut out = Vec::new();
    head(model, view, &mut out);
    if model.detail.evidence {
        evidence::lines(model, view, width, &mut out);
        return out;
    }
    facts::facts(model, view, width, &mut out);
    facts::closings(model, view, width, &mut out);
    facts::provider_objects(model, view, width, &mut out);
    section(model, "TIMELINE", &mut out);
    history(model, view, width, &mut out);
    out
}

/// A heading with an empty line before it.
pub fn section(model: &Model, title: &str, out: &mut Vec<Spans>) {
    out.push(Vec::new());
    out.push(vec![span(&model.theme, Role::Dim, format!(" {title}"))]);
}

fn head(model: &Model, view: &DetailView, out: &mut Vec<Spans>) {
    let (theme, row) = (&model.theme, &view.detail.op.row);
    let (status, role) = table::status(model, row, view.detail.driver.is_some());
    let why = table::reason(row);
    let before = if row.money.is_some() { "  " } else { " " };
    let mut spans = vec![
        span(
            theme,
            Role::Strong,
            row.money
                .map_or_else(String::new, |m| format!(" {}", format::money(m))),
        ),
        span(theme, Role::Text, format!("{before}{}  ", row.subject())),
        span(theme, role, status),
    ];
    if !why.is_empty() {
        spans.push(span(theme, Role::Text, format!("  {why}")));
    }
    out.push(spans);
    out.push(vec![span(theme, Role::Text, format!(" {}", row.id))]);
}

fn history(model: &Model, view: &DetailView, width: usize, out: &mut Vec<Spans>) {
    let (theme, stamp) = (&model.theme, model.stamp());
    let entries = timeline::entries(view, stamp);
    let at_width = entries
        .iter()
        .map(|e| format::width(&stamp.at(e.at)))
        .max()
        .unwrap_or(0);
    for entry in entries {
        let at = format::cell(&stamp.at(entry.at), at_width, true, "");
        let kind = format::cell(entry.kind, 9, false, "");
        let room = width.saturating_sub(at_width + 13);
        for (n, line) in format::wrap(&entry.text, room).into_iter().enumerate() {
            let (at, kind) = if n == 0 {
                (at.clone(), kind.clone())
            } else {
                (" ".repeat(at_width), " ".repeat(9))
            };
            out.push(vec![
                span(theme, Role::Dim, format!(" {at}  ")),
                span(theme, Role::Dim, kind),
                Span::styled(" ", Style::new()),
                span(theme, entry.role, line),
            ]);
        }
    }
}
