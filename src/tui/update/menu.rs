//! The menus: the order of a list, and how long a row is put off.

use super::super::action::{Action, Wish};
use super::super::effect::Effect;
use super::super::menu::{Menu, Pick, sort_word};
use super::super::message::Tab;
use super::super::model::Model;
use super::super::possible::why_not;
use super::super::theme::Role;
use super::super::view::layout;
use super::{asking, keys, reading};

/// Opens the menu of orders. Review has its own and says so.
pub fn open_sort(model: &mut Model) -> Vec<Effect> {
    if model.tab == Tab::Review {
        return own_order(model);
    }
    open(model, Menu::sort(model.sort));
    Vec::new()
}

/// Opens the menu of times to put the row under the cursor off, frozen to it.
pub fn open_snooze(model: &mut Model) -> Vec<Effect> {
    if let Some(why) = why_not(model, Action::Snooze) {
        model.say(Role::Warn, why);
        return Vec::new();
    }
    let Some(target) = asking::freeze_row(model) else {
        return Vec::new();
    };
    let row = model.list.current().map(|e| &e.listed.row);
    let decidable = row.and_then(|row| model.decidable_at(row));
    let ellipsis = model.theme.glyphs.ellipsis;
    let menu = Menu::snooze(target, decidable, model.stamp(), ellipsis);
    open(model, menu);
    Vec::new()
}

/// Review lists what is most urgent first, whatever anybody sorts by.
pub fn own_order(model: &mut Model) -> Vec<Effect> {
    model.say(
        Role::Warn,
        "Review has its own order: what is most urgent first",
    );
    Vec::new()
}

fn open(model: &mut Model, menu: Menu) {
    if !layout::of(model).too_small {
        model.menu = Some(menu);
        model.touch();
    }
}

/// An action while a menu is open; it has all keys (U9).
pub fn run(model: &mut Model, action: Action) -> Vec<Effect> {
    let Some(menu) = &mut model.menu else {
        return Vec::new();
    };
    match action {
        Action::Down => menu.step(1),
        Action::Up => menu.step(-1),
        Action::Back => close(model),
        Action::Apply => return apply(model),
        Action::Interrupt | Action::Redraw | Action::Suspend => {
            return keys::everywhere(model, action);
        }
        _ => return Vec::new(),
    }
    model.touch();
    Vec::new()
}

fn close(model: &mut Model) {
    model.menu = None;
    model.list.bury();
    model.touch();
}

fn apply(model: &mut Model) -> Vec<Effect> {
    // What was pressed before anybody saw the menu was meant for something else (U7).
    let Some(menu) = model.menu.take_if(|m| m.shown || m.target.is_none()) else {
        return Vec::new();
    };
    model.list.bury();
    model.touch();
    match (menu.chosen().map(|c| c.pick), menu.target) {
        (Some(Pick::Sort(sort)), _) => {
            model.sort = sort;
            let word = sort_word(sort);
            model.say(Role::Key, format!("sorted by {word}; S reverses"));
            reading::requery(model, true)
        }
        (Some(Pick::Snooze(until)), Some(target)) => {
            asking::desk(model, target, Wish::Snooze(until))
        }
        _ => Vec::new(),
    }
}
