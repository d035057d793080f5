//! Configuration: what a user may set, its defaults, and why a setting is refused.
//!
//! Owns: the TOML file, environment variables, default paths, secrets. Never: opens a ledger or a
//! connection; silently ignores a key. A key that is unknown, not enforced by this version, in a
//! wrong unit or in an impossible combination is an error that names file, line, key and remedy.
//! The parts: `read` walks the file, `sections`, `provider`, `described`, `tool` and `notify` know the keys, `check` the combinations, `units`
//! the spelling of durations and rates, `show` writes the effective file, `env` and `paths` are the
//! only places that read the environment. Tests: `tests/config.rs` and beside the code.

mod check;
mod described;
mod env;
mod notify;
mod paths;
mod provider;
mod read;
mod secret;
mod sections;
mod show;
mod tool;
mod units;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::domain::agent::SubmitLimits;
use crate::domain::arguments::Arguments;
use crate::domain::guard::Role;
use crate::domain::ids::{ProviderName, ReviewerName, ToolName};
use crate::domain::message::Language;
use crate::domain::policy::{Profile, Terms, ToolPolicy};
use crate::domain::text::SafeText;
use crate::domain::tool_call::{ArgumentError, RefundArguments};
use crate::engine::EngineConfig;

pub use described::{DescribedTool, HttpSection, Place, credentials};
pub use env::Env;
pub use notify::{NotifySection, WebhookAt, WebhookFormat};
pub(crate) use paths::open_file;
pub use paths::{Paths, ledger_path, os_user};
pub use provider::OrdersBy;
pub use secret::{KeySource, Secret, SecretError};
pub use units::{duration, show_duration, show_rate};

/// The commented file that `config init` writes; tests hold it to the parser.
pub const EXAMPLE: &str = include_str!("../../assets/samekey.example.toml");
/// Largest configuration that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Everything that can be configured, with the defaults filled in.
#[derive(Clone, Debug)]
pub struct Config {
    pub ledger: LedgerSection,
    pub engine: EngineConfig,
    /// How much agents may submit over the gateway.
    pub gateway: SubmitLimits,
    pub providers: BTreeMap<ProviderName, ProviderSection>,
    /// Always holds `issue_refund`, whether a provider for it is configured or not.
    pub tools: BTreeMap<ToolName, ToolSection>,
    /// Empty: the OS user alone acts, as lead.
    pub reviewers: BTreeMap<ReviewerName, Role>,
    /// Absent: nobody outside is told of anything.
    pub notify: Option<NotifySection>,
    pub ui: UiSection,
}

/// `[ledger]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerSection {
    /// `sqlite:PATH`; `None` is the file in the user's data directory.
    pub url: Option<String>,
}

/// `[providers.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderSection {
    pub kind: ProviderType,
    /// Scheme, host and port, without a slash at the end.
    pub base_url: String,
    /// Empty for a described provider that asks for none.
    pub api_key: Option<KeySource>,
    /// Sent as `Stripe-Version`, so that answers keep their shape.
    pub api_version: String,
    /// The provider's promises: the documented ones with this section's changes.
    pub profile: Profile,
    /// The account the ledger is bound to; asked of the provider where it is not set.
    pub account: Option<String>,
    /// What its webhooks are signed with; without one there is no route for them.
    pub webhook_secret: Option<KeySource>,
    /// Who knows which payment an order was paid with.
    pub resolve: OrdersBy,
    /// Only of a provider of described tools.
    pub http: Option<HttpSection>,
}

/// A kind of provider that this version speaks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum ProviderType {
    Stripe,
    /// Its wire stands in the descriptions of its tools.
    Http,
}

/// `[tools.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSection {
    pub policy: ToolPolicy,
    /// Of every tool but `issue_refund`, whose wire is the program's own.
    pub described: Option<DescribedTool>,
}

impl ToolSection {
    /// Checks the arguments of a call, as an engine will.
    ///
    /// # Errors
    /// One sentence that names the argument at fault.
    pub fn arguments(&self, given: &serde_json::Value) -> Result<Arguments, ArgumentError> {
        match &self.described {
            Some(described) => described.tool.arguments(given),
            None => RefundArguments::parse(given).map(Arguments::from),
        }
    }
}

/// `[ui]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UiSection {
    pub theme: Theme,
    /// How often the screen reads the ledger without being told of a change.
    pub refresh: Duration,
    pub timezone: TimeZone,
    /// In which customers are spoken to; the screen itself speaks English.
    pub language: Language,
    /// Offered in a note field before the built-in ones.
    pub note_templates: Vec<SafeText>,
}

/// The colours of the screen.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum Theme {
    #[default]
    Default,
    Light,
    Mono,
    Deuteranopia,
}

/// In which zone instants are shown at first.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum TimeZone {
    #[default]
    Utc,
    Local,
}

impl Default for UiSection {
    fn default() -> Self {
        Self {
            theme: Theme::default(),
            refresh: Duration::from_secs(1),
            timezone: TimeZone::default(),
            language: Language::default(),
            note_templates: Vec::new(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ledger: LedgerSection::default(),
            engine: EngineConfig::default(),
            gateway: SubmitLimits::default(),
            providers: BTreeMap::new(),
            tools: sections::default_tools(),
            reviewers: BTreeMap::new(),
            notify: None,
            ui: UiSection::default(),
        }
    }
}

/// Why a configuration is refused: what is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", self.place())]
pub struct ConfigError {
    /// As the user named it.
    pub file: String,
    /// From 1.
    pub line: Option<usize>,
    /// Dotted, as in `tools.issue_refund.rate`.
    pub key: Option<String>,
    /// What is wrong; reads on after the key.
    pub what: String,
    /// What to do about it, as a request.
    pub remedy: String,
}

impl ConfigError {
    fn place(&self) -> String {
        let line = self.line.map_or(String::new(), |n| format!(":{n}"));
        let key = self.key.as_ref().map_or(String::new(), |k| format!("{k} "));
        format!("{}{line}: {key}", self.file)
    }

    fn of_file(path: &Path, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            file: path.display().to_string(),
            line: None,
            key: None,
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

/// A configuration and where it came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    /// The file it was, or would have been, read from.
    pub path: PathBuf,
    /// Whether that file exists.
    pub present: bool,
}

impl Config {
    /// Reads `named`, which must exist, or the default file, which may be absent.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and remedy.
    pub fn load(named: Option<&Path>, default: &Path) -> Result<Loaded, ConfigError> {
        let path = named.unwrap_or(default).to_owned();
        let text = match std::fs::metadata(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
                let (config, present) = (Self::default(), false);
                return Ok(Loaded {
                    config,
                    path,
                    present,
                });
            }
            Err(e) => {
                let what = format!("the configuration cannot be read: {}", plain(&e));
                let remedy = "name an existing file with --config, or run `samekey config init`";
                return Err(ConfigError::of_file(&path, what, remedy));
            }
            Ok(m) if !m.is_file() || m.len() > MAX_FILE => {
                let what = "is not a configuration file";
                let remedy = "name a TOML file below 1 MiB with --config";
                return Err(ConfigError::of_file(&path, what, remedy));
            }
            Ok(_) => std::fs::read_to_string(&path).map_err(|e| {
                let what = format!("the configuration cannot be read: {}", plain(&e));
                ConfigError::of_file(&path, what, "make it a readable file in UTF-8")
            })?,
        };
        let config = Self::parse(&text, &path.display().to_string())?;
        let present = true;
        Ok(Loaded {
            config,
            path,
            present,
        })
    }

    /// Reads TOML text; `file` is its name in errors.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and remedy.
    pub fn parse(text: &str, file: &str) -> Result<Self, ConfigError> {
        sections::parse(text, file)
    }

    /// Each tool's limits with the promises of its provider: what every rule needs. A tool whose
    /// provider is not configured has the documented promises of Stripe, so that its rows can
    /// still be reviewed; nothing can be sent for it.
    #[must_use]
    pub fn terms(&self) -> BTreeMap<ToolName, Terms> {
        self.tools
            .iter()
            .map(|(name, tool)| {
                let provider = self.providers.get(&tool.policy.provider);
                let terms = Terms {
                    policy: tool.policy.clone(),
                    profile: provider.map_or_else(Profile::stripe, |p| p.profile.clone()),
                };
                (name.clone(), terms)
            })
            .collect()
    }

    /// The effective configuration as TOML, defaults included. Holds no secret: only where each
    /// comes from.
    #[must_use]
    pub fn show(&self) -> String {
        show::toml(self)
    }
}

/// An I/O error without the code number that Rust appends.
pub(crate) fn plain(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_lowercase()
}
