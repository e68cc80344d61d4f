//! `/livez`, `/readyz`, `/metrics`.
