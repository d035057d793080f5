//! Engines, tools and providers: what sends, what stands still and why, and how much of each rate is left.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::super::board::{EngineView, ToolView};
use super::super::format;
use super::super::message::EngineState;
use super::super::model::Model;
use super::super::theme::Role;
use super::grid::{Cell, Grid, numbers, words};
use super::ink::{self, span};
use crate::domain::policy::{CircuitState, ProviderKind, Rate};
use crate::domain::recovery::CLASSES;
use crate::domain::{Instant, since};
use crate::ledger::EngineSeen;

type Spans = Vec<Span<'static>>;

/// An engine that was silent for longer is gone.
const ALIVE: std::time::Duration = std::time::Duration::from_mins(1);

/// Draws it, and puts the terminal's cursor on the tool that is selected.
pub fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let (lines, cursor) = lines(model, usize::from(area.width));
    let first = model
        .boards
        .engine
        .scroll
        .min(last_scroll(lines.len(), area));
    frame.set_cursor_position((area.x, area.y));
    for (n, spans) in lines.into_iter().enumerate().skip(first) {
        let row = ink::row(area, n - first);
        if row.is_empty() {
            break;
        }
        let here = cursor == Some(n);
        // One style over the whole row under the cursor: reversed patches of colour cannot be read.
        let spans = if here {
            let plain = |s: Span<'static>| span(&model.theme, Role::Cursor, s.content);
            spans.into_iter().map(plain).collect()
        } else {
            spans
        };
        ink::line(frame, row, spans, model.theme.glyphs.ellipsis);
        if here {
            let style = model.theme.style(Role::Cursor);
            frame.buffer_mut().set_style(row, style);
            frame.set_cursor_position((row.x, row.y));
        }
    }
}

fn last_scroll(lines: usize, area: Rect) -> usize {
    lines.saturating_sub(usize::from(area.height))
}

/// How far the board can be scrolled.
pub fn scroll_limit(model: &Model) -> usize {
    let area = super::layout::of(model).board;
    last_scroll(lines(model, usize::from(area.width)).0.len(), area)
}

/// The line of the tool under the cursor.
pub fn cursor_line(model: &Model) -> usize {
    let area = super::layout::of(model).board;
    lines(model, usize::from(area.width)).1.unwrap_or(0)
}

/// All lines for a width, and which one has the cursor.
fn lines(model: &Model, width: usize) -> (Vec<Spans>, Option<usize>) {
    let view = &model.boards.engine.view;
    let mut out = vec![this_process(model)];
    if view.as_of.is_none() {
        let text = format!("   reading the ledger{}", model.theme.glyphs.wait);
        out.push(Vec::new());
        out.push(vec![span(&model.theme, Role::Dim, text)]);
        return (out, None);
    }
    out.push(Vec::new());
    let cursor = tools(model, view, width, &mut out);
    out.push(Vec::new());
    providers(model, view, width, &mut out);
    out.push(Vec::new());
    engines(model, view, width, &mut out);
    out.push(Vec::new());
    out.push(notices(model, view));
    events(model, view, width, &mut out);
    (out, cursor)
}

/// What the provider told, once it told anything: what waits is tried again, what was quarantined needs a
/// person (`samekey events list` names it, and `events acknowledge` takes it off this line).
fn events(model: &Model, view: &EngineView, width: usize, out: &mut Vec<Spans>) {
    let (theme, counts) = (&model.theme, &view.events);
    if counts.is_empty() {
        return;
    }
    let count = |n: u64, word: &str, role: Role| {
        let role = if n == 0 { Role::Dim } else { role };
        let n = format::grouped(&n.to_string());
        span(theme, role, format!("{n} {word}  "))
    };
    out.push(vec![
        span(theme, Role::Dim, "   EVENTS   "),
        count(
            counts.waiting.saturating_add(counts.received),
            "waiting",
            Role::Warn,
        ),
        count(counts.processed, "processed", Role::Text),
        count(counts.ignored, "ignored", Role::Dim),
        count(counts.quarantined, "quarantined", Role::Alarm),
    ]);
    for trouble in &counts.troubles {
        let says = format!(
            "{}: events cannot be listed: {}",
            trouble.provider, trouble.why
        );
        for line in format::wrap(&says, width.saturating_sub(6)) {
            out.push(vec![span(theme, Role::Warn, format!("     {line}"))]);
        }
    }
}

/// What people outside have to hear: what waits, and what nobody took in time.
fn notices(model: &Model, view: &EngineView) -> Spans {
    let (theme, counts) = (&model.theme, &view.notices);
    let count = |n: u64, word: &str, role: Role| {
        let role = if n == 0 { Role::Dim } else { role };
        let n = format::grouped(&n.to_string());
        span(theme, role, format!("{n} {word}  "))
    };
    vec![
        span(theme, Role::Dim, "   NOTICES  "),
        count(counts.pending, "waiting", Role::Text),
        count(counts.sent, "sent", Role::Text),
        count(counts.gave_up, "given up", Role::Alarm),
    ]
}

fn this_process(model: &Model) -> Spans {
    let (theme, health) = (&model.theme, &model.health);
    let (glyph, role, word) = match &health.state {
        EngineState::None => (theme.glyphs.dash, Role::Dim, "no engine".to_owned()),
        EngineState::Checking => (
            theme.glyphs.open,
            Role::Warn,
            "checking the ledger".to_owned(),
        ),
        EngineState::Running => {
            let word = format!(
                "running, {} of {} workers busy",
                health.busy, health.workers
            );
            (theme.glyphs.dot, Role::Good, word)
        }
        EngineState::Draining => (theme.glyphs.dot, Role::Warn, "draining".to_owned()),
        EngineState::Stopped => (theme.glyphs.open, Role::Warn, "stopped".to_owned()),
        EngineState::Down(why) => (theme.glyphs.alarm, Role::Alarm, format!("down: {why}")),
    };
    let mut out = vec![
        span(theme, Role::Dim, " THIS PROCESS  "),
        span(theme, role, format!("{glyph} {word}")),
    ];
    if let Some(alarm) = &health.alarm {
        out.push(span(theme, Role::Alarm, format!("  {alarm}")));
    }
    out
}

fn tools(model: &Model, view: &EngineView, width: usize, out: &mut Vec<Spans>) -> Option<usize> {
    let grid = Grid {
        theme: &model.theme,
        heads: vec![
            words("  TOOL", 0),
            words("SENDS", 0),
            numbers("RATE", 0),
            numbers("NEXT", 0),
            numbers("PER CALL", 1),
            numbers("PER OPERATION", 2),
            words("RETRIES AFTER", 3),
            words("PROVIDER", 4),
        ],
        rows: view.tools.iter().map(|t| tool(model, view, t)).collect(),
    };
    let lines = grid.lines(width);
    let mut cursor = None;
    for (n, line) in lines.into_iter().enumerate() {
        let seen = n.checked_sub(1).and_then(|n| view.tools.get(n));
        if seen.is_some_and(|t| model.boards.engine.cursor.as_ref() == Some(&t.tool)) {
            cursor = Some(out.len());
        }
        out.push(line);
        if let Some(branches) = seen.and_then(recovery) {
            for line in format::wrap(&branches, width.saturating_sub(6)) {
                out.push(vec![span(&model.theme, Role::Dim, format!("     {line}"))]);
            }
        }
        if let Some(why) = seen.and_then(|t| stands(model, t)) {
            for line in format::wrap(&why, width.saturating_sub(6)) {
                out.push(vec![span(&model.theme, Role::Warn, format!("     {line}"))]);
            }
        }
    }
    if view.tools.is_empty() {
        let text = "   No tool is configured here.";
        out.push(vec![span(&model.theme, Role::Dim, text)]);
    }
    cursor
}

fn tool(model: &Model, view: &EngineView, seen: &ToolView) -> Vec<Cell> {
    let glyphs = &model.theme.glyphs;
    let here = model.boards.engine.cursor.as_ref() == Some(&seen.tool);
    let mark = if here { glyphs.cursor } else { " " };
    let mut cells = vec![
        (format!("{mark} {}", seen.tool), Role::Text),
        sends(model, seen),
    ];
    let Some(terms) = &seen.terms else {
        let elsewhere = || (glyphs.dash.to_owned(), Role::Dim);
        cells.extend((0..5).map(|_| elsewhere()));
        cells.push(("not configured here".to_owned(), Role::Dim));
        return cells;
    };
    let policy = &terms.policy;
    let (base, cap) = (policy.backoff.base, policy.backoff.cap);
    cells.extend([
        (rate(policy.rate), Role::Text),
        next(view.wait("tool", seen.tool.as_str())),
        (policy.max_per_call.to_string(), Role::Text),
        (policy.max_per_operation.to_string(), Role::Text),
        (
            format!("up to {} to {}", format::took(base), format::span(cap)),
            Role::Text,
        ),
        (policy.provider.to_string(), Role::Text),
    ]);
    cells
}

/// The recovery branches of a tool, where they are not those of a provider with keys (R90).
fn recovery(seen: &ToolView) -> Option<String> {
    let terms = seen.terms.as_ref()?;
    let plain = terms.profile.kind == ProviderKind::Keyed && terms.policy.recovery.is_default();
    let branches = CLASSES.iter().map(|class| {
        let branch = terms.branch(*class).as_str();
        format!("{class}: {branch}").replace('_', " ")
    });
    (!plain).then(|| branches.collect::<Vec<_>>().join("; "))
}

fn sends(model: &Model, seen: &ToolView) -> Cell {
    let glyphs = &model.theme.glyphs;
    let (glyph, word, role) = match &seen.state {
        Some(state) if state.paused.is_some() => (glyphs.held, "paused", Role::Warn),
        Some(state) => match state.circuit.state {
            CircuitState::Closed => (glyphs.succeeded, "yes", Role::Good),
            CircuitState::Open { .. } => (glyphs.alarm, "circuit open", Role::Alarm),
            CircuitState::Trial { .. } => (glyphs.open, "on trial", Role::Warn),
        },
        None => (glyphs.succeeded, "yes", Role::Good),
    };
    (format!("{glyph} {word}"), role)
}

/// Why a tool stands still: who paused it, and since when its circuit is open.
fn stands(model: &Model, seen: &ToolView) -> Option<String> {
    let state = seen.state.as_ref()?;
    let stamp = model.stamp();
    let mut parts = Vec::new();
    if let Some((by, why)) = &state.paused {
        parts.push(format!("paused by {by}: {why}; nothing is sent"));
    }
    match &state.circuit.state {
        CircuitState::Closed => {}
        CircuitState::Open { since, probe_at } => parts.push(format!(
            "circuit open since {}: nothing is sent but a probe, {}",
            stamp.at(*since),
            due(stamp.at(*probe_at), *probe_at, model.now)
        )),
        CircuitState::Trial { since, operation } => {
            let by = operation
                .as_ref()
                .map_or_else(|| "none under way".to_owned(), |id| format!("now {id}"));
            parts.push(format!(
                "circuit open since {}, on trial: one attempt at a time, {by}",
                stamp.at(*since)
            ));
        }
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn due(stamp: String, at: Instant, now: Instant) -> String {
    if at <= now {
        "due now".to_owned()
    } else {
        stamp
    }
}

/// `5/s`, `100/min`.
fn rate(rate: Rate) -> String {
    let per = match rate.per.as_secs() {
        1 => "s".to_owned(),
        60 => "min".to_owned(),
        3_600 => "h".to_owned(),
        0 => format!("{} ms", rate.per.as_millis()),
        _ => format::span(rate.per),
    };
    format!("{}/{per}", format::grouped(&rate.count.to_string()))
}

/// When the next token is there: tokens are spaced evenly, so there is one or none.
fn next(wait: std::time::Duration) -> Cell {
    if wait.is_zero() {
        ("now".to_owned(), Role::Good)
    } else {
        (format!("in {}", format::took(wait)), Role::Warn)
    }
}

fn providers(model: &Model, view: &EngineView, width: usize, out: &mut Vec<Spans>) {
    let rows = view.providers().into_iter().map(|(name, terms)| {
        let (profile, name) = (&terms.profile, name.as_str());
        vec![
            (format!("  {name}"), Role::Text),
            (rate(profile.rate), Role::Text),
            next(view.wait("provider", name)),
            (rate(profile.read_rate), Role::Text),
            next(view.wait("read", name)),
            (format::span(profile.retention), Role::Text),
        ]
    });
    let grid = Grid {
        theme: &model.theme,
        heads: vec![
            words("  PROVIDER", 0),
            numbers("ATTEMPTS", 0),
            numbers("NEXT", 0),
            numbers("READS", 0),
            numbers("NEXT", 0),
            numbers("KEEPS KEYS", 1),
        ],
        rows: rows.collect(),
    };
    if !grid.rows.is_empty() {
        out.extend(grid.lines(width));
    }
}

fn engines(model: &Model, view: &EngineView, width: usize, out: &mut Vec<Spans>) {
    let theme = &model.theme;
    if view.engines.is_empty() {
        let text = "   No engine has run on this ledger yet.";
        out.push(vec![span(theme, Role::Dim, text)]);
        return;
    }
    let grid = Grid {
        theme,
        heads: vec![
            words("  ENGINE", 0),
            words("STATE", 0),
            numbers("WORKERS", 2),
            numbers("IN FLIGHT", 0),
            numbers("SEEN", 0),
            numbers("STARTED", 3),
            words("HOST", 4),
            numbers("PID", 1),
        ],
        rows: view.engines.iter().map(|e| engine(model, e)).collect(),
    };
    out.extend(grid.lines(width));
}

fn engine(model: &Model, seen: &EngineSeen) -> Vec<Cell> {
    let glyphs = &model.theme.glyphs;
    let silent = since(seen.seen_at, model.now) >= ALIVE;
    let (glyph, word, role) = match (seen.stopped, silent) {
        (true, _) => (glyphs.open, "stopped", Role::Dim),
        (false, true) => (glyphs.gone, "gone", Role::Warn),
        (false, false) => (glyphs.dot, "lives", Role::Good),
    };
    let tail: String = {
        let id: Vec<char> = seen.engine.as_str().chars().collect();
        id.iter().skip(id.len().saturating_sub(4)).collect()
    };
    let at = |at| (model.stamp().at(at), Role::Dim);
    vec![
        (format!("  eng_{}{tail}", glyphs.ellipsis), Role::Text),
        (format!("{glyph} {word}"), role),
        (seen.workers.to_string(), Role::Text),
        (seen.in_flight.to_string(), Role::Text),
        at(seen.seen_at),
        at(seen.started_at),
        (seen.host.clone(), Role::Text),
        (seen.pid.to_string(), Role::Text),
    ]
}
