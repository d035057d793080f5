//! What a key does where no dialog has the keys.

use super::super::action::Action;
use super::super::board::{self, Board, PLACES, Place};
use super::super::effect::Effect;
use super::super::keymap::{Context, Key, Meaning};
use super::super::message::{Tab, Told};
use super::super::model::{FilterEdit, Focus, Model};
use super::super::query;
use super::super::text_field::TextField;
use super::super::theme::Role;
use super::super::view;
use super::{asking, boards, confirming, menu, palette, quit, reading, taking};

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
        return confirming::pressed(model, key, repeat, burst);
    }
    if model.palette.is_some() && model.popup.is_none() {
        model.keys.clear();
        return palette::pressed(model, key, repeat || burst);
    }
    if model.filter_edit.is_some() && model.context() == Context::Filter {
        return filter(model, key);
    }
    model.keys.push(key);
    match model.keymap.meaning(model.context(), &model.keys) {
        Meaning::Action(action) => {
            model.keys.clear();
            // Choosing from a menu may end in the ledger, too.
            let acts = action.acts() || action.is_desk() || action == Action::Apply;
            if burst && (acts || action == Action::Quit) {
                model.say(Role::Warn, "too fast to be typed: the keys were ignored");
                return Vec::new();
            }
            // A held action key asks once.
            if repeat && acts {
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
        confirming::pasted(model, text);
    } else if model.context() == Context::Palette {
        palette::pasted(model, text);
    } else if let (Context::Filter, Some(edit)) = (model.context(), &mut model.filter_edit) {
        edit.field.paste(text);
        edit.fault = fault(model.board, edit.field.text());
        model.touch();
    } else {
        model.say(Role::Warn, "the paste was ignored: no text field is open");
    }
}

/// An action while a text lies over everything.
fn pager(model: &mut Model, action: Action) -> Vec<Effect> {
    let (limit, page) = view::pager_scroll(model);
    match action {
        Action::Back | Action::Proceed | Action::Quit => model.popup = None,
        Action::CopyText => return taking::copy_text(model),
        Action::Interrupt | Action::Redraw | Action::Suspend => {
            model.popup = None;
            return everywhere(model, action);
        }
        _ => {
            if let Some(pager) = &mut model.popup {
                pager.scroll = scrolled(pager.scroll.min(limit), limit, page, action);
            }
        }
    }
    model.touch();
    Vec::new()
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

/// Carries an action out on what has the keys.
pub fn run(model: &mut Model, action: Action) -> Vec<Effect> {
    if model.popup.is_some() {
        return pager(model, action);
    }
    if model.menu.is_some() {
        return menu::run(model, action);
    }
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
    // Whoever moves has the list in hand; what the desk does asks first whether the row stood still.
    let holds = !matches!(
        action,
        Action::Follow | Action::Help | Action::Times | Action::Redraw | Action::Palette
    );
    if holds && !action.is_desk() && model.list.follow {
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
        Action::Claim => asking::claim(model),
        Action::PrevRow => step(model, -1),
        Action::NextRow => step(model, 1),
        _ => choose(model, action),
    }
}

/// What is done with the row under the cursor, or with the marked ones.
fn with_row(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::Mark => taking::mark(model),
        Action::CopyId | Action::CopyKey | Action::CopyRef | Action::CopyJson => {
            return taking::copy(model, action);
        }
        Action::Link => return taking::show(model, Told::Link),
        Action::Packet => return taking::show(model, Told::Packet),
        Action::Evidence => return taking::evidence(model),
        Action::Snooze => return menu::open_snooze(model),
        _ => {}
    }
    Vec::new()
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
        Action::Palette => {
            palette::open(model);
            Vec::new()
        }
        Action::Sort => menu::open_sort(model),
        Action::Reverse if model.tab == Tab::Review => menu::own_order(model),
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
        _ => with_row(model, action),
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
    } else if !model.marks.is_empty() {
        model.marks.clear();
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
