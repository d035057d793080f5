//! What every list takes: `limit`, `starting_after`, `ending_before` and `created` (S42, S45).
//!
//! Owns: reading these, and cutting a page. Never: knows what is listed. Tests: below and
//! `tests/simulator/`.

use super::wire::{ApiError, Params};

/// `limit`, `starting_after` and `ending_before`.
pub(super) struct Page<'a> {
    limit: usize,
    after: Option<&'a str>,
    before: Option<&'a str>,
}

impl<'a> Page<'a> {
    pub fn parse(query: &'a Params) -> Result<Self, ApiError> {
        let limit = match query.get("limit") {
            None => 10,
            Some(text) => match text.parse::<usize>() {
                Ok(limit) if (1..=100).contains(&limit) => limit,
                _ => {
                    let message = format!("Invalid limit: {text}; it must be from 1 to 100.");
                    let error = ApiError::invalid("limit", message);
                    return Err(error.code("parameter_invalid_integer"));
                }
            },
        };
        let (after, before) = (query.get("starting_after"), query.get("ending_before"));
        if after.is_some() && before.is_some() {
            let message = "You cannot parameterize both starting_after and ending_before.";
            return Err(ApiError::invalid("starting_after", message));
        }
        Ok(Self {
            limit,
            after,
            before,
        })
    }

    /// The page, and whether there is more in its direction. `what` is the name of one item.
    pub fn cut<'i, T>(
        &self,
        what: &str,
        items: &'i [T],
        id: impl Fn(&T) -> &String,
    ) -> Result<(&'i [T], bool), ApiError> {
        let find = |cursor: &str, param: &str| {
            let found = items.iter().position(|i| id(i) == cursor);
            found.ok_or_else(|| ApiError::missing(what, param, cursor))
        };
        let (from, to, has_more) = match (self.after, self.before) {
            (_, Some(cursor)) => {
                let to = find(cursor, "ending_before")?;
                let from = to.saturating_sub(self.limit);
                (from, to, from > 0)
            }
            (after, None) => {
                let from = match after {
                    Some(cursor) => find(cursor, "starting_after")?.saturating_add(1),
                    None => 0,
                };
                let to = from.saturating_add(self.limit).min(items.len());
                (from, to, to < items.len())
            }
        };
        Ok((items.get(from..to).unwrap_or_default(), has_more))
    }
}

/// `created=…` and `created[gt|gte|lt|lte]=…`, in seconds (S42, S45).
pub(super) struct Created {
    from: i64,
    to: i64,
}

impl Created {
    pub fn parse(query: &Params) -> Result<Self, ApiError> {
        let (mut from, mut to) = (i64::MIN, i64::MAX);
        for (param, text) in query.iter().filter(|(p, _)| p.starts_with("created")) {
            let second = text.parse::<i64>().map_err(|_| {
                let message = format!("Invalid timestamp: {text}");
                ApiError::invalid(param, message).code("parameter_invalid_integer")
            })?;
            match param {
                "created" => (from, to) = (from.max(second), to.min(second)),
                "created[gt]" => from = from.max(second.saturating_add(1)),
                "created[gte]" => from = from.max(second),
                "created[lt]" => to = to.min(second.saturating_sub(1)),
                "created[lte]" => to = to.min(second),
                _ => {
                    let message = format!("Received unknown parameter: {param}");
                    return Err(ApiError::invalid(param, message).code("parameter_unknown"));
                }
            }
        }
        Ok(Self { from, to })
    }

    pub fn includes(&self, second: i64) -> bool {
        (self.from..=self.to).contains(&second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s42_pages_go_both_ways() {
        let items: Vec<String> = (0..5).map(|i| i.to_string()).collect();
        let cut = |query: &str| {
            let query = Params::parse(query.as_bytes());
            let page = Page::parse(&query)?;
            page.cut("thing", &items, |i| i)
                .map(|(p, more)| (p.join(""), more))
        };
        assert_eq!(cut("limit=2"), Ok(("01".into(), true)));
        assert_eq!(cut("limit=3&starting_after=1"), Ok(("234".into(), false)));
        assert_eq!(cut("starting_after=4"), Ok((String::new(), false)));
        assert_eq!(cut("limit=2&ending_before=3"), Ok(("12".into(), true)));
        assert_eq!(cut("limit=3&ending_before=3"), Ok(("012".into(), false)));
        for wrong in ["limit=0", "limit=101", "limit=x", "starting_after=9"] {
            assert!(cut(wrong).is_err(), "{wrong}");
        }
        assert!(cut("starting_after=1&ending_before=2").is_err());
    }

    #[test]
    fn s45_created_filters_have_one_second_resolution() {
        let created = |q: &str| Created::parse(&Params::parse(q.as_bytes()));
        let window = created("created[gte]=10&created[lt]=20").expect("window");
        assert!(window.includes(10) && window.includes(19) && !window.includes(20));
        assert!(created("created=7").expect("exact").includes(7));
        assert!(created("created[eq]=7").is_err() && created("created[gt]=x").is_err());
    }
}
