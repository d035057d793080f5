//! Texts about operations: JSON for the clipboard, links, the support packet. Only reads.

use std::collections::BTreeSet;

use super::super::message::Told;
use super::Runner;
use crate::domain::evidence::objects;
use crate::domain::ids::{OperationId, ProviderRef};
use crate::ledger::Detail;
use crate::review::packet::Packet;

impl Runner {
    /// The text about `ids`, in their order.
    pub(super) async fn tell(&self, what: Told, ids: &[OperationId]) -> Result<String, String> {
        let mut details = Vec::new();
        for id in ids {
            let detail = self.ledger.detail(id).await.map_err(|e| e.to_string())?;
            details.push(detail.ok_or_else(|| format!("the ledger has no {id}"))?);
        }
        let texts = details.iter().map(|detail| match what {
            Told::Json => self.json(detail),
            Told::Link => Ok(self.links(detail)),
            Told::Packet => Ok(Packet::of(detail, self.clock.now()).markdown()),
        });
        let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
        Ok(match (what, texts.as_slice()) {
            (Told::Json, [one]) => one.clone(),
            (Told::Json, many) => format!("[{}]", many.join(",")),
            (Told::Link | Told::Packet, many) => many.join("\n\n"),
        })
    }

    /// The row as the contract writes it, in one line.
    fn json(&self, detail: &Detail) -> Result<String, String> {
        serde_json::to_string(&self.gate.row(detail)).map_err(|e| e.to_string())
    }

    /// A line for each object of the provider that is or may be ours.
    fn links(&self, detail: &Detail) -> String {
        let row = &detail.op.row;
        let seen = objects(&detail.op.evidence);
        let refs: BTreeSet<&ProviderRef> = row
            .provider_ref
            .iter()
            .chain(seen.keys().copied())
            .collect();
        let lines: Vec<String> = refs
            .into_iter()
            .filter_map(|id| self.gate.url(&row.provider, id))
            .collect();
        lines.join("\n")
    }
}
