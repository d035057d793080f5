//! `Stripe-Signature`: whether a body is what the provider sent, and sent now (S52–S54).
//!
//! Pure: header, body, secrets and the instant of receipt in, an answer out. The raw bytes are what is
//! signed; nothing is parsed before (F64). Never: accepts another scheme than `v1`, a header without its
//! secret (F65), or a time that is too far off on either side. Tests: below, `tests/webhooks/attacks.rs`.

use std::time::Duration;

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::config::Secret;
use crate::domain::{Instant, since};

/// How far the signature's time may be from ours, before or after (S53).
pub const TOLERANCE: Duration = Duration::from_secs(300);
/// Longest header that is looked at; there is one signature per active secret (S54).
const MAX_HEADER: usize = 4096;

/// Why a body is not taken for the provider's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("there is no Stripe-Signature header, or more than one")]
    Missing,
    #[error("the Stripe-Signature header is not one")]
    Malformed,
    #[error("the signature's time is more than five minutes off")]
    Time,
    #[error("no signature of the scheme v1 fits")]
    Wrong,
}

/// Whether `body` was signed with one of `secrets` within five minutes of `now`, its receipt.
///
/// # Errors
/// Why not.
pub fn verify(secrets: &[Secret], header: &str, body: &[u8], now: Instant) -> Result<(), Refused> {
    let (time, signatures) = parse(header).ok_or(Refused::Malformed)?;
    let seconds = time.parse::<i64>().map_err(|_| Refused::Malformed)?;
    let signed_at = Instant::from_timestamp(seconds, 0).ok_or(Refused::Malformed)?;
    // By whole seconds, which is all that the header tells.
    let now = Instant::from_timestamp(now.timestamp(), 0).ok_or(Refused::Time)?;
    if since(signed_at, now) > TOLERANCE || since(now, signed_at) > TOLERANCE {
        return Err(Refused::Time);
    }
    let fits = |secret: &Secret| {
        signatures
            .iter()
            .any(|signature| is_signed(secret, time, body, signature))
    };
    if secrets.iter().any(fits) {
        Ok(())
    } else {
        Err(Refused::Wrong)
    }
}

/// The time as it is written, and the signatures of the scheme `v1`.
fn parse(header: &str) -> Option<(&str, Vec<[u8; 32]>)> {
    if header.len() > MAX_HEADER {
        return None;
    }
    let mut time = None;
    let mut signatures = Vec::new();
    for item in header.split(',') {
        match item.trim().split_once('=')? {
            ("t", value) if time.is_none() => time = Some(value),
            ("t", _) => return None,
            ("v1", value) => signatures.extend(bytes(value)),
            // Other schemes prove nothing.
            (_, _) => {}
        }
    }
    let time = time?;
    let plain = (1..=12).contains(&time.len()) && time.bytes().all(|b| b.is_ascii_digit());
    plain.then_some((time, signatures))
}

/// 64 hexadecimal digits.
fn bytes(hex: &str) -> Option<[u8; 32]> {
    let digit = |b: &u8| {
        char::from(*b)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    if hex.len() != 64 {
        return None;
    }
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        let (high, low) = (digit(pair.first()?)?, digit(pair.get(1)?)?);
        *byte = high << 4 | low;
    }
    Some(out)
}

fn mac(secret: &Secret, time: &str, body: &[u8]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).ok()?;
    mac.update(time.as_bytes());
    mac.update(b".");
    mac.update(body);
    Some(mac)
}

/// Compared in constant time.
fn is_signed(secret: &Secret, time: &str, body: &[u8], signature: &[u8; 32]) -> bool {
    mac(secret, time, body).is_some_and(|mac| mac.verify_slice(signature).is_ok())
}

/// The header that a sender with this secret writes; for tests and for what speaks as the provider.
#[must_use]
pub fn sign(secret: &Secret, body: &[u8], at: Instant) -> String {
    use std::fmt::Write as _;
    let time = at.timestamp().to_string();
    let signature = mac(secret, &time, body).map(|mac| mac.finalize().into_bytes());
    let mut header = format!("t={time},v1=");
    for byte in signature.unwrap_or_default() {
        // Writing to a String cannot fail.
        let _ = write!(header, "{byte:02x}");
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HMAC-SHA256 of `1492774577.{"a":1}` with `whsec_test_secret`, by Python's hmac module.
    const KNOWN: &str = "739d49804fdca77d8a07462fc9f2627d4957adbd32fd530393ccaad298b10455";

    fn at(seconds: i64) -> Instant {
        Instant::from_timestamp(seconds, 0).expect("an instant")
    }

    #[test]
    fn a_signature_made_elsewhere_is_right_s52() {
        let secret = [Secret::new("whsec_test_secret")];
        let header = format!("t=1492774577,v1={KNOWN},v0=00");
        let body = br#"{"a":1}"#;
        assert_eq!(verify(&secret, &header, body, at(1_492_774_577)), Ok(()));
        assert_eq!(
            sign(&secret[0], body, at(1_492_774_577)),
            format!("t=1492774577,v1={KNOWN}")
        );
        assert_eq!(
            verify(&secret, &header, br#"{"a": 1}"#, at(1_492_774_577)),
            Err(Refused::Wrong)
        );
    }

    #[test]
    fn what_is_no_header_is_none() {
        let secret = [Secret::new("whsec_a")];
        let good = sign(&secret[0], b"x", at(1_000));
        let bad = [
            String::new(),
            "t=1000".to_owned() + "\u{0}",
            good.replace("t=1000", "t=+1000"),
            good.replace("t=1000", "t=1000,t=1000"),
            good.replace("t=1000,", ""),
            format!("{good},"),
            format!("t={},v1=", "9".repeat(13)),
            format!("{good}{}", ",v0=0".repeat(2000)),
        ];
        for header in bad {
            assert_eq!(
                verify(&secret, &header, b"x", at(1_000)),
                Err(Refused::Malformed),
                "{header}"
            );
        }
        for header in ["t=1000", "t=1000,v1=", "t=1000,v1=zz", "t=1000,v1=00é"] {
            assert_eq!(
                verify(&secret, header, b"x", at(1_000)),
                Err(Refused::Wrong),
                "{header}"
            );
        }
        assert_eq!(verify(&[], &good, b"x", at(1_000)), Err(Refused::Wrong));
    }
}
