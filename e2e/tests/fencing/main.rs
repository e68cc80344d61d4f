//! Whole processes that lead, lose the lease, hand over and stand by: what they still send, in which order they stop,
//! and what they report meanwhile. The API server's audit log and the simulator's journal are the witnesses.

mod candidate;
mod crowd;
mod cut_off;
mod evidence;
mod life;
mod metrics;
mod pause;
mod stop;
