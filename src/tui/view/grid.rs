//! Small tables whose columns are as wide as what stands in them.
//!
//! Owns: which columns go where the width is short. Never: cuts a number.

use ratatui::text::Span;

use super::super::format;
use super::super::theme::{Role, Theme};
use super::ink::span;

type Spans = Vec<Span<'static>>;

/// A column; `leaves` says how early it goes where the width is short (0: never).
pub struct Head {
    pub title: &'static str,
    pub right: bool,
    pub leaves: u8,
}

/// A column of words.
pub const fn words(title: &'static str, leaves: u8) -> Head {
    Head {
        title,
        right: false,
        leaves,
    }
}

/// A column of numbers.
pub const fn numbers(title: &'static str, leaves: u8) -> Head {
    Head {
        title,
        right: true,
        leaves,
    }
}

/// One cell.
pub type Cell = (String, Role);

/// Columns of the names where the table is stacked.
const NAMES: usize = 14;
/// Narrowest column of words.
const NARROWEST: usize = 8;

/// A table ready to be laid out.
pub struct Grid<'a> {
    pub theme: &'a Theme,
    pub heads: Vec<Head>,
    pub rows: Vec<Vec<Cell>>,
}

impl Grid<'_> {
    /// The table in lines of at most `width` columns, heads first, each with a space before it; where
    /// the numbers alone do not fit, a line for each of them.
    pub fn lines(&self, width: usize) -> Vec<Spans> {
        let mut widths: Vec<Option<usize>> = (0..self.heads.len())
            .map(|n| Some(self.natural(n)))
            .collect();
        let needed =
            |widths: &[Option<usize>]| widths.iter().flatten().map(|w| w + 2).sum::<usize>();
        let mut leaving: Vec<usize> = (0..self.heads.len())
            .filter(|n| self.heads[*n].leaves > 0)
            .collect();
        leaving.sort_by_key(|n| std::cmp::Reverse(self.heads[*n].leaves));
        for n in leaving {
            if needed(&widths) > width {
                widths[n] = None;
            }
        }
        for (head, column) in self.heads.iter().zip(0..) {
            let over = needed(&widths).saturating_sub(width);
            if let Some(columns) = widths[column]
                .as_mut()
                .filter(|w| !head.right && **w > NARROWEST)
            {
                *columns = columns.saturating_sub(over).max(NARROWEST);
            }
        }
        if needed(&widths) <= width {
            self.laid_out(&widths)
        } else {
            self.stacked()
        }
    }

    fn stacked(&self) -> Vec<Spans> {
        let named = |(head, (text, role)): (&Head, &Cell)| {
            let name = format::cell(head.title.trim(), NAMES, false, "");
            vec![
                span(self.theme, Role::Dim, format!(" {name} ")),
                span(self.theme, *role, text),
            ]
        };
        let rows = self.rows.iter();
        rows.flat_map(|row| self.heads.iter().zip(row).map(named))
            .collect()
    }

    fn natural(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|r| r.get(column));
        let widest = cells
            .map(|(text, _)| format::width(&format::clean(text)))
            .max();
        widest
            .unwrap_or(0)
            .max(format::width(self.heads[column].title))
    }

    fn laid_out(&self, widths: &[Option<usize>]) -> Vec<Spans> {
        let heads = self.heads.iter().map(|h| (h.title.to_owned(), Role::Dim));
        let rows = self.rows.iter().cloned();
        std::iter::once(heads.collect::<Vec<Cell>>())
            .chain(rows)
            .map(|row| self.line(row, widths))
            .collect()
    }

    fn line(&self, row: Vec<Cell>, widths: &[Option<usize>]) -> Spans {
        let mut spans = vec![Span::raw(" ")];
        let mut first = true;
        for ((head, width), (text, role)) in self.heads.iter().zip(widths).zip(row) {
            let Some(width) = width else {
                continue;
            };
            if !first {
                spans.push(Span::raw("  "));
            }
            first = false;
            let text = format::cell(&text, *width, head.right, self.theme.glyphs.ellipsis);
            spans.push(span(self.theme, role, text));
        }
        spans
    }
}
