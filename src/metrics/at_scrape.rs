//! Gauges that are computed at each scrape, and of which nothing is kept in between. So a stuck process shows a growing
//! age and not the last good one.

use std::collections::HashMap;

use prometheus::Result;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Gauge, LabelPair, Metric, MetricFamily, MetricType};

/// The values of the labels in the order of the declaration, and the value of the series.
pub(super) type Sample<'r> = (Vec<&'r str>, f64);

type Compute<R> = fn(&R) -> Vec<Sample<'_>>;

/// Gauges that are computed from one reading `R`.
pub(super) struct AtScrape<R> {
    read: Box<dyn Fn() -> Option<R> + Send + Sync>,
    gauges: Vec<(Desc, Compute<R>)>,
}

impl<R> AtScrape<R> {
    /// There are no series while `read` gives nothing.
    pub(super) fn new(read: impl Fn() -> Option<R> + Send + Sync + 'static) -> Self {
        Self {
            read: Box::new(read),
            gauges: Vec::new(),
        }
    }

    /// Declares a gauge and what computes its samples.
    pub(super) fn gauge(mut self, name: &str, help: &str, labels: &[&str], compute: Compute<R>) -> Result<Self> {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let desc = Desc::new(name.to_owned(), help.to_owned(), labels, HashMap::new())?;
        self.gauges.push((desc, compute));
        Ok(self)
    }
}

impl<R> Collector for AtScrape<R> {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges.iter().map(|(desc, _)| desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let reading = (self.read)();
        let families = self.gauges.iter().map(|(desc, compute)| {
            let samples = reading.as_ref().map(compute).unwrap_or_default();
            family(desc, samples)
        });
        families.collect()
    }
}

/// Built by hand: a `GaugeVec` finds its series by a hash of label values that stand together without a separator, so
/// that a namespace could choose names which hide another's.
fn family(desc: &Desc, samples: Vec<Sample<'_>>) -> MetricFamily {
    let metrics = samples.into_iter().map(|(values, value)| {
        debug_assert_eq!(desc.variable_labels.len(), values.len(), "{}", desc.fq_name);
        let pairs = desc.variable_labels.iter().zip(values).map(|(name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.clone());
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
    family.set_name(desc.fq_name.clone());
    family.set_help(desc.help.clone());
    family.set_field_type(MetricType::GAUGE);
    family.set_metric(metrics.collect());
    family
}
