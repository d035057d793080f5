//! The request of a described tool as the ledger keeps it: everything that an attempt repeats, in one run
//! of bytes, so that one hash covers method, path, headers and body (I3).
//!
//! ```text
//! POST /tickets
//! X-Channel: chat
//!
//! {"external_id":"op_…","subject":"…"}
//! ```
//!
//! Never holds a secret or the idempotency key. Tests: below.

/// A stored request, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Stored<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: Vec<(&'a str, &'a str)>,
    /// JSON, where there is a body.
    pub body: &'a str,
}

impl Stored<'_> {
    /// The bytes.
    ///
    /// # Errors
    /// Parts that would not be read back as they are.
    pub(super) fn write(
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: Option<&str>,
    ) -> Result<Vec<u8>, String> {
        let mut text = format!("{method} {path}\n");
        for (name, value) in headers {
            text.push_str(name);
            text.push_str(": ");
            text.push_str(value);
            text.push('\n');
        }
        text.push('\n');
        text.push_str(body.unwrap_or_default());
        match Stored::parse(text.as_bytes()) {
            Some(_) => Ok(text.into_bytes()),
            None => Err("the request cannot be written".into()),
        }
    }

    /// Reads what a tool wrote; anything else is `None`, and is never sent.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Stored<'_>> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (head, body) = text.split_once("\n\n")?;
        let mut lines = head.split('\n');
        let (method, path) = lines.next()?.split_once(' ')?;
        let visible = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_graphic());
        let sound = ["POST", "PUT", "PATCH"].contains(&method)
            && path.starts_with('/')
            && !path.starts_with("//")
            && visible(path);
        if !sound {
            return None;
        }
        let mut headers = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(": ")?;
            let printable = value.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
            if !plain || !printable || name.is_empty() {
                return None;
            }
            headers.push((name, value));
        }
        Some(Stored {
            method,
            path,
            headers,
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_nothing_else_does_i3() {
        let headers = [("X-Channel", "chat".to_owned())];
        let bytes = Stored::write("POST", "/tickets", &headers, Some("{\"a\":1}")).expect("bytes");
        assert_eq!(bytes, b"POST /tickets\nX-Channel: chat\n\n{\"a\":1}");
        let read = Stored::parse(&bytes).expect("reads");
        assert_eq!(
            (read.path, read.headers.as_slice()),
            ("/tickets", &[("X-Channel", "chat")][..])
        );
        for bad in [
            "",
            "GET /tickets\n\n",
            "POST //evil.example/\n\n",
            "POST http://evil.example/\n\n",
            "POST /a b\n\n",
            "POST /a\nX: 1",
            "POST /a\nX Y: 1\n\n",
            "POST /a\nX: \r1\n\n",
        ] {
            assert_eq!(Stored::parse(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
