//! The pages that are not lists of operations: what each of them remembers.
//!
//! Owns: which board is shown, and each board's rows and cursor (an id, never a position, U1). Never:
//! reads the ledger. Tests: `tests/tui_boards.rs`.

/// A page that is not a list of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::VariantArray)]
pub enum Board {
    /// Tool calls: accepted, executed, delivered.
    Queue,
    /// Engines, tools, rates and circuits.
    Engine,
    /// The history of all operations.
    Audit,
    /// Outcomes, money, time to resolution.
    Report,
}
