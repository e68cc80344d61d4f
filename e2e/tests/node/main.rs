//! Hyperlink as Pods on a node: its images, its chart by helm, Services, probes and tokens by the kubelet, and what
//! happens to nodes, Pods and containers. `make test-image` runs it.

mod disruptions;
mod kind;
mod kubelet;
mod life;
mod memory;
mod nothing_left;
mod observed;
mod pods;
