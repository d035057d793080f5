//! Configuration: what the environment and `samekey.toml` say.
//!
//! Owns: [`Secret`], the only form in which a credential travels through the program (I30).
//! Never: prints, logs or stores a secret. Tests: below.

use std::fmt;

/// A credential. Shows as `‹secret›` wherever it is formatted; [`Secret::expose`] is the only way
/// to its text, and is called only where it is put on the wire or compared.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Takes the text as it was read.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("‹secret›")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("‹secret›")
    }
}

/// The OS user's name.
#[must_use]
pub fn os_user() -> String {
    std::env::var("USER").unwrap_or_else(|_| "unknown".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_however_it_is_formatted_i30() {
        let secret = Secret::new("sk_test_hidden");
        assert_eq!(
            format!("{secret} {secret:?} {secret:#?}"),
            "‹secret› ‹secret› ‹secret›"
        );
        assert_eq!(secret.expose(), "sk_test_hidden");
    }
}
