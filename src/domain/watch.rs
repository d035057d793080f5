//! When a row is looked at again without anybody asking: the reconciler's schedule, as a function.
//!
//! It grows, so that a row that stays unknown costs one read a day in the end, and it ends for closed rows
//! after thirty days: later reversals do not come by the provider's word (S36). No look ever fails a row
//! (I16). Tests: below, `tests/reconcile/`.

use std::time::Duration;

use super::operation::{OperationRow, Status};
use super::policy::Profile;
use super::{Instant, later};

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);
/// Longest wait between two looks at a row that is not settled.
const MOST: Duration = Duration::from_hours(24);
/// Longest wait while the provider's own object is on its way: its end is only a question of time.
const MOST_PENDING: Duration = Duration::from_hours(6);
/// Days after closing on which a row is looked at again (M6); after the last one nobody looks any more.
const AFTER_CLOSING: [u32; 6] = [1, 2, 4, 8, 16, 30];

/// When a row that has just been looked at for the `looks`-th time (1, 2, …) is looked at next; `None`
/// where that was the last time.
#[must_use]
pub fn next_look(
    row: &OperationRow,
    looks: u32,
    profile: &Profile,
    now: Instant,
) -> Option<Instant> {
    let factor = 2_u32.saturating_pow(looks.saturating_sub(1).min(16));
    let wait = MINUTE.saturating_mul(factor);
    match row.status {
        Status::Open if row.provider_ref.is_some() => Some(later(now, wait.min(MOST_PENDING))),
        Status::Open | Status::Unknown => {
            let next = later(now, wait.min(MOST));
            // The first look that can prove anything is not missed by a growing wait.
            let proves = row.last_authorised_at.map(|at| profile.decidable_at(at));
            Some(
                proves
                    .filter(|at| now < *at)
                    .map_or(next, |at| next.min(at)),
            )
        }
        Status::Succeeded | Status::Failed => {
            let closed_at = row.closed_at?;
            let days = AFTER_CLOSING.into_iter();
            days.map(|days| later(closed_at, DAY.saturating_mul(days)))
                .find(|at| now < *at)
        }
    }
}
