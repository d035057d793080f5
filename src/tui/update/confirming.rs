//! The keys of an open dialog: moving between its fields, writing, confirming, leaving.
//!
//! Owns: that nothing is confirmed by Enter, by a held key, by a paste, from before the first frame, on
//! an old screen, or with anything missing. Tests: `tests/tui_safety.rs`, `tests/tui_desk.rs`.

use super::super::action::{Action, Ask, Target};
use super::super::effect::Effect;
use super::super::keymap::{Context, Key, Meaning};
use super::super::model::{Dialog, DialogFocus, FieldName, Freshness, Model, Stage};
use super::super::text_field::TextField;
use super::super::theme::Role;
use super::asking::STALE;
use super::keys;
use crate::domain::ids::{OperationId, ProviderRef};

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
            dialog.missing = Some("nothing was typed: tab goes to the first field");
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
        Action::Template => template(model),
        Action::Commit if !repeat && !burst => return commit(model),
        Action::Redraw | Action::Suspend => return keys::everywhere(model, action),
        _ => {}
    }
    Vec::new()
}

/// Takes the dialog away.
pub fn close(model: &mut Model) {
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

/// The next note template. Words of one's own are never replaced.
fn template(model: &mut Model) {
    let Some(dialog) = model.dialog.as_mut().filter(|d| d.stage == Stage::Open) else {
        return;
    };
    model.revision = model.revision.wrapping_add(1);
    let DialogFocus::Field(n) = dialog.focus else {
        dialog.missing = Some("templates are for the note: tab goes to it");
        return;
    };
    let Some((FieldName::Note, field)) = dialog.fields.get_mut(n) else {
        dialog.missing = Some("templates are for the note: tab goes to it");
        return;
    };
    let at = model.templates.iter().position(|t| t == field.text());
    let next = match (at, field.text().is_empty()) {
        (Some(at), _) => model.templates.get(at + 1).or(model.templates.first()),
        (None, true) => model.templates.first(),
        (None, false) => {
            dialog.missing = Some("the note has words of its own: ctrl-u empties it first");
            return;
        }
    };
    if let Some(text) = next {
        *field = TextField::with(text);
        dialog.missing = None;
    }
}

fn reread(model: &mut Model) -> Vec<Effect> {
    let Some(dialog) = model.dialog.as_mut() else {
        return Vec::new();
    };
    let Stage::MovedOn(now) = dialog.stage.clone() else {
        return Vec::new();
    };
    model.serial = model.serial.wrapping_add(1);
    dialog.serial = model.serial;
    dialog.frozen = dialog.frozen.reread(now);
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
    vec![match frozen.target() {
        Target::Row {
            ask: Ask::Lookup, ..
        }
        | Target::Rows(_) => Effect::Lookup { serial, frozen },
        Target::Tool { .. } => Effect::Switch {
            serial,
            frozen,
            note,
        },
        // The desk has no dialog; what is frozen for it decides nothing.
        Target::Row { .. } | Target::Desk(_) => Effect::Decide {
            serial,
            frozen,
            note,
            typed,
        },
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
        FieldName::Token if Some(text) != dialog.frozen.operation().map(OperationId::token) => {
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
