//! Where somebody is reached. From configuration only, never from data (F67).
//!
//! Owns: that plain text stays on this machine. Never: resolves a name. Tests: below.

use std::fmt;
use std::net::IpAddr;

use hyper::Uri;

/// Scheme, host and port, from configuration only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    tls: bool,
    /// Lower case, an IPv6 address in brackets.
    host: String,
    port: u16,
}

impl Origin {
    /// Reads `https://api.stripe.com` or `http://127.0.0.1:4242`.
    ///
    /// # Errors
    /// What is wrong, as the end of a sentence that starts with the name of the setting.
    pub fn parse(raw: &str) -> Result<Self, &'static str> {
        match Self::with_path(raw)? {
            (origin, path) if path == "/" => Ok(origin),
            _ => Err("must end after host and port"),
        }
    }

    /// Reads a whole URL: where it leads, and what is asked for there (`/services/T1?x=1`).
    ///
    /// # Errors
    /// As [`Origin::parse`]; never repeats the URL, which may be a secret.
    pub fn with_path(raw: &str) -> Result<(Self, String), &'static str> {
        let uri: Uri = raw.trim().parse().map_err(|_| "is not a URL")?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) | None => return Err("must start with https:// (or http:// on loopback)"),
        };
        let authority = uri.authority().ok_or("names no host")?;
        if authority.as_str().contains('@') {
            return Err("must not carry a user name or password");
        }
        let host = authority.host().to_ascii_lowercase();
        if host.is_empty() {
            return Err("names no host");
        }
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            None if authority.as_str().len() > host.len() => return Err("has no valid port"),
            None if tls => 443,
            None => 80,
        };
        let origin = Self { tls, host, port };
        if !tls && !origin.is_loopback() {
            return Err("must use https unless the host is loopback (127.0.0.1, ::1, localhost)");
        }
        let path = uri.path_and_query().map_or("/", |p| p.as_str());
        Ok((origin, path.to_owned()))
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// Whether the host is this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let name = self.name();
        name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// The port, named or the scheme's own.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The host without the brackets of an IPv6 address.
    #[must_use]
    pub fn name(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Host and, where it is not the scheme's own, port.
    #[must_use]
    pub fn authority(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port_and_plain_text_stays_on_this_machine() {
        for (raw, shown) in [
            ("https://api.stripe.com", "https://api.stripe.com"),
            ("https://API.stripe.com:443/", "https://api.stripe.com"),
            ("https://proxy.example:8443", "https://proxy.example:8443"),
            ("http://127.0.0.1:4242", "http://127.0.0.1:4242"),
            ("http://[::1]:4242/", "http://[::1]:4242"),
            ("http://localhost", "http://localhost"),
        ] {
            assert_eq!(Origin::parse(raw).map(|o| o.to_string()), Ok(shown.into()));
        }
        for bad in [
            "",
            "api.stripe.com",
            "/v1",
            "ftp://127.0.0.1",
            "http://api.stripe.com",
            "http://10.0.0.1:1",
            "http://127.0.0.1.evil.example:1",
            "http://localhost.evil.example",
            "https://user:pw@api.stripe.com",
            "https://api.stripe.com/v1",
            "https://api.stripe.com?x=1",
            "https://api.stripe.com:99999",
            "https://",
        ] {
            assert!(Origin::parse(bad).is_err(), "{bad}");
        }
    }
}
