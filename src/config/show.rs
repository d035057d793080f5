//! The effective configuration as TOML that reads back to the same.

use std::fmt::{self, Write as _};

use serde_json::Value as Json;

use super::{
    Config, DescribedTool, HttpSection, KeySource, NotifySection, OrdersBy, Place, ProviderSection,
    ToolSection, WebhookAt, show_duration, show_rate,
};
use crate::domain::policy::{Profile, ProviderKind, Repeat, ToolPolicy};
use crate::domain::recovery::CLASSES;

/// Everything, defaults included.
pub(super) fn toml(config: &Config) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, config);
    out
}

fn write(out: &mut String, c: &Config) -> fmt::Result {
    writeln!(out, "[ledger]")?;
    match &c.ledger.url {
        Some(url) => writeln!(out, "url = {}", quoted(url))?,
        None => writeln!(out, "# url: the file in your data directory")?,
    }
    let e = &c.engine;
    writeln!(out, "\n[engine]\nworkers = {}", e.workers)?;
    for (key, value) in [
        ("lease", e.lease),
        ("poll", e.poll),
        ("call_timeout", e.call_timeout),
        ("call_ttl", e.call_ttl),
    ] {
        writeln!(out, "{key} = \"{}\"", show_duration(value))?;
    }
    let g = &c.gateway;
    let (rate, tool_rate) = (show_rate(g.rate), show_rate(g.tool_rate));
    writeln!(
        out,
        "\n[gateway]\nrate = \"{rate}\"\ntool_rate = \"{tool_rate}\""
    )?;
    writeln!(out, "max_waiting = {}", g.max_waiting)?;
    for (name, p) in &c.providers {
        provider(out, name.as_str(), p)?;
    }
    if c.providers.is_empty() {
        writeln!(out, "\n# no provider is configured: nothing can be sent")?;
    }
    for (name, t) in &c.tools {
        let reachable = c.providers.contains_key(&t.policy.provider);
        tool(out, name.as_str(), t, reachable)?;
    }
    for (name, role) in &c.reviewers {
        writeln!(
            out,
            "\n[reviewers.{}]\nrole = \"{role}\"",
            key(name.as_str())
        )?;
    }
    if let Some(n) = &c.notify {
        notify(out, n)?;
    }
    let ui = &c.ui;
    let (theme, zone): (&str, &str) = (ui.theme.into(), ui.timezone.into());
    let language: &str = ui.language.into();
    writeln!(out, "\n[ui]\ntheme = \"{theme}\"")?;
    writeln!(out, "refresh = \"{}\"", show_duration(ui.refresh))?;
    writeln!(out, "timezone = \"{zone}\"\nlanguage = \"{language}\"")?;
    let notes: Vec<_> = ui
        .note_templates
        .iter()
        .map(|note| quoted(note.as_str()))
        .collect();
    writeln!(out, "note_templates = [{}]", notes.join(", "))
}

fn provider(out: &mut String, name: &str, p: &ProviderSection) -> fmt::Result {
    let kind: &str = p.kind.into();
    writeln!(out, "\n[providers.{}]\nkind = \"{kind}\"", key(name))?;
    writeln!(out, "base_url = {}", quoted(&p.base_url))?;
    match &p.api_key {
        Some(KeySource::Env(variable)) => writeln!(out, "api_key_env = {}", quoted(variable))?,
        Some(KeySource::File(path)) => {
            writeln!(out, "api_key_file = {}", quoted(&path.to_string_lossy()))?;
        }
        None => {}
    }
    match &p.http {
        Some(http) => described(out, http, &p.profile)?,
        None => writeln!(out, "api_version = {}", quoted(&p.api_version))?,
    }
    let f = &p.profile;
    for (key, value) in [
        ("timeout", f.timeout),
        ("send_window", f.send_window),
        ("retention", f.retention),
        ("settle_time", f.settle_time),
        ("lookup_lag", f.lookup_lag),
    ] {
        // Where no key is honoured, none runs out, and the file says nothing of it.
        if key != "retention" || f.kind == ProviderKind::Keyed {
            writeln!(out, "{key} = \"{}\"", show_duration(value))?;
        }
    }
    writeln!(out, "rate = \"{}\"", show_rate(f.rate))?;
    writeln!(out, "read_rate = \"{}\"", show_rate(f.read_rate))?;
    match &p.webhook_secret {
        Some(KeySource::Env(name)) => writeln!(out, "webhook_secret_env = {}", quoted(name))?,
        Some(KeySource::File(path)) => {
            writeln!(
                out,
                "webhook_secret_file = {}",
                quoted(&path.to_string_lossy())
            )?;
        }
        None => {}
    }
    if let Some(account) = &p.account {
        writeln!(out, "account = {}", quoted(account))?;
    }
    if p.http.is_some() {
        return Ok(());
    }
    match &p.resolve {
        OrdersBy::Search => writeln!(out, "resolve = \"search\""),
        OrdersBy::Table(path) => {
            let path = quoted(&path.to_string_lossy());
            writeln!(out, "resolve = {{ table = {path} }}")
        }
        OrdersBy::Command(words) => {
            let words: Vec<_> = words.iter().map(|w| quoted(w)).collect();
            writeln!(out, "resolve = {{ command = [{}] }}", words.join(", "))
        }
    }
}

/// What only a provider of described tools has.
fn described(out: &mut String, http: &HttpSection, profile: &Profile) -> fmt::Result {
    writeln!(out, "auth_header = {}", quoted(&http.auth_header))?;
    let scheme = http.auth_scheme.as_deref().unwrap_or_default();
    writeln!(out, "auth_scheme = {}", quoted(scheme))?;
    writeln!(
        out,
        "mode = \"{}\"",
        if http.live { "live" } else { "test" }
    )?;
    if let Some(probe) = &http.probe {
        writeln!(out, "probe = {}", quoted(probe))?;
    }
    let keys = match profile.kind {
        ProviderKind::Keyed => "keyed",
        ProviderKind::Lookup => "lookup",
        ProviderKind::None => "none",
    };
    writeln!(
        out,
        "keys = \"{keys}\"\nlongest_key = {}",
        profile.longest_key
    )
}

/// Where a tool's description stands, or the description itself.
fn description(out: &mut String, t: &DescribedTool) -> fmt::Result {
    match &t.place {
        Place::Shipped(name) => writeln!(out, "description = {}", quoted(name))?,
        Place::File(path) => writeln!(out, "description = {}", quoted(&path.to_string_lossy()))?,
        Place::Here(keys) => {
            for (name, value) in keys {
                writeln!(out, "{} = {}", key(name), inline(value))?;
            }
        }
    }
    let recovery = &t.tool.description().recovery;
    if !recovery.is_empty() {
        let branches = recovery
            .iter()
            .map(|(class, branch)| format!("{class} = {}", quoted(branch)));
        writeln!(
            out,
            "recovery = {{ {} }}",
            branches.collect::<Vec<_>>().join(", ")
        )?;
    }
    Ok(())
}

/// JSON as TOML on one line; what is null is left out.
fn inline(value: &Json) -> String {
    match value {
        Json::Null => "\"\"".to_owned(),
        Json::Bool(_) | Json::Number(_) => value.to_string(),
        Json::String(text) => quoted(text),
        Json::Array(all) => {
            let all: Vec<_> = all.iter().map(inline).collect();
            format!("[{}]", all.join(", "))
        }
        Json::Object(all) => {
            let given = all.iter().filter(|(_, v)| !v.is_null());
            let all: Vec<_> = given
                .map(|(name, value)| format!("{} = {}", key(name), inline(value)))
                .collect();
            format!("{{ {} }}", all.join(", "))
        }
    }
}

fn notify(out: &mut String, n: &NotifySection) -> fmt::Result {
    let list = |texts: &mut dyn Iterator<Item = &str>| texts.map(quoted).collect::<Vec<_>>();
    writeln!(out, "\n[notify]")?;
    if let Some(command) = &n.command {
        let words = list(&mut command.iter().map(String::as_str));
        writeln!(out, "command = [{}]", words.join(", "))?;
    }
    match &n.webhook {
        Some(WebhookAt::Url(url)) => writeln!(out, "webhook = {}", quoted(url))?,
        Some(WebhookAt::Secret(KeySource::Env(name))) => {
            writeln!(out, "webhook_env = {}", quoted(name))?;
        }
        Some(WebhookAt::Secret(KeySource::File(path))) => {
            writeln!(out, "webhook_file = {}", quoted(&path.to_string_lossy()))?;
        }
        None => {}
    }
    if let Some(format) = n.format {
        let format: &str = format.into();
        writeln!(out, "webhook_format = \"{format}\"")?;
    }
    let on = list(&mut n.on.iter().map(|e| e.as_str()));
    writeln!(out, "on = [{}]", on.join(", "))?;
    writeln!(out, "timeout = \"{}\"", show_duration(n.timeout))
}

fn tool(out: &mut String, name: &str, t: &ToolSection, reachable: bool) -> fmt::Result {
    let p = &t.policy;
    writeln!(out, "\n[tools.{}]", key(name))?;
    // Written out only where it names something, or the file would not read back.
    let mark = if reachable { "" } else { "# " };
    writeln!(out, "{mark}provider = {}", quoted(p.provider.as_str()))?;
    if let Some(described) = &t.described {
        description(out, described)?;
    }
    writeln!(out, "max_per_call = {}", p.max_per_call)?;
    writeln!(out, "max_per_operation = {}", p.max_per_operation)?;
    writeln!(
        out,
        "backoff = {{ base = \"{}\", cap = \"{}\" }}",
        show_duration(p.backoff.base),
        show_duration(p.backoff.cap)
    )?;
    writeln!(out, "rate = \"{}\"", show_rate(p.rate))?;
    if let Some(most) = p.max_identical_calls {
        writeln!(out, "max_identical_calls = {most}")?;
    }
    if t.described.is_none() && !p.recovery.is_default() {
        let branches = CLASSES.iter().map(|class| {
            let branch = p.recovery.branch(*class, ProviderKind::Keyed);
            format!("{class} = \"{}\"", branch.as_str())
        });
        writeln!(
            out,
            "recovery = {{ {} }}",
            branches.collect::<Vec<_>>().join(", ")
        )?;
    }
    let repeat = match p.repeat {
        Repeat::Answer => "answer",
        Repeat::Open => "open",
    };
    writeln!(out, "repeat = \"{repeat}\"")?;
    writeln!(
        out,
        "lookup_cooldown = \"{}\"\nclaim_ttl = \"{}\"\napproval_ttl = \"{}\"",
        show_duration(p.lookup_cooldown),
        show_duration(p.claim_ttl),
        show_duration(p.approval_ttl)
    )?;
    if let Some((count, window)) = p.max_operations {
        let window = show_duration(window);
        writeln!(
            out,
            "max_operations = {{ count = {count}, window = \"{window}\" }}"
        )?;
    }
    caps(out, name, p)
}

/// Its money limits.
fn caps(out: &mut String, name: &str, p: &ToolPolicy) -> fmt::Result {
    for (currency, caps) in &p.caps {
        writeln!(out, "\n[tools.{}.caps.{currency}]", key(name))?;
        for (key, value) in [
            ("max_amount_cents", caps.max_amount),
            ("approve_over_cents", caps.approve_over),
            ("four_eyes_over_cents", caps.four_eyes_over),
        ] {
            if let Some(value) = value {
                writeln!(out, "{key} = {value}")?;
            }
        }
        if let Some((amount, window)) = caps.max_total {
            let window = show_duration(window);
            writeln!(
                out,
                "max_total_cents = {{ amount = {amount}, window = \"{window}\" }}"
            )?;
        }
    }
    Ok(())
}

/// A name as part of a header: bare where TOML allows it.
fn key(name: &str) -> String {
    let bare = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if name.bytes().all(bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
