//! From an action key to the answer: freeze, ask the gate, say what came of it.
//!
//! Owns, with [`super::confirming`], the eight points of "Acting is safe". Every refusal here is only a
//! courtesy: the gate and the domain refuse again. Tests: `tests/tui_safety.rs`, `tests/tui_desk.rs`.

use super::super::action::{
    Access, Action, Ask, Asked, Frozen, Level, LookedAt, Permit, Subject, Target, Wish,
};
use super::super::board::Board;
use super::super::effect::Effect;
use super::super::format;
use super::super::message::{Done, Failure};
use super::super::model::{Dialog, DialogFocus, FieldName, Focus, Freshness, Model, Stage};
use super::super::pager::Pager;
use super::super::text_field::TextField;
use super::super::theme::Role;
use super::super::view;
use super::{confirming, reading};
use crate::domain::ids::OperationId;
use crate::domain::operation::OperationRow;
use crate::domain::since;
use crate::review::MOST_LOOKUPS;

pub const STALE: &str = "the screen is out of date; nobody may act";

/// An action key: freezes what it was pressed on and asks the gate.
pub fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let Some(permit) = permit(model) else {
        return Vec::new();
    };
    let marked = action == Action::Lookup && model.focus == Focus::List && !model.marks.is_empty();
    let target = if action == Action::PauseTool {
        tool(model)
    } else if marked {
        marked_rows(model)
    } else {
        row(model, action)
    };
    let Some(target) = target else {
        return Vec::new();
    };
    let environment = model.environment.name();
    let frozen = permit.freeze(target, model.person.clone(), environment);
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
        progress: None,
    });
    model.touch();
    vec![Effect::Ask {
        serial: model.serial,
        frozen,
    }]
}

/// The right to act, on a screen that is of now; says why not.
fn permit(model: &mut Model) -> Option<Permit> {
    let Access::Acting(permit) = model.access.clone() else {
        model.say(Role::Warn, "read-only: this screen cannot act");
        return None;
    };
    if model.freshness() != Freshness::Fresh {
        let hint = if model.reading.paused {
            "; p resumes"
        } else {
            ""
        };
        model.say(Role::Alarm, format!("{STALE}{hint}"));
        return None;
    }
    Some(permit)
}

/// The row under the cursor, if it stood still long enough to be aimed at.
fn aimed_at(model: &mut Model) -> Option<OperationRow> {
    if model.board.is_some() && model.focus == Focus::List {
        model.say(Role::Warn, "no operation is selected");
        return None;
    }
    let Some(entry) = model.list.current() else {
        model.say(Role::Warn, "no operation is selected");
        return None;
    };
    let row = entry.listed.row.clone();
    let moving = model.list.follow && just_moved(model);
    model.list.follow = false;
    if moving {
        let id = format::short_id(&row.id, model.theme.glyphs.ellipsis);
        model.say(
            Role::Warn,
            format!("the list was moving: {id} is selected now, press again"),
        );
        return None;
    }
    Some(row)
}

fn row(model: &mut Model, action: Action) -> Option<Target> {
    let row = aimed_at(model)?;
    let ask = action.ask(&row)?;
    // Where the detail has the keys, its row is what the person reads.
    let looked_at = match (model.focus, model.detail_view()) {
        (Focus::Detail, Some(view)) => LookedAt::of(&view.detail.op.row),
        _ => LookedAt::of(&row),
    };
    Some(Target::Row {
        operation: row.id,
        looked_at,
        ask,
    })
}

/// Marked rows are looked up together, up to the cap; nothing else is ever done to several (U18).
fn marked_rows(model: &mut Model) -> Option<Target> {
    let marked = model.marks.len();
    if marked > MOST_LOOKUPS {
        let says =
            format!("{marked} rows are marked; at most {MOST_LOOKUPS} are looked up at once");
        model.say(Role::Warn, says);
        return None;
    }
    // As they stand in the list; then those that are marked in others.
    let mut rows = model.list.ids();
    rows.retain(|id| model.marks.contains(id));
    let elsewhere = model.marks.iter().filter(|id| !rows.contains(id)).cloned();
    let elsewhere: Vec<_> = elsewhere.collect();
    rows.extend(elsewhere);
    Some(Target::Rows(rows))
}

/// The tool under the cursor, on a list that of its row, and whether the screen shows it as paused.
fn tool(model: &mut Model) -> Option<Target> {
    if model.board == Some(Board::Engine) {
        let Some(tool) = model.tool_under_cursor() else {
            model.say(Role::Warn, "no tool is selected");
            return None;
        };
        let shown = model.boards.engine.view.tools.iter();
        let state = shown
            .filter(|t| t.tool == tool)
            .find_map(|t| t.state.as_ref());
        let paused = state.and_then(|s| s.paused.clone());
        return Some(Target::Tool { tool, paused });
    }
    if model.board.is_some() && model.focus == Focus::List {
        model.say(Role::Warn, "no tool is selected; 8 shows them");
        return None;
    }
    let tool = aimed_at(model)?.tool;
    let standing = model.standing.iter().find(|s| s.tool == tool);
    let paused = standing.and_then(|s| s.paused.clone());
    Some(Target::Tool { tool, paused })
}

/// Whether the first row changed within the last second, faster than eye and finger.
fn just_moved(model: &Model) -> bool {
    let moved = model.list.moved_at;
    moved.is_some_and(|at| since(at, model.now) < model.second)
}

/// Freezes the row under the cursor for the desk: a menu that opens on it keeps this, and touches no
/// other row, wherever the cursor goes meanwhile.
pub fn freeze_row(model: &mut Model) -> Option<Frozen> {
    let permit = permit(model)?;
    let target = Target::Desk(aimed_at(model)?.id);
    let environment = model.environment.name();
    Some(permit.freeze(target, model.person.clone(), environment))
}

/// Claims the row under the cursor, or gives the person's own claim back.
pub fn claim(model: &mut Model) -> Vec<Effect> {
    let Some(frozen) = freeze_row(model) else {
        return Vec::new();
    };
    let row = model.list.current().map(|e| &e.listed.row);
    let by = row.and_then(|r| r.claimed_by(model.now));
    let wish = if by == Some(&model.person.name) {
        Wish::Release
    } else {
        Wish::Claim
    };
    desk(model, frozen, wish)
}

/// Carries out a wish of the desk at once, on a screen that is of now.
pub fn desk(model: &mut Model, frozen: Frozen, wish: Wish) -> Vec<Effect> {
    if permit(model).is_none() {
        return Vec::new();
    }
    vec![Effect::Desk { frozen, wish }]
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
    dialog.stage = match &asked.subject {
        Subject::Row(op) => stage_for(&dialog, LookedAt::of(&op.row)),
        Subject::Rows(_) | Subject::Tool(_) => Stage::Open,
    };
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

/// A note says nothing about the row's state; for all else the row must be as it was looked at, and
/// for an approval also what waits on it.
fn stage_for(dialog: &Dialog, now: LookedAt) -> Stage {
    let Some(looked_at) = dialog.frozen.looked_at() else {
        return Stage::Open;
    };
    let same = match dialog.frozen.ask() {
        Some(Ask::Note) => true,
        Some(Ask::Approve | Ask::Reject) => now == *looked_at,
        _ => now.version == looked_at.version,
    };
    if same {
        Stage::Open
    } else {
        Stage::MovedOn(now)
    }
}

/// A reading shows how the rows are now.
pub fn notice_moves(model: &mut Model, rows: Vec<(OperationId, LookedAt)>) {
    let Some(dialog) = model.dialog.as_mut() else {
        return;
    };
    if !matches!(dialog.stage, Stage::Open | Stage::MovedOn(_)) {
        return;
    }
    let mut rows = rows.into_iter();
    let now = rows.find(|(id, _)| Some(id) == dialog.frozen.operation());
    if let (Some((_, now)), Some(looked_at)) = (now, dialog.frozen.looked_at()) {
        // A reading that began before the row was read again must not undo that.
        let older = now.version < looked_at.version;
        let stage = stage_for(dialog, now);
        if !older && matches!(stage, Stage::MovedOn(_)) {
            dialog.stage = stage;
            dialog.focus = DialogFocus::Cancel;
        }
    }
}

/// Whether a decision is on its way to the ledger.
pub fn is_committing(model: &Model) -> bool {
    let stage = model.dialog.as_ref().map(|d| &d.stage);
    stage == Some(&Stage::Committing)
}

/// So many of the rows were looked up.
pub fn progress(model: &mut Model, serial: u64, done: usize, of: usize) {
    if let Some(dialog) = model.dialog.as_mut().filter(|d| d.serial == serial) {
        dialog.progress = Some((done, of));
        model.touch();
    }
}

/// The ledger answered: done, or not and why.
pub fn done(model: &mut Model, serial: u64, result: Result<Done, Failure>) -> Vec<Effect> {
    let Some(dialog) = model.dialog.as_mut().filter(|d| d.serial == serial) else {
        return Vec::new();
    };
    match result {
        Ok(done) => {
            let asked = dialog.frozen.operations();
            confirming::close(model);
            say(model, &done);
            if done.operation.is_none() {
                not_looked_up(model, &asked, &done);
            }
        }
        Err(Failure { why, moved_to }) => {
            dialog.stage = match moved_to {
                Some(now) => Stage::MovedOn(now),
                None => Stage::Refused(why),
            };
            dialog.focus = DialogFocus::Cancel;
            model.touch();
        }
    }
    look_again(model)
}

/// A claim or a snooze was written, or not.
pub fn at_desk(model: &mut Model, result: Result<Done, String>) -> Vec<Effect> {
    match result {
        Ok(done) => say(model, &done),
        Err(why) => {
            model.popup = Some(Pager::new("not now", why));
            model.touch();
        }
    }
    look_again(model)
}

/// Whatever it was, the ledger knows more than the screen now.
fn look_again(model: &mut Model) -> Vec<Effect> {
    let mut effects = reading::request(model);
    effects.extend(reading::want_detail(model));
    effects
}

fn say(model: &mut Model, done: &Done) {
    let mut says = done.says.clone();
    if let Some(id) = &done.operation {
        let short = format::short_id(id, model.theme.glyphs.ellipsis);
        says = says.replace(id.as_str(), &short);
        if !says.contains(&short) {
            says = format!("{short}: {says}");
        }
    }
    let role = if done.proposed || !done.left.is_empty() {
        Role::Warn
    } else {
        Role::Good
    };
    model.say(role, says);
}

/// Rows that were looked up are no longer marked; of the others it says why not.
fn not_looked_up(model: &mut Model, asked: &[OperationId], done: &Done) {
    let left = |id: &OperationId| done.left.iter().any(|(l, _)| l == id);
    model.marks.retain(|id| left(id) || !asked.contains(id));
    if done.left.is_empty() {
        return;
    }
    let ellipsis = model.theme.glyphs.ellipsis;
    let why: Vec<_> = done
        .left
        .iter()
        .map(|(id, why)| format!("{}: {why}.", format::short_id(id, ellipsis)))
        .collect();
    let title = format!("{} of {} not looked up", done.left.len(), asked.len());
    let text = format!("{}.\n{}", done.says, why.join("\n"));
    model.popup = Some(Pager::new(title, text));
}
