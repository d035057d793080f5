//! What a key does where no dialog has the keys.

use super::super::action::Action;
use super::super::board::{self, Board, PLACES, Place};
use super::super::effect::Effect;
use super::super::keymap::{Context, Key, Meaning};
use super::super::message::{Sort, Tab};
use super::super::model::{FilterEdit, Focus, Model};
use super::super::query;
use super::super::text_field::TextField;
use super::super::theme::Role;
use super::super::view;
use super::{asking, boards, quit, reading};

/// A key was pressed.
pub fn pressed(model: &mut Model, key: Key, repeat: bool, burst: bool) -> Vec<Effect> {
    let interrupt =
        model.keymap.meaning(Context::List, &[key]) == Meaning::Action(Action::Interrupt);
    if model.quitting.is_some() {
        return if interrupt {
            vec![Effect::Leave]
        } else {
            Vec::new()
        };
    }
    if !interrupt {
        model.interrupted = false;
    }
    if model.dialog.is_some() {
        model.keys.clear();
        return asking::pressed(model, key, repeat, burst);
    }
    if model.popup.is_some() {
        return popup(model, key);
    }
    if model.filter_edit.is_some() {
        return filter(model, key);
    }
    model.keys.push(key);
    match model.keymap.meaning(model.context(), &model.keys) {
        Meaning::Action(action) => {
            model.keys.clear();
            if burst && (action.acts() || action == Action::Quit) {
                model.say(Role::Warn, "too fast to be typed: the keys were ignored");
                return Vec::new();
            }
            // A held action key asks once.
            if repeat && action.acts() {
                return Vec::new();
            }
            run(model, action)
        }
        Meaning::Pending => Vec::new(),
        Meaning::Nothing => {
            // An unfinished sequence is forgotten, its last key may begin something itself.
            let again = model.keys.len() > 1;
            model.keys.clear();
            if again {
                pressed(model, key, repeat, burst)
            } else {
                Vec::new()
            }
        }
    }
}

/// Pasted text.
pub fn pasted(model: &mut Model, text: &str) {
    if model.dialog.is_some() {
        asking::pasted(model, text);
    } else if let Some(edit) = &mut model.filter_edit {
        edit.field.paste(text);
        edit.fault = fault(model.board, edit.field.text());
        model.touch();
    } else {
        model.say(Role::Warn, "the paste was ignored: no text field is open");
    }
}

fn popup(model: &mut Model, key: Key) -> Vec<Effect> {
    match model.keymap.meaning(Context::Dialog, &[key]) {
        Meaning::Action(Action::Back | Action::Proceed) => {
            model.popup = None;
            model.touch();
            Vec::new()
        }
        Meaning::Action(action @ (Action::Interrupt | Action::Redraw | Action::Suspend)) => {
            model.popup = None;
            everywhere(model, action)
        }
        _ => Vec::new(),
    }
}

fn filter(model: &mut Model, key: Key) -> Vec<Effect> {
    let Some(edit) = &mut model.filter_edit else {
        return Vec::new();
    };
    if edit.field.key(key) {
        // What is wrong shows while it is written, but not for the word being begun.
        edit.fault = edit.fault.take().and(fault(model.board, edit.field.text()));
        model.touch();
        return Vec::new();
    }
    match model.keymap.meaning(Context::Filter, &[key]) {
        Meaning::Action(Action::Back) => {
            model.filter_edit = None;
            model.touch();
            Vec::new()
        }
        Meaning::Action(Action::Apply) => apply(model),
        Meaning::Action(action @ (Action::Interrupt | Action::Redraw | Action::Suspend)) => {
            everywhere(model, action)
        }
        _ => Vec::new(),
    }
}

/// What is wrong with a filter line of the page that is shown.
fn fault(board: Option<Board>, line: &str) -> Option<query::Fault> {
    match board {
        Some(board) => board::filter::fault(board, line),
        None => query::parse(line).err(),
    }
}

fn apply(model: &mut Model) -> Vec<Effect> {
    if let Some(board) = model.board {
        return boards::apply(model, board);
    }
    let Some(edit) = &mut model.filter_edit else {
        return Vec::new();
    };
    match query::parse(edit.field.text()) {
        Err(fault) => {
            edit.fault = Some(fault);
            model.touch();
            Vec::new()
        }
        Ok(parsed) => {
            edit.field.text().trim().clone_into(&mut model.filter_text);
            model.filter = parsed.filter;
            model.tab = parsed.tab.unwrap_or(model.tab);
            model.filter_edit = None;
            (model.focus, model.notice) = (Focus::List, None);
            reading::requery(model, true)
        }
    }
}

/// What works in every part of the screen.
pub fn everywhere(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::Interrupt if model.interrupted => quit(model),
        Action::Interrupt => {
            model.interrupted = true;
            model.say(Role::Warn, "ctrl-c again quits");
            Vec::new()
        }
        Action::Redraw => {
            model.touch();
            vec![Effect::Redraw]
        }
        Action::Suspend => vec![Effect::Suspend],
        _ => Vec::new(),
    }
}

fn run(model: &mut Model, action: Action) -> Vec<Effect> {
    if let Some(board) = model.board.filter(|_| model.help.is_none())
        && let Some(effects) = boards::run(model, board, action)
    {
        return effects;
    }
    if action.acts() {
        return asking::act(model, action);
    }
    if model.help.is_some() {
        return help(model, action);
    }
    // Whoever moves has the list in hand.
    let holds = !matches!(
        action,
        Action::Follow | Action::Help | Action::Times | Action::Redraw
    );
    if holds && model.list.follow {
        model.list.follow = false;
        model.touch();
    }
    match action {
        Action::Interrupt | Action::Redraw | Action::Suspend => everywhere(model, action),
        Action::Quit if model.focus == Focus::Detail => back(model),
        Action::Quit => quit(model),
        Action::Back => back(model),
        Action::Help => {
            model.help = Some(0);
            model.touch();
            Vec::new()
        }
        Action::Open => open(model),
        Action::Wide => {
            model.detail.wide = !(model.focus == Focus::Detail && model.detail.wide);
            open(model)
        }
        Action::Down
        | Action::Up
        | Action::HalfDown
        | Action::HalfUp
        | Action::PageDown
        | Action::PageUp
        | Action::Top
        | Action::Bottom => match model.focus {
            Focus::List => move_cursor(model, action),
            Focus::Detail => {
                scroll_detail(model, action);
                Vec::new()
            }
        },
        Action::PrevRow => step(model, -1),
        Action::NextRow => step(model, 1),
        _ => choose(model, action),
    }
}

/// Which rows are shown, and how.
fn choose(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::Review => tab(model, Tab::Review),
        Action::OpenRows => tab(model, Tab::Open),
        Action::Unknown => tab(model, Tab::Unknown),
        Action::Succeeded => tab(model, Tab::Succeeded),
        Action::Failed => tab(model, Tab::Failed),
        Action::All => tab(model, Tab::All),
        Action::Queue => boards::show(model, Board::Queue),
        Action::Engine => boards::show(model, Board::Engine),
        Action::Audit => boards::show(model, Board::Audit),
        Action::Report => boards::show(model, Board::Report),
        Action::NextTab => next_place(model, 1),
        Action::PrevTab => next_place(model, PLACES.len() - 1),
        Action::Filter => {
            let text = model.filter_text.clone();
            edit_filter(model, &text)
        }
        Action::TakeIn => {
            model.list.take_in(model.now);
            reading::cursor_moved(model)
        }
        Action::Follow => follow(model),
        Action::Sort => sort(model),
        Action::Reverse if model.tab == Tab::Review => own_order(model),
        Action::Reverse => {
            model.ascending = !model.ascending;
            reading::requery(model, true)
        }
        Action::Pause => {
            model.reading.paused = !model.reading.paused;
            model.touch();
            if model.reading.paused {
                Vec::new()
            } else {
                reading::request(model)
            }
        }
        Action::Times => {
            model.times = model.times.next();
            model.touch();
            Vec::new()
        }
        _ => Vec::new(),
    }
}

/// Opens the filter line with what is in force.
pub fn edit_filter(model: &mut Model, text: &str) -> Vec<Effect> {
    let field = TextField::with(text);
    model.filter_edit = Some(FilterEdit { field, fault: None });
    model.touch();
    Vec::new()
}

fn tab(model: &mut Model, tab: Tab) -> Vec<Effect> {
    boards::leave(model);
    model.focus = Focus::List;
    model.tab = tab;
    reading::requery(model, false)
}

fn next_place(model: &mut Model, by: usize) -> Vec<Effect> {
    let here = model.board.map_or(Place::List(model.tab), Place::Board);
    let at = PLACES.iter().position(|p| *p == here).unwrap_or(0);
    match PLACES.get((at + by) % PLACES.len()) {
        Some(Place::Board(board)) => boards::show(model, *board),
        Some(Place::List(next)) => tab(model, *next),
        None => Vec::new(),
    }
}

fn follow(model: &mut Model) -> Vec<Effect> {
    if model.list.follow {
        model.list.follow = false;
        model.touch();
        return Vec::new();
    }
    model.focus = Focus::List;
    model.list.follow = true;
    model.say(Role::Key, "following: the list moves until the next key");
    reading::request(model)
}

fn own_order(model: &mut Model) -> Vec<Effect> {
    model.say(
        Role::Warn,
        "Review has its own order: what is most urgent first",
    );
    Vec::new()
}

fn sort(model: &mut Model) -> Vec<Effect> {
    if model.tab == Tab::Review {
        return own_order(model);
    }
    let sorts = <Sort as strum::VariantArray>::VARIANTS;
    let at = sorts.iter().position(|s| *s == model.sort).unwrap_or(0);
    model.sort = sorts
        .get((at + 1) % sorts.len())
        .copied()
        .unwrap_or_default();
    let word: &str = model.sort.into();
    model.say(
        Role::Key,
        format!("sorted by {}; S reverses", word.replace('_', " ")),
    );
    reading::requery(model, true)
}

fn open(model: &mut Model) -> Vec<Effect> {
    if model.list.cursor().is_none() {
        return Vec::new();
    }
    model.focus = Focus::Detail;
    model.touch();
    reading::want_detail(model)
}

fn back(model: &mut Model) -> Vec<Effect> {
    if model.boards.origin.is_some() {
        boards::come_back(model)
    } else if model.focus == Focus::Detail {
        model.focus = Focus::List;
        model.detail.wide = false;
        model.touch();
        Vec::new()
    } else if !model.filter_text.is_empty() {
        model.filter_text.clear();
        model.filter = super::super::message::Filter::default();
        reading::requery(model, true)
    } else {
        model.notice = None;
        model.touch();
        Vec::new()
    }
}

fn step(model: &mut Model, by: isize) -> Vec<Effect> {
    model.list.step(by);
    reading::cursor_moved(model)
}

fn move_cursor(model: &mut Model, action: Action) -> Vec<Effect> {
    let list = &mut model.list;
    match action {
        Action::Down => list.step(1),
        Action::Up => list.step(-1),
        Action::HalfDown => list.step(list.half()),
        Action::HalfUp => list.step(-list.half()),
        Action::PageDown => list.step(list.page()),
        Action::PageUp => list.step(-list.page()),
        Action::Bottom if list.more_below => {
            return reading::want_last(model);
        }
        Action::Bottom => list.to_bottom(),
        Action::Top if list.to_top(model.now) => return reading::requery(model, false),
        _ => {}
    }
    reading::cursor_moved(model)
}

pub fn scrolled(at: usize, limit: usize, page: usize, action: Action) -> usize {
    match action {
        Action::Down => at + 1,
        Action::Up => at.saturating_sub(1),
        Action::HalfDown => at + page / 2,
        Action::HalfUp => at.saturating_sub(page / 2),
        Action::PageDown => at + page,
        Action::PageUp => at.saturating_sub(page),
        Action::Top => 0,
        Action::Bottom => limit,
        _ => at,
    }
    .min(limit)
}

fn scroll_detail(model: &mut Model, action: Action) {
    let limit = view::detail_scroll_limit(model);
    let page = usize::from(view::layout::of(model).detail.height.saturating_sub(1));
    model.detail.scroll = scrolled(model.detail.scroll.min(limit), limit, page, action);
    model.touch();
}

fn help(model: &mut Model, action: Action) -> Vec<Effect> {
    let limit = view::help_scroll_limit(model);
    let page = usize::from(model.size.1.saturating_sub(2));
    match action {
        Action::Back | Action::Quit | Action::Help => model.help = None,
        Action::Interrupt | Action::Redraw | Action::Suspend => return everywhere(model, action),
        _ => model.help = model.help.map(|at| scrolled(at, limit, page, action)),
    }
    model.touch();
    Vec::new()
}
