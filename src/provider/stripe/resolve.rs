//! Step 4 of the protocol: from an order, payment intent or charge to one payment, with what was
//! captured and what anybody refunded.
//!
//! Owns: which payment is the order's, and that it can be refunded at all (M39). Never: chooses
//! among several, or answers with sums it could not read completely. Tests: `tests/stripe/`.

use super::orders::Paid;
use super::read::{Reader, path};
use super::wire::{self, Charge, Metadata, Page, Payment};
use crate::domain::evidence::{ObjectStatus, ProviderObject};
use crate::domain::ids::{ChargeId, OrderId, PaymentId};
use crate::domain::opening::Resolved;
use crate::provider::{ReadError, Reads, ResolveError, ResolveQuery};

impl Reader {
    /// Step 4: order, payment or charge → payment, captured, refunded.
    pub(super) async fn resolve(
        &self,
        query: &ResolveQuery,
        reads: &Reads,
    ) -> Result<Resolved, ResolveError> {
        let named = self.named(query, reads).await?;
        let (payment, charge) = self.payment_of(&named, reads).await?;
        let order = &query.order;
        let admitted = |m: &Option<Metadata>| m.as_ref().is_none_or(|m| m.admits(order));
        let named = payment.as_ref().map(|p| &p.metadata);
        if !admitted(&charge.metadata) || !named.is_none_or(admitted) {
            return Err(refused(&format!(
                "this payment belongs to another order than {order}"
            )));
        }
        self.of_our_mode(
            charge
                .livemode
                .or(payment.as_ref().and_then(|p| p.livemode)),
        )?;
        refundable(&charge)?;
        let unreadable = || ResolveError::Unreadable("the payment's charge cannot be read".into());
        let (currency, captured_minor, charge_refunded) = charge.sums().ok_or_else(unreadable)?;
        let charge_id = ChargeId::parse(&charge.id).map_err(|_| unreadable())?;
        let payment = payment.map_or_else(|| charge.id.clone(), |p| p.id);
        let payment = PaymentId::parse(&payment).map_err(|_| unreadable())?;

        let listing = self
            .list(&payment, Some(&charge_id), reads)
            .await
            .map_err(cannot)?;
        let strange = |o: &ProviderObject| {
            o.payment.as_ref() != Some(&payment) || o.currency != Some(currency)
        };
        if !listing.complete || listing.objects.iter().any(strange) {
            return Err(ResolveError::Unreadable(
                "the payment's refunds cannot be listed completely".into(),
            ));
        }
        let counted: Vec<ProviderObject> = listing
            .objects
            .into_iter()
            .filter(|o| !matches!(o.status, ObjectStatus::Failed | ObjectStatus::Canceled))
            .collect();
        let listed = counted
            .iter()
            .filter_map(|o| o.amount_minor)
            .fold(0_i64, i64::saturating_add);
        Ok(Resolved {
            payment,
            charge: Some(charge_id),
            currency,
            captured_minor,
            // Two sources that can disagree for a moment: the larger one leaves less to refund.
            refunded_minor: listed.max(charge_refunded),
            refunds: counted.into_iter().map(|o| o.id).collect(),
        })
    }

    /// The query with the payment that somebody knows of its order, where it names none itself.
    async fn named(
        &self,
        query: &ResolveQuery,
        reads: &Reads,
    ) -> Result<ResolveQuery, ResolveError> {
        let mut named = query.clone();
        if query.payment.is_none() && query.charge.is_none() {
            let limit = self.client.limit();
            let found = self.orders.find(&query.order, &self.clock, limit).await?;
            match found {
                Some(Paid::Intent(id)) => named.payment = Some(id),
                Some(Paid::Charge(id)) => named.charge = Some(id),
                None => named.payment = Some(self.search(&query.order, reads).await?),
            }
        }
        Ok(named)
    }

    /// A refund has no mode of its own (S40), so the payment is asked: test money and real money are two
    /// worlds, whatever stands between us and the provider.
    fn of_our_mode(&self, live: Option<bool>) -> Result<(), ResolveError> {
        let word = |live| if live { "live" } else { "test" };
        match live {
            Some(live) if live != self.live => Err(refused(&format!(
                "this payment is of {} mode and the configured key of {} mode; nothing was sent",
                word(live),
                word(self.live)
            ))),
            Some(_) | None => Ok(()),
        }
    }

    /// The payment intent, where there is one, and its charge.
    async fn payment_of(
        &self,
        query: &ResolveQuery,
        reads: &Reads,
    ) -> Result<(Option<Payment>, Charge), ResolveError> {
        // A charge without a payment intent is stored as its own payment.
        let intent = query
            .payment
            .as_ref()
            .filter(|p| query.charge.as_ref().map(ChargeId::as_str) != Some(p.as_str()));
        if let Some(id) = &query.charge {
            let charge = self.charge(id.as_str(), reads).await?;
            let of = charge.payment_intent.as_ref().map(|n| n.id().to_owned());
            if intent.is_some_and(|p| of.as_deref() != Some(p.as_str())) {
                return Err(refused(&format!(
                    "charge {id} is not of that payment_intent"
                )));
            }
            let payment = match of {
                Some(of) => Some(self.intent(&of, reads).await?),
                None => None,
            };
            return Ok((payment, charge));
        }
        let Some(id) = intent else {
            return Err(refused("the order's payment is not known"));
        };
        let payment = self.intent(id.as_str(), reads).await?;
        let Some(latest) = &payment.latest_charge else {
            return Err(refused(&format!(
                "nothing was paid with payment {}",
                payment.id
            )));
        };
        let charge = self.charge(latest.id(), reads).await?;
        Ok((Some(payment), charge))
    }

    async fn intent(&self, id: &str, reads: &Reads) -> Result<Payment, ResolveError> {
        let unknown = || refused(&format!("the provider knows no payment_intent {id}"));
        let path = path("/v1/payment_intents", id).ok_or_else(unknown)?;
        let payment: Option<Payment> = self.object(&path, reads).await.map_err(cannot)?;
        let payment = payment.ok_or_else(unknown)?;
        same(id, &payment.id).map(|()| payment)
    }

    async fn charge(&self, id: &str, reads: &Reads) -> Result<Charge, ResolveError> {
        let unknown = || refused(&format!("the provider knows no charge {id}"));
        let path = path("/v1/charges", id).ok_or_else(unknown)?;
        let charge: Option<Charge> = self.object(&path, reads).await.map_err(cannot)?;
        let charge = charge.ok_or_else(unknown)?;
        same(id, &charge.id).map(|()| charge)
    }

    /// The one payment intent that carries the order's id. The search lags behind (S43): only the id is
    /// taken from it, and the payment is read anew.
    async fn search(&self, order: &OrderId, reads: &Reads) -> Result<PaymentId, ResolveError> {
        let quoted = order.as_str().replace('\\', r"\\").replace('\'', r"\'");
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("query", &format!("metadata['order_id']:'{quoted}'"))
            .append_pair("limit", "10")
            .finish();
        let path = format!("/v1/payment_intents/search?{query}");
        let found: Page<Payment> = self.page(&path, reads).await.map_err(cannot)?;
        // The provider's own idea of equality may be looser than ours.
        let mut exact = found
            .data
            .into_iter()
            .filter(|p| p.metadata.as_ref().is_some_and(|m| m.names(order)));
        match (exact.next(), exact.next(), found.has_more) {
            (None, _, false) => Err(refused(&format!(
                "the provider knows no payment of order {order}; name its payment_intent or charge, or ask again in some minutes if it was paid just now"
            ))),
            (Some(only), None, false) => PaymentId::parse(&only.id).map_err(|_| {
                ResolveError::Unreadable("the search found a payment without a usable id".into())
            }),
            (_, _, _) => Err(refused(&format!(
                "order {order} has several payments; name the payment_intent or charge"
            ))),
        }
    }
}

/// Whether a charge can be refunded at all (M39).
fn refundable(charge: &Charge) -> Result<(), ResolveError> {
    let id = &charge.id;
    if charge.status != "succeeded" {
        return Err(refused(&format!(
            "charge {id} is {}, not paid",
            charge.status
        )));
    }
    if !charge.captured {
        return Err(refused(&format!("charge {id} is not captured yet")));
    }
    if charge.disputed {
        return Err(refused(&format!("charge {id} is disputed")));
    }
    Ok(())
}

/// The answer must be about what was asked for.
fn same(asked: &str, got: &str) -> Result<(), ResolveError> {
    if asked == got {
        Ok(())
    } else {
        Err(ResolveError::Unreadable(wire::shown(
            &format!("the provider answered {got} when asked for {asked}"),
            &[],
        )))
    }
}

fn refused(why: &str) -> ResolveError {
    ResolveError::Refused(wire::shown(why, &[]))
}

fn cannot(error: ReadError) -> ResolveError {
    ResolveError::Unreadable(error.0)
}
