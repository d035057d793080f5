//! Pieces of text with a role: the one way into the frame, and through the sanitiser.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::format;
use super::super::theme::{Role, Theme};

/// Text as `role`, harmless.
pub fn span(theme: &Theme, role: Role, text: impl AsRef<str>) -> Span<'static> {
    Span::styled(format::clean(text.as_ref()), theme.style(role))
}

/// Columns of a line.
pub fn width(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|s| format::width(&s.content)).sum()
}

/// Spans cut to `max` columns.
pub fn cut(spans: Vec<Span<'static>>, max: usize, ellipsis: &str) -> Line<'static> {
    let mut used = 0;
    let mut out: Vec<Span<'static>> = Vec::new();
    for span in spans {
        let columns = format::width(&span.content);
        if used + columns <= max {
            used += columns;
            out.push(span);
            continue;
        }
        let text = format::fit(&span.content, max - used, ellipsis);
        out.push(Span::styled(text, span.style));
        break;
    }
    Line::from(out)
}

/// Draws one line into `area`, cut to it.
pub fn line(frame: &mut Frame<'_>, area: Rect, spans: Vec<Span<'static>>, ellipsis: &str) {
    let area = area.intersection(frame.area());
    if !area.is_empty() {
        frame.render_widget(cut(spans, usize::from(area.width), ellipsis), area);
    }
}

/// Draws `left` and, where both fit, `right` at the other end.
pub fn ends(
    frame: &mut Frame<'_>,
    area: Rect,
    left: Vec<Span<'static>>,
    right: Vec<Span<'static>>,
    ellipsis: &str,
) {
    let (l, r, all) = (width(&left), width(&right), usize::from(area.width));
    let mut spans = left;
    if l + r < all {
        spans.push(Span::raw(" ".repeat(all - l - r)));
        spans.extend(right);
    }
    line(frame, area, spans, ellipsis);
}

/// The line `n` of an area; empty where it has none.
pub fn row(area: Rect, n: usize) -> Rect {
    match u16::try_from(n) {
        Ok(n) if n < area.height => Rect {
            y: area.y + n,
            height: 1,
            ..area
        },
        _ => Rect::default(),
    }
}
