//! samekey: one intended side effect stays one, however often an AI agent asks for it, and a person
//! sees and settles what nobody knows. This page is the architecture; the code is held to it by
//! `tests/tidy.rs`.
//!
//! # Bird's-eye view
//!
//! ```text
//!  agents ──► gateway (HTTP, MCP), cli ────┐
//!                                          ▼
//!   provider ◄── engine ──► ledger ◄── review ◄── tui, cli        (people)
//!      │           │          ▲ │        │
//!      │           └── domain (pure) ────┘
//!      └─ webhooks ─► gateway ┘
//! ```
//!
//! A tool call is accepted durably. An engine takes it under a lease, asks the ledger for the row of
//! its effect (get), reads the provider (check), and opens one row with one random key (open): all
//! committed before anything is sent. Each attempt is counted in a committed transaction (authorise)
//! before its first byte leaves, always with the row's key and stored bytes. When nobody can know the
//! outcome, the row becomes `unknown`: nothing more is sent, every later call hears `checking`, and a
//! person looks it up and closes it through `review`. Meanwhile the provider's events and the engine's own
//! looks bring the truth back; `confirmed` from them closes the row.
//!
//! # Code map
//!
//! | room | owns | never |
//! |---|---|---|
//! | [`domain`] | every rule about money: statuses, outcome classes, evidence, verdicts, the closing matrix | waits, reads the time, draws lots |
//! | [`ledger`] | durability; one transaction per domain step; audit chain; leases | decides; keeps a transaction open across a provider call |
//! | [`provider`] | the wire of one provider: one request per attempt, classification, reading back | retries, redirects, touches the ledger |
//! | [`tool`] | described tools: what one takes, sends and hears, as data | connects; decides what follows |
//! | [`engine`] | when something is sent: connect, authorise, check again, write | decides what an outcome means |
//! | [`review`] | the only way a person changes anything | sends anything but reads |
//! | [`gateway`] | what comes in: agents' calls over HTTP and MCP and the provider's signed events, stored before they are acknowledged; their answers' way back; what operators see | drives a call, works on an event, shows an agent a key; listens beyond this machine while no agent has a token |
//! | [`notify`] | telling people outside: command, webhook, retries | decides what is worth telling; holds up an engine |
//! | [`simulator`] | a Stripe-wire provider that misbehaves on request | knows of samekey |
//! | [`demo`] | simulated customers, and the naive client to compare with | touches a real provider |
//! | [`tui`] | the screen: a pure update, a pure view, effects at the edge | SQL, HTTP or waiting on its task |
//! | [`cli`] | arguments, output, exit codes | rules |
//! | [`clock`], [`config`], [`error`], [`telemetry`], `http`, `program`, `kill` | time as a value, settings and secrets, failures, logs, one request on one connection, one run of an outside program, dying on purpose in tests | |
//!
//! # Four questions
//!
//! Every operation answers four questions (R2). *Who creates the key?* The transaction that opens the row,
//! at random. *Where does it live?* In that row, and nowhere else. *What if two requests carry it at
//! once?* One attempt is in flight at a time; a provider that says it is still busy is waited for, with
//! the same key and the same bytes. *What if the result stays unknown?* The row says so, nothing more is
//! sent, and a person settles it with the evidence.
//!
//! # Where the boundary is
//!
//! The idempotency key lies on the tool, not on the orchestrator (R64, R67). A graph, an agent or a queue
//! may be atomic about its own state and run a step again from its first line: the call that the step
//! made has happened all the same, and no orchestrator can take an effect back (R65, R66, R68). So nothing
//! is asked of a caller but to ask, as often as it likes. No decision is a model's: it can neither choose
//! nor see a key, and what it hears is never more than the row (R60).
//!
//! What a provider promises stands in its profile as data: for how long it honours a key, how long a
//! request may take to settle, when a search shows it (R36).
//!
//! # Two pure hearts
//!
//! [`domain::transition::transition`]: operation + event + now → a step or a typed refusal. Engine,
//! review and tests call this one function; the ledger writes its step where nobody moved first.
//! `tui::update`: model + message → effects; each effect carries its frozen target.
//!
//! # Invariants, as absences
//!
//! - Nothing is sent without a committed attempt (I5, I7), nor later than the send window after it
//!   (I9), nor after the key's deadline (I10), nor twice for one attempt (I12).
//! - No key is derived from a call, an argument or a process (I2, R14–R16); none ever changes (I3).
//! - No row leaves `unknown` by age or restart (I16); no person closes as failed while a request may
//!   still take effect (I19).
//! - No transaction is open across a provider call. No database future is dropped halfway.
//! - No change of a row without exactly one audit entry in the same transaction (I23): the schema
//!   itself refuses to commit one.
//! - No outside text reaches a terminal, a log or a line of output unless it went through
//!   [`domain::text::SafeText`] (I31); no secret does at all (I30).
//! - No mode of the terminal outlives the screen. The terminal's modes are one value, restored when it
//!   is dropped, whichever way the screen ends (U30).
//! - Nothing is unbounded: bodies, pages, queues, evidence per row, waits (I33).
//!
//! The promise in words: while the provider honours the key for the time it states and finishes a
//! request within its stated bound, one operation has at most one effect; when nobody can know, samekey
//! says so, stops, and hands it to a person with the evidence. Not "exactly once".
//!
//! # How to add
//!
//! - *a status or a reason*: `domain::operation`, a migration for the CHECK; the compiler then names
//!   every place that has to think about it.
//! - *an outcome class*: `domain::outcome` and `transition::settle_open`, the CHECK, the table test in
//!   `tests/protocol/`.
//! - *a provider*: a file in [`provider`] that implements [`provider::Provider`], and its profile in
//!   `assets/profiles`, which `tests/stripe/profiles.rs` holds against a simulator.
//! - *a tool*: a description in the configuration ([`tool::description`]); one that ships is a file in
//!   `assets/tools` with its sample replies, a line in [`tool::shipped`], and a test in `tests/tools/`.
//! - *a recovery branch*: [`domain::recovery`]; the compiler names who has to think about it.
//! - *an action of a person*: `domain::review_event::Act`, `review::Ask`, a key in `tui::keymap`, a
//!   command in [`cli`].
//! - *a notice*: `domain::notice::NoticeEvent`, the CHECK; a trigger, or `ledger/sqlite/notices.rs`
//!   where a trigger cannot know of it; its words in `notify/words.rs`.
//! - *a language*: `domain::message`; the compiler names what is missing.
//! - *a key*: an action in `tui::action`, a line in `tui::keymap::table`; help, hints, the `:` line and
//!   the README follow from it. When it cannot be had now says `tui::possible`.
//! - *a view*: one file in `tui/view`, a tab in the model; what lies over the pages is data in the model
//!   (`tui::palette`, `tui::menu`, `tui::pager`) and has all the keys while it is there.
//! - *a route*: a handler in `gateway/http.rs` and its answers in `assets/openapi.json`, which
//!   `tests/gateway/openapi.rs` holds against each other.
//! - *a store*: implement [`ledger::Ledger`] and run `tests/ledger/` against it.

pub mod cli;
pub mod clock;
pub mod config;
pub mod demo;
pub mod domain;
pub mod engine;
pub mod error;
pub mod gateway;
mod http;
mod kill;
pub mod ledger;
pub mod notify;
mod program;
pub mod provider;
pub mod review;
pub mod simulator;
pub mod telemetry;
pub mod tool;
pub mod tui;
