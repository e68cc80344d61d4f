//! The images as they ship: what is in them and beside them, that they can be built again, and a hosted cluster's whole
//! life on the program from the archive. `make test-image` runs it.

mod archive;
mod arm64;
mod bill;
mod builder;
mod content;
mod life;
mod pod;
mod reproducible;
mod simulators;
