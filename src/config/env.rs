//! The environment, read in one place.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Environment variables, of this process or fixed for a test. Not printable: it may hold secrets.
#[derive(Clone)]
pub struct Env(Option<Arc<BTreeMap<String, String>>>);

impl Env {
    /// The variables of this process.
    #[must_use]
    pub fn process() -> Self {
        Self(None)
    }

    /// Exactly these.
    #[must_use]
    pub fn fixed<const N: usize>(vars: [(&str, &str); N]) -> Self {
        let owned = vars.map(|(k, v)| (k.to_owned(), v.to_owned()));
        Self(Some(Arc::new(BTreeMap::from(owned))))
    }

    /// A variable that is set and not empty.
    #[must_use]
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place that reads the environment"
    )]
    pub fn get(&self, name: &str) -> Option<String> {
        let value = match &self.0 {
            None => std::env::var(name).ok(),
            Some(vars) => vars.get(name).cloned(),
        };
        value.filter(|v| !v.is_empty())
    }
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Env(…)")
    }
}
