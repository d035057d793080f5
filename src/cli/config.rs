//! `config`: check, show, init.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::args::ConfigCommand;
use super::context::Context;
use crate::config::{EXAMPLE, KeySource, Loaded, Paths, WebhookAt};
use crate::error::{Exit, Failure};

pub(super) fn run(cx: &Context, command: &ConfigCommand) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Check => check(cx),
        ConfigCommand::Show => show(cx),
        ConfigCommand::Init => init(cx),
    }
}

fn check(cx: &Context) -> Result<Exit, Failure> {
    let loaded = cx.config()?;
    cx.ledger_at(&loaded.config)?;
    let file = loaded.path.display().to_string();
    if cx.out.is_json() {
        cx.out
            .json(&json!({ "file": file, "present": loaded.present, "valid": true }))?;
    } else if loaded.present {
        cx.out.text(&format!("{file} is right"))?;
    } else {
        cx.out
            .text(&format!("{file} does not exist; the defaults are in force"))?;
    }
    Ok(Exit::Done)
}

fn show(cx: &Context) -> Result<Exit, Failure> {
    let loaded = cx.config()?;
    if cx.out.is_json() {
        cx.out.json(&json(cx, &loaded)?)?;
        return Ok(Exit::Done);
    }
    let from = if loaded.present {
        ""
    } else {
        " (absent: defaults)"
    };
    let mut text = format!("# {}{from}\n", loaded.path.display());
    for (name, provider) in &loaded.config.providers {
        let there = match provider.api_key.as_ref().map(|k| k.read(&cx.env)) {
            Some(Ok(_)) => "set",
            Some(Err(_)) => "not set",
            None => "not needed",
        };
        text = format!("{text}# the key of {name} is {there}\n");
    }
    if let Some(WebhookAt::Secret(source)) = webhook(&loaded) {
        let there = if source.read(&cx.env).is_ok() {
            "set"
        } else {
            "not set"
        };
        text = format!("{text}# the URL of the webhook is {there}\n");
    }
    cx.out.text(&format!("{text}\n{}", loaded.config.show()))?;
    Ok(Exit::Done)
}

/// The same as JSON: what the printed TOML says.
fn json(cx: &Context, loaded: &Loaded) -> Result<Value, Failure> {
    let unreadable = |e: String| Failure::usage("config", format!("it cannot be shown: {e}"));
    let table: toml::Table =
        toml::from_str(&loaded.config.show()).map_err(|e| unreadable(e.to_string()))?;
    let mut value = serde_json::to_value(table).map_err(|e| unreadable(e.to_string()))?;
    for (name, provider) in &loaded.config.providers {
        if let Some(key) = &provider.api_key {
            value["providers"][name.as_str()]["api_key"] = source(cx, key);
        }
    }
    if let Some(WebhookAt::Secret(at)) = webhook(loaded) {
        value["notify"]["webhook"] = source(cx, at);
    }
    Ok(value)
}

/// Where a secret comes from and whether it is there.
fn source(cx: &Context, at: &KeySource) -> Value {
    let from = match at {
        KeySource::Env(name) => json!({ "env": name }),
        KeySource::File(path) => json!({ "file": path }),
    };
    json!({ "from": from, "set": at.read(&cx.env).is_ok() })
}

fn webhook(loaded: &Loaded) -> Option<&WebhookAt> {
    loaded.config.notify.as_ref()?.webhook.as_ref()
}

fn init(cx: &Context) -> Result<Exit, Failure> {
    let path = match (&cx.global.config, cx.env.get("SAMEKEY_CONFIG")) {
        (Some(path), _) => path.clone(),
        (None, Some(path)) => PathBuf::from(path),
        (None, None) => default_file()?,
    };
    let shown = path.display();
    let failed = |e: &std::io::Error| {
        let why = crate::config::plain(e);
        Failure::no("config_init", format!("{shown} cannot be written: {why}"))
    };
    // Created and never replaced, also when two do it at once.
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Failure::no("config_exists", format!("{shown} exists and is kept"))
                    .hint("edit it, or name another file with --config")
            }
            _ => failed(&e).hint("make its directory first, or name another with --config"),
        })?;
    file.write_all(EXAMPLE.as_bytes()).map_err(|e| failed(&e))?;
    if cx.out.is_json() {
        cx.out.json(&json!({ "file": path }))?;
    } else {
        cx.out.text(&format!("wrote {shown}"))?;
    }
    Ok(Exit::Done)
}

/// The default file; its directory is made where it is missing.
fn default_file() -> Result<PathBuf, Failure> {
    let path = Paths::of_user()?.config;
    if let Some(dir) = path.parent() {
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir);
        made.map_err(|e| {
            let why = crate::config::plain(&e);
            Failure::no(
                "config_init",
                format!("{} cannot be made: {why}", dir.display()),
            )
        })?;
    }
    Ok(path)
}
