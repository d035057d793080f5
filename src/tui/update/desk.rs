//! Claiming, giving back and putting off the row under the cursor: nothing of it decides anything, so
//! there is no question before it.

use super::super::action::{Action, Wish};
use super::super::effect::Effect;
use super::super::model::Model;
use super::super::possible::why_not;
use super::super::theme::Role;
use crate::domain::ids::OperationId;

/// Claims the row, or gives it back where it is the person's own.
pub fn claim(model: &mut Model) -> Vec<Effect> {
    if let Some(why) = why_not(model, Action::Claim) {
        model.say(Role::Warn, why);
        return Vec::new();
    }
    let Some(entry) = model.list.current() else {
        return Vec::new();
    };
    let row = &entry.listed.row;
    let target = (row.id.clone(), row.version);
    let wish = if row.claimed_by(model.now) == Some(&model.person.name) {
        Wish::Release
    } else {
        Wish::Claim
    };
    wished(model, target, wish)
}

/// Hands a wish for a row and version over to the gate.
pub fn wished(model: &mut Model, target: (OperationId, i64), wish: Wish) -> Vec<Effect> {
    let _ = (target, wish);
    model.say(Role::Warn, "claims and snoozes are not built yet");
    Vec::new()
}
