//! What of an operation the model itself asks for, read once: whole operations are only for the domain.

use samekey::domain::evidence::Verdict;
use samekey::domain::operation::{Operation, Status};
use samekey::domain::outcome::OutcomeClass;

#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts of one row"
)]
pub struct Face {
    pub status: Status,
    pub held: bool,
    pub identified: bool,
    pub contradicted: bool,
    pub in_flight: u8,
    pub attempts: u8,
    pub amount: u16,
    pub verdict: Option<Verdict>,
    /// The object that the row holds is ours.
    pub holds_ours: bool,
    /// An attempt ended with a 5xx.
    pub five_hundred: bool,
    pub needs_lookup: bool,
    pub undetermined: bool,
    pub awaits_fetch: bool,
}

impl Face {
    pub fn of(op: &Operation) -> Self {
        let row = &op.row;
        let small = |n: usize| u8::try_from(n).expect("few attempts");
        let broke =
            |a: &samekey::domain::attempt::Attempt| a.class() == Some(OutcomeClass::ServerError);
        Self {
            status: row.status,
            held: row.held,
            identified: row.provider_ref.is_some(),
            contradicted: row.contradicted.is_some(),
            in_flight: small(op.attempts.iter().filter(|a| a.in_flight()).count()),
            attempts: small(op.attempts.len()),
            amount: u16::try_from(row.minor().expect("money")).expect("small amounts"),
            verdict: row.verdict,
            holds_ours: row.provider_ref == op.our_object(),
            five_hundred: op.attempts.iter().any(broke),
            needs_lookup: op.needs_lookup(),
            undetermined: op.undetermined_besides(0),
            awaits_fetch: op.awaits_fetch().is_some(),
        }
    }

    /// Open or unknown: somebody or something still settles it.
    pub fn live(&self) -> bool {
        matches!(self.status, Status::Open | Status::Unknown)
    }

    /// Whether money is on its way, or somebody may put it there.
    pub fn moved(&self) -> bool {
        self.attempts > 0 || self.held
    }
}
