//! Aligned text tables for people; scripts use `--json`.

use unicode_width::UnicodeWidthStr as _;

use crate::domain::text::SafeText;

/// Widest cell; longer ones are cut with `…`.
const WIDEST: usize = 48;

/// A column.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    Left(&'static str),
    /// Numbers and amounts.
    Right(&'static str),
}

impl Column {
    fn name(self) -> &'static str {
        match self {
            Self::Left(name) | Self::Right(name) => name,
        }
    }
}

/// Lays out `rows` under `columns`; outside text in cells is made harmless.
#[must_use]
pub fn render(columns: &[Column], rows: &[Vec<String>]) -> String {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|c| cut(SafeText::new(c).as_str())).collect())
        .collect();
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(i, column)| {
            let widest = cells.iter().filter_map(|r| r.get(i)).map(|c| c.width());
            widest.max().unwrap_or(0).max(column.name().len())
        })
        .collect();
    let line = |texts: Vec<&str>| {
        let parts = columns.iter().zip(&widths).zip(texts);
        let padded = parts.map(|((column, width), text)| {
            let fill = " ".repeat(width.saturating_sub(text.width()));
            match column {
                Column::Left(_) => format!("{text}{fill}"),
                Column::Right(_) => format!("{fill}{text}"),
            }
        });
        let line: Vec<String> = padded.collect();
        line.join("  ").trim_end().to_owned()
    };
    let mut out = vec![line(columns.iter().map(|c| c.name()).collect())];
    out.extend(
        cells
            .iter()
            .map(|row| line(row.iter().map(String::as_str).collect())),
    );
    out.join("\n")
}

fn cut(text: &str) -> String {
    if text.width() <= WIDEST {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if out.width().saturating_add(2) > WIDEST {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_what_the_terminal_shows() {
        let columns = [Column::Left("NAME"), Column::Right("AMOUNT")];
        let rows = [
            vec!["漢字".to_owned(), "1".to_owned()],
            vec!["a".to_owned(), "USD 38.00".to_owned()],
        ];
        let text = render(&columns, &rows);
        assert_eq!(text, "NAME     AMOUNT\n漢字          1\na     USD 38.00");
    }

    #[test]
    fn a_cell_is_cut_and_harmless() {
        let rows = [vec![format!("\u{1b}[2J{}", "x".repeat(100))]];
        let text = render(&[Column::Left("A")], &rows);
        let cell = text.lines().nth(1).expect("a row");
        assert!(cell.starts_with("␛[2Jx") && cell.ends_with('…'));
        assert!(cell.width() <= WIDEST);
    }
}
