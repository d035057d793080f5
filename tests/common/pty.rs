//! A program on a pseudo-terminal, read through a terminal emulator.
//!
//! ```ignore
//! let mut pty = Pty::spawn(Pty::command("samekey").arg("demo"), (80, 24));
//! pty.wait_for("Review");
//! pty.keys("j j enter");
//! pty.wait("the detail", |screen| screen.contents().contains("TIMELINE"));
//! pty.keys("q");
//! assert!(pty.exit(Duration::from_secs(8)).success());
//! ```
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Termios, tcgetattr};

/// How long anything on the screen may take.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Seen {
    raw: Vec<u8>,
    closed: bool,
}

struct Emulator {
    seen: Mutex<(Seen, vt100::Parser)>,
    moved: Condvar,
}

/// A running program and its terminal.
pub struct Pty {
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Option<Box<dyn Write + Send>>,
    child: Box<dyn Child + Send + Sync>,
    emulator: Arc<Emulator>,
    tty: PathBuf,
}

impl Pty {
    /// A command of this package by its name, with an empty environment but for PATH and HOME.
    pub fn command(program: impl Into<std::ffi::OsString>) -> CommandBuilder {
        let mut command = CommandBuilder::new(program.into());
        command.env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command
    }

    /// Starts it on a terminal of so many columns and lines.
    pub fn spawn(command: CommandBuilder, (columns, lines): (u16, u16)) -> Self {
        let pair = native_pty_system()
            .openpty(size(columns, lines))
            .expect("a pseudo-terminal");
        let tty = pair.master.tty_name().expect("its name");
        let child = pair.slave.spawn_command(command).expect("a child");
        // The child's side must be held by the child alone, or its end would never be seen.
        drop(pair.slave);
        let emulator = Arc::new(Emulator {
            seen: Mutex::new((Seen::default(), vt100::Parser::new(lines, columns, 0))),
            moved: Condvar::new(),
        });
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let writer = pair.master.take_writer().expect("a writer");
        thread::spawn({
            let emulator = Arc::clone(&emulator);
            move || {
                let mut buffer = vec![0; 64 * 1024];
                loop {
                    let read = reader.read(&mut buffer).unwrap_or(0);
                    // A test that failed while it looked has said all there is to say.
                    let Ok(mut seen) = emulator.seen.lock() else {
                        return;
                    };
                    seen.0.closed = read == 0;
                    seen.0.raw.extend_from_slice(&buffer[..read]);
                    seen.1.process(&buffer[..read]);
                    emulator.moved.notify_all();
                    if read == 0 {
                        return;
                    }
                }
            }
        });
        Self {
            master: Some(pair.master),
            writer: Some(writer),
            child,
            emulator,
            tty,
        }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let writer = self.writer.as_mut().expect("a terminal");
        writer.write_all(bytes.as_ref()).expect("written");
        writer.flush().expect("flushed");
        self
    }

    /// Sends a script such as `"j j enter 'text' ctrl-y"` in one write; `space` is a space.
    pub fn keys(&mut self, script: &str) -> &mut Self {
        let mut bytes = Vec::new();
        for word in script.split(' ').filter(|w| !w.is_empty()) {
            match word.strip_prefix('\'').and_then(|w| w.strip_suffix('\'')) {
                Some(text) => bytes.extend_from_slice(text.as_bytes()),
                None => bytes.extend_from_slice(&encoded(word)),
            }
        }
        self.send(bytes)
    }

    /// Sends text as a terminal pastes it.
    pub fn paste(&mut self, text: &str) -> &mut Self {
        self.send(format!("\u{1b}[200~{text}\u{1b}[201~"))
    }

    /// Waits until the screen satisfies `is`, and gives its text.
    pub fn wait(&self, what: &str, is: impl Fn(&vt100::Screen) -> bool) -> String {
        self.wait_seen(what, |_, screen| is(screen))
    }

    /// Waits until the screen shows `text`.
    pub fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contents().contains(text))
    }

    /// Waits until the screen no longer shows `text`.
    pub fn wait_gone(&self, text: &str) -> String {
        self.wait(&format!("{text} gone"), |screen| {
            !screen.contents().contains(text)
        })
    }

    /// Waits until `bytes` were written, counted from `from` on.
    pub fn wait_raw(&self, bytes: &str, from: usize) {
        self.wait_seen(bytes, |raw, _| {
            contains(&raw[from.min(raw.len())..], bytes.as_bytes())
        });
    }

    fn wait_seen(&self, what: &str, is: impl Fn(&[u8], &vt100::Screen) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        let mut seen = self.emulator.seen.lock().expect("the emulator");
        loop {
            let screen = seen.1.screen();
            if is(&seen.0.raw, screen) {
                return screen.contents();
            }
            let left = until.saturating_duration_since(Instant::now());
            let text = screen.contents();
            assert!(!left.is_zero(), "not within {PATIENCE:?}: {what}\n{text}");
            assert!(!seen.0.closed, "the program ended before: {what}\n{text}");
            seen = self
                .emulator
                .moved
                .wait_timeout(seen, left)
                .expect("the emulator")
                .0;
        }
    }

    /// Waits until nothing was written for `quiet`.
    pub fn settle(&self, quiet: Duration) -> String {
        let mut seen = self.emulator.seen.lock().expect("the emulator");
        loop {
            let before = seen.0.raw.len();
            seen = self
                .emulator
                .moved
                .wait_timeout(seen, quiet)
                .expect("the emulator")
                .0;
            if seen.0.raw.len() == before {
                return seen.1.screen().contents();
            }
        }
    }

    /// The text of the screen.
    pub fn text(&self) -> String {
        self.screen().contents()
    }

    /// The screen with its colours and cursor.
    pub fn screen(&self) -> vt100::Screen {
        self.emulator
            .seen
            .lock()
            .expect("the emulator")
            .1
            .screen()
            .clone()
    }

    /// Every byte so far.
    pub fn raw(&self) -> Vec<u8> {
        self.emulator
            .seen
            .lock()
            .expect("the emulator")
            .0
            .raw
            .clone()
    }

    /// How often `bytes` were written.
    pub fn count(&self, bytes: &str) -> usize {
        let raw = self.raw();
        raw.windows(bytes.len())
            .filter(|w| *w == bytes.as_bytes())
            .count()
    }

    /// Another size, told to the program as a terminal does.
    pub fn resize(&mut self, columns: u16, lines: u16) -> &mut Self {
        let mut seen = self.emulator.seen.lock().expect("the emulator");
        seen.1.screen_mut().set_size(lines, columns);
        drop(seen);
        let master = self.master.as_ref().expect("a terminal");
        master.resize(size(columns, lines)).expect("resized");
        self
    }

    /// The modes of the terminal's line discipline: raw while a screen is up.
    pub fn termios(&self) -> Termios {
        let tty = OpenOptions::new()
            .read(true)
            .open(&self.tty)
            .expect("the terminal");
        tcgetattr(&tty).expect("its modes")
    }

    /// Whether the terminal is as a shell leaves it: lines, echo and signals.
    pub fn is_cooked(&self) -> bool {
        use rustix::termios::LocalModes;
        let wanted = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        self.termios().local_modes.contains(wanted)
    }

    pub fn pid(&self) -> Pid {
        let id = self.child.process_id().expect("a process");
        Pid::from_raw(i32::try_from(id).expect("an id")).expect("an id")
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("signalled");
    }

    /// Waits for the end, and until everything that was written is read.
    pub fn exit(&mut self, limit: Duration) -> ExitStatus {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                let seen = self.emulator.seen.lock().expect("the emulator");
                let moved = &self.emulator.moved;
                drop(moved.wait_timeout_while(seen, PATIENCE, |seen| !seen.0.closed));
                return status;
            }
            assert!(
                Instant::now() < until,
                "still running after {limit:?}\n{}",
                self.text()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Closes the writing side only; the program's terminal lives on until this value is dropped.
    pub fn stop_typing(&mut self) {
        self.writer = None;
    }
}

/// Processor time that a process has used; nothing where it has ended.
pub fn cpu_of(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    if *fields.first()? == "Z" {
        return None;
    }
    let ticks: u64 = fields
        .iter()
        .skip(11)
        .take(2)
        .filter_map(|f| f.parse::<u64>().ok())
        .sum();
    Some(Duration::from_millis(ticks * 10))
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(columns: u16, lines: u16) -> PtySize {
    PtySize {
        rows: lines,
        cols: columns,
        pixel_width: 0,
        pixel_height: 0,
    }
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|w| w == part)
}

/// What a terminal sends for a key.
fn encoded(word: &str) -> Vec<u8> {
    if let Some(letter) = word.strip_prefix("ctrl-") {
        return vec![letter.as_bytes()[0] & 0x1f];
    }
    let bytes: &[u8] = match word {
        "enter" => b"\r",
        "esc" => b"\x1b",
        "tab" => b"\t",
        "backtab" => b"\x1b[Z",
        "backspace" => b"\x7f",
        "delete" => b"\x1b[3~",
        "up" => b"\x1b[A",
        "down" => b"\x1b[B",
        "right" => b"\x1b[C",
        "left" => b"\x1b[D",
        "home" => b"\x1b[H",
        "end" => b"\x1b[F",
        "pgup" => b"\x1b[5~",
        "pgdn" => b"\x1b[6~",
        "space" => b" ",
        other => other.as_bytes(),
    };
    bytes.to_vec()
}
