//! Reads the samples of `/metrics`.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use crate::candidate::Candidate;

/// One sample of a scrape.
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// All samples of one scrape.
pub(crate) struct Metrics(Vec<Sample>);

impl Metrics {
    pub(crate) async fn of(candidate: &Candidate) -> Result<Self> {
        let (_, text) = candidate.hyperlink.page("/metrics").await?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| sample(line).with_context(|| format!("not a sample: {line}")))
            .collect::<Result<_>>()
            .map(Self)
    }

    /// The sum of all samples with this name and these labels (`name` or `name{label=value,…}`); none if there is no
    /// such sample.
    pub(crate) fn sum(&self, series: &str) -> Option<f64> {
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let labels: Vec<_> = labels
            .trim_end_matches('}')
            .split(',')
            .filter_map(|label| label.split_once('='))
            .collect();
        let fits = |sample: &&Sample| {
            let has = |(label, value): &(&str, &str)| sample.labels.get(*label).is_some_and(|has| has == value);
            sample.name == name && labels.iter().all(has)
        };
        let found: Vec<_> = self.0.iter().filter(fits).map(|sample| sample.value).collect();
        (!found.is_empty()).then(|| found.iter().sum())
    }
}

fn sample(line: &str) -> Option<Sample> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    // No label value of Hyperlink has a comma or a quote in it.
    let labels = labels.strip_suffix('}')?.split(',').filter(|label| !label.is_empty());
    let labels = labels.map(|label| {
        let (label, value) = label.split_once('=')?;
        Some((label.to_owned(), value.trim_matches('"').to_owned()))
    });
    Some(Sample {
        name: name.to_owned(),
        labels: labels.collect::<Option<_>>()?,
        value: value.parse().ok()?,
    })
}
