//! `ops`: rows, and the decisions about them.

use clap::{Args, Subcommand};

use super::word;
use crate::domain::ids::{OperationId, ProviderRef};
use crate::domain::operation::Closing;
use crate::domain::review_event::LONGEST_SNOOZE;
use crate::ledger::{Sort, Tab};

/// `ops`.
#[derive(Debug, Subcommand)]
pub enum OpsCommand {
    /// Rows, newest first
    List(ListArgs),
    /// One row with its whole history, and which closings are allowed now
    Show(OneOp),
    /// Ask the provider what it has, for up to 20 rows; only reads, closes nothing
    Lookup(LookupArgs),
    /// Close a row, or propose it where a second person is needed
    Close(CloseArgs),
    /// Approve a proposal or a held row
    Approve(DecideArgs),
    /// Reject a proposal or a held row
    Reject(DecideArgs),
    /// Stop an open row: it becomes unknown and nothing more is sent
    Stop(DecideArgs),
    /// Correct a contradicted row, or acknowledge its second effect
    Correct(CorrectArgs),
    /// Write a note into a row's history
    Note(DecideArgs),
    /// Tell the others that you look at this row; blocks nobody
    Claim(OneOp),
    /// Give a claim back
    Release(OneOp),
    /// Put a row last in Review for a while, or until it moves
    Snooze(SnoozeArgs),
    /// What the provider's support needs, without secrets: Markdown, or JSON
    Packet(OneOp),
}

/// `ops list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// review, open, unknown, succeeded, failed or all
    #[arg(long, value_name = "S", default_value = "all", value_parser = tab)]
    pub status: Tab,
    /// Rows of this tool
    #[arg(long, value_name = "T")]
    pub tool: Option<String>,
    /// Rows of this order
    #[arg(long, value_name = "O")]
    pub order: Option<String>,
    /// Rows that a conversation asked for
    #[arg(long, value_name = "S")]
    pub session: Option<String>,
    /// Text in id, order, payment or the provider's id
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// updated, created, amount, attempts, key_left or order
    #[arg(long, value_name = "F", default_value = "updated", value_parser = sort)]
    pub sort: Sort,
    /// At most so many rows; all without it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Continue behind this row
    #[arg(long, value_name = "OP")]
    pub after: Option<OperationId>,
}

/// One operation by its whole id.
#[derive(Clone, Debug, Args)]
pub struct OneOp {
    /// The operation's whole id
    pub op: OperationId,
}

/// `ops lookup`.
#[derive(Clone, Debug, Args)]
pub struct LookupArgs {
    /// The operations' whole ids
    #[arg(required = true, num_args = 1..)]
    pub ops: Vec<OperationId>,
}

/// `ops snooze`.
#[derive(Clone, Debug, Args)]
pub struct SnoozeArgs {
    /// The operation's whole id
    pub op: OperationId,
    /// For so long, at most 7d; for example 1h
    #[arg(long = "for", value_name = "TIME", value_parser = snooze_span, required_unless_present = "until")]
    pub span: Option<std::time::Duration>,
    /// Until then, for example 2026-01-31T14:00:00Z
    #[arg(long, value_name = "RFC3339", value_parser = instant, conflicts_with = "span")]
    pub until: Option<crate::domain::Instant>,
}

/// A decision with its note.
#[derive(Clone, Debug, Args)]
pub struct DecideArgs {
    /// The operation's whole id
    pub op: OperationId,
    /// What you saw and why; kept in the audit
    #[arg(long, value_name = "TEXT")]
    pub note: String,
    /// Refuse unless the row is still at this version
    #[arg(long, value_name = "V")]
    pub expect_version: Option<i64>,
}

/// `ops close`.
#[derive(Clone, Debug, Args)]
pub struct CloseArgs {
    #[command(flatten)]
    pub decide: DecideArgs,
    /// refunded (or succeeded), or failed
    #[arg(long = "as", value_name = "OUTCOME", value_parser = closing)]
    pub outcome: Closing,
    /// The provider's id of the effect, where nothing else proves it
    #[arg(long, value_name = "ID")]
    pub provider_ref: Option<ProviderRef>,
}

/// `ops correct`.
#[derive(Clone, Debug, Args)]
pub struct CorrectArgs {
    #[command(flatten)]
    pub decide: DecideArgs,
    /// refunded (or succeeded), or failed; without it a second effect is acknowledged
    #[arg(long = "as", value_name = "OUTCOME", value_parser = closing)]
    pub outcome: Option<Closing>,
}

fn snooze_span(text: &str) -> Result<std::time::Duration, String> {
    let span = crate::config::duration(text).map_err(|why| format!("it {why}; write 2h or 1d"))?;
    if span.is_zero() || span > LONGEST_SNOOZE {
        return Err("a row is put off for more than no time and at most 7d".to_owned());
    }
    Ok(span)
}

fn instant(text: &str) -> Result<crate::domain::Instant, String> {
    chrono::DateTime::parse_from_rfc3339(text)
        .map(|at| at.to_utc())
        .map_err(|_| "write an instant with its zone, as in 2026-01-31T14:00:00Z".to_owned())
}

fn tab(text: &str) -> Result<Tab, String> {
    // The tool's own word for it is what people read on the screen.
    let text = if text == "refunded" {
        "succeeded"
    } else {
        text
    };
    word(text, "review, open, unknown, succeeded, failed, all")
}

fn sort(text: &str) -> Result<Sort, String> {
    word(text, "updated, created, amount, attempts, key_left, order")
}

fn closing(text: &str) -> Result<Closing, String> {
    let text = if text == "refunded" {
        "succeeded"
    } else {
        text
    };
    word(text, "refunded, succeeded, failed")
}
