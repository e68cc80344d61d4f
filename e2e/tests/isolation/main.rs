//! One process for many control planes: none of them reaches what belongs to another, and none is served by two.

mod foreign;
mod leaders;
mod scopes;
mod shards;
mod tenants;
