//! The terminal: its modes as one value, and what can go wrong with it.
//!
//! Owns: raw mode, alternate screen, bracketed paste and cursor as [`Modes`], restored on every way
//! out (U29–U40); the panic hook. Never: captures the mouse, asks the terminal anything,
//! or decides what is drawn. Tests: `tests/tui_terminal.rs` and the PTY stories.

use std::cell::Cell;
use std::future::Future;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::mem::ManuallyDrop;
use std::panic;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{InputModes, LocalModes, OptionalActions, OutputModes, tcgetattr, tcsetattr};
use tokio::signal::{self, unix::SignalKind};

use super::format;
use super::model::Model;
use super::osc::{self, Habits};
use super::view;

/// Whether the modes are on; whoever restores first turns it off.
static ACTIVE: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Set while this thread runs the screen.
    static ON_SCREEN: Cell<bool> = const { Cell::new(false) };
}

/// All terminal modes of the screen, as one value.
#[derive(Debug)]
pub struct Modes(());

impl Modes {
    /// Turns them on.
    ///
    /// # Errors
    /// The terminal does not take them; whatever was on already is off again.
    pub fn enter() -> io::Result<Self> {
        let modes = Self(());
        ACTIVE.store(true, Ordering::SeqCst);
        make_sane();
        enable_raw_mode()?;
        execute!(
            io::stdout(),
            EnterAlternateScreen,
            EnableBracketedPaste,
            cursor::Hide
        )?;
        Ok(modes)
    }
}

/// What was there before is what is turned on again; where somebody who died left the terminal raw, that
/// would be of no use to a shell (F89).
fn make_sane() {
    let stdin = rustix::stdio::stdin();
    let Ok(mut modes) = tcgetattr(stdin) else {
        return;
    };
    if modes.local_modes.contains(LocalModes::ICANON) {
        return;
    }
    modes.input_modes |= InputModes::BRKINT | InputModes::ICRNL | InputModes::IXON;
    modes.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
    modes.local_modes |= LocalModes::ICANON
        | LocalModes::ECHO
        | LocalModes::ECHOE
        | LocalModes::ECHOK
        | LocalModes::ISIG
        | LocalModes::IEXTEN;
    // A terminal that does not take them stays as it is.
    let _ = tcsetattr(stdin, OptionalActions::Now, &modes);
}

impl Drop for Modes {
    fn drop(&mut self) {
        restore();
    }
}

/// Turns all modes off, once; errors have nowhere to go.
pub fn restore() {
    if ACTIVE.swap(false, Ordering::SeqCst) {
        let _ = execute!(
            io::stdout(),
            EndSynchronizedUpdate,
            DisableBracketedPaste,
            cursor::Show,
            LeaveAlternateScreen
        );
        let _ = disable_raw_mode();
    }
}

type Hook = dyn Fn(&panic::PanicHookInfo<'_>) + Send + Sync;

/// The panic hook while the screen is up. A panic of the screen restores the terminal and is told;
/// one in the background goes to the log and leaves the screen alone (U32).
pub struct PanicHook {
    previous: Arc<Hook>,
}

impl PanicHook {
    /// Installs it.
    #[must_use]
    pub fn install() -> Self {
        let previous: Arc<Hook> = Arc::from(panic::take_hook());
        let next = previous.clone();
        panic::set_hook(Box::new(move |info| {
            if ON_SCREEN.get() || !ACTIVE.load(Ordering::SeqCst) {
                restore();
                next(info);
            } else {
                tracing::error!(panic = %info, "a background task panicked");
            }
        }));
        Self { previous }
    }
}

impl Drop for PanicHook {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let previous = self.previous.clone();
            panic::set_hook(Box::new(move |info| previous(info)));
        }
    }
}

/// Runs the screen so that [`PanicHook`] knows it, on whatever thread it is polled.
pub async fn on_screen<F: Future>(screen: F) -> F::Output {
    let mut screen = pin!(screen);
    std::future::poll_fn(|cx| {
        struct Mark;
        impl Drop for Mark {
            fn drop(&mut self) {
                ON_SCREEN.set(false);
            }
        }
        ON_SCREEN.set(true);
        let _mark = Mark;
        let polled: Poll<F::Output> = screen.as_mut().poll(cx);
        polled
    })
    .await
}

/// The screen on a real terminal.
pub struct Screen {
    // Not dropped: ratatui would then show the cursor, which `restore` does, and tell standard error
    // where it cannot, which panics where the terminal is gone (U33).
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
    // Dropped last, so that nothing is written after the modes are off.
    modes: Option<Modes>,
    habits: Habits,
}

impl Screen {
    /// Takes over the terminal.
    ///
    /// # Errors
    /// Standard output is no terminal, or does not take the modes.
    pub fn open(habits: Habits) -> io::Result<Self> {
        if !io::stdout().is_terminal() {
            return Err(io::Error::other("standard output is not a terminal"));
        }
        // Colours are ours to leave out (the mono theme); crossterm's own way of honouring NO_COLOR
        // also resets the reverse of the selected row (U45).
        crossterm::style::force_color_output(true);
        let modes = Modes::enter()?;
        let writer = BufWriter::with_capacity(64 * 1024, io::stdout());
        let terminal = Terminal::new(CrosstermBackend::new(writer))?;
        Ok(Self {
            terminal: ManuallyDrop::new(terminal),
            modes: Some(modes),
            habits,
        })
    }

    /// Columns and lines.
    ///
    /// # Errors
    /// The terminal does not tell.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    /// Draws one frame, whole or not at all where the terminal can do that (U42).
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, model: &Model) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| view::view(model, frame))?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    /// Everything is drawn anew with the next frame.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn clear(&mut self) -> io::Result<()> {
        // Not `Terminal::clear`: that asks the terminal where its cursor is and waits for the answer
        // (U31), which a terminal that is just coming back does not give.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Bell and desktop notice.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn ring(&mut self, text: &str) -> io::Result<()> {
        let writer = self.terminal.backend_mut();
        writer.write_all(osc::notice(text, self.habits).as_bytes())?;
        writer.flush()
    }

    /// Hands `text` to the terminal's clipboard. Whether it takes it, no terminal tells.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        let Some(sequence) = osc::clipboard(text, self.habits) else {
            return Ok(());
        };
        let writer = self.terminal.backend_mut();
        writer.write_all(sequence.as_bytes())?;
        writer.flush()
    }

    /// Gives the terminal back.
    pub fn release(&mut self) {
        self.modes = None;
    }

    /// Takes it again; everything is drawn anew.
    ///
    /// # Errors
    /// The terminal does not take the modes.
    pub fn retake(&mut self) -> io::Result<()> {
        self.modes = Some(Modes::enter()?);
        self.clear()
    }
}

/// Longest wait between asking the group to stop and having been stopped.
const STOPPING: Duration = Duration::from_millis(200);

/// The signal that a stopped process goes on.
///
/// # Errors
/// There can be no handler for it.
pub fn goes_on() -> io::Result<signal::unix::Signal> {
    signal::unix::signal(SignalKind::from_raw(Signal::CONT.as_raw()))
}

/// Stops the process group, as ctrl-z does, and comes back when it goes on.
pub async fn stop_group(goes_on: &mut signal::unix::Signal) {
    // The signal may stop the process only after this call has returned. An orphaned group is not
    // stopped at all; then the screen simply comes back.
    let _ = kill_current_process_group(Signal::TSTP);
    let _ = tokio::time::timeout(STOPPING, goes_on.recv()).await;
}

/// Throws away what was typed and not read yet.
pub fn flush_input() {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        let _ = rustix::termios::tcflush(&stdin, rustix::termios::QueueSelector::IFlush);
    }
}

/// Whether the terminal is gone. Nobody tells: crossterm would go on reading for ever (U33).
#[must_use]
pub fn vanished() -> bool {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let mut fds = Vec::new();
    if stdin.is_terminal() {
        fds.push(PollFd::new(&stdin, PollFlags::empty()));
    }
    fds.push(PollFd::new(&stdout, PollFlags::empty()));
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    poll(&mut fds, Some(&now)).is_ok() && fds.iter().any(|fd| fd.revents().intersects(gone))
}

/// Ends the reading of keys where the terminal is [`vanished`]: crossterm would read it again and again,
/// on a core of its own and perhaps on the screen's thread, which then looks at nothing else (U33). A
/// pipe that never holds anything sends it back to waiting.
pub fn stop_reading() {
    let Ok((nothing, never_written)) = io::pipe() else {
        return;
    };
    let quiet = rustix::fs::fcntl_setfl(&nothing, OFlags::NONBLOCK);
    if quiet
        .and_then(|()| rustix::stdio::dup2_stdin(&nothing))
        .is_ok()
    {
        // Closed, it would be an end to read, again and again.
        std::mem::forget(never_written);
    }
}

/// Looks after the terminal until it is gone, beside the screen, which may be stuck reading it.
pub async fn watch(every: Duration) {
    while !vanished() {
        tokio::time::sleep(every).await;
    }
    stop_reading();
}

/// Tells something once the terminal is given back.
pub fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{}", format::clean(text));
}
