//! Telling people outside: takes notices from the ledger and hands them to a command or a webhook.
//!
//! Owns: delivering (each notice once, or more often where nobody knows whether it arrived), retries
//! with backoff, giving up. Never: decides what is worth telling (the ledger writes notices in the
//! transaction that makes them true), waits inside a transaction, or holds up an engine: it is a task
//! of its own, and a slow receiver delays nobody but itself. The backoff is the domain's own, with its
//! jitter and its respect for `Retry-After`. Tests: `tests/notify/`.

mod command;
mod outlets;
mod webhook;
mod words;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

pub use self::outlets::{OutletError, Outlets};
use crate::clock::Clock;
use crate::domain::message::Language;
use crate::domain::notice::{MAX_AGE, MAX_TRIES, NoticeEvent};
use crate::domain::policy::Backoff;
use crate::domain::since;
use crate::domain::text::SafeText;
use crate::ledger::{LedgerError, Notice, SharedLedger, Went};

/// How often the ledger is asked for notices.
const POLL: Duration = Duration::from_secs(1);
/// Notices of one round; then the stop is looked at, and the health told.
const PER_ROUND: u32 = 20;
/// Waits of up to 1, 2, 4 … minutes; about three hours over all tries.
const BACKOFF: Backoff = Backoff {
    base: Duration::from_mins(1),
    cap: Duration::from_hours(2),
};
/// A receiver may ask for a wait up to this.
const LONGEST_WISH: Duration = Duration::from_hours(1);
/// What panicked is started again after this.
const AFTER_A_PANIC: Duration = Duration::from_mins(1);

/// What a notifier needs of the world.
#[derive(Clone)]
pub struct NotifyDeps {
    pub ledger: SharedLedger,
    pub outlets: Outlets,
    /// Only these are told.
    pub events: Vec<NoticeEvent>,
    pub place: Place,
    /// In which customers are spoken to.
    pub language: Language,
    pub clock: Clock,
}

/// Where the news come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub provider: String,
    /// `simulator`, `test` or `live`.
    pub mode: String,
    /// The ledger's file name.
    pub ledger: String,
}

/// Why a channel did not take a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Missed {
    why: SafeText,
    again: Again,
}

/// Whether a channel may take it later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Never,
    /// Not before the receiver's wish, where it said one.
    After(Option<Duration>),
}

impl Missed {
    fn again(why: impl AsRef<str>) -> Self {
        let (why, again) = (SafeText::new(why.as_ref()), Again::After(None));
        Self { why, again }
    }

    fn never(why: impl AsRef<str>) -> Self {
        let (why, again) = (SafeText::new(why.as_ref()), Again::Never);
        Self { why, again }
    }
}

/// What a round did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Notices whose delivery was tried.
    pub taken: u32,
    /// What went wrong last, if the last one did not arrive everywhere.
    pub trouble: Option<String>,
}

/// Delivers what is due, up to a bound.
///
/// # Errors
/// The ledger does not answer; what was taken is taken again later.
pub async fn round(deps: &NotifyDeps) -> Result<Round, LedgerError> {
    let mut round = Round::default();
    let lease = deps.outlets.longest();
    while round.taken < PER_ROUND {
        let Some(notice) = deps.ledger.take_notice(&deps.events, lease).await? else {
            break;
        };
        round.taken += 1;
        round.trouble = deliver(deps, &notice).await?;
    }
    Ok(round)
}

/// One notice to every channel that does not have it yet; answers what went wrong.
async fn deliver(deps: &NotifyDeps, notice: &Notice) -> Result<Option<String>, LedgerError> {
    let event = notice.event.as_str();
    if since(notice.at, deps.clock.now()) > MAX_AGE {
        let why = SafeText::new("it is older than a day");
        tracing::warn!(notice = notice.id, event, %why, "given up");
        let went = Went::GaveUp { why };
        deps.ledger.notice_went(notice, went).await?;
        return Ok(None);
    }
    let told = words::Told::of(notice, &deps.place, deps.language);
    let mut missed: Vec<Missed> = Vec::new();
    for channel in deps.outlets.channels() {
        if notice.reached.contains(&channel) {
            continue;
        }
        match deps.outlets.deliver(channel, &told, &deps.clock).await {
            // Written at once: whatever happens to the other channel, this one has it.
            Ok(()) => {
                let reached = Went::Reached(channel);
                deps.ledger.notice_went(notice, reached).await?;
            }
            Err(miss) => missed.push(miss),
        }
    }
    let went = conclude(&missed, notice.tries, rand::random());
    let trouble = missed.last().map(|m| m.why.to_string());
    match &went {
        Went::GaveUp { why } => tracing::error!(notice = notice.id, event, %why, "given up"),
        Went::Later { wait, why } => {
            let wait_s = wait.as_secs();
            tracing::warn!(notice = notice.id, event, %why, wait_s, "again later");
        }
        Went::Reached(_) | Went::Sent => tracing::info!(notice = notice.id, event, "told"),
    }
    deps.ledger.notice_went(notice, went).await?;
    Ok(trouble)
}

/// What follows from the channels that did not take it, after so many tries.
fn conclude(missed: &[Missed], tries: u32, lot: u32) -> Went {
    let Some(last) = missed.last() else {
        return Went::Sent;
    };
    let wishes = missed.iter().filter_map(|m| match m.again {
        Again::Never => None,
        Again::After(wish) => Some(wish.unwrap_or_default()),
    });
    let why = last.why.clone();
    match wishes.max() {
        Some(wish) if tries < MAX_TRIES => {
            let wait = BACKOFF.wait(tries, Some(wish.min(LONGEST_WISH)), lot);
            Went::Later { wait, why }
        }
        Some(_) => {
            let why = format!("{MAX_TRIES} tries; at last: {why}");
            Went::GaveUp { why: why.into() }
        }
        None => Went::GaveUp { why },
    }
}

/// A running notifier.
pub struct Notifier {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Notifier {
    /// Starts it. `tell` hears what goes wrong, and `None` once all is well again.
    #[must_use]
    pub fn start(deps: NotifyDeps, tell: impl Fn(Option<String>) + Send + Sync + 'static) -> Self {
        let (stop, stopping) = watch::channel(false);
        let clock = deps.clock.clone();
        let tell: Arc<dyn Fn(Option<String>) + Send + Sync> = Arc::new(tell);
        let work = {
            let (stopping, tell) = (stopping.clone(), Arc::clone(&tell));
            move || keep(deps.clone(), Arc::clone(&tell), stopping.clone())
        };
        let task = tokio::spawn(supervise(work, clock, tell, stopping));
        Self { stop, task }
    }

    /// Takes no more notices; what is being delivered may end within `limit`. What is cut off is told
    /// again by whoever runs next.
    pub async fn stop(self, limit: Duration) {
        let Self { stop, mut task } = self;
        stop.send_replace(true);
        if tokio::time::timeout(limit, &mut task).await.is_err() {
            task.abort();
        }
    }
}

type Tell = Arc<dyn Fn(Option<String>) + Send + Sync>;

/// Runs `work`, and again after a panic: one bad notice must not silence all others (U32). Its try is
/// counted, so that it is given up in the end.
async fn supervise<W, F>(work: W, clock: Clock, tell: Tell, stopping: watch::Receiver<bool>)
where
    W: Fn() -> F,
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        // A set, so that what runs ends with this task.
        let mut running = JoinSet::new();
        running.spawn(work());
        match running.join_next().await {
            Some(Err(error)) if error.is_panic() => {
                tracing::error!(%error, "the notifier panicked");
                tell(Some(format!("telling panicked: {error}")));
            }
            _ => return,
        }
        if !wait(&clock, AFTER_A_PANIC, &stopping).await {
            return;
        }
    }
}

async fn keep(deps: NotifyDeps, tell: Tell, stopping: watch::Receiver<bool>) {
    while !*stopping.borrow() {
        match round(&deps).await {
            Ok(round) if round.taken > 0 => tell(round.trouble),
            Ok(_) => {}
            // The engine tells of a ledger that does not answer.
            Err(error) => tracing::warn!(%error, "notices have to wait"),
        }
        if !wait(&deps.clock, POLL, &stopping).await {
            return;
        }
    }
}

/// Waits, but not past a stop; answers whether the wait was whole.
async fn wait(clock: &Clock, time: Duration, stopping: &watch::Receiver<bool>) -> bool {
    let mut stopping = stopping.clone();
    tokio::select! {
        biased;
        _ = stopping.wait_for(|stop| *stop) => false,
        () = clock.sleep(time) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn missed(again: Again) -> Missed {
        let why = SafeText::new("it answered 500");
        Missed { why, again }
    }

    #[test]
    fn tries_are_bounded_and_wishes_are_too_i33() {
        let later = |m: &[Missed], tries| match conclude(m, tries, u32::MAX) {
            Went::Later { wait, .. } => Some(wait),
            _ => None,
        };
        assert_eq!(conclude(&[], 1, 0), Went::Sent);
        let plain = [missed(Again::After(None))];
        assert_eq!(later(&plain, 1), Some(Duration::from_mins(1)));
        assert_eq!(later(&plain, 4), Some(Duration::from_mins(8)));
        assert_eq!(later(&plain, MAX_TRIES), None);
        let wish = |wish| [missed(Again::After(Some(wish)))];
        let asked = later(&wish(Duration::from_mins(5)), 1).expect("a wait");
        assert!(asked >= Duration::from_mins(5));
        let endless = later(&wish(Duration::MAX), 1).expect("a wait");
        assert!(endless <= LONGEST_WISH + Duration::from_mins(1));
        let refused = missed(Again::Never);
        assert_eq!(later(std::slice::from_ref(&refused), 1), None);
        let one_may = [refused, missed(Again::After(None))];
        assert!(later(&one_may, 1).is_some(), "the other channel still may");
        let all: Duration = (1..MAX_TRIES).filter_map(|n| later(&plain, n)).sum();
        assert!(all < MAX_AGE && all > Duration::from_hours(2), "{all:?}");
    }

    #[tokio::test]
    async fn a_panic_is_told_and_telling_goes_on_u32() {
        let clock = Clock::manual(crate::domain::Instant::UNIX_EPOCH);
        let (runs, heard) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(None)));
        let tell: Tell = {
            let heard = Arc::clone(&heard);
            Arc::new(move |trouble| *heard.lock().expect("heard") = trouble)
        };
        let (_stop, stopping) = watch::channel(false);
        let work = {
            let (runs, clock) = (Arc::clone(&runs), clock.clone());
            move || {
                let run = runs.fetch_add(1, Ordering::SeqCst);
                let clock = clock.clone();
                async move {
                    // The supervisor's wait is over at once.
                    clock.advance(AFTER_A_PANIC);
                    assert_ne!(run, 0, "a bad notice");
                }
            }
        };
        let supervised = supervise(work, clock.clone(), tell, stopping);
        let moving = async {
            loop {
                tokio::task::yield_now().await;
                clock.advance(AFTER_A_PANIC);
            }
        };
        tokio::select! {
            () = supervised => {}
            () = moving => {}
        }
        assert_eq!(runs.load(Ordering::SeqCst), 2, "it was started again");
        let heard = heard.lock().expect("heard").clone();
        assert!(heard.expect("told").contains("panicked"));
    }
}
