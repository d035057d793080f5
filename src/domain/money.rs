//! Money: whole minor units and a currency, never a float, never an implicit factor of 100
//! (I32, F27–F29, U19).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Largest amount in minor units; below 2^53, so every JSON reader keeps it exact.
pub const MAX_MINOR: i64 = 999_999_999_999_999;

/// An ISO 4217 currency, written in lower case as Stripe does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

/// Currencies whose minor unit at Stripe differs from ISO 4217 (docs.stripe.com/currencies, "special
/// cases" and "zero-decimal currencies").
const STRIPE_EXPONENTS: [(&str, u32); 3] = [("isk", 2), ("mga", 0), ("ugx", 2)];

impl Currency {
    /// How many decimals the minor unit has: 2 for USD, 0 for JPY, 3 for KWD.
    #[must_use]
    pub fn exponent(self) -> u32 {
        let code = self.as_str();
        STRIPE_EXPONENTS
            .iter()
            .find(|(c, _)| *c == code)
            .map_or_else(
                || iso(code).map_or(2, |(_, exponent)| exponent),
                |(_, exponent)| *exponent,
            )
    }

    /// Lower-case code.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("xxx")
    }

    /// Upper-case code, as people read it.
    #[must_use]
    pub fn code(self) -> String {
        self.as_str().to_uppercase()
    }
}

fn iso(code: &str) -> Option<(iso_currency::Currency, u32)> {
    let found = iso_currency::Currency::from_code(&code.to_uppercase())?;
    // Units of account without a minor unit (gold, test codes) are no money one can refund.
    found.exponent().map(|e| (found, u32::from(e)))
}

impl FromStr for Currency {
    type Err = MoneyError;

    fn from_str(raw: &str) -> Result<Self, MoneyError> {
        let lower = raw.trim().to_ascii_lowercase();
        match <[u8; 3]>::try_from(lower.as_bytes()) {
            Ok(bytes) if bytes.is_ascii() && iso(&lower).is_some() => Ok(Self(bytes)),
            Ok(_) | Err(_) => Err(MoneyError::UnknownCurrency),
        }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Why text or a number is no amount of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    #[error("is not an ISO 4217 currency code such as usd")]
    UnknownCurrency,
    #[error("is not a decimal number such as 38.00")]
    NotDecimal,
    #[error("has more decimals than the currency has ({0})")]
    TooManyDecimals(u32),
    #[error("must be above zero")]
    NotPositive,
    #[error("is larger than any amount that can be sent")]
    TooLarge,
}

/// A positive amount in minor units of one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Money {
    minor: i64,
    currency: Currency,
}

impl Money {
    /// An amount in minor units (3800 is $38.00).
    ///
    /// # Errors
    /// Zero, negative or above [`MAX_MINOR`].
    pub fn from_minor(minor: i64, currency: Currency) -> Result<Self, MoneyError> {
        match minor {
            ..=0 => Err(MoneyError::NotPositive),
            1..=MAX_MINOR => Ok(Self { minor, currency }),
            _ => Err(MoneyError::TooLarge),
        }
    }

    /// An amount from decimal text (`38.00`, `38`, `5000` yen): digits and at most one point,
    /// no sign, no exponent, no more decimals than the currency has.
    ///
    /// # Errors
    /// Anything else.
    pub fn from_decimal(raw: &str, currency: Currency) -> Result<Self, MoneyError> {
        let text = raw.trim();
        if text.starts_with('-') {
            return Err(MoneyError::NotPositive);
        }
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return Err(MoneyError::NotDecimal),
            None => (text, ""),
        };
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) {
            return Err(MoneyError::NotDecimal);
        }
        let exponent = currency.exponent();
        let decimals = u32::try_from(fraction.len()).map_err(|_| MoneyError::TooLarge)?;
        let Some(missing) = exponent.checked_sub(decimals) else {
            return Err(MoneyError::TooManyDecimals(exponent));
        };
        let scale = 10_i64.checked_pow(missing).ok_or(MoneyError::TooLarge)?;
        format!("{whole}{fraction}")
            .parse::<i64>()
            .ok()
            .and_then(|n| n.checked_mul(scale))
            .ok_or(MoneyError::TooLarge)
            .and_then(|minor| Self::from_minor(minor, currency))
    }

    /// Minor units.
    #[must_use]
    pub fn minor(self) -> i64 {
        self.minor
    }

    /// Currency.
    #[must_use]
    pub fn currency(self) -> Currency {
        self.currency
    }

    /// As a decimal without the currency: `38.00`, `5000`, `1.234`.
    #[must_use]
    pub fn decimal(self) -> String {
        decimal(self.minor, self.currency)
    }
}

/// Minor units as a decimal, thousands not separated; also for sums, which may be zero or negative.
#[must_use]
pub fn decimal(minor: impl Into<i128>, currency: Currency) -> String {
    let minor = minor.into();
    let exponent = usize::try_from(currency.exponent()).unwrap_or(2);
    let digits = format!(
        "{:0>width$}",
        minor.unsigned_abs(),
        width = exponent.saturating_add(1)
    );
    let sign = if minor < 0 { "-" } else { "" };
    let (whole, fraction) = digits.split_at(digits.len().saturating_sub(exponent));
    if fraction.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

impl fmt::Display for Money {
    /// `USD 38.00`, `JPY 5000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.currency.code(), self.decimal())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cur(code: &str) -> Currency {
        code.parse().expect("a currency")
    }

    #[test]
    fn decimal_text_is_exact_or_refused_f29() {
        let ok = |text: &str, code: &str| Money::from_decimal(text, cur(code)).map(Money::minor);
        assert_eq!(ok("38.00", "usd"), Ok(3800));
        assert_eq!(ok("38", "USD"), Ok(3800));
        assert_eq!(ok("38.5", "usd"), Ok(3850));
        assert_eq!(ok("500", "jpy"), Ok(500), "F27: no factor of 100 for yen");
        assert_eq!(ok("1.234", "kwd"), Ok(1234));
        assert_eq!(ok("1.2345", "clf"), Ok(12345), "four decimals");
        assert_eq!(ok("1.5", "jpy"), Err(MoneyError::TooManyDecimals(0)));
        assert_eq!(ok("38.001", "usd"), Err(MoneyError::TooManyDecimals(2)));
        assert_eq!(ok("0", "usd"), Err(MoneyError::NotPositive));
        assert_eq!(ok("0.00", "usd"), Err(MoneyError::NotPositive));
        assert_eq!(ok("-5", "usd"), Err(MoneyError::NotPositive));
        assert_eq!(ok(&"9".repeat(400), "usd"), Err(MoneyError::TooLarge));
        for bad in [
            "38.0.0", "1e3", "NaN", "", " ", ".5", "5.", "+5", "1,000", "٣٨", "0x10", "inf",
        ] {
            assert_eq!(ok(bad, "usd"), Err(MoneyError::NotDecimal), "{bad}");
        }
    }

    #[test]
    fn currencies_are_iso_and_any_case() {
        assert_eq!(cur("UsD").as_str(), "usd");
        for bad in ["", "us", "usdd", "zzz", "xau", "u$d", "üsd"] {
            assert_eq!(
                bad.parse::<Currency>(),
                Err(MoneyError::UnknownCurrency),
                "{bad}"
            );
        }
    }

    #[test]
    fn the_edges_of_minor_units_are_refused() {
        for bad in [i64::MIN, -1, 0, MAX_MINOR + 1, i64::MAX] {
            assert!(Money::from_minor(bad, cur("usd")).is_err(), "{bad}");
        }
        assert_eq!(decimal(-5, cur("usd")), "-0.05");
        assert_eq!(decimal(0, cur("jpy")), "0");
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back_as_the_same_amount_i32(
            minor in 1..=MAX_MINOR, code in prop::sample::select(vec!["usd", "jpy", "kwd", "clf"]),
        ) {
            let money = Money::from_minor(minor, cur(code)).expect("in range");
            prop_assert_eq!(Money::from_decimal(&money.decimal(), cur(code)), Ok(money));
        }

        #[test]
        fn no_text_panics(raw in ".{0,60}") {
            let _ = Money::from_decimal(&raw, cur("usd"));
            let _ = raw.parse::<Currency>();
        }
    }
}
