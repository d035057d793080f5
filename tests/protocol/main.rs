//! The protocol, told through the public doors of `domain` alone: no ledger, no clock, no provider.
//!
//! `story` is the seed's own scenario; `outcomes` what each outcome class leads to; `evidence` what
//! lookups and webhooks do; `opening` whether a call gets a row; `deciding`, `correcting`, `desk`
//! and `matrix` what people may decide; `findings` what the screen says of the evidence; `watching`
//! when a row is looked at again; `edges` and `limits` where each rule turns, to the moment; `words`
//! what is written and shown; `search` walks through thousands of lives. Every step of every test is
//! checked against `../common/laws.rs`.

#[path = "../common/builders.rs"]
mod builders;
#[path = "../common/laws.rs"]
mod laws;

mod correcting;
mod deciding;
mod desk;
mod edges;
mod evidence;
mod findings;
mod limits;
mod matrix;
mod opening;
mod outcomes;
mod recovery;
mod search;
mod story;
mod watching;
mod words;
