//! Taking things away: marks, copies, the provider's link, the support packet. Changes nothing but
//! the screen and the terminal's clipboard.

use super::super::action::Action;
use super::super::effect::Effect;
use super::super::format;
use super::super::message::Told;
use super::super::model::{Focus, Model, Telling};
use super::super::osc::MAX_CLIPBOARD;
use super::super::pager::Pager;
use super::super::possible::why_not;
use super::super::theme::Role;
use super::reading;
use crate::domain::ids::OperationId;
use crate::domain::operation::OperationRow;

/// Most rows that can be marked at once.
pub const MAX_MARKS: usize = 100;

/// Marks the row under the cursor, or takes its mark away.
pub fn mark(model: &mut Model) {
    let Some(id) = model.list.cursor().cloned() else {
        return;
    };
    if !model.marks.remove(&id) {
        if model.marks.len() >= MAX_MARKS {
            model.say(
                Role::Warn,
                format!("{MAX_MARKS} rows are marked, and no more can be; esc unmarks all"),
            );
            return;
        }
        model.marks.insert(id);
    }
    model.touch();
}

/// The marked rows, or the one under the cursor.
fn targets(model: &Model) -> Vec<OperationId> {
    if model.marks.is_empty() {
        model.list.cursor().cloned().into_iter().collect()
    } else {
        model.marks.iter().cloned().collect()
    }
}

/// Copies what `action` names. Ids and JSON of all marked rows, else of the row under the cursor; key
/// and provider's id always of that one.
pub fn copy(model: &mut Model, action: Action) -> Vec<Effect> {
    let ids = targets(model);
    if let (Some(why), true) = (why_not(model, action), model.marks.is_empty()) {
        model.say(Role::Warn, why);
        return Vec::new();
    }
    match action {
        Action::CopyJson => tell(model, Told::Json, ids),
        Action::CopyId => {
            let what = counted(model, &ids, "the operation id");
            let ids: Vec<&str> = ids.iter().map(OperationId::as_str).collect();
            clip(model, &what, ids.join(" "))
        }
        Action::CopyKey => row_text(model, "the idempotency key", |r| Some(r.key.to_string())),
        Action::CopyRef => row_text(model, "the provider's id", |r| {
            r.provider_ref.as_ref().map(ToString::to_string)
        }),
        _ => Vec::new(),
    }
}

fn row_text(
    model: &mut Model,
    what: &str,
    text: impl FnOnce(&OperationRow) -> Option<String>,
) -> Vec<Effect> {
    let row = model.list.current().map(|e| &e.listed.row);
    let Some((id, text)) = row.and_then(|row| Some((row.id.clone(), text(row)?))) else {
        model.say(Role::Warn, format!("{what} is not known"));
        return Vec::new();
    };
    let what = counted(model, &[id], what);
    clip(model, &what, text)
}

/// `the operation id of op_…5521`, or of so many.
fn counted(model: &Model, ids: &[OperationId], what: &str) -> String {
    match ids {
        [one] => {
            let id = format::short_id(one, model.theme.glyphs.ellipsis);
            format!("{what} of {id}")
        }
        many => format!("{what} of {} marked rows", many.len()),
    }
}

/// To the clipboard, as far as that is known: no terminal confirms it.
fn clip(model: &mut Model, what: &str, text: String) -> Vec<Effect> {
    if text.len() > MAX_CLIPBOARD {
        let kb = text.len().div_ceil(1_000);
        let most = MAX_CLIPBOARD / 1_000;
        model.say(
            Role::Warn,
            format!("not copied: {what} has {kb} kB, a terminal takes {most}"),
        );
        return Vec::new();
    }
    model.say(
        Role::Key,
        format!("{what} was sent to the terminal's clipboard"),
    );
    vec![Effect::Copy(text)]
}

/// Asks for the text about the row under the cursor.
pub fn show(model: &mut Model, what: Told) -> Vec<Effect> {
    match model.list.cursor().cloned() {
        Some(id) => tell(model, what, vec![id]),
        None => Vec::new(),
    }
}

fn tell(model: &mut Model, what: Told, ids: Vec<OperationId>) -> Vec<Effect> {
    let serial = model.telling.serial.wrapping_add(1);
    model.telling = Telling {
        serial,
        ids: ids.clone(),
    };
    vec![Effect::Tell { serial, what, ids }]
}

/// The text arrived. A late one, or one that would cover a question, is dropped (U27, U9).
pub fn told(
    model: &mut Model,
    serial: u64,
    what: Told,
    result: Result<String, String>,
) -> Vec<Effect> {
    if serial != model.telling.serial {
        return Vec::new();
    }
    let text = match result {
        Ok(text) => text,
        Err(why) => {
            model.say(Role::Alarm, why);
            return Vec::new();
        }
    };
    match what {
        Told::Json => {
            // Marks may have changed since; this is what was asked for.
            let what = counted(model, &model.telling.ids, "JSON");
            clip(model, &what, text)
        }
        Told::Link | Told::Packet if model.holds_still() || model.filter_edit.is_some() => {
            Vec::new()
        }
        Told::Link if text.is_empty() => {
            let says = "No page of the provider is known for this operation: either nothing of it was \
                        seen there yet (L looks it up), or the provider has no pages.";
            pager(model, Pager::new("the provider's link", says));
            Vec::new()
        }
        Told::Link => {
            pager(
                model,
                Pager::new("the provider's link", text.clone()).copying(text),
            );
            Vec::new()
        }
        Told::Packet => {
            let title = "for the provider's support";
            pager(model, Pager::new(title, text.clone()).copying(text));
            Vec::new()
        }
    }
}

fn pager(model: &mut Model, pager: Pager) {
    model.popup = Some(pager);
    model.touch();
}

/// Copies the text that is shown.
pub fn copy_text(model: &mut Model) -> Vec<Effect> {
    let Some(text) = model.popup.as_ref().and_then(|p| p.copy.clone()) else {
        return Vec::new();
    };
    clip(model, "this text", text)
}

/// Timeline or evidence; in a list without a detail beside it the detail opens with the evidence.
pub fn evidence(model: &mut Model) -> Vec<Effect> {
    if model.list.cursor().is_none() {
        return Vec::new();
    }
    let shown = !super::view::layout::of(model).detail.is_empty();
    model.detail.evidence = !shown || !model.detail.evidence;
    model.detail.scroll = 0;
    if !shown {
        model.focus = Focus::Detail;
    }
    model.touch();
    reading::want_detail(model)
}
