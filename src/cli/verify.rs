//! `verify`: audits a ledger against every invariant; read-only.

use super::context::Context;
use crate::error::{Exit, Failure};
use crate::ledger::verify::verify;

pub(super) async fn run(cx: &Context) -> Result<Exit, Failure> {
    // A wrong configuration must not keep anybody from auditing a ledger that is named.
    let at = match (cx.global.ledger.is_some(), cx.config()) {
        (_, Ok(loaded)) => cx.ledger_at(&loaded.config)?,
        (true, Err(_)) => cx.ledger_at(&crate::config::Config::default())?,
        (false, Err(failure)) => return Err(failure),
    };
    let report = verify(&at.path).await?;
    let clean = report.violations.is_empty();
    if cx.out.is_json() {
        cx.out.json(&report)?;
    } else {
        let count = report.violations.len();
        let mut lines: Vec<_> = report
            .violations
            .iter()
            .map(|v| {
                let operation = v.operation.as_deref().unwrap_or("ledger");
                format!("{operation}  {}  {}", v.rule, v.what)
            })
            .collect();
        lines.push(match (report.operations, count) {
            (1, 0) => "1 operation, no violation".to_owned(),
            (n, 0) => format!("{n} operations, no violation"),
            (n, 1) => format!("{n} operations, 1 violation"),
            (n, count) => format!("{n} operations, {count} violations"),
        });
        cx.out.text(&lines.join("\n"))?;
    }
    Ok(if clean { Exit::Done } else { Exit::No })
}
