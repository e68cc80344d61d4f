//! Declares metrics in a registry, and keeps their descriptions for the reference. The prefix of the names and the
//! buckets are set only here.

use prometheus::core::Collector;
use prometheus::proto::{Gauge, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, Result};

const PREFIX: &str = "hyperlink";

/// Buckets of calls in seconds: from one call on loopback to the minute after which a call is cancelled.
const OF_CALLS: [f64; 12] = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Buckets of paths in seconds: from a path whose parts all exist to one that somebody has to look after.
const OF_PATHS: [f64; 12] = [
    5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0, 1800.0,
];

/// A label and its possible values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Name of the label.
    pub name: &'static str,
    /// Possible values of the label.
    pub values: Values,
}

/// The values of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// These and no others.
    These(Vec<&'static str>),
    /// Values as these words describe.
    Words(&'static str),
}

impl Label {
    pub(super) fn one_of(name: &'static str, values: impl IntoIterator<Item = &'static str>) -> Self {
        let values = Values::These(values.into_iter().collect());
        Self { name, values }
    }

    pub(super) fn free_text(name: &'static str, words: &'static str) -> Self {
        let values = Values::Words(words);
        Self { name, values }
    }
}

/// The description of one metric in the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its name, with prefix and unit.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// What the metric measures.
    pub help: &'static str,
    /// Labels of the metric.
    pub labels: Vec<Label>,
}

impl Description {
    /// Prometheus' base units, by the end of the name; a number of things otherwise.
    pub fn unit(&self) -> &'static str {
        match self.name.rsplit('_').next() {
            Some("seconds") => "seconds",
            Some("bytes") => "bytes",
            _ => "",
        }
    }
}

pub(super) struct Declare<'a> {
    registry: &'a Registry,
    described: Vec<Description>,
}

impl<'a> Declare<'a> {
    pub(super) fn new(registry: &'a Registry) -> Self {
        Self {
            registry,
            described: Vec::new(),
        }
    }

    /// All descriptions so far, by name.
    pub(super) fn described(mut self) -> Vec<Description> {
        self.described.sort_by(|a, b| a.name.cmp(&b.name));
        self.described
    }

    /// A count that only grows.
    pub(super) fn counter(&mut self, name: &str, help: &'static str, labels: Vec<Label>) -> Result<IntCounterVec> {
        let (name, labels) = self.describe(PREFIX, name, "counter", help, labels);
        self.registered(IntCounterVec::new(Opts::new(name, help), &labels)?)
    }

    /// A count of what exists now.
    pub(super) fn count(&mut self, name: &str, help: &'static str, labels: Vec<Label>) -> Result<IntGaugeVec> {
        let (name, labels) = self.describe(PREFIX, name, "gauge", help, labels);
        self.registered(IntGaugeVec::new(Opts::new(name, help), &labels)?)
    }

    /// A measure that is not a count.
    pub(super) fn gauge(&mut self, name: &str, help: &'static str, labels: Vec<Label>) -> Result<GaugeVec> {
        let (name, labels) = self.describe(PREFIX, name, "gauge", help, labels);
        self.registered(GaugeVec::new(Opts::new(name, help), &labels)?)
    }

    /// How long a call or a reconcile takes.
    pub(super) fn duration(&mut self, name: &str, help: &'static str, labels: Vec<Label>) -> Result<HistogramVec> {
        self.histogram(name, help, labels, &OF_CALLS)
    }

    /// How long a hosted cluster has to wait.
    pub(super) fn long_duration(&mut self, name: &str, help: &'static str, labels: Vec<Label>) -> Result<HistogramVec> {
        self.histogram(name, help, labels, &OF_PATHS)
    }

    /// A measure that every program exports under the same name.
    pub(super) fn process(&mut self, name: &str, help: &'static str) -> Result<GaugeVec> {
        let (name, labels) = self.describe("process", name, "gauge", help, Vec::new());
        self.registered(GaugeVec::new(Opts::new(name, help), &labels)?)
    }

    /// A measure that is computed at each scrape, and of which nothing is kept in between.
    pub(super) fn at_scrape(&mut self, name: &str, help: &'static str, labels: Vec<Label>) -> AtScrape {
        let (name, labels) = self.describe(PREFIX, name, "gauge", help, labels);
        AtScrape { name, help, labels }
    }

    fn histogram(
        &mut self,
        name: &str,
        help: &'static str,
        labels: Vec<Label>,
        buckets: &[f64],
    ) -> Result<HistogramVec> {
        let (name, labels) = self.describe(PREFIX, name, "histogram", help, labels);
        let opts = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.registered(HistogramVec::new(opts, &labels)?)
    }

    fn describe(
        &mut self,
        prefix: &str,
        name: &str,
        kind: &'static str,
        help: &'static str,
        labels: Vec<Label>,
    ) -> (String, Vec<&'static str>) {
        let name = format!("{prefix}_{name}");
        let names = labels.iter().map(|label| label.name).collect();
        self.described.push(Description {
            name: name.clone(),
            kind,
            help,
            labels,
        });
        (name, names)
    }

    fn registered<M: Collector + Clone + 'static>(&self, metric: M) -> Result<M> {
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    }
}

/// A gauge that is computed at each scrape.
pub(super) struct AtScrape {
    name: String,
    help: &'static str,
    labels: Vec<&'static str>,
}

impl AtScrape {
    /// The metric with these samples: label values in the order in which the labels were declared, and a value.
    pub(super) fn with<'v, const LABELS: usize>(
        &self,
        samples: impl IntoIterator<Item = ([&'v str; LABELS], f64)>,
    ) -> MetricFamily {
        debug_assert_eq!(self.labels.len(), LABELS);
        let samples = samples.into_iter().map(|(values, value)| {
            let pairs = self.labels.iter().zip(values).map(|(name, value)| {
                let mut pair = LabelPair::default();
                pair.set_name((*name).to_owned());
                pair.set_value(value.to_owned());
                pair
            });
            let mut metric = Metric::from_label(pairs.collect());
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
            metric
        });
        let mut family = MetricFamily::default();
        family.set_name(self.name.clone());
        family.set_help(self.help.to_owned());
        family.set_field_type(MetricType::GAUGE);
        family.set_metric(samples.collect());
        family
    }
}
