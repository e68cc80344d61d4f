//! What HyperShift's objects mean, whichever cloud their clusters are on.

pub mod problem;
