//! What Hyperlink makes of bad input, end to end on the real API server and the simulated Azure: wrong objects, things
//! of others under our names, lost neighbours, orders in which nobody should delete.

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
