//! What every command starts from: flags and environment resolved, configuration read, the ledger
//! opened, providers ready.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use super::args::Global;
use super::output::Output;
use crate::clock::Clock;
use crate::config::{
    Config, Env, Loaded, Paths, ProviderSection, ProviderType, Secret, ToolSection, credentials,
    ledger_path,
};
use crate::domain::ids::{ProviderName, ProviderRef, ReviewerName, ToolName};
use crate::domain::message::Language;
use crate::domain::policy::Terms;
use crate::domain::review_event::Person;
use crate::error::Failure;
use crate::ledger::sqlite::{OpenMode, SqliteLedger};
use crate::ledger::view::{DetailView, Lens, RowView};
use crate::ledger::{Detail, Listed, SharedLedger};
use crate::provider::SharedProvider;
use crate::provider::described::{Described, DescribedConfig};
use crate::provider::stripe::{Orders, Stripe, StripeConfig};
use crate::review::Gate;

/// Flags, environment and the way out.
pub struct Context {
    pub global: Global,
    pub env: Env,
    pub out: Output,
    pub clock: Clock,
}

/// Where the ledger is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerAt {
    pub path: PathBuf,
    /// Nobody named it: its directory is made, too.
    pub is_default: bool,
}

/// Whether a provider that cannot be used (no key) ends the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// The command talks to the provider.
    Needed,
    /// The provider only adds links to what is shown.
    IfThere,
}

impl Context {
    /// The configuration that is in force.
    ///
    /// # Errors
    /// A file that cannot be read, or is wrong.
    pub fn config(&self) -> Result<Loaded, Failure> {
        let named = self
            .global
            .config
            .clone()
            .or_else(|| self.env.get("SAMEKEY_CONFIG").map(PathBuf::from));
        let default = match &named {
            Some(path) => path.clone(),
            None => Paths::of_user()?.config,
        };
        Ok(Config::load(named.as_deref(), &default)?)
    }

    /// The ledger by flag, environment, configuration or default.
    ///
    /// # Errors
    /// An address that names no `SQLite` file.
    pub fn ledger_at(&self, config: &Config) -> Result<LedgerAt, Failure> {
        let flag = self.global.ledger.clone().map(|url| ("--ledger", url));
        let env = || self.env.get("SAMEKEY_LEDGER");
        let named = flag
            .or_else(|| env().map(|url| ("SAMEKEY_LEDGER", url)))
            .or_else(|| config.ledger.url.clone().map(|url| ("ledger.url", url)));
        let Some((from, url)) = named else {
            let path = Paths::of_user()?.ledger;
            let is_default = true;
            return Ok(LedgerAt { path, is_default });
        };
        match ledger_path(&url) {
            Ok(path) => Ok(LedgerAt {
                path,
                is_default: false,
            }),
            Err(what) => Err(Failure::usage("ledger_url", format!("{from} {what}"))
                .hint("write sqlite:/path/to/ledger.db")),
        }
    }

    /// Opens the ledger and what belongs to it.
    ///
    /// # Errors
    /// Configuration, ledger or (where needed) provider cannot be used.
    pub async fn open(&self, mode: OpenMode, keys: Keys) -> Result<Desk, Failure> {
        let loaded = self.config()?;
        let providers = self.providers(&loaded.config, keys)?;
        let at = self.ledger_at(&loaded.config)?;
        let creates = matches!(mode, OpenMode::Engine | OpenMode::Submit);
        if at.is_default {
            if creates {
                make_private_directory(&at)?;
            } else if !at.path.exists() {
                return Err(no_ledger_yet(&at));
            }
        }
        let terms = Arc::new(loaded.config.terms());
        let location = format!("sqlite:{}", at.path.display());
        let ledger =
            SqliteLedger::open(&location, mode, Arc::clone(&terms), self.clock.clone()).await?;
        Ok(Desk {
            loaded,
            at,
            terms,
            providers: Arc::new(providers),
            ledger: Arc::new(ledger),
            clock: self.clock.clone(),
            reviewer: self.reviewer()?,
        })
    }

    /// The configured providers, with their keys.
    ///
    /// # Errors
    /// A key that is not there, or a section that the adapter refuses, where `keys` are needed.
    pub fn providers(
        &self,
        config: &Config,
        keys: Keys,
    ) -> Result<BTreeMap<ProviderName, SharedProvider>, Failure> {
        let mut all = BTreeMap::new();
        for (name, section) in &config.providers {
            match (self.provider(name, section, &config.tools), keys) {
                (Ok(provider), _) => {
                    all.insert(name.clone(), provider);
                }
                (Err(failure), Keys::Needed) => return Err(failure),
                (Err(failure), Keys::IfThere) => {
                    tracing::debug!(provider = %name, %failure, "left out");
                }
            }
        }
        Ok(all)
    }

    /// One provider with its key.
    ///
    /// # Errors
    /// A key that is not there, or a section that the adapter refuses.
    pub fn provider(
        &self,
        name: &ProviderName,
        section: &ProviderSection,
        tools: &BTreeMap<ToolName, ToolSection>,
    ) -> Result<SharedProvider, Failure> {
        let secret = section.api_key.as_ref();
        let secret = secret.map(|k| k.read(&self.env)).transpose()?;
        if let Some(http) = &section.http {
            let credentials = secret.map(|s| {
                let value = credentials(http, s.expose());
                (http.auth_header.clone(), Secret::new(value))
            });
            let ours = tools.iter().filter(|(_, t)| t.policy.provider == *name);
            let config = DescribedConfig {
                name: name.clone(),
                base_url: section.base_url.clone(),
                credentials,
                profile: section.profile.clone(),
                live: http.live,
                probe: http.probe.clone(),
                tools: ours
                    .filter_map(|(name, t)| {
                        Some((name.clone(), t.described.as_ref()?.tool.clone()))
                    })
                    .collect(),
            };
            return Ok(Arc::new(Described::new(config, self.clock.clone())?));
        }
        match (section.kind, secret) {
            (ProviderType::Stripe | ProviderType::Http, None) | (ProviderType::Http, _) => {
                Err(Failure::usage("provider", format!("{name} has no key")))
            }
            (ProviderType::Stripe, Some(api_key)) => {
                let config = StripeConfig {
                    name: name.clone(),
                    base_url: section.base_url.clone(),
                    api_key,
                    api_version: section.api_version.clone(),
                    profile: section.profile.clone(),
                    account: section.account.clone(),
                };
                let stripe = Stripe::new(config, self.clock.clone())?;
                let orders = Orders::new(&section.resolve, |name| self.env.get(name));
                Ok(Arc::new(stripe.resolving(orders)))
            }
        }
    }

    /// Who acts, where somebody is named.
    fn reviewer(&self) -> Result<Option<ReviewerName>, Failure> {
        if let Some(name) = &self.global.reviewer {
            return Ok(Some(name.clone()));
        }
        self.env
            .get("SAMEKEY_REVIEWER")
            .map(|name| {
                name.parse()
                    .map_err(|e| Failure::usage("reviewer", format!("SAMEKEY_REVIEWER {e}")))
            })
            .transpose()
    }
}

fn no_ledger_yet(at: &LedgerAt) -> Failure {
    let message = format!("there is no ledger yet at {}", at.path.display());
    Failure::unreachable("ledger_missing", message)
        .hint("`samekey` or `samekey submit` makes it; `samekey demo` has one of its own")
}

fn make_private_directory(at: &LedgerAt) -> Result<(), Failure> {
    let Some(dir) = at.path.parent() else {
        return Ok(());
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|e| {
            let why = crate::config::plain(&e);
            let message = format!("the directory {} cannot be made: {why}", dir.display());
            Failure::unreachable("ledger_directory", message)
                .hint("name another ledger with --ledger")
        })
}

/// The OS user as a reviewer.
#[must_use]
pub fn os_reviewer() -> Option<ReviewerName> {
    crate::config::os_user().parse().ok()
}

/// An open ledger and everything around it.
pub struct Desk {
    pub loaded: Loaded,
    pub at: LedgerAt,
    pub terms: Arc<BTreeMap<ToolName, Terms>>,
    pub providers: Arc<BTreeMap<ProviderName, SharedProvider>>,
    pub ledger: SharedLedger,
    pub clock: Clock,
    reviewer: Option<ReviewerName>,
}

impl Desk {
    /// The gate for what people do.
    ///
    /// # Errors
    /// An OS user without a usable name.
    pub fn gate(&self) -> Result<Gate, Failure> {
        let os_user = os_reviewer().ok_or_else(|| {
            Failure::usage("os_user", "the OS user has no usable name").hint("set USER")
        })?;
        Ok(Gate::new(
            Arc::clone(&self.ledger),
            Arc::clone(&self.providers),
            Arc::clone(&self.terms),
            Arc::new(self.loaded.config.reviewers.clone()),
            os_user,
            self.clock.clone(),
        ))
    }

    /// Who acts.
    ///
    /// # Errors
    /// A name that may not act here.
    pub fn person(&self, gate: &Gate) -> Result<Person, Failure> {
        Ok(gate.person(self.reviewer.as_ref())?)
    }

    /// A row of a list, as JSON.
    #[must_use]
    pub fn row(&self, listed: &Listed) -> RowView {
        self.through(|lens| RowView::of(listed, lens))
    }

    /// The row of an operation, as JSON.
    #[must_use]
    pub fn row_of(&self, detail: &Detail) -> RowView {
        self.through(|lens| RowView::of_detail(detail, lens))
    }

    /// An operation with its history, as JSON.
    #[must_use]
    pub fn detail(&self, detail: &Detail) -> DetailView {
        self.through(|lens| DetailView::of(detail, lens))
    }

    /// The language that customers are spoken to in.
    #[must_use]
    pub fn language(&self) -> Language {
        self.loaded.config.ui.language
    }

    fn through<T>(&self, look: impl FnOnce(Lens<'_>) -> T) -> T {
        let url = |name: &ProviderName, id: &ProviderRef| self.providers.get(name)?.url(id);
        look(Lens {
            terms: &self.terms,
            url: &url,
            now: self.clock.now(),
            language: self.language(),
        })
    }
}
