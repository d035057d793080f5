//! Reading Stripe: payments, charges, refunds. Only GET, never with an idempotency key (I22, F08).
//!
//! Owns: the GET itself, which takes a paid permit (S22), lookups, fetching one refund, and the probe; `pages`
//! has the lists. Never: changes anything at the provider, or fills a gap with a guess: what
//! cannot be read is an error or an incomplete list. Tests: below and `tests/stripe/`.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::HeaderValue;
use serde::de::DeserializeOwned;

use super::orders::Orders;
use super::pages::Listing;
use super::request::payment_field;
use super::wire::{self, Account, Fault, Refund};
use crate::clock::Clock;
use crate::domain::evidence::ProviderObject;
use crate::domain::ids::{ChargeId, PaymentId, ProviderRef};
use crate::domain::operation::OperationRow;
use crate::domain::text::SafeText;
use crate::domain::transition::Lookup;
use crate::http::{Client, Exchange};
use crate::provider::{ReadError, ReadPermit, Reads};

/// Largest page that Stripe gives (S42).
const PAGE: usize = 100;

/// What reading needs: the client, the credentials and the API version.
#[derive(Clone)]
pub(super) struct Reader {
    pub client: Client,
    /// `Bearer …`, marked sensitive.
    pub authorization: HeaderValue,
    pub version: HeaderValue,
    /// The API key, to keep it out of texts.
    pub key: crate::config::Secret,
    pub clock: Clock,
    /// Who knows which payment an order was paid with.
    pub orders: Orders,
    /// Whether the key moves real money.
    pub live: bool,
}

impl Reader {
    /// One GET, for the permit that was paid for it: status and body of the answer.
    async fn get(&self, path: &str, reads: &Reads) -> Result<(u16, Bytes), ReadError> {
        let permit = reads.permit().await?;
        self.send(path, permit).await
    }

    /// The only place that sends a GET. (By value: a permit is spent once.)
    #[allow(clippy::needless_pass_by_value, reason = "a permit is spent once")]
    async fn send(&self, path: &str, _spent: ReadPermit) -> Result<(u16, Bytes), ReadError> {
        let failed = |why: &str| ReadError(self.shown(&format!("GET {path}: {why}")));
        let request = Request::get(path)
            .header("Authorization", &self.authorization)
            .header("Stripe-Version", &self.version)
            .body(Full::default())
            .map_err(|e| failed(&e.to_string()))?;
        let line = self.client.connect().await.map_err(|e| failed(&e))?;
        match line.exchange(request).await {
            Exchange::NotSent(why) | Exchange::Lost(why) => Err(failed(&why)),
            Exchange::Answered(reply) => match reply.body {
                Some(body) => Ok((reply.status, body)),
                None => Err(failed(
                    "the answer broke off, came too slowly or was too large",
                )),
            },
        }
    }

    /// One object; `None` where the provider does not know it (404 in its own words, or a cursor that is gone).
    pub(super) async fn object<T: DeserializeOwned>(
        &self,
        path: &str,
        reads: &Reads,
    ) -> Result<Option<T>, ReadError> {
        let (status, body) = self.get(path, reads).await?;
        let fault = Fault::read(&body);
        match (status, fault) {
            (200..=299, _) => wire::parse(&body).map(Some).ok_or_else(|| {
                ReadError(self.shown(&format!("GET {path}: the answer cannot be read")))
            }),
            (404, Some(_)) => Ok(None),
            (400, Some(fault)) if fault.is("resource_missing") => Ok(None),
            (status, Some(fault)) => Err(ReadError(self.shown(&format!(
                "GET {path}: HTTP {status}, {}",
                fault.text(&[self.key.expose()])
            )))),
            (status, None) => Err(ReadError(self.shown(&format!("GET {path}: HTTP {status}")))),
        }
    }

    /// The same where the object has to be there.
    pub(super) async fn page<T: DeserializeOwned>(
        &self,
        path: &str,
        reads: &Reads,
    ) -> Result<T, ReadError> {
        self.object(path, reads).await?.ok_or_else(|| {
            ReadError(self.shown(&format!("GET {path}: the provider knows no such list")))
        })
    }

    /// Whether any read succeeds.
    pub(super) async fn probe(&self, reads: &Reads) -> bool {
        let read = self.get("/v1/refunds?limit=1", reads).await;
        matches!(read, Ok((200..=299, _)))
    }

    /// The account of the credentials; `None` where they may not ask (a restricted key).
    pub(super) async fn account(&self, reads: &Reads) -> Result<Option<String>, ReadError> {
        let path = "/v1/account";
        let (status, body) = self.get(path, reads).await?;
        match (status, wire::parse::<Account>(&body)) {
            (200..=299, Some(account)) => Ok(Some(self.shown(&account.id).as_str().to_owned())),
            (403 | 404, _) => Ok(None),
            (status, _) => Err(ReadError(self.shown(&format!("GET {path}: HTTP {status}")))),
        }
    }

    /// One refund by its id.
    pub(super) async fn fetch(
        &self,
        id: &ProviderRef,
        reads: &Reads,
    ) -> Result<Option<ProviderObject>, ReadError> {
        let Some(path) = path("/v1/refunds", id.as_str()) else {
            return Ok(None);
        };
        let Some(refund) = self.object::<Refund>(&path, reads).await? else {
            return Ok(None);
        };
        match refund.read() {
            Some(object) if object.id == *id => Ok(Some(object)),
            Some(_) | None => Err(ReadError(
                self.shown(&format!("GET {path}: the answer is not that refund")),
            )),
        }
    }

    /// What exists for the row's payment: objects with our id, and those of its amount without any
    /// operation's id.
    pub(super) async fn lookup(&self, row: &OperationRow, reads: &Reads) -> Lookup {
        let Some(payment) = listed_as(row) else {
            return Lookup::Unreachable {
                why: "the row names no payment to look up".into(),
            };
        };
        let began_at = self.clock.now();
        match self.list(&payment, row.charge.as_ref(), reads).await {
            Err(ReadError(why)) => Lookup::Unreachable { why },
            Ok(Listing { objects, complete }) => Lookup::Listed {
                began_at,
                complete,
                objects: objects
                    .into_iter()
                    .filter(|o| match &o.operation {
                        Some(id) => *id == row.id,
                        None => o.amount_minor == row.minor(),
                    })
                    .map(|o| (o, false))
                    .collect(),
            },
        }
    }

    pub(super) fn shown(&self, raw: &str) -> SafeText {
        wire::shown(raw, &[self.key.expose()])
    }
}

/// Under which payment a row's refunds are listed.
pub(super) fn listed_as(row: &OperationRow) -> Option<PaymentId> {
    row.payment.clone().or_else(|| {
        let charge = row.charge.as_ref()?;
        PaymentId::parse(charge.as_str()).ok()
    })
}

/// Path and query of a payment's first page.
pub(super) fn list_path(payment: &PaymentId, charge: Option<&ChargeId>) -> String {
    let field = payment_field(payment.as_str(), charge.map(ChargeId::as_str));
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair(field, payment.as_str())
        .append_pair("limit", &PAGE.to_string())
        .finish();
    format!("/v1/refunds?{query}")
}

/// `base/id` with every unusual character of the id escaped, so that an id from outside cannot
/// lead to another resource; `None` for `.` and `..`.
pub(super) fn path(base: &str, id: &str) -> Option<String> {
    use std::fmt::Write as _;
    if id.bytes().all(|b| b == b'.') {
        return None;
    }
    let mut path = format!("{base}/");
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(path, "%{byte:02X}");
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_lead_to_another_resource() {
        assert_eq!(path("/v1/refunds", "re_1"), Some("/v1/refunds/re_1".into()));
        let hostile = path("/v1/refunds", "../account?a=1#é");
        assert_eq!(
            hostile,
            Some("/v1/refunds/..%2Faccount%3Fa%3D1%23%C3%A9".into())
        );
        assert_eq!(path("/v1/refunds", ".."), None);
    }

    #[test]
    fn a_payment_is_listed_by_its_own_kind_of_id_s42() {
        let payment = |id| PaymentId::parse(id).expect("payment");
        let charge = ChargeId::parse("ch_1").expect("charge");
        assert_eq!(
            list_path(&payment("pi_a&b"), Some(&charge)),
            "/v1/refunds?payment_intent=pi_a%26b&limit=100"
        );
        assert_eq!(
            list_path(&payment("ch_1"), Some(&charge)),
            "/v1/refunds?charge=ch_1&limit=100"
        );
    }
}
