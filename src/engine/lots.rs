//! Where an engine's chance comes from: keys, ids and the jitter of its waits.
//!
//! Owns: the machine's own randomness, and a seeded source for simulations that must replay. Never: a
//! key that follows from a call, an argument or the time (I2). Tests: below, `tests/simulation/`.

use std::sync::{Arc, Mutex, PoisonError};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use uuid::Uuid;

/// A source of randomness that is handed to an engine. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Lots(Option<Arc<Mutex<ChaCha8Rng>>>);

impl Lots {
    /// The same draws for the same seed. For simulations only: two engines with one seed would draw
    /// the same keys.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let source = ChaCha8Rng::seed_from_u64(seed);
        Self(Some(Arc::new(Mutex::new(source))))
    }

    /// A random (version 4) UUID.
    pub(super) fn uuid(&self) -> Uuid {
        self.draw().map_or_else(Uuid::new_v4, |bytes| {
            uuid::Builder::from_random_bytes(bytes).into_uuid()
        })
    }

    /// Any number, each as likely.
    pub(super) fn lot(&self) -> u32 {
        self.draw().map_or_else(rand::random, u32::from_le_bytes)
    }

    fn draw<const N: usize>(&self) -> Option<[u8; N]> {
        let source = self.0.as_ref()?;
        let mut bytes = [0; N];
        let mut source = source.lock().unwrap_or_else(PoisonError::into_inner);
        source.fill(&mut bytes);
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_seed_makes_draws_come_again() {
        let draws = |lots: &Lots| (lots.uuid(), lots.lot());
        assert_eq!(draws(&Lots::seeded(7)), draws(&Lots::seeded(7)));
        assert_ne!(draws(&Lots::seeded(7)), draws(&Lots::seeded(8)));
        assert_ne!(draws(&Lots::default()), draws(&Lots::default()));
        assert_eq!(Lots::seeded(7).uuid().get_version_num(), 4);
    }
}
