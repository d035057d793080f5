//! The screen: a live view over the ledger on which a person settles what nobody knows.
//!
//! Two pure hearts: [`update::update`] (model and message to effects) and [`view::view`] (model to
//! frame). Around them: [`effect`] reads the ledger and asks the gate in tasks, `event_loop` paces,
//! [`terminal`] holds the terminal's modes. Owns nothing that lasts. Never: SQL, HTTP or waiting on
//! the UI task; a write that did not come through `review`. Tests: `tests/tui_*.rs`.

pub mod action;
pub mod board;
pub mod effect;
mod event_loop;
pub mod format;
pub mod input;
pub mod keymap;
pub mod menu;
pub mod message;
pub mod model;
pub mod osc;
mod pacing;
pub mod pager;
pub mod palette;
pub mod possible;
pub mod pulse;
pub mod query;
pub mod selection;
pub mod terminal;
pub mod text_field;
pub mod theme;
pub mod update;
pub mod view;

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use chrono::{FixedOffset, Local, Offset, TimeZone, Utc};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use tokio::sync::{mpsc, watch};

pub use keymap::key_table;
pub use model::Environment;
pub use theme::ThemeName;

use crate::clock::Clock;
use crate::domain::review_event::Person;
use crate::domain::text::SafeText;
use crate::engine::EngineHealth;
use crate::ledger::SharedLedger;
use crate::review::Gate;
use action::Access;
use effect::Runner;
use event_loop::Sources;
use format::Times;
use keymap::{Keymap, KeymapError};
use message::Message;
use model::{Model, Setup};
use osc::Habits;
use terminal::{PanicHook, Screen};
use theme::Theme;

/// Answers that may wait for the screen.
const ANSWERS: usize = 64;
/// Effects that a snapshot follows before it is drawn as it is.
const SNAPSHOT_STEPS: usize = 32;

/// Why there is no screen.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] io::Error),
    #[error("the key map is wrong: {0}")]
    Keymap(#[from] KeymapError),
}

/// The zone of times that are neither relative nor UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timezone {
    Utc,
    /// The machine's.
    #[default]
    Local,
    Fixed(FixedOffset),
}

/// How the screen looks and behaves.
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts, not states of one machine"
)]
#[derive(Clone, Debug)]
pub struct UiOptions {
    pub theme: ThemeName,
    /// For terminals that lack the signs.
    pub ascii: bool,
    /// Cannot act, by type (U51).
    pub read_only: bool,
    /// `NO_COLOR`, as `config` resolved it.
    pub no_color: bool,
    /// Between two readings, in real time; at least 200 ms.
    pub refresh: Duration,
    pub timezone: Timezone,
    /// Rings once for each row that newly needs a person.
    pub bell: bool,
    /// What the terminal is known to be.
    pub terminal: Habits,
    /// Notes of the house that `ctrl-t` offers, before [`TEMPLATES`].
    pub note_templates: Vec<SafeText>,
}

/// Notes that `ctrl-t` offers in every house.
pub const TEMPLATES: [&str; 4] = [
    "looked up at the provider: the refund is there",
    "looked up at the provider: nothing of ours is there",
    "asked the provider's support; waiting for their answer",
    "the customer says that the money has arrived",
];

impl Default for UiOptions {
    fn default() -> Self {
        Self {
            theme: ThemeName::Default,
            ascii: false,
            read_only: false,
            no_color: false,
            refresh: Duration::from_secs(1),
            timezone: Timezone::Local,
            bell: true,
            terminal: Habits::default(),
            note_templates: Vec::new(),
        }
    }
}

/// Everything the screen stands on.
pub struct TuiDeps {
    pub ledger: SharedLedger,
    pub gate: Gate,
    pub person: Person,
    pub health: watch::Receiver<EngineHealth>,
    pub environment: Environment,
    pub clock: Clock,
    pub ui: UiOptions,
    /// The demo's lines under the header; with it lists begin by following.
    pub scoreboard: Option<watch::Receiver<Vec<String>>>,
}

impl TuiDeps {
    fn model(&self, size: (u16, u16)) -> Result<Model, TuiError> {
        let now = self.clock.now();
        let zone = match self.ui.timezone {
            Timezone::Utc => Utc.fix(),
            Timezone::Local => Local.offset_from_utc_datetime(&now.naive_utc()).fix(),
            Timezone::Fixed(offset) => offset,
        };
        let second = clock_second(&self.clock);
        let refresh = self.ui.refresh.max(Duration::from_millis(200));
        Ok(Model::new(Setup {
            environment: self.environment.clone(),
            person: self.person.clone(),
            access: Access::of(self.ui.read_only),
            theme: Theme::new(self.ui.theme, self.ui.no_color, self.ui.ascii),
            keymap: Keymap::new()?,
            zone,
            times: Times::Relative,
            refresh: second.mul_f64(refresh.as_secs_f64()),
            second,
            bell: self.ui.bell,
            templates: self
                .ui
                .note_templates
                .iter()
                .map(SafeText::as_str)
                .chain(TEMPLATES)
                .map(str::to_owned)
                .collect(),
            follow: self.scoreboard.is_some(),
            now,
            size,
        }))
    }
}

/// A real second in the clock's own time: more than one where a demo runs faster.
fn clock_second(clock: &Clock) -> Duration {
    let hour = Duration::from_hours(1);
    let real = clock.real(hour).as_secs_f64();
    if real > 0.0 {
        Duration::from_secs_f64(hour.as_secs_f64() / real)
    } else {
        Duration::from_secs(1)
    }
}

/// Runs the screen on the terminal until the person leaves. Then `stop_engine` has 5 s, with its
/// progress on the screen; a further ctrl-c leaves at once and says what is left behind.
///
/// # Errors
/// There is no terminal, or the key map is wrong.
pub async fn run(deps: TuiDeps, stop_engine: impl AsyncFnOnce()) -> Result<(), TuiError> {
    let _hook = PanicHook::install();
    let screen = async move {
        let mut model = deps.model((0, 0))?;
        let screen = Screen::open(deps.ui.terminal)?;
        model.size = screen.size()?;
        model.fit();
        let (sender, answers) = mpsc::channel(ANSWERS);
        let sources = Sources {
            answers,
            changed: deps.ledger.changed(),
            health: deps.health,
            scoreboard: deps.scoreboard,
            refresh: deps.ui.refresh,
            runner: Runner::new(deps.ledger, deps.gate, deps.clock, sender),
        };
        event_loop::run(model, screen, sources, stop_engine).await
    };
    // Boxed: its state is large, and callers carry it through their own futures.
    terminal::on_screen(Box::pin(screen)).await
}

/// Reads once and gives one frame as text, trailing spaces removed.
///
/// # Errors
/// The key map is wrong.
pub async fn snapshot(deps: TuiDeps, width: u16, height: u16) -> Result<String, TuiError> {
    let mut model = deps.model((width, height))?;
    let (sender, _answers) = mpsc::channel(1);
    let runner = Runner::new(deps.ledger, deps.gate, deps.clock, sender);
    let health = deps.health.borrow().clone();
    update::update(&mut model, Message::Health(health));
    if let Some(scoreboard) = &deps.scoreboard {
        let lines = scoreboard.borrow().clone();
        update::update(&mut model, Message::Scoreboard(lines));
    }
    let mut todo = VecDeque::from(update::start(&mut model));
    for _ in 0..SNAPSHOT_STEPS {
        let Some(effect) = todo.pop_front() else {
            break;
        };
        if let Some(message) = runner.answer(effect).await {
            todo.extend(update::update(&mut model, message));
        }
    }
    Ok(frame_text(&model, width, height))
}

/// One frame of `model` as text, trailing spaces removed.
#[must_use]
pub fn frame_text(model: &Model, width: u16, height: u16) -> String {
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let Ok(frame) = terminal.draw(|frame| view::view(model, frame));
    text_of(frame.buffer)
}

fn text_of(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut line = String::new();
        let mut hidden = 0;
        for x in buffer.area.left()..buffer.area.right() {
            let symbol = buffer.cell((x, y)).map_or(" ", |c| c.symbol());
            // The cell behind a wide character is covered by it.
            if hidden == 0 {
                line.push_str(symbol);
                hidden = format::width(symbol).saturating_sub(1);
            } else {
                hidden -= 1;
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
