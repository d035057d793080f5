//! The first line: where one is, whether the engine runs, how old the screen is, who one is.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::super::format;
use super::super::message::{EngineState, Engines};
use super::super::model::{Freshness, Model};
use super::super::theme::Role;
use super::ink::{self, span};

/// How long left and right are, from the fullest to the barest: first the pulse goes, then the words get
/// shorter, the ledger's name, the program's, the counts, the person's role and name go. Where one is, how old that
/// is, and that nobody can act never do (U17, U20).
const FORMS: [(u8, u8); 9] = [
    (6, 2),
    (5, 2),
    (4, 2),
    (3, 2),
    (2, 2),
    (1, 2),
    (1, 1),
    (0, 1),
    (0, 0),
];

/// Draws the longest form that fits.
pub fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let columns = usize::from(area.width);
    let (left, right) = FORMS
        .into_iter()
        .map(|(l, r)| (left(model, l), person(model, r)))
        .find(|(left, right)| ink::width(left) + ink::width(right) < columns)
        .unwrap_or_else(|| (left(model, 0), person(model, 0)));
    ink::ends(frame, area, left, right, model.theme.glyphs.ellipsis);
}

/// Everything from the left; `level` 6 is the longest.
fn left(model: &Model, level: u8) -> Vec<Span<'static>> {
    let theme = &model.theme;
    let gap = || Span::raw(if level > 2 { "  " } else { " " });
    let mut out = Vec::new();
    if level > 1 {
        out.push(span(theme, Role::Strong, " samekey"));
        out.push(gap());
    }
    out.extend(environment(model));
    out.push(gap());
    if level > 3 {
        let ledger = format::fit(&model.environment.ledger, 24, theme.glyphs.ellipsis);
        out.push(span(theme, Role::Dim, ledger));
        out.push(gap());
    }
    out.extend(engine(model, level));
    if let Some(counts) = model.counts.filter(|_| level > 0) {
        let (queue, flight) = match level {
            1 => ("q", "fly"),
            2 => ("queue", "flight"),
            _ => ("queue", "in flight"),
        };
        for (word, count) in [(queue, counts.queued), (flight, counts.in_flight)] {
            out.push(gap());
            let role = if count > 0 { Role::Text } else { Role::Dim };
            out.push(span(theme, role, format!("{word} {count}")));
        }
    }
    let pulse = model.pulse.closed();
    if level > 5 && !pulse.is_empty() {
        out.push(gap());
        let spark = format::spark(&pulse, pulse.len(), &theme.glyphs.spark);
        out.push(span(theme, Role::Good, spark));
    }
    out.push(gap());
    out.extend(as_of(model, level));
    out
}

fn environment(model: &Model) -> Vec<Span<'static>> {
    let environment = &model.environment;
    let role = if environment.is_live() {
        Role::Live
    } else {
        Role::Calm
    };
    let mode = environment.mode.to_uppercase();
    if environment.provider.is_empty() && mode.is_empty() {
        return vec![span(&model.theme, Role::Warn, "NO PROVIDER")];
    }
    let text = if environment.provider.is_empty() {
        format!(" {mode} ")
    } else {
        format!(" {mode} {} ", environment.provider)
    };
    // The sign holds the warning where neither colour nor reverse reaches the eye.
    let text = if environment.is_live() {
        let sign = model.theme.glyphs.alarm;
        format!("{sign}{text}{sign}")
    } else {
        text.trim().to_owned()
    };
    vec![span(&model.theme, role, text)]
}

fn engine(model: &Model, level: u8) -> Vec<Span<'static>> {
    let theme = &model.theme;
    let health = &model.health;
    let (glyph, role, word) = match &health.state {
        EngineState::None => match model.engines {
            Engines { alive: 0, .. } => (theme.glyphs.dash, Role::Warn, "no engine".to_owned()),
            Engines { workers, .. } if level > 4 => {
                let word = format!("engine elsewhere, {workers} workers");
                (theme.glyphs.dot, Role::Good, word)
            }
            Engines { .. } => (theme.glyphs.dot, Role::Good, "elsewhere".to_owned()),
        },
        EngineState::Checking => (theme.glyphs.open, Role::Warn, "checking".to_owned()),
        EngineState::Running if health.alarm.is_some() => {
            (theme.glyphs.alarm, Role::Alarm, "not sending".to_owned())
        }
        EngineState::Running => {
            let word = if level > 4 {
                format!("{} workers, {} busy", health.workers, health.busy)
            } else {
                format!("{}/{}", health.busy, health.workers)
            };
            (theme.glyphs.dot, Role::Good, word)
        }
        EngineState::Draining => (theme.glyphs.dot, Role::Warn, "draining".to_owned()),
        EngineState::Stopped => (theme.glyphs.open, Role::Warn, "stopped".to_owned()),
        EngineState::Down(_) => (theme.glyphs.alarm, Role::Alarm, "DOWN".to_owned()),
    };
    let mut out = Vec::new();
    if level > 4 && health.state != EngineState::None {
        out.push(span(theme, Role::Dim, "engine "));
    }
    out.push(span(theme, role, format!("{glyph} {word}")));
    out
}

/// The age of the screen is never out of sight (U20).
fn as_of(model: &Model, level: u8) -> Vec<Span<'static>> {
    let theme = &model.theme;
    let Some(as_of) = model.as_of() else {
        return vec![span(theme, Role::Dim, "not read yet")];
    };
    let clock = model.stamp().clock(as_of);
    let (role, text) = match model.freshness() {
        Freshness::Never | Freshness::Fresh if level > 3 => (Role::Dim, format!("as of {clock}")),
        Freshness::Never | Freshness::Fresh => (Role::Dim, clock),
        Freshness::Stale => (
            Role::Warn,
            format!("STALE {} old", format::age(as_of, model.now)),
        ),
        Freshness::Old => (
            Role::Alarm,
            format!(
                "{}STALE {} old",
                theme.glyphs.alarm,
                format::age(as_of, model.now)
            ),
        ),
    };
    let mut out = Vec::new();
    if model.reading.paused {
        out.push(span(theme, Role::Warn, "PAUSED "));
    }
    out.push(span(theme, role, text));
    out
}

/// Who one is; `level` 2 with the role, 0 without the name.
fn person(model: &Model, level: u8) -> Vec<Span<'static>> {
    let theme = &model.theme;
    let mut out = Vec::new();
    if level > 0 {
        let name = format::fit(model.person.name.as_str(), 16, theme.glyphs.ellipsis);
        out.push(span(theme, Role::Text, format!("{name} ")));
    }
    if level > 1 {
        let role: &str = model.person.role.into();
        out.push(span(
            theme,
            Role::Dim,
            format!("{} {role} ", theme.glyphs.sep),
        ));
    }
    if matches!(model.access, super::super::action::Access::ReadOnly) {
        out.push(span(theme, Role::Warn, "READ-ONLY "));
    }
    out
}
