//! Stripe's search language, as far as an order is looked for by it (S43).
//!
//! Owns: reading `metadata['order_id']:'4417'`, both kinds of quotes, backslash escapes and `AND`.
//! Never: looks anything up. Tests: below.

use std::iter::Peekable;
use std::str::Chars;

use super::wire::ApiError;

/// One `field:'value'`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clause {
    /// `status`, or `metadata.order_id` for `metadata['order_id']`.
    pub field: String,
    pub value: String,
}

/// Reads a query of one or more clauses joined by `AND`.
pub(super) fn parse(query: &str) -> Result<Vec<Clause>, ApiError> {
    let mut rest = query.chars().peekable();
    let mut clauses = Vec::new();
    loop {
        clauses.push(clause(&mut rest).ok_or_else(|| unreadable(query))?);
        spaces(&mut rest);
        if rest.peek().is_none() {
            return Ok(clauses);
        }
        let and = word(&mut rest);
        if !and.eq_ignore_ascii_case("and") {
            return Err(unreadable(query));
        }
    }
}

fn clause(rest: &mut Peekable<Chars<'_>>) -> Option<Clause> {
    spaces(rest);
    let mut field = word(rest);
    if field.is_empty() {
        return None;
    }
    if rest.next_if_eq(&'[').is_some() {
        field = format!("{field}.{}", quoted(rest)?);
        rest.next_if_eq(&']')?;
    }
    rest.next_if_eq(&':')?;
    Some(Clause {
        field,
        value: quoted(rest)?,
    })
}

fn word(rest: &mut Peekable<Chars<'_>>) -> String {
    let mut out = String::new();
    while let Some(c) = rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
        out.push(c);
    }
    out
}

fn quoted(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    let quote = rest.next_if(|c| matches!(c, '\'' | '"'))?;
    let mut out = String::new();
    loop {
        match rest.next()? {
            '\\' => out.push(rest.next()?),
            c if c == quote => return Some(out),
            c => out.push(c),
        }
    }
}

fn spaces(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(char::is_ascii_whitespace).is_some() {}
}

fn unreadable(query: &str) -> ApiError {
    let message = format!("We were unable to parse your search query: {query}");
    ApiError::invalid("query", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(query: &str) -> Option<String> {
        let clauses = parse(query).ok()?;
        let found = clauses.into_iter().find(|c| c.field == "metadata.order_id");
        found.map(|c| c.value)
    }

    #[test]
    fn both_quotes_and_escapes_are_read() {
        for (query, value) in [
            ("metadata['order_id']:'4417'", "4417"),
            ("metadata[\"order_id\"]:\"4417\"", "4417"),
            (r"metadata['order_id']:'it\'s \\ \' it'", r"it's \ ' it"),
            (r#"metadata["order_id"]:"say \"x\"""#, r#"say "x""#),
            (
                "status:'succeeded' AND metadata['order_id']:'a AND b'",
                "a AND b",
            ),
        ] {
            assert_eq!(order(query).as_deref(), Some(value), "{query}");
        }
    }

    #[test]
    fn everything_else_is_an_error() {
        for query in [
            "",
            "4417",
            "metadata['order_id']",
            "metadata['order_id']:4417",
            "metadata['order_id']:'4417",
            "metadata['order_id']:'x' OR status:'y'",
            "metadata['order_id']:'x' status:'y'",
            "metadata['order_id']:'x' AND",
            r"metadata['order_id']:'x\",
        ] {
            assert!(parse(query).is_err(), "{query}");
        }
    }
}
