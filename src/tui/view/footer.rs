//! The last two lines: notices and position on the lower rule, hints below; while a filter is being
//! written, the filter and what is wrong with it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::super::action::Action;
use super::super::board::Board;
use super::super::board::filter::qualifiers;
use super::super::format;
use super::super::keymap::{Context, hints};
use super::super::message::Tab;
use super::super::model::{FilterEdit, Focus, Model, Stage};
use super::super::possible;
use super::super::query::QUALIFIERS;
use super::super::theme::Role;
use super::ink::{self, span};
use super::layout::Regions;
use super::{detail, report, rule_role, tabs};

type Spans = Vec<Span<'static>>;

/// Draws both lines.
pub fn draw(model: &Model, frame: &mut Frame<'_>, regions: &Regions) {
    if let Some(edit) = &model.filter_edit {
        filter(model, frame, regions, edit);
    } else {
        rule(model, frame, regions.footer);
        keys(model, frame, regions.hints);
    }
}

fn rule(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let theme = &model.theme;
    let glyph = theme.glyphs.rule;
    let role = rule_role(model);
    let mut left: Spans = vec![span(theme, role, glyph.repeat(2))];
    for (role, text) in says(model) {
        left.push(span(theme, role, format!(" {text} ")));
        left.push(span(theme, rule_role(model), glyph));
    }
    let right = position(model);
    let all = usize::from(area.width);
    let right_width = if right.is_empty() {
        0
    } else {
        format::width(&right) + 3
    };
    let mut spans = left;
    let used = ink::width(&spans);
    if used + right_width < all {
        spans.push(span(theme, role, glyph.repeat(all - used - right_width)));
        if !right.is_empty() {
            spans.push(span(theme, Role::Dim, format!(" {right} ")));
            spans.push(span(theme, role, glyph));
        }
    }
    ink::line(frame, area, spans, theme.glyphs.ellipsis);
}

/// What has to be said now, most urgent first.
fn says(model: &Model) -> Vec<(Role, String)> {
    let mut out = Vec::new();
    if let Some(quitting) = &model.quitting {
        let flight = model.counts.map_or(0, |c| c.in_flight);
        let since = format::age(quitting.since, model.now);
        let text = format!("stopping for {since}: {flight} in flight; ctrl-c leaves at once");
        return vec![(Role::Warn, text)];
    }
    if model
        .dialog
        .as_ref()
        .is_some_and(|d| d.stage == Stage::Asking)
    {
        out.push((
            Role::Dim,
            format!("asking{} esc cancels", model.theme.glyphs.wait),
        ));
    }
    let filter = filter_text(model);
    if let Some(notice) = &model.notice {
        out.push((notice.role, notice.text.clone()));
    } else if !filter.is_empty() {
        out.push((Role::Warn, format!("filter {filter}")));
    }
    out.extend(marks(model).filter(|_| model.board.is_none()));
    let (new, follows) = match model.board.map(|b| model.boards.standing(b)) {
        None => (model.list.new, model.list.follow && model.list.loaded),
        Some(standing) => standing.map_or((0, false), |s| (s.new, s.follows)),
    };
    if new > 0 {
        out.push((Role::Key, format!("+{new} new: . shows them")));
    }
    if follows {
        out.push((Role::Dim, "following".to_owned()));
    }
    out
}

/// How many rows are marked, and whether all of them can be seen here (U18).
fn marks(model: &Model) -> Option<(Role, String)> {
    let all = model.marks.len();
    let listed = model.list.entries().iter();
    let here = listed.filter(|e| model.marks.contains(e.id())).count();
    let text = match all - here {
        0 => format!("{all} marked"),
        others => format!("{all} marked, {others} not in this list"),
    };
    (all > 0).then_some((Role::Key, text))
}

/// The filter in force on the page that is shown.
fn filter_text(model: &Model) -> &str {
    match model.board {
        None => &model.filter_text,
        Some(board) => model.boards.filter_text(board).unwrap_or_default(),
    }
}

/// Which rows are on the screen, of how many.
fn position(model: &Model) -> String {
    if let Some(board) = model.board {
        return board_position(model, board);
    }
    let list = &model.list;
    if list.visible().is_empty() {
        return String::new();
    }
    if model.focus == Focus::Detail {
        let (first, end, all) = detail::position(model);
        let more = if end < all { ", j for more" } else { "" };
        return format!("lines {first} to {end} of {all}{more}");
    }
    let at = list.index().map_or(0, |i| i + 1);
    let loaded = list.entries().len();
    if list.more_above {
        return format!("row {at} of {loaded} loaded");
    }
    let total = model.counts.filter(|_| model.filter_text.is_empty());
    match total.map(|c| tabs::counted(&c, model.tab)) {
        Some(total) if list.more_below => format!("{at} of {total}"),
        _ if list.more_below => format!("{at} of {loaded}+"),
        _ => format!("{at} of {loaded}"),
    }
}

fn board_position(model: &Model, board: Board) -> String {
    if let (Board::Report, Some(_)) = (board, &model.boards.report.report) {
        let (first, end, all) = report::position(model);
        return match (first, end < all) {
            (1, false) => String::new(),
            (_, true) => format!("lines {first} to {end} of {all}, j for more"),
            (_, false) => format!("lines {first} to {end} of {all}"),
        };
    }
    match model.boards.standing(board) {
        Some(s) if s.loaded > 0 && s.more_above => format!("row {} of {} loaded", s.at, s.loaded),
        Some(s) if s.loaded > 0 && s.more_below => format!("{} of {}+", s.at, s.loaded),
        Some(s) if s.loaded > 0 => format!("{} of {}", s.at, s.loaded),
        _ => String::new(),
    }
}

fn keys(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let theme = &model.theme;
    let context = match model.context() {
        // They carry their own hints.
        Context::Dialog | Context::Pager | Context::Menu => return,
        other => other,
    };
    let all = usize::from(area.width);
    let mut shown: Vec<(Action, Spans)> = hints(context)
        .filter_map(|(action, key, word)| {
            let word = word_of(model, context, action, word)?;
            Some((action, hint(model, &key, word)))
        })
        .collect();
    // Where letters are text there is no help key.
    let help = match hints(context).find(|(action, ..)| *action == Action::Help) {
        Some((_, key, word)) => hint(model, &key, word),
        None => Vec::new(),
    };
    let width = |shown: &[(Action, Spans)]| shown.iter().map(|(_, s)| ink::width(s)).sum::<usize>();
    for dropped in DROPPED {
        if width(&shown) + ink::width(&help) >= all {
            shown.retain(|(action, _)| *action != dropped);
        }
    }
    while width(&shown) + ink::width(&help) >= all && shown.pop().is_some() {}
    let spans = shown.into_iter().flat_map(|(_, s)| s).collect();
    ink::ends(frame, area, spans, help, theme.glyphs.ellipsis);
}

/// Hints that go first where there is no room for all; what settles a row stays longest.
const DROPPED: [Action; 6] = [
    Action::Claim,
    Action::Evidence,
    Action::Quit,
    Action::Palette,
    Action::Filter,
    Action::Note,
];

/// The word of a hint; none where the action would come to nothing.
fn word_of(
    model: &Model,
    context: Context,
    action: Action,
    word: &'static str,
) -> Option<&'static str> {
    if context == model.page() && possible::does_not_apply(model, action).is_some() {
        return None;
    }
    Some(match action {
        Action::CloseSucceeded => success_word(model),
        Action::Help => return None,
        Action::Evidence if model.detail.evidence => "timeline",
        Action::Back if context == Context::List && !model.marks.is_empty() => "unmark",
        Action::Back if context == Context::List && model.filter_text.is_empty() => return None,
        Action::Back if context == Context::List => "clear filter",
        Action::Back if context == Context::Board && !filter_text(model).is_empty() => {
            "clear filter"
        }
        Action::Quit if context != Context::List => return None,
        _ => word,
    })
}

fn success_word(model: &Model) -> &'static str {
    let row = model.list.current().map(|e| &e.listed.row);
    row.map_or("succeeded", |r| model.word(&r.tool))
}

fn hint(model: &Model, key: &str, word: &str) -> Spans {
    vec![
        span(&model.theme, Role::Key, format!(" {key}")),
        span(&model.theme, Role::Dim, format!(" {word} ")),
    ]
}

fn filter(model: &Model, frame: &mut Frame<'_>, regions: &Regions, edit: &FilterEdit) {
    let theme = &model.theme;
    let area = regions.footer;
    let room = usize::from(area.width).saturating_sub(3);
    let skip = (edit.field.caret() + 1).saturating_sub(room);
    let shown: String = edit.field.text().chars().skip(skip).collect();
    let spans = vec![
        span(theme, Role::Key, " /"),
        span(theme, Role::Text, format::cell(&shown, room, false, "")),
    ];
    ink::line(frame, area, spans, "");
    let caret = u16::try_from(edit.field.caret() - skip + 2).unwrap_or(0);
    frame.set_cursor_position((area.x + caret.min(area.width.saturating_sub(1)), area.y));
    let below = match &edit.fault {
        None => {
            let tab = if model.tab == Tab::Review {
                "enter applies, esc leaves.  "
            } else {
                "enter applies.  "
            };
            let words = model.board.map_or(QUALIFIERS, qualifiers);
            vec![span(theme, Role::Dim, format!("  {tab}{words}"))]
        }
        Some(fault) => {
            // Under the wrong word, but never so far right that the reason falls off the screen.
            let says = format!("{} {}", "^".repeat(fault.width), fault.says);
            let start = fault.start.saturating_sub(skip) + 2;
            let last = usize::from(area.width).saturating_sub(format::width(&says).min(56));
            let start = start.min(last);
            vec![Span::raw(" ".repeat(start)), span(theme, Role::Alarm, says)]
        }
    };
    ink::line(frame, regions.hints, below, theme.glyphs.ellipsis);
}
