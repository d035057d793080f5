//! The loop that drives the two pure hearts: messages in, effects out, frames when something changed.
//!
//! Owns: pacing (at most 30 frames a second, none where nothing changed), signals, leaving. Never:
//! reads the ledger or waits for anything but its own channels (U43). Tests: the PTY stories.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use crossterm::event::{Event, EventStream};
use futures_util::Stream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};

use super::TuiError;
use super::effect::{Effect, Runner};
use super::input;
use super::message::{EngineHealth, Message};
use super::model::{Model, Stage};
use super::terminal::{self, Screen};
use super::update::{awaits_first_frame, start, update};

/// Between two frames.
const FRAME: Duration = Duration::from_millis(33);
/// Time for the answer to a key to be in the same frame as the key.
const SETTLE: Duration = Duration::from_millis(4);
/// Between two readings that the ledger's hints ask for.
const HINT: Duration = Duration::from_millis(200);
const BEAT: Duration = Duration::from_secs(1);
/// How often the terminal is asked whether it is still there.
const PULSE: Duration = Duration::from_millis(500);
/// Longest time for the engine to stop.
const DRAIN: Duration = Duration::from_secs(5);
/// The same where nobody can see it any more.
const DRAIN_UNSEEN: Duration = Duration::from_millis(1_200);

/// What the loop listens to.
pub struct Sources {
    pub runner: Runner,
    pub answers: mpsc::Receiver<Message>,
    pub changed: watch::Receiver<u64>,
    pub health: watch::Receiver<EngineHealth>,
    pub scoreboard: Option<watch::Receiver<Vec<String>>>,
    /// Between two readings, in real time.
    pub refresh: Duration,
}

/// How the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The engine has stopped.
    Stopped,
    /// It had no time left, or the person none.
    Left,
    /// There is no terminal any more.
    Vanished,
}

/// Runs until the person leaves.
///
/// # Errors
/// The terminal cannot be used at all.
pub async fn run(
    mut model: Model,
    mut screen: Screen,
    mut sources: Sources,
    stop_engine: impl AsyncFnOnce(),
) -> Result<(), TuiError> {
    let (begin, begun) = oneshot::channel::<()>();
    let drain = async move {
        if begun.await.is_ok() {
            stop_engine().await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    let mut drain = pin!(drain);
    let mut begin = Some(begin);
    let end = drive(
        &mut model,
        &mut screen,
        &mut sources,
        &mut begin,
        drain.as_mut(),
    )
    .await;
    drop(screen);
    let end = end.unwrap_or(End::Vanished);
    if end == End::Vanished
        && let Some(begin) = begin.take()
    {
        let _ = begin.send(());
        let _ = tokio::time::timeout(DRAIN_UNSEEN, drain).await;
    }
    if end == End::Left {
        terminal::tell(&left_behind(&model));
    }
    Ok(())
}

fn left_behind(model: &Model) -> String {
    let counts = model.counts.unwrap_or_default();
    format!(
        "samekey left at once: {} attempts in flight and {} calls under way; the next engine takes the calls over and records the attempts as interrupted",
        counts.in_flight, counts.running
    )
}

/// Everything with a pace.
struct Pace {
    frames: Interval,
    hints: Interval,
    beat: Interval,
    pulse: Interval,
    refresh: Interval,
}

impl Pace {
    fn new(refresh: Duration) -> Self {
        let every = |period| {
            let mut interval = interval(period);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        };
        Self {
            frames: every(FRAME),
            hints: every(HINT),
            beat: every(BEAT),
            pulse: every(PULSE),
            refresh: every(refresh.max(HINT)),
        }
    }
}

struct Signals {
    terminate: Signal,
    hang_up: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
}

async fn drive(
    model: &mut Model,
    screen: &mut Screen,
    sources: &mut Sources,
    begin: &mut Option<oneshot::Sender<()>>,
    mut drain: Pin<&mut impl Future<Output = ()>>,
) -> io::Result<End> {
    let mut pace = Pace::new(sources.refresh);
    let mut signals = Signals::new()?;
    let mut input = EventStream::new();
    let mut settle = pin!(sleep(Duration::ZERO));
    let mut limit = pin!(sleep(DRAIN));
    let (mut drawn, mut seen, mut hinted, mut drained) = (0, 0, false, false);
    let mut todo = start(model);
    todo.extend(update(
        model,
        Message::Health(sources.health.borrow_and_update().clone()),
    ));
    loop {
        for effect in std::mem::take(&mut todo) {
            match effect {
                Effect::Ring(text) => screen.ring(&text)?,
                Effect::Redraw => screen.clear()?,
                Effect::Suspend => {
                    // The stream's thread must not hold the terminal while the shell has it.
                    drop(input);
                    screen.suspend()?;
                    input = EventStream::new();
                    todo.push(Effect::Redraw);
                    let now = sources.runner.clock.now();
                    update(model, Message::Tick(now));
                    todo.extend(update(model, Message::Resumed));
                }
                Effect::Stop => {
                    if let Some(begin) = begin.take() {
                        let _ = begin.send(());
                    }
                    limit.set(sleep(DRAIN));
                }
                Effect::Leave => return Ok(End::Left),
                other => sources.runner.start(other),
            }
        }
        if !todo.is_empty() {
            continue;
        }
        let quitting = model.quitting.is_some();
        if drained && !committing(model) {
            return Ok(End::Stopped);
        }
        if model.revision != seen {
            seen = model.revision;
            settle.set(sleep(SETTLE));
        }
        let dirty = model.revision != drawn;
        let message = tokio::select! {
            biased;
            _ = async { settle.as_mut().await; pace.frames.tick().await }, if dirty => {
                if awaits_first_frame(model) {
                    // Typed before the dialog could be seen: meant for something else (U7).
                    terminal::flush_input();
                    todo.extend(take_events(model, sources, ready(&mut input).await?));
                    if !todo.is_empty() { continue; }
                }
                drawn = model.revision;
                screen.draw(model)?;
                Message::Drawn
            }
            event = next(&mut input) => {
                let mut events = vec![event?];
                events.extend(ready(&mut input).await?);
                todo.extend(take_events(model, sources, events));
                continue;
            }
            _ = pace.pulse.tick() => {
                if terminal::vanished() { return Ok(End::Vanished); }
                continue;
            }
            Some(message) = sources.answers.recv() => message,
            Ok(()) = sources.health.changed() => {
                Message::Health(sources.health.borrow_and_update().clone())
            }
            Ok(()) = sources.changed.changed(), if !hinted => { hinted = true; continue; }
            _ = pace.hints.tick(), if hinted => { hinted = false; Message::LedgerChanged }
            lines = scores(&mut sources.scoreboard) => Message::Scoreboard(lines),
            _ = pace.refresh.tick() => Message::RefreshDue,
            _ = pace.beat.tick() => Message::Tick(sources.runner.clock.now()),
            _ = signals.hang_up.recv() => return Ok(End::Vanished),
            _ = signals.terminate.recv() => Message::Terminate,
            _ = signals.interrupt.recv() => Message::Terminate,
            () = drain.as_mut(), if quitting && !drained => { drained = true; continue; }
            () = limit.as_mut(), if quitting => return Ok(End::Left),
        };
        todo.extend(update(model, message));
    }
}

fn committing(model: &Model) -> bool {
    model
        .dialog
        .as_ref()
        .is_some_and(|d| d.stage == Stage::Committing)
}

fn take_events(model: &mut Model, sources: &Sources, events: Vec<Event>) -> Vec<Effect> {
    let mut effects = update(model, Message::Tick(sources.runner.clock.now()));
    for message in input::messages(events) {
        effects.extend(update(model, message));
    }
    effects
}

async fn scores(scoreboard: &mut Option<watch::Receiver<Vec<String>>>) -> Vec<String> {
    if let Some(receiver) = scoreboard
        && receiver.changed().await.is_ok()
    {
        return receiver.borrow_and_update().clone();
    }
    std::future::pending().await
}

/// The next event; the end of the stream is the end of the terminal.
async fn next(input: &mut EventStream) -> io::Result<Event> {
    let event = std::future::poll_fn(|cx| Pin::new(&mut *input).poll_next(cx)).await;
    event.unwrap_or_else(|| Err(io::Error::other("the terminal has no more input")))
}

/// Everything else that can be read without waiting.
async fn ready(input: &mut EventStream) -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    loop {
        // Polled with this task's own waker: the stream remembers only one, and with another it
        // would wake nobody for the next key.
        let polled = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut *input).poll_next(cx)));
        match polled.await {
            Poll::Ready(Some(event)) => events.push(event?),
            Poll::Ready(None) | Poll::Pending => return Ok(events),
        }
    }
}
