//! Credentials, tokens and clouds.
