//! What reading a provider costs: one permit of its read budget for each GET (S22, S23).
//!
//! Owns: the permit, which only a paid token makes, and how long a caller waits for one. An adapter's GET
//! takes a permit by value, so that none is sent that nobody paid for. Never: knows where the budget is kept
//! (that is the [`Purse`]'s), or waits past the caller's time. Tests: below, `tests/stripe/budget.rs`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::ReadError;
use crate::clock::Clock;
use crate::domain::ids::ProviderName;
use crate::domain::text::SafeText;
use crate::domain::{Instant, later};

/// The right to send one read-only request. Whoever sends it gives it up.
#[derive(Debug)]
#[must_use]
pub struct ReadPermit(());

/// Where the budget is kept: shared by all processes on one ledger.
#[async_trait]
pub trait Purse: Send + Sync {
    /// Takes one read of the provider's budget; else how long until there may be one.
    ///
    /// # Errors
    /// The budget cannot be asked, in one sentence.
    async fn take(&self, provider: &ProviderName) -> Result<Result<(), Duration>, SafeText>;
}

/// One caller's reads: paid one by one, until its time is over.
pub struct Reads {
    purse: Arc<dyn Purse>,
    provider: ProviderName,
    clock: Clock,
    until: Instant,
    /// Paid for and not sent yet.
    kept: Mutex<Option<ReadPermit>>,
}

impl Reads {
    /// Reads of `provider` for a caller that has time up to `until`; the last one may be sent just then.
    #[must_use]
    pub fn new(
        purse: Arc<dyn Purse>,
        provider: ProviderName,
        clock: Clock,
        until: Instant,
    ) -> Self {
        Self {
            purse,
            provider,
            clock,
            until,
            kept: Mutex::default(),
        }
    }

    /// Pays for the first read beforehand, waiting at most `longest`; `Ok(Err(wait))` where that is not
    /// enough, with nothing paid.
    ///
    /// # Errors
    /// The budget cannot be asked.
    pub async fn prepay(&self, longest: Duration) -> Result<Result<(), Duration>, SafeText> {
        let until = later(self.clock.now(), longest).min(self.until);
        let paid = self.pay(until).await?;
        Ok(paid.map(|permit| {
            if let Ok(mut kept) = self.kept.lock() {
                *kept = Some(permit);
            }
        }))
    }

    /// One permit, waited for as long as there is time.
    ///
    /// # Errors
    /// There is no time left to wait for one, or the budget cannot be asked.
    pub async fn permit(&self) -> Result<ReadPermit, ReadError> {
        let kept = self.kept.lock().ok().and_then(|mut kept| kept.take());
        if let Some(permit) = kept {
            return Ok(permit);
        }
        match self.pay(self.until).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(ReadError(
                "the read budget is used up for the time there was".into(),
            )),
            Err(why) => Err(ReadError(why)),
        }
    }

    async fn pay(&self, until: Instant) -> Result<Result<ReadPermit, Duration>, SafeText> {
        loop {
            let now = self.clock.now();
            if now > self.until {
                return Ok(Err(Duration::ZERO));
            }
            match self.purse.take(&self.provider).await? {
                Ok(()) => return Ok(Ok(ReadPermit(()))),
                Err(wait) if later(self.clock.now(), wait) > until => return Ok(Err(wait)),
                Err(wait) => self.clock.sleep(wait).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A token every second, after the first ones.
    struct Slow {
        left: AtomicU32,
        asked: AtomicU32,
    }

    #[async_trait]
    impl Purse for Slow {
        async fn take(&self, _: &ProviderName) -> Result<Result<(), Duration>, SafeText> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let some = |n: u32| n.checked_sub(1);
            let took = self
                .left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, some);
            Ok(took.map(drop).map_err(|_| Duration::from_secs(1)))
        }
    }

    fn reads(left: u32, time: Duration) -> (Arc<Slow>, Reads) {
        let at = Instant::from_timestamp(1_790_000_000, 0).expect("an instant");
        let clock = Clock::manual(at);
        let purse = Arc::new(Slow {
            left: left.into(),
            asked: 0.into(),
        });
        let name = "stripe".parse().expect("a name");
        let until = later(at, time);
        (Arc::clone(&purse), Reads::new(purse, name, clock, until))
    }

    /// S22: what was paid beforehand is the first read and is not paid twice.
    #[tokio::test]
    async fn each_permit_is_one_token_s22() {
        let (purse, reads) = reads(3, Duration::ZERO);
        assert_eq!(reads.prepay(Duration::ZERO).await, Ok(Ok(())));
        for _ in 0..3 {
            let _paid = reads.permit().await.expect("paid");
        }
        assert_eq!(purse.left.load(Ordering::SeqCst), 0);
        assert!(
            reads.permit().await.is_err(),
            "no time to wait for a fourth"
        );
        assert_eq!(purse.asked.load(Ordering::SeqCst), 4);
    }

    /// L3: nobody waits past the caller's time, nor takes a token then.
    #[tokio::test]
    async fn waiting_ends_with_the_callers_time_l3() {
        let (_, none) = reads(0, Duration::from_millis(500));
        let short = none.prepay(Duration::from_mins(1)).await;
        assert_eq!(short, Ok(Err(Duration::from_secs(1))));
        let (purse, late) = reads(1, Duration::from_secs(5));
        late.clock.advance(Duration::from_secs(6));
        assert!(late.permit().await.is_err());
        assert_eq!(purse.asked.load(Ordering::SeqCst), 0);
    }
}
