//! The `:` line: letters are letters, Enter runs what is under the cursor as its key would.

use super::super::action::Action;
use super::super::effect::Effect;
use super::super::keymap::{Context, Key, Meaning};
use super::super::model::Model;
use super::super::palette::Palette;
use super::super::possible::why_not;
use super::super::theme::Role;
use super::super::view::layout;
use super::keys;

/// Opens it, where it can be seen.
pub fn open(model: &mut Model) {
    if !layout::of(model).too_small {
        model.palette = Some(Palette::default());
        model.touch();
    }
}

/// A key while it is open; it has them all (U9).
pub fn pressed(model: &mut Model, key: Key, held: bool) -> Vec<Effect> {
    let Some(palette) = &mut model.palette else {
        return Vec::new();
    };
    if palette.field.key(key) {
        palette.retyped();
        model.touch();
        return Vec::new();
    }
    match model.keymap.meaning(Context::Palette, &[key]) {
        Meaning::Action(Action::Back) => close(model),
        Meaning::Action(Action::NextField) => step(model, 1),
        Meaning::Action(Action::PrevField) => step(model, -1),
        Meaning::Action(Action::Apply) if held => {
            model.say(Role::Warn, "too fast to be typed: nothing was run");
        }
        Meaning::Action(Action::Apply) => return run(model),
        Meaning::Action(action @ (Action::Interrupt | Action::Redraw | Action::Suspend)) => {
            return keys::everywhere(model, action);
        }
        _ => {}
    }
    Vec::new()
}

/// Pasted text is text.
pub fn pasted(model: &mut Model, text: &str) {
    if let Some(palette) = &mut model.palette {
        palette.field.paste(text);
        palette.retyped();
        model.touch();
    }
}

fn close(model: &mut Model) {
    model.palette = None;
    model.list.bury();
    model.touch();
}

fn step(model: &mut Model, by: isize) {
    if let Some(palette) = &mut model.palette {
        palette.step(by);
        model.touch();
    }
}

/// What cannot come to anything is not run: the reason stands beside it, and is said.
fn run(model: &mut Model) -> Vec<Effect> {
    let chosen = model.palette.as_ref().and_then(Palette::chosen);
    let Some(action) = chosen.map(|b| b.action) else {
        model.say(Role::Warn, "no action has such a name");
        return Vec::new();
    };
    if let Some(why) = why_not(model, action) {
        model.say(Role::Warn, format!("{}: {why}", action.name()));
        return Vec::new();
    }
    close(model);
    keys::run(model, action)
}
