//! Stripe API v1.
