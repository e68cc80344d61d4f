//! How the custom resources follow what a control plane publishes, and by what, while the cluster runs: Services and their
//! load balancers, host names, subscriptions, pauses.

mod host_names;
mod oauth;
mod pause;
mod siblings;
mod spec;
