//! How Hyperlink handles bad input, end to end on the real API server and the simulated Azure: wrong objects, resources
//! of others under its names, servers that cannot be reached, deletions in the wrong order.

mod abandon;
mod approval;
mod crowd;
mod deletion;
mod duplicate;
mod elsewhere;
mod events;
mod foreign;
mod identity;
mod nat_subnet;
mod settings;
mod shared_zone;
mod steps;
mod unreachable;
mod unreadable_time;
mod wire;
