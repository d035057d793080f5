//! The loop that drives the two pure hearts: messages in, effects out, frames when something changed.
//!
//! Owns: what wakes it (when is `pacing`'s), signals, leaving. Never: reads the ledger or waits for anything but its own channels (U43). Tests: the PTY stories.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use crossterm::event::{Event, EventStream};
use futures_util::{FutureExt as _, Stream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, sleep_until};

use super::TuiError;
use super::effect::{Effect, Runner};
use super::input;
use super::message::{EngineHealth, Message};
use super::model::{Model, Stage};
use super::pacing::{self, Drawing, Reading};
use super::terminal::{self, Screen};
use super::update::{awaits_first_frame, start, update};

const BEAT: Duration = Duration::from_secs(1);
/// How often the terminal is asked whether it is still there.
const PULSE: Duration = Duration::from_millis(500);
/// Longest wait for the ledger to be at rest before the process is stopped.
const REST: Duration = Duration::from_secs(1);
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
    let (begin, told) = oneshot::channel::<()>();
    let drain = async move {
        if told.await.is_ok() {
            stop_engine().await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    let mut drain = pin!(drain.fuse());
    let mut begin = Some(begin);
    let watch = tokio::spawn(terminal::watch(PULSE));
    let end = drive(
        &mut model,
        &mut screen,
        &mut sources,
        &mut begin,
        drain.as_mut(),
    )
    .await;
    drop(screen);
    let end = end.unwrap_or_else(|error| {
        tracing::warn!(%error, "the terminal is gone");
        End::Vanished
    });
    watch.abort();
    if end == End::Vanished {
        terminal::stop_reading();
        if let Some(begin) = begin.take() {
            let _ = begin.send(());
        }
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
            beat: every(BEAT),
            pulse: every(PULSE),
            refresh: every(refresh.max(pacing::FRAME)),
        }
    }
}

struct Signals {
    terminate: Signal,
    hang_up: Signal,
    interrupt: Signal,
    goes_on: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            goes_on: terminal::goes_on()?,
        })
    }
}

/// Why the loop woke.
enum Wake {
    Frame,
    Input(io::Result<Event>),
    Pulse,
    Changed,
    Message(Message),
    HangUp,
    /// The process was stopped and goes on.
    GoesOn,
    /// The engine has stopped.
    Stopped,
    /// The engine's time to stop is over.
    TimeOver,
}

/// The loop's own state; everything that is shown is in the model.
struct Loop<'a> {
    model: &'a mut Model,
    screen: &'a mut Screen,
    sources: &'a mut Sources,
    begin: &'a mut Option<oneshot::Sender<()>>,
    pace: Pace,
    signals: Signals,
    /// Absent while the shell has the terminal.
    input: Option<EventStream>,
    todo: Vec<Effect>,
    drawing: Drawing,
    reading: Reading,
    /// The engine has stopped.
    stopped: bool,
}

async fn drive(
    model: &mut Model,
    screen: &mut Screen,
    sources: &mut Sources,
    begin: &mut Option<oneshot::Sender<()>>,
    mut drain: Pin<&mut impl Future<Output = ()>>,
) -> io::Result<End> {
    let mut this = Loop {
        pace: Pace::new(sources.refresh),
        signals: Signals::new()?,
        input: Some(EventStream::new()),
        todo: start(model),
        drawing: Drawing::new(),
        reading: Reading::new(),
        stopped: false,
        model,
        screen,
        sources,
        begin,
    };
    let health = this.sources.health.borrow_and_update().clone();
    this.take(Message::Health(health));
    let mut limit = pin!(sleep(DRAIN));
    let mut quitting = false;
    loop {
        if let Some(end) = this.perform().await? {
            return Ok(end);
        }
        this.plan();
        if this.model.quitting.is_some() && !quitting {
            quitting = true;
            limit.set(sleep(DRAIN));
        }
        let wake = tokio::select! {
            biased;
            () = limit.as_mut(), if quitting => Wake::TimeOver,
            () = drain.as_mut(), if quitting && !this.stopped => Wake::Stopped,
            wake = this.wake() => wake,
        };
        if let Some(end) = this.handle(wake).await? {
            return Ok(end);
        }
    }
}

impl Loop<'_> {
    fn take(&mut self, message: Message) {
        self.todo.extend(update(self.model, message));
    }

    fn take_events(&mut self, events: Vec<Event>) {
        self.take(Message::Tick(self.sources.runner.clock.now()));
        for message in input::messages(events) {
            self.take(message);
        }
    }

    /// Does what the model wants done.
    async fn perform(&mut self) -> io::Result<Option<End>> {
        while !self.todo.is_empty() {
            for effect in std::mem::take(&mut self.todo) {
                match effect {
                    Effect::Ring(text) => self.screen.ring(&text)?,
                    Effect::Copy(text) => self.screen.copy(&text)?,
                    Effect::Redraw => self.screen.clear()?,
                    Effect::Suspend => self.suspend().await?,
                    Effect::Stop => {
                        if let Some(begin) = self.begin.take() {
                            let _ = begin.send(());
                        }
                    }
                    Effect::Leave => return Ok(Some(End::Left)),
                    other => self.sources.runner.start(other),
                }
            }
        }
        // A decision on its way is waited for as well.
        let done = self.stopped && !is_committing(self.model);
        Ok(done.then_some(End::Stopped))
    }

    async fn suspend(&mut self) -> io::Result<()> {
        // The stream's thread must not hold the terminal while the shell has it, and only one stream
        // can be at a time: making the next waits for the end of the last.
        self.input = None;
        self.screen.release();
        let still = tokio::time::timeout(REST, self.sources.runner.ledger.still()).await;
        terminal::stop_group(&mut self.signals.goes_on).await;
        drop(still);
        self.come_back()
    }

    /// The shell has had the terminal: every mode is set and everything drawn anew. Also where
    /// somebody else stopped the process, so that nothing was given back before (U34).
    fn come_back(&mut self) -> io::Result<()> {
        self.input = None;
        self.screen.release();
        self.screen.retake()?;
        self.input = Some(EventStream::new());
        self.take(Message::Tick(self.sources.runner.clock.now()));
        self.take(Message::Resumed);
        Ok(())
    }

    /// What follows from the model as it is now for the next frame and the next reading.
    fn plan(&mut self) {
        let model = &*self.model;
        self.reading.is(model.is_reading());
        self.drawing.plan(model.revision, model.waits());
    }

    /// Waits for the next thing to do; drawing comes first, so that no flood can put it off.
    async fn wake(&mut self) -> Wake {
        let pace = &mut self.pace;
        let sources = &mut *self.sources;
        let (due, rest) = (self.drawing.due, self.reading.rest);
        let hinted = self.reading.hinted;
        tokio::select! {
            biased;
            () = sleep_until(due.unwrap_or(rest)), if due.is_some() => Wake::Frame,
            event = next(&mut self.input) => Wake::Input(event),
            _ = pace.pulse.tick() => Wake::Pulse,
            Some(message) = sources.answers.recv() => Wake::Message(message),
            Ok(()) = sources.health.changed() => {
                Wake::Message(Message::Health(sources.health.borrow_and_update().clone()))
            }
            Ok(()) = sources.changed.changed(), if !hinted => Wake::Changed,
            () = sleep_until(rest), if hinted && self.reading.is_over() => {
                Wake::Message(Message::LedgerChanged)
            }
            lines = scores(&mut sources.scoreboard) => Wake::Message(Message::Scoreboard(lines)),
            _ = pace.refresh.tick() => Wake::Message(Message::RefreshDue),
            _ = pace.beat.tick() => Wake::Message(Message::Tick(sources.runner.clock.now())),
            _ = self.signals.goes_on.recv() => Wake::GoesOn,
            _ = self.signals.hang_up.recv() => Wake::HangUp,
            _ = self.signals.terminate.recv() => Wake::Message(Message::Terminate),
            _ = self.signals.interrupt.recv() => Wake::Message(Message::Terminate),
        }
    }

    async fn handle(&mut self, wake: Wake) -> io::Result<Option<End>> {
        match wake {
            Wake::Frame => self.paint().await?,
            Wake::Input(event) => {
                let mut events = vec![event?];
                events.extend(ready(&mut self.input).await?);
                self.drawing.typed();
                self.take_events(events);
            }
            Wake::Pulse if terminal::vanished() => return Ok(Some(End::Vanished)),
            Wake::Pulse => {}
            Wake::Changed => self.reading.hinted = true,
            Wake::Message(message) => {
                self.reading.hinted &= !matches!(message, Message::LedgerChanged);
                if is_answer(&message) {
                    self.drawing.answered();
                }
                self.take(message);
            }
            Wake::GoesOn => self.come_back()?,
            Wake::HangUp => return Ok(Some(End::Vanished)),
            Wake::Stopped => self.stopped = true,
            Wake::TimeOver => return Ok(Some(End::Left)),
        }
        Ok(None)
    }

    async fn paint(&mut self) -> io::Result<()> {
        if awaits_first_frame(self.model) {
            // Typed before the dialog could be seen: meant for something else (U7).
            terminal::flush_input();
            let events = ready(&mut self.input).await?;
            self.take_events(events);
        }
        let revision = self.model.revision;
        self.screen.draw(self.model)?;
        self.drawing.drawn(revision);
        self.take(Message::Drawn);
        Ok(())
    }
}

/// What comes because something was asked for.
fn is_answer(message: &Message) -> bool {
    matches!(
        message,
        Message::Loaded(_)
            | Message::More { .. }
            | Message::Detail { .. }
            | Message::Board(_)
            | Message::Asked { .. }
            | Message::Done { .. }
    )
}

fn is_committing(model: &Model) -> bool {
    let stage = model.dialog.as_ref().map(|d| &d.stage);
    stage == Some(&Stage::Committing)
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
async fn next(input: &mut Option<EventStream>) -> io::Result<Event> {
    let Some(input) = input else {
        return std::future::pending().await;
    };
    let event = std::future::poll_fn(|cx| Pin::new(&mut *input).poll_next(cx)).await;
    event.unwrap_or_else(|| Err(io::Error::other("the terminal has no more input")))
}

/// Everything else that can be read without waiting.
async fn ready(input: &mut Option<EventStream>) -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    let Some(input) = input else {
        return Ok(events);
    };
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
