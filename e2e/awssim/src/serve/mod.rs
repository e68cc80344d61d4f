//! Everything with sockets: the HTTPS address of all services, the control address, start and stop. Decides nothing
//! about AWS: that is the state machine's part, behind one lock that is never held across an await.

mod aws;
mod control;
mod server;

use std::sync::{Mutex, MutexGuard, PoisonError};

use simulator::clock::Clock;

use crate::SimulatedAws;
pub use server::{Options, Server, StartError};

/// What all connections share.
struct Shared {
    simulation: Mutex<Simulation>,
    /// The HTTPS address.
    aws: String,
}

/// The simulated AWS and its time; locked as one.
struct Simulation {
    aws: SimulatedAws,
    clock: Clock,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Simulation> {
        self.simulation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
