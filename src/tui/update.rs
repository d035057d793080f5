//! `(Model, Message) → effects`: everything the screen decides, without touching the outside.
//!
//! Owns: dispatch by message; [`reading`] what is read and shown, [`keys`] what a key does, [`boards`]
//! the same for the boards, [`palette`] and [`menu`] what lies over the page, [`taking`] what is copied
//! and shown, [`asking`] and [`confirming`] everything on the way to a write. Never: waits, reads a
//! clock, logs, or writes. Tests: `tests/tui_update.rs`, `tests/tui_safety.rs`,
//! `tests/tui_properties.rs`.

mod asking;
mod boards;
mod confirming;
mod keys;
mod menu;
mod palette;
mod reading;
mod taking;

use super::effect::Effect;
use super::message::Message;
use super::model::{Model, Quitting};
use super::view;
use crate::domain::Instant;

/// What the screen wants first.
pub fn start(model: &mut Model) -> Vec<Effect> {
    reading::request(model)
}

/// Takes a message into the model and says what has to be done.
pub fn update(model: &mut Model, message: Message) -> Vec<Effect> {
    match message {
        Message::Tick(now) => {
            tick(model, now);
            Vec::new()
        }
        Message::Key { key, repeat, burst } => keys::pressed(model, key, repeat, burst),
        Message::Paste(text) => {
            keys::pasted(model, &text);
            Vec::new()
        }
        Message::Resize { width, height } => resize(model, (width, height)),
        Message::Drawn => {
            drawn(model);
            Vec::new()
        }
        Message::LedgerChanged | Message::RefreshDue => {
            if model.reading.paused {
                Vec::new()
            } else {
                reading::request(model)
            }
        }
        Message::Loaded(loaded) => reading::loaded(model, *loaded),
        Message::Unchanged { generation, as_of } => reading::unchanged(model, generation, as_of),
        Message::LoadFailed { generation, why } => reading::failed(model, generation, why),
        Message::More {
            generation,
            edge,
            result,
        } => reading::more(model, generation, edge, result),
        Message::Detail { serial, id, result } => reading::detail(model, serial, &id, result),
        Message::Board(answer) => boards::answered(model, *answer),
        Message::Asked { serial, result } => {
            asking::asked(model, serial, result);
            Vec::new()
        }
        Message::Progress { serial, done, of } => {
            asking::progress(model, serial, done, of);
            Vec::new()
        }
        Message::Done { serial, result } => asking::done(model, serial, result),
        Message::AtDesk(result) => asking::at_desk(model, result),
        Message::Told {
            serial,
            what,
            result,
        } => taking::told(model, serial, what, result),
        Message::Health(health) => {
            if model.health != health {
                model.health = health;
                refit(model);
            }
            Vec::new()
        }
        Message::Scoreboard(lines) => {
            if model.scoreboard != lines {
                model.scoreboard = lines;
                refit(model);
            }
            Vec::new()
        }
        Message::Terminate => quit(model),
        Message::Resumed => {
            model.touch();
            reading::request(model)
        }
    }
}

/// Whether a dialog waits for its first frame: keys typed until then are thrown away (U7).
#[must_use]
pub fn awaits_first_frame(model: &Model) -> bool {
    model
        .dialog
        .as_ref()
        .is_some_and(|d| !d.shown && d.asked.is_some() && view::dialog::fits(model, d))
}

fn resize(model: &mut Model, size: (u16, u16)) -> Vec<Effect> {
    model.size = size;
    refit(model);
    reading::want_detail(model)
}

fn tick(model: &mut Model, now: Instant) {
    let (old, fresh) = (model.now, model.freshness());
    model.now = now;
    if model.notice.as_ref().is_some_and(|n| now >= n.until) {
        model.notice = None;
        model.touch();
    }
    let ages = !model.list.entries().is_empty()
        || model.board.is_some()
        || model.dialog.is_some()
        || model.quitting.is_some()
        || fresh != super::model::Freshness::Fresh;
    // One beat a second while an age is on the screen, none else (U41).
    if model.freshness() != fresh || (ages && old.timestamp() != now.timestamp()) {
        model.touch();
    }
}

fn drawn(model: &mut Model) {
    let shown = model
        .dialog
        .as_ref()
        .is_some_and(|d| d.asked.is_some() && view::dialog::fits(model, d));
    if let Some(dialog) = &mut model.dialog {
        dialog.shown = shown;
    }
    if let Some(menu) = &mut model.menu {
        menu.shown = true;
    }
}

/// The layout may have changed: the list gets its height, a dialog has to be seen again.
fn refit(model: &mut Model) {
    model.fit();
    let fits = model
        .dialog
        .as_ref()
        .is_none_or(|d| view::dialog::fits(model, d));
    if let Some(dialog) = model.dialog.as_mut().filter(|_| !fits) {
        dialog.shown = false;
    }
    // What cannot be seen takes no keys.
    if view::layout::of(model).too_small {
        (model.palette, model.menu) = (None, None);
    }
    model.touch();
}

fn quit(model: &mut Model) -> Vec<Effect> {
    if model.quitting.is_some() {
        return Vec::new();
    }
    model.quitting = Some(Quitting { since: model.now });
    // A decision that the ledger has not answered yet goes on; nothing else may begin.
    if !asking::is_committing(model) {
        model.dialog = None;
    }
    (model.popup, model.help, model.filter_edit) = (None, None, None);
    (model.palette, model.menu) = (None, None);
    model.touch();
    vec![Effect::Stop]
}
