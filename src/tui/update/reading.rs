//! What is read from the ledger, and how an answer gets on the screen.

use super::super::action::LookedAt;
use super::super::effect::{Beside, Effect, Load, Query};
use super::super::format;
use super::super::message::{Around, DetailView, Edge, Loaded, Page, PageQuery, Tab};
use super::super::model::{Focus, Model};
use super::super::selection::{List, SEARCH_ON, Want};
use super::super::view::{detail_scroll_limit, layout};
use super::{asking, boards, refit};
use crate::domain::Instant;
use crate::domain::ids::OperationId;
use crate::domain::operation::OperationRow;

/// Ids kept so that no row rings twice.
const MOST_RUNG: usize = 10_000;

/// Asks for a reading of everything on the screen; while one is on its way, for one more after it.
pub fn request(model: &mut Model) -> Vec<Effect> {
    let mut effects = load_all(model);
    effects.extend(boards::request(model));
    effects
}

fn load_all(model: &mut Model) -> Vec<Effect> {
    let beside = if bell_listens(model) {
        Beside::AroundAndReview
    } else {
        Beside::Around
    };
    load(model, beside)
}

fn load(model: &mut Model, beside: Beside) -> Vec<Effect> {
    if model.reading.in_flight {
        model.reading.again = true;
        return Vec::new();
    }
    model.reading.in_flight = true;
    model.reading.again = false;
    let mut shown = model.list.seen();
    if let Some(dialog) = &model.dialog {
        let asked = dialog.frozen.operations().into_iter();
        shown.extend(asked.map(|id| (id, 0)));
    }
    vec![Effect::Load(Load {
        generation: model.reading.generation,
        query: Box::new(Query(model.query())),
        shown,
        beside,
    })]
}

/// Whether the bell needs more than the list that is read anyway.
fn bell_listens(model: &Model) -> bool {
    model.bell && !page_is_review(model)
}

/// Whether the list itself is the unfiltered review list.
fn page_is_review(model: &Model) -> bool {
    model.tab == Tab::Review && model.filter_text.is_empty()
}

/// Begins another list; answers for the old one will be dropped. `keep`: the cursor stays on its
/// operation if the new list has it.
pub fn requery(model: &mut Model, keep: bool) -> Vec<Effect> {
    let height = model.list.height();
    let cursor = model.list.cursor().cloned();
    begin(
        model,
        if keep {
            List::at(height, cursor)
        } else {
            List::new(height, model.follow)
        },
    )
}

/// Begins with `list`; answers for the old one will be dropped.
pub fn begin(model: &mut Model, list: List) -> Vec<Effect> {
    model.list = list;
    model.reading.generation = model.reading.generation.wrapping_add(1);
    (model.reading.in_flight, model.reading.again) = (false, false);
    model.touch();
    // The person waits for the list alone; the rest has time until the next reading.
    let beside = if model.counts.is_some() {
        Beside::Nothing
    } else {
        Beside::Around
    };
    let mut effects = load(model, beside);
    effects.extend(boards::request(model));
    effects
}

/// A reading arrived.
pub fn loaded(model: &mut Model, loaded: Loaded) -> Vec<Effect> {
    let page = (loaded.generation == model.reading.generation).then_some(&loaded.page);
    // What is around the list is true whatever the list became meanwhile.
    let mut effects = match loaded.around {
        Some(around) => take_around(model, around, loaded.as_of, page),
        None => Vec::new(),
    };
    if page.is_none() {
        return effects;
    }
    let reading = &mut model.reading;
    reading.in_flight = false;
    reading.as_of = Some(loaded.as_of);
    let recovered = reading.problem.take().is_some();
    model.now = model.now.max(loaded.as_of);
    model.tools.extend(loaded.tools);
    asking::notice_moves(model, as_they_are(&loaded.page, &loaded.others));
    let (before, locked) = (model.list.cursor().cloned(), model.holds_still());
    model
        .list
        .refresh(model.tab, loaded.page, loaded.others, locked, model.now);
    if recovered {
        refit(model);
    }
    if before.as_ref() != model.list.cursor() {
        model.detail.scroll = 0;
    }
    model.touch();
    effects.extend(want_detail(model));
    effects.extend(want_more(model));
    if model.reading.again {
        effects.extend(load_all(model));
    }
    effects
}

/// What is on the screen whatever its list is. `page`: the list, where it is still the same one.
fn take_around(
    model: &mut Model,
    around: Around,
    as_of: Instant,
    page: Option<&Page>,
) -> Vec<Effect> {
    if model
        .reading
        .around_as_of
        .is_some_and(|known| known > as_of)
    {
        return Vec::new();
    }
    model.reading.around_as_of = Some(as_of);
    let refresh = model.refresh;
    model.pulse.beat(&around.counts, as_of, refresh);
    model.counts = Some(around.counts);
    model.engines = around.engines;
    if model.standing != around.standing {
        model.standing = around.standing;
        refit(model);
    }
    model.touch();
    ring(model, around.review.as_deref(), page)
}

/// What was read last is still so.
pub fn unchanged(model: &mut Model, generation: u64, as_of: Instant) -> Vec<Effect> {
    if generation != model.reading.generation {
        return Vec::new();
    }
    let reading = &mut model.reading;
    reading.in_flight = false;
    let old = reading.as_of.replace(as_of);
    model.now = model.now.max(as_of);
    // The header says it to the second.
    if old.is_none_or(|old| old.timestamp() != as_of.timestamp()) {
        model.touch();
    }
    if model.reading.again {
        request(model)
    } else {
        Vec::new()
    }
}

fn as_they_are(page: &Page, others: &[OperationRow]) -> Vec<(OperationId, LookedAt)> {
    let listed = page.rows.iter().map(|l| &l.row);
    listed
        .chain(others)
        .map(|r| (r.id.clone(), LookedAt::of(r)))
        .collect()
}

/// One bell per row that newly needs review (U57: whether anybody looks is not known, so it rings).
fn ring(model: &mut Model, review: Option<&[OperationId]>, page: Option<&Page>) -> Vec<Effect> {
    let ids: Vec<OperationId> = match (review, page) {
        (Some(ids), _) => ids.to_vec(),
        (None, Some(page)) if page_is_review(model) => {
            page.rows.iter().map(|l| l.row.id.clone()).collect()
        }
        (None, _) => return Vec::new(),
    };
    let rung = &mut model.rung;
    if rung.ids.len() > MOST_RUNG {
        rung.ids.clear();
        rung.armed = false;
    }
    let fresh: Vec<OperationId> = ids
        .into_iter()
        .filter(|id| rung.ids.insert(id.clone()))
        .collect();
    let armed = std::mem::replace(&mut rung.armed, true);
    let Some(first) = fresh.first().filter(|_| armed && model.bell) else {
        return Vec::new();
    };
    let id = format::short_id(first, "...");
    let text = match fresh.len() {
        1 => format!("samekey: {id} needs a person"),
        n => format!("samekey: {n} operations need a person, {id} first"),
    };
    vec![Effect::Ring(text)]
}

/// A reading failed; what is on the screen grows older.
pub fn failed(model: &mut Model, generation: u64, why: String) -> Vec<Effect> {
    if generation != model.reading.generation {
        return Vec::new();
    }
    model.reading.in_flight = false;
    model.reading.again = false;
    let new = model.reading.problem.is_none();
    model.reading.problem = Some(why);
    if new {
        refit(model);
    }
    model.touch();
    Vec::new()
}

/// Further rows, where the cursor comes near the end of what is loaded.
pub fn want_more(model: &mut Model) -> Vec<Effect> {
    match model.list.wants() {
        Some(want) => more_rows(model, want),
        None => Vec::new(),
    }
}

/// The end of the list.
pub fn want_last(model: &mut Model) -> Vec<Effect> {
    let end = Want {
        edge: Edge::Last,
        after: None,
        from: None,
    };
    more_rows(model, end)
}

fn more_rows(model: &mut Model, want: Want) -> Vec<Effect> {
    model.list.fetching = Some(want.edge);
    let query = model.query();
    let reversed = want.edge != Edge::Below;
    vec![Effect::More {
        generation: model.reading.generation,
        edge: want.edge,
        query: Box::new(Query(PageQuery {
            after: want.after,
            from: want.from,
            ascending: query.ascending != reversed,
            budget: Some(SEARCH_ON),
            ..query
        })),
    }]
}

/// Further rows arrived.
pub fn more(
    model: &mut Model,
    generation: u64,
    edge: Edge,
    result: Result<Page, String>,
) -> Vec<Effect> {
    if generation != model.reading.generation {
        return Vec::new();
    }
    match result {
        Ok(page) => {
            model.list.extend(edge, page.into());
            model.touch();
            let mut effects = want_detail(model);
            effects.extend(want_more(model));
            effects
        }
        Err(why) => {
            model.list.fetching = None;
            failed(model, generation, why)
        }
    }
}

/// Asks for the detail of the operation under the cursor, where it is on the screen.
pub fn want_detail(model: &mut Model) -> Vec<Effect> {
    let shown = model.focus == Focus::Detail || !layout::of(model).detail.is_empty();
    let Some(id) = model.list.cursor().filter(|_| shown).cloned() else {
        return Vec::new();
    };
    let detail = &mut model.detail;
    if detail.in_flight {
        detail.again = true;
        return Vec::new();
    }
    detail.in_flight = true;
    detail.again = false;
    detail.serial = detail.serial.wrapping_add(1);
    vec![Effect::Detail {
        serial: detail.serial,
        id,
    }]
}

/// A detail arrived.
pub fn detail(
    model: &mut Model,
    serial: u64,
    id: &OperationId,
    result: Result<Option<Box<DetailView>>, String>,
) -> Vec<Effect> {
    if serial != model.detail.serial {
        return Vec::new();
    }
    model.detail.in_flight = false;
    if Some(id) == model.list.cursor() {
        match result {
            Ok(Some(view)) => {
                // Who reads the end sees what is added to it.
                let scroll = model.detail.scroll;
                let at_end = scroll > 0 && scroll >= detail_scroll_limit(model);
                model.detail.view = Some(view);
                model.detail.problem = None;
                if at_end {
                    model.detail.scroll = detail_scroll_limit(model);
                }
            }
            Ok(None) => model.detail.problem = Some(format!("the ledger has no {id}")),
            Err(why) => model.detail.problem = Some(why),
        }
        model.touch();
    }
    if model.detail.again {
        want_detail(model)
    } else {
        Vec::new()
    }
}

/// The cursor moved: the detail begins anew.
pub fn cursor_moved(model: &mut Model) -> Vec<Effect> {
    model.detail.scroll = 0;
    model.detail.problem = None;
    model.touch();
    let mut effects = want_detail(model);
    effects.extend(want_more(model));
    effects
}
