//! Declares metrics in a registry. The names' prefix and the buckets are set here and nowhere else.

use prometheus::core::Collector;
use prometheus::{GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, Result};

const PREFIX: &str = "hyperlink";

/// Seconds: from one call on loopback to the minute after which a call is given up.
const BUCKETS: [f64; 12] = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

pub(super) struct Declare<'a>(pub(super) &'a Registry);

impl Declare<'_> {
    /// What only grows.
    pub(super) fn counter(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec> {
        let opts = Opts::new(name, help).namespace(PREFIX);
        self.registered(IntCounterVec::new(opts, labels)?)
    }

    /// How many there are now.
    pub(super) fn count(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec> {
        let opts = Opts::new(name, help).namespace(PREFIX);
        self.registered(IntGaugeVec::new(opts, labels)?)
    }

    /// A measure that is no count.
    pub(super) fn gauge(&self, name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec> {
        let opts = Opts::new(name, help).namespace(PREFIX);
        self.registered(GaugeVec::new(opts, labels)?)
    }

    /// How long something takes.
    pub(super) fn duration(&self, name: &str, help: &str, labels: &[&str]) -> Result<HistogramVec> {
        let opts = HistogramOpts::new(name, help)
            .namespace(PREFIX)
            .buckets(BUCKETS.to_vec());
        self.registered(HistogramVec::new(opts, labels)?)
    }

    /// A measure that every program exports under the same name.
    pub(super) fn process(&self, name: &str, help: &str) -> Result<GaugeVec> {
        let opts = Opts::new(name, help).namespace("process");
        self.registered(GaugeVec::new(opts, &[])?)
    }

    fn registered<M: Collector + Clone + 'static>(&self, metric: M) -> Result<M> {
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }
}
