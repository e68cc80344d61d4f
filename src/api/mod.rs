//! Kubernetes kinds: our own in full, HyperShift's as far as they are read.
