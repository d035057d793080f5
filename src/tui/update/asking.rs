//! From an action key to a decision: freeze, ask, let the person confirm, hand over.
//!
//! Owns the eight points of "Acting is safe". Every refusal here is only a courtesy: the gate and
//! the domain refuse again.

use super::super::action::{Access, Action, Ask, Asked, Decided, Level};
use super::super::effect::Effect;
use super::super::format;
use super::super::keymap::{Context, Key, Meaning};
use super::super::message::Failure;
use super::super::model::{Dialog, DialogFocus, FieldName, Focus, Freshness, Model, Stage};
use super::super::pager::Pager;
use super::super::text_field::TextField;
use super::super::theme::Role;
use super::super::view;
use super::{keys, reading};
use crate::domain::ids::{OperationId, ProviderRef};
use crate::domain::since;

const STALE: &str = "the screen is out of date; nobody may act";

/// An action key: freezes what it was pressed on and asks the gate.
pub fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let Access::Acting(permit) = model.access.clone() else {
        model.say(Role::Warn, "read-only: this screen cannot act");
        return Vec::new();
    };
    if model.freshness() != Freshness::Fresh {
        let hint = if model.reading.paused {
            "; p resumes"
        } else {
            ""
        };
        model.say(Role::Alarm, format!("{STALE}{hint}"));
        return Vec::new();
    }
    let Some(entry) = model.list.current() else {
        model.say(Role::Warn, "no operation is selected");
        return Vec::new();
    };
    let row = &entry.listed.row;
    let Some(ask) = action.ask(row) else {
        return Vec::new();
    };
    // Where the detail has the keys, its version is what the person reads.
    let version = match (model.focus, model.detail_view()) {
        (Focus::Detail, Some(view)) => view.detail.op.row.version,
        _ => row.version,
    };
    let id = row.id.clone();
    if model.list.follow && just_moved(model) {
        model.list.follow = false;
        let id = format::short_id(&id, model.theme.glyphs.ellipsis);
        model.say(
            Role::Warn,
            format!("the list was moving: {id} is selected now, press again"),
        );
        return Vec::new();
    }
    model.list.follow = false;
    let environment = model.environment.name();
    let frozen = permit.freeze(id, version, ask, model.person.clone(), environment);
    model.serial = model.serial.wrapping_add(1);
    model.dialog = Some(Dialog {
        frozen: frozen.clone(),
        serial: model.serial,
        stage: Stage::Asking,
        asked: None,
        fields: Vec::new(),
        focus: DialogFocus::Cancel,
        shown: false,
        missing: None,
    });
    model.touch();
    vec![Effect::Ask {
        serial: model.serial,
        frozen,
    }]
}

/// Whether the first row changed within the last second, faster than eye and finger.
fn just_moved(model: &Model) -> bool {
    let moved = model.list.moved_at;
    moved.is_some_and(|at| since(at, model.now) < model.second)
}

/// The gate answered: refused because, or what it takes.
pub fn asked(model: &mut Model, serial: u64, result: Result<Box<Asked>, String>) {
    let Some(mut dialog) = model
        .dialog
        .take_if(|d| d.serial == serial && d.stage == Stage::Asking)
    else {
        return;
    };
    model.touch();
    let asked = match result {
        Ok(asked) => asked,
        Err(why) => {
            let verb = view::dialog::verb(model, &dialog);
            model.popup = Some(Pager::new(format!("not now: {verb}"), why));
            model.list.bury();
            return;
        }
    };
    let money = dialog.frozen.is_money();
    dialog.fields = fields(&asked, money && model.environment.is_live());
    dialog.stage = stage_for(&dialog, asked.op.row.version);
    dialog.asked = Some(asked);
    if view::dialog::fits(model, &dialog) {
        model.dialog = Some(dialog);
    } else {
        let (width, height) = view::dialog::size(model, &dialog);
        let needed = format!("this question needs {width}x{height}: enlarge the terminal");
        model.say(Role::Warn, needed);
        model.list.bury();
    }
}

fn fields(asked: &Asked, name_environment: bool) -> Vec<(FieldName, TextField)> {
    let mut names = Vec::new();
    if name_environment {
        names.push(FieldName::Environment);
    }
    if asked.level >= Level::TokenAndNote {
        names.push(FieldName::Token);
    }
    if asked.typed_ref {
        names.push(FieldName::Ref);
    }
    if asked.level >= Level::Note {
        names.push(FieldName::Note);
    }
    names
        .into_iter()
        .map(|n| (n, TextField::default()))
        .collect()
}

/// A note says nothing about the row's state; for all else the row must be as it was looked at.
fn stage_for(dialog: &Dialog, version: i64) -> Stage {
    if version == dialog.frozen.version() || dialog.frozen.ask() == Ask::Note {
        Stage::Open
    } else {
        Stage::MovedOn(version)
    }
}

/// A reading shows at which versions the rows are now.
pub fn notice_moves(model: &mut Model, versions: Vec<(OperationId, i64)>) {
    let Some(dialog) = model.dialog.as_mut() else {
        return;
    };
    if !matches!(dialog.stage, Stage::Open | Stage::MovedOn(_)) {
        return;
    }
    let now = versions
        .into_iter()
        .find(|(id, _)| id == dialog.frozen.operation());
    if let Some((_, version)) = now {
        let stage = stage_for(dialog, version);
        // A reading that began before the row was read again must not undo that.
        if matches!(stage, Stage::MovedOn(v) if v > dialog.frozen.version()) {
            dialog.stage = stage;
            dialog.focus = DialogFocus::Cancel;
        }
    }
}

/// A key while a dialog is open; the dialog has them all (U9).
pub fn pressed(model: &mut Model, key: Key, repeat: bool, burst: bool) -> Vec<Effect> {
    let meaning = model.keymap.meaning(Context::Dialog, &[key]);
    let Some(dialog) = model.dialog.as_mut() else {
        return Vec::new();
    };
    let leaving = matches!(meaning, Meaning::Action(Action::Back | Action::Interrupt));
    if dialog.stage == Stage::Committing {
        if leaving {
            model.say(
                Role::Warn,
                "it is on its way to the ledger and cannot be taken back",
            );
        }
        return Vec::new();
    }
    // Typed before the first frame: meant for something else. Leaving is always safe.
    if !dialog.shown && !leaving {
        return match meaning {
            Meaning::Action(action @ (Action::Redraw | Action::Suspend)) => {
                keys::everywhere(model, action)
            }
            _ => Vec::new(),
        };
    }
    if let (DialogFocus::Field(n), Stage::Open) = (dialog.focus, &dialog.stage)
        && let Some((_, field)) = dialog.fields.get_mut(n)
        && field.key(key)
    {
        dialog.missing = None;
        model.touch();
        return Vec::new();
    }
    let Meaning::Action(action) = meaning else {
        if key.text().is_some() && !dialog.fields.is_empty() && dialog.stage == Stage::Open {
            dialog.missing = Some("tab goes to the first field");
            model.touch();
        }
        return Vec::new();
    };
    match action {
        Action::Back => close(model),
        Action::Interrupt => {
            close(model);
            return keys::everywhere(model, action);
        }
        Action::NextField => move_focus(model, 1),
        Action::PrevField => move_focus(model, -1),
        Action::Proceed => proceed(model),
        Action::Reread => return reread(model),
        // A held key and a paste are no decision.
        Action::Commit if !repeat && !burst => return commit(model),
        Action::Redraw | Action::Suspend => return keys::everywhere(model, action),
        _ => {}
    }
    Vec::new()
}

fn close(model: &mut Model) {
    model.dialog = None;
    model.list.bury();
    model.touch();
}

/// Enter: cancels where Cancel has the focus, else goes on to the next field. Never commits.
fn proceed(model: &mut Model) {
    let Some(dialog) = &model.dialog else { return };
    match dialog.focus {
        DialogFocus::Cancel => close(model),
        DialogFocus::Field(n) if n + 1 < dialog.fields.len() => move_focus(model, 1),
        DialogFocus::Field(_) => {}
    }
}

fn move_focus(model: &mut Model, by: isize) {
    if let Some(dialog) = model.dialog.as_mut().filter(|d| d.stage == Stage::Open) {
        let places = dialog.fields.len() + 1;
        let at = match dialog.focus {
            DialogFocus::Cancel => 0,
            DialogFocus::Field(n) => n + 1,
        };
        let next = if by < 0 { at + places - 1 } else { at + 1 } % places;
        dialog.focus = match next {
            0 => DialogFocus::Cancel,
            n => DialogFocus::Field(n - 1),
        };
        model.touch();
    }
}

fn reread(model: &mut Model) -> Vec<Effect> {
    let Some(dialog) = model.dialog.as_mut() else {
        return Vec::new();
    };
    let Stage::MovedOn(version) = dialog.stage else {
        return Vec::new();
    };
    model.serial = model.serial.wrapping_add(1);
    dialog.serial = model.serial;
    dialog.frozen = dialog.frozen.reread(version);
    dialog.stage = Stage::Asking;
    dialog.asked = None;
    (dialog.shown, dialog.focus, dialog.missing) = (false, DialogFocus::Cancel, None);
    let frozen = dialog.frozen.clone();
    model.touch();
    vec![Effect::Ask {
        serial: model.serial,
        frozen,
    }]
}

/// The person confirms: only if everything asked for is there, and the screen is of now.
fn commit(model: &mut Model) -> Vec<Effect> {
    let fresh = model.freshness() == Freshness::Fresh;
    let environment = model.environment.name();
    let Some(dialog) = model.dialog.as_mut().filter(|d| d.stage == Stage::Open) else {
        return Vec::new();
    };
    model.revision = model.revision.wrapping_add(1);
    if !fresh {
        dialog.missing = Some(STALE);
        return Vec::new();
    }
    if environment != dialog.frozen.environment() {
        dialog.missing = Some("this screen is of another environment");
        return Vec::new();
    }
    for n in 0..dialog.fields.len() {
        if let Some(missing) = missing(dialog, n) {
            dialog.missing = Some(missing);
            dialog.focus = DialogFocus::Field(n);
            return Vec::new();
        }
    }
    let note = text(dialog, FieldName::Note);
    let typed = ProviderRef::parse(&text(dialog, FieldName::Ref)).ok();
    (dialog.stage, dialog.missing, dialog.focus) = (Stage::Committing, None, DialogFocus::Cancel);
    let (serial, frozen) = (dialog.serial, dialog.frozen.clone());
    vec![if frozen.ask() == Ask::Lookup {
        Effect::Lookup { serial, frozen }
    } else {
        Effect::Decide {
            serial,
            frozen,
            note,
            typed,
        }
    }]
}

fn text(dialog: &Dialog, wanted: FieldName) -> String {
    let field = dialog.fields.iter().find(|(name, _)| *name == wanted);
    field.map_or_else(String::new, |(_, f)| f.text().trim().to_owned())
}

fn missing(dialog: &Dialog, n: usize) -> Option<&'static str> {
    let (name, field) = dialog.fields.get(n)?;
    let text = field.text().trim();
    match name {
        FieldName::Token if text != dialog.frozen.operation().token() => {
            Some("the operation's last four do not match")
        }
        FieldName::Environment if !text.eq_ignore_ascii_case(dialog.frozen.environment()) => {
            Some("the money is real: type the environment")
        }
        FieldName::Ref if ProviderRef::parse(text).is_err() => {
            Some("type the provider's refund id (re_...)")
        }
        FieldName::Note if text.is_empty() => Some("a note is needed: what you saw and why"),
        _ => None,
    }
}

/// Pasted text: only where words are told, never where something has to be typed.
pub fn pasted(model: &mut Model, text: &str) {
    let Some(dialog) = model.dialog.as_mut() else {
        return;
    };
    model.revision = model.revision.wrapping_add(1);
    let open = dialog.shown && dialog.stage == Stage::Open;
    if let (DialogFocus::Field(n), true) = (dialog.focus, open)
        && let Some((name, field)) = dialog.fields.get_mut(n)
    {
        match name {
            FieldName::Note | FieldName::Ref => field.paste(text),
            FieldName::Token | FieldName::Environment => {
                dialog.missing = Some("this has to be typed; paste ignored");
            }
        }
    } else if open {
        dialog.missing = Some("paste ignored: no text field has the focus");
    }
}

/// Whether a decision is on its way to the ledger.
pub fn is_committing(model: &Model) -> bool {
    let stage = model.dialog.as_ref().map(|d| &d.stage);
    stage == Some(&Stage::Committing)
}

/// The ledger answered: done, or not and why.
pub fn done(model: &mut Model, serial: u64, result: Result<Box<Decided>, Failure>) -> Vec<Effect> {
    let Some(dialog) = model.dialog.as_mut().filter(|d| d.serial == serial) else {
        return Vec::new();
    };
    match result {
        Ok(decided) => {
            let id = &decided.op.row.id;
            let short = format::short_id(id, model.theme.glyphs.ellipsis);
            let mut says = decided.says.replace(id.as_str(), &short);
            if !says.contains(&short) {
                says = format!("{short}: {says}");
            }
            let role = if decided.proposed {
                Role::Warn
            } else {
                Role::Good
            };
            close(model);
            model.say(role, says);
        }
        Err(Failure { why, moved_to }) => {
            dialog.stage = match moved_to {
                Some(version) => Stage::MovedOn(version),
                None => Stage::Refused(why),
            };
            dialog.focus = DialogFocus::Cancel;
            model.touch();
        }
    }
    // Whatever it was, the ledger knows more than the screen now.
    let mut effects = reading::request(model);
    effects.extend(reading::want_detail(model));
    effects
}
