//! The key map as data: every key, where it works, what help and hints say of it.

use super::super::action::Action;
use super::{Binding, Context};
use Context::{Board, Detail, Dialog, Filter, Help, List, Menu, Pager, Palette};

const LISTS: &str = "the lists: review, open, unknown, succeeded, failed, all";
const BOARDS: &str = "the boards: tool calls, engines and tools, audit, report";
const COPY: &str = "copy: operation id, idempotency key, provider's id, JSON";
const EVERYWHERE: &[Context] = &[
    List, Detail, Filter, Dialog, Help, Board, Palette, Menu, Pager,
];
const ROWS: &[Context] = &[List, Detail];
const TABS: &[Context] = &[List, Detail, Board];
const PAGES: &[Context] = &[List, Detail, Help, Board];
const TEXTS: &[Context] = &[List, Detail, Help, Board, Pager];
const CHOICE: &[Context] = &[List, Detail, Help, Board, Menu, Pager];

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
    b(Action::Open, &["enter"], &[List, Board], "open the operation under the cursor", "open"),
    b(Action::Back, &["esc"], EVERYWHERE, "one layer back", "back"),
    b(Action::Down, &["j", "down"], CHOICE, "down, up", ""),
    b(Action::Up, &["k", "up"], CHOICE, "down, up", ""),
    b(Action::HalfDown, &["ctrl-d"], TEXTS, "half a page down, up", ""),
    b(Action::HalfUp, &["ctrl-u"], TEXTS, "half a page down, up", ""),
    b(Action::PageDown, &["pgdn", "ctrl-f"], TEXTS, "a page down, up", ""),
    b(Action::PageUp, &["pgup", "ctrl-b"], TEXTS, "a page down, up", ""),
    b(Action::Top, &["g g", "home"], TEXTS, "to the top (with the new rows), to the end", ""),
    b(Action::Bottom, &["G", "end"], TEXTS, "to the top (with the new rows), to the end", ""),
    b(Action::PrevRow, &["left"], &[Detail], "in the detail: the previous, the next operation", ""),
    b(Action::NextRow, &["right"], &[Detail], "in the detail: the previous, the next operation", ""),
    b(Action::Shorter, &["[", "left"], &[Board], "in the report: a shorter, a longer span", "shorter"),
    b(Action::Longer, &["]", "right"], &[Board], "in the report: a shorter, a longer span", "longer"),
    b(Action::Review, &["1"], TABS, LISTS, ""),
    b(Action::OpenRows, &["2"], TABS, LISTS, ""),
    b(Action::Unknown, &["3"], TABS, LISTS, ""),
    b(Action::Succeeded, &["4"], TABS, LISTS, ""),
    b(Action::Failed, &["5"], TABS, LISTS, ""),
    b(Action::All, &["6"], TABS, LISTS, ""),
    b(Action::Queue, &["7"], TABS, BOARDS, ""),
    b(Action::Engine, &["8"], TABS, BOARDS, ""),
    b(Action::Audit, &["9"], TABS, BOARDS, ""),
    b(Action::Report, &["0"], TABS, BOARDS, ""),
    b(Action::NextTab, &["tab"], TABS, "the next, the previous page", ""),
    b(Action::PrevTab, &["backtab"], TABS, "the next, the previous page", ""),
    b(Action::Filter, &["/"], TABS, "filter the list", "filter"),
    b(Action::Palette, &[":"], TABS, "every action by its name", "command"),
    b(Action::TakeIn, &["."], TABS, "show the new rows that were announced", ""),
    b(Action::Follow, &["f"], TABS, "let the list move by itself until the next key", ""),
    b(Action::Sort, &["s"], ROWS, "choose the order, reverse it", ""),
    b(Action::Reverse, &["S"], ROWS, "choose the order, reverse it", ""),
    b(Action::Pause, &["p"], TABS, "pause or resume reading the ledger", ""),
    b(Action::Times, &["t"], TABS, "times relative, in UTC, local", ""),
    b(Action::Wide, &["w"], ROWS, "the detail over the whole screen, and back", ""),
    b(Action::Evidence, &["e"], ROWS, "in the detail: evidence or timeline", "evidence"),
    b(Action::Mark, &["space"], ROWS, "mark for copying and lookups; esc unmarks all", ""),
    b(Action::CopyId, &["y i"], ROWS, COPY, ""),
    b(Action::CopyKey, &["y k"], ROWS, COPY, ""),
    b(Action::CopyRef, &["y p"], ROWS, COPY, ""),
    b(Action::CopyJson, &["y j"], ROWS, COPY, ""),
    b(Action::Link, &["o"], ROWS, "show the provider's link", ""),
    b(Action::Packet, &[], ROWS, "show what the provider's support needs", ""),
    b(Action::Claim, &["c"], ROWS, "claim the row so that others see it, give it back", "claim"),
    b(Action::Snooze, &["z"], ROWS, "put the row off for a while", ""),
    b(Action::Note, &["n"], ROWS, "write a note", "note"),
    b(Action::Lookup, &["L"], ROWS, "look it up at the provider (only reads)", "look up"),
    b(Action::PauseTool, &["P"], TABS, "pause or resume a tool: nothing is sent", ""),
    b(Action::Stop, &["X"], ROWS, "stop an open operation: it becomes unknown", "stop"),
    b(Action::Approve, &["A"], ROWS, "approve a held operation or a proposal", "approve"),
    b(Action::Reject, &["D"], ROWS, "reject a held operation or a proposal", "reject"),
    b(Action::Correct, &["C"], ROWS, "correct a contradicted operation", "correct"),
    b(Action::CloseSucceeded, &["R"], ROWS, "close as succeeded (refunded)", "refunded"),
    b(Action::CloseFailed, &["F"], ROWS, "close as failed", "failed"),
    b(Action::Apply, &["enter"], &[Filter, Palette, Menu], "apply the filter, run the command, take the choice", "take it"),
    b(Action::CopyText, &["y"], &[Pager], "in a text: copy it", "copy"),
    b(Action::NextField, &["tab", "down"], &[Dialog, Palette], "the next, the previous field or command", ""),
    b(Action::PrevField, &["backtab", "up"], &[Dialog, Palette], "the next, the previous field or command", ""),
    b(Action::Proceed, &["enter"], &[Dialog, Pager], "the next field; on Cancel: cancel; never confirms", ""),
    b(Action::Reread, &["ctrl-r"], &[Dialog], "read the row again after it moved on", ""),
    b(Action::Template, &["ctrl-t"], &[Dialog], "in the note: the next template", ""),
    b(Action::Commit, &["ctrl-y"], &[Dialog], "confirm what the dialog shows", ""),
    b(Action::Redraw, &["ctrl-l"], EVERYWHERE, "draw the screen anew", ""),
    b(Action::Suspend, &["ctrl-z"], EVERYWHERE, "suspend; fg comes back", ""),
    b(Action::Interrupt, &["ctrl-c"], EVERYWHERE, "twice: quit; while quitting: leave at once", ""),
    b(Action::Quit, &["q"], TEXTS, "quit (from the list), or one layer back", "quit"),
    b(Action::Help, &["?"], PAGES, "this help", "help"),
];
