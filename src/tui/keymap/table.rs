//! The key map as data: every key, where it works, what help and hints say of it.

use super::super::action::Action;
use super::{Binding, Context};
use Context::{Detail, Dialog, Filter, Help, List};

const LISTS: &str = "the lists: review, open, unknown, succeeded, failed, all";
const EVERYWHERE: &[Context] = &[List, Detail, Filter, Dialog, Help];
const ROWS: &[Context] = &[List, Detail];
const PAGES: &[Context] = &[List, Detail, Help];

const fn b(
    action: Action,
    keys: &'static [&'static str],
    on: &'static [Context],
    help: &'static str,
    hint: &'static str,
) -> Binding {
    Binding {
        action,
        keys,
        on,
        help,
        hint,
    }
}

/// The whole key map, in the order of help and hints: safest first, deciding last (U10).
#[rustfmt::skip]
pub const TABLE: &[Binding] = &[
    b(Action::Open, &["enter"], &[List], "open the operation under the cursor", "open"),
    b(Action::Back, &["esc"], EVERYWHERE, "one layer back", "back"),
    b(Action::Down, &["j", "down"], PAGES, "down, up", ""),
    b(Action::Up, &["k", "up"], PAGES, "down, up", ""),
    b(Action::HalfDown, &["ctrl-d"], PAGES, "half a page down, up", ""),
    b(Action::HalfUp, &["ctrl-u"], PAGES, "half a page down, up", ""),
    b(Action::PageDown, &["pgdn", "ctrl-f"], PAGES, "a page down, up", ""),
    b(Action::PageUp, &["pgup", "ctrl-b"], PAGES, "a page down, up", ""),
    b(Action::Top, &["g g", "home"], PAGES, "to the top (with the new rows), to the end", ""),
    b(Action::Bottom, &["G", "end"], PAGES, "to the top (with the new rows), to the end", ""),
    b(Action::PrevRow, &["left"], &[Detail], "in the detail: the previous, the next operation", ""),
    b(Action::NextRow, &["right"], &[Detail], "in the detail: the previous, the next operation", ""),
    b(Action::Review, &["1"], ROWS, LISTS, ""),
    b(Action::OpenRows, &["2"], ROWS, LISTS, ""),
    b(Action::Unknown, &["3"], ROWS, LISTS, ""),
    b(Action::Succeeded, &["4"], ROWS, LISTS, ""),
    b(Action::Failed, &["5"], ROWS, LISTS, ""),
    b(Action::All, &["6"], ROWS, LISTS, ""),
    b(Action::NextTab, &["tab"], ROWS, "the next, the previous list", ""),
    b(Action::PrevTab, &["backtab"], ROWS, "the next, the previous list", ""),
    b(Action::Filter, &["/"], ROWS, "filter the list", "filter"),
    b(Action::TakeIn, &["."], ROWS, "show the new rows that were announced", ""),
    b(Action::Follow, &["f"], ROWS, "let the list move by itself until the next key", ""),
    b(Action::Sort, &["s"], ROWS, "sort by the next column, reverse the order", ""),
    b(Action::Reverse, &["S"], ROWS, "sort by the next column, reverse the order", ""),
    b(Action::Pause, &["p"], ROWS, "pause or resume reading the ledger", ""),
    b(Action::Times, &["t"], ROWS, "times relative, in UTC, local", ""),
    b(Action::Wide, &["w"], ROWS, "the detail over the whole screen, and back", ""),
    b(Action::Note, &["n"], ROWS, "write a note", "note"),
    b(Action::Lookup, &["L"], ROWS, "look it up at the provider (only reads)", "look up"),
    b(Action::Stop, &["X"], ROWS, "stop an open operation: it becomes unknown", "stop"),
    b(Action::Approve, &["A"], ROWS, "approve, reject a held operation or a proposal", "approve"),
    b(Action::Reject, &["D"], ROWS, "approve, reject a held operation or a proposal", "reject"),
    b(Action::Correct, &["C"], ROWS, "correct a contradicted operation", "correct"),
    b(Action::CloseSucceeded, &["R"], ROWS, "close as succeeded (refunded), as failed", "refunded"),
    b(Action::CloseFailed, &["F"], ROWS, "close as succeeded (refunded), as failed", "failed"),
    b(Action::Apply, &["enter"], &[Filter], "apply the filter", "apply"),
    b(Action::NextField, &["tab", "down"], &[Dialog], "the next, the previous field", ""),
    b(Action::PrevField, &["backtab", "up"], &[Dialog], "the next, the previous field", ""),
    b(Action::Proceed, &["enter"], &[Dialog], "the next field; on Cancel: cancel; never confirms", ""),
    b(Action::Reread, &["ctrl-r"], &[Dialog], "read the row again after it moved on", ""),
    b(Action::Commit, &["ctrl-y"], &[Dialog], "confirm what the dialog shows", ""),
    b(Action::Redraw, &["ctrl-l"], EVERYWHERE, "draw the screen anew", ""),
    b(Action::Suspend, &["ctrl-z"], EVERYWHERE, "suspend; fg comes back", ""),
    b(Action::Interrupt, &["ctrl-c"], EVERYWHERE, "twice: quit; while quitting: leave at once", ""),
    b(Action::Quit, &["q"], PAGES, "quit (from the list), or one layer back", "quit"),
    b(Action::Help, &["?"], PAGES, "this help", "help"),
];
