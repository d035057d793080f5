//! `samekey` without a command: the live screen with the engine in the same process.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::args::{Color, ScreenArgs};
use super::context::{Context, Desk, Keys, LedgerAt};
use crate::config::{Config, TimeZone};
use crate::engine::{Engine, EngineConfig, EngineDeps, EngineHealth, Lots};
use crate::error::{Exit, Failure};
use crate::ledger::sqlite::OpenMode;
use crate::notify::{Notifier, NotifyDeps, Outlets, Place};
use crate::tui::osc::Habits;
use crate::tui::{self, Environment, ThemeName, Timezone, TuiDeps, UiOptions};

/// How long what is in flight may take when the screen is left (L8).
pub(super) const DRAIN: Duration = Duration::from_secs(5);
/// How long a notice on its way out may take then; what is cut off is told again next time.
pub(super) const LAST_NOTICE: Duration = Duration::from_secs(2);

pub(super) async fn run(cx: &Context, args: &ScreenArgs) -> Result<Exit, Failure> {
    if args.snapshot.is_none() {
        needs_terminal("")?;
    }
    let config = cx.config()?.config;
    let mode = mode(args, &cx.ledger_at(&config)?);
    let mut ui = options(cx, &config, args.ascii, args.theme.as_deref())?;
    ui.read_only = args.read_only;
    let desk = cx.open(mode, Keys::IfThere).await?;
    let notice = notice(cx, &desk);
    let engine = if mode == OpenMode::Engine && !desk.providers.is_empty() {
        Some(Engine::start(deps(&desk)))
    } else {
        None
    };
    let notifier = engine
        .as_ref()
        .and_then(|engine| notifier(cx, &desk, engine));
    let health = engine
        .as_ref()
        .map_or_else(|| no_engine(notice.as_ref()), Engine::health);
    let gate = desk.gate()?;
    let tui = TuiDeps {
        ledger: Arc::clone(&desk.ledger),
        person: desk.person(&gate)?,
        gate,
        health,
        environment: environment(&desk, notice),
        clock: desk.clock.clone(),
        ui,
        scoreboard: None,
    };
    let stop = async || {
        let engine = async {
            if let Some(engine) = engine {
                engine.stop(DRAIN).await;
            }
        };
        let notifier = async {
            if let Some(notifier) = notifier {
                notifier.stop(LAST_NOTICE).await;
            }
        };
        tokio::join!(engine, notifier);
    };
    let done = match args.snapshot {
        Some((width, height)) => match tui::snapshot(tui, width, height).await {
            Ok(frame) => cx.out.exact(&frame),
            Err(e) => Err(e.into()),
        },
        None => Box::pin(tui::run(tui, stop)).await.map_err(Failure::from),
    };
    desk.ledger.close().await;
    done.map(|()| Exit::Done)
}

/// What the ledger is opened for. One frame needs no engine; whoever looks at their own ledger for
/// the first time gets an empty one.
fn mode(args: &ScreenArgs, at: &LedgerAt) -> OpenMode {
    let first_look = at.is_default && !at.path.exists() && !args.read_only && !args.no_engine;
    if args.read_only || (args.snapshot.is_some() && !first_look) {
        OpenMode::Read
    } else if args.no_engine {
        OpenMode::Review
    } else if args.snapshot.is_some() {
        OpenMode::Submit
    } else {
        OpenMode::Engine
    }
}

/// The screen draws on a terminal and reads keys from one. `command` stands in the hint.
pub(super) fn needs_terminal(command: &str) -> Result<(), Failure> {
    if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return Ok(());
    }
    Err(
        Failure::usage("no_terminal", "the screen needs a terminal").hint(format!(
            "`samekey {command}--snapshot 80x24` prints one frame as text"
        )),
    )
}

/// How the screen looks: flags over the configuration.
pub(super) fn options(
    cx: &Context,
    config: &Config,
    ascii: bool,
    theme: Option<&str>,
) -> Result<UiOptions, Failure> {
    let section = &config.ui;
    let named = theme.unwrap_or_else(|| section.theme.into());
    let theme: ThemeName = named.parse().map_err(|_| {
        Failure::usage("theme", "there is no such theme")
            .hint("choose one of default, light, mono, deuteranopia")
    })?;
    let no_color = match cx.global.color {
        Color::Never => true,
        Color::Always => false,
        Color::Auto => cx.env.get("NO_COLOR").is_some(),
    };
    Ok(UiOptions {
        theme,
        ascii,
        read_only: false,
        no_color,
        refresh: section.refresh,
        timezone: match section.timezone {
            TimeZone::Utc => Timezone::Utc,
            TimeZone::Local => Timezone::Local,
        },
        bell: true,
        terminal: Habits::of(|name| cx.env.get(name)),
        note_templates: section.note_templates.clone(),
    })
}

/// An engine's world, as a screen or a server has it.
pub(super) fn deps(desk: &Desk) -> EngineDeps {
    EngineDeps {
        ledger: Arc::clone(&desk.ledger),
        providers: Arc::clone(&desk.providers),
        terms: Arc::clone(&desk.terms),
        config: EngineConfig {
            reconcile: true,
            ..desk.loaded.config.engine.clone()
        },
        clock: desk.clock.clone(),
        lots: Lots::default(),
    }
}

/// Tells people outside, where that is configured. What keeps it from doing so keeps nothing else from
/// going on: the screen says it.
pub(super) fn notifier(cx: &Context, desk: &Desk, engine: &Engine) -> Option<Notifier> {
    let section = desk.loaded.config.notify.as_ref()?;
    let tell = engine.notices_teller();
    let outlets = match Outlets::new(section, &cx.env, &desk.clock) {
        Ok(outlets) => outlets,
        Err(error) => {
            tracing::error!(%error, "nobody outside is told");
            tell(Some(error.to_string()));
            return None;
        }
    };
    let Environment {
        provider,
        mode,
        ledger,
        ..
    } = environment(desk, None);
    let deps = NotifyDeps {
        ledger: Arc::clone(&desk.ledger),
        outlets,
        events: section.on.clone(),
        place: Place {
            provider,
            mode,
            ledger,
        },
        language: desk.language(),
        clock: desk.clock.clone(),
    };
    Some(Notifier::start(deps, tell))
}

/// The health of an engine that is not there.
fn no_engine(notice: Option<&String>) -> watch::Receiver<EngineHealth> {
    let health = EngineHealth {
        alarm: notice.cloned(),
        ..EngineHealth::default()
    };
    watch::channel(health).1
}

/// What keeps this process from sending, and what to do about it.
fn notice(cx: &Context, desk: &Desk) -> Option<String> {
    let config = &desk.loaded.config;
    if config.providers.is_empty() {
        // Short: it has to fit beside what the screen says itself, in 80 columns.
        let says = "no provider: add [providers.stripe] or try `samekey demo`";
        return Some(says.to_owned());
    }
    config.providers.iter().find_map(|(name, section)| {
        let failure = cx.provider(name, section, &config.tools).err()?;
        let hint = failure.hint.map_or(String::new(), |h| format!("; {h}"));
        Some(format!("{name}: {}{hint}", failure.message))
    })
}

fn environment(desk: &Desk, notice: Option<String>) -> Environment {
    let first = desk.providers.values().next();
    let file = desk.at.path.file_name();
    Environment {
        provider: first.map_or(String::new(), |p| p.name().to_string()),
        mode: first.map_or(String::new(), |p| p.mode().to_owned()),
        ledger: file.map_or(String::new(), |f| f.to_string_lossy().into_owned()),
        notice,
    }
}
