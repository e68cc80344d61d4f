//! One process for many control planes: none of them reaches what is another's, and none is served by two.

mod foreign;
mod leaders;
mod scopes;
mod tenants;
