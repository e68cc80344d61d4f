//! Microsoft.Network/privateDnsZones: zones, their links to virtual networks, record sets.

mod etag;
mod names;
mod record;
pub(crate) mod resolve;
