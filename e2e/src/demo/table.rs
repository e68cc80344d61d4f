//! The table at the end of the demo: what each phase took.

use std::fmt::Write;
use std::time::Duration;

/// One phase of the demo.
#[derive(Clone, Debug)]
pub struct Row {
    /// The phase's name.
    pub phase: String,
    /// How long the phase took.
    pub time: Duration,
    /// How many calls reached the cloud, refused ones included.
    pub calls: usize,
    /// How many writes there were, of whichever kind is counted.
    pub writes: usize,
}

/// All phases so far.
#[derive(Clone, Debug)]
pub struct Table {
    headings: [&'static str; 2],
    rows: Vec<Row>,
}

impl Table {
    /// A table with these headings of calls and writes.
    pub fn of(headings: [&'static str; 2]) -> Self {
        let rows = Vec::new();
        Self { headings, rows }
    }

    /// Adds a phase at the end.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// The table as text, with the peak memory (bytes) of each process below it.
    pub fn render(&self, peak_rss: &[(&str, u64)]) -> String {
        let width = self
            .rows
            .iter()
            .map(|row| row.phase.len())
            .max()
            .unwrap_or_default()
            .max(5);
        let [calls_heading, writes_heading] = self.headings;
        let mut text = format!("{:width$}  {:>8}  {calls_heading}  {writes_heading}\n", "phase", "time");
        for Row {
            phase,
            time,
            calls,
            writes,
        } in &self.rows
        {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{phase:width$}  {:>6.1} s  {calls:>calls_width$}  {writes:>writes_width$}",
                time.as_secs_f64(),
                calls_width = calls_heading.len(),
                writes_width = writes_heading.len()
            );
        }
        for (process, bytes) in peak_rss {
            let mebibytes = *bytes as f64 / f64::from(1 << 20);
            let _ = write!(text, "\npeak memory of hyperlink {process}: {mebibytes:.1} MiB");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_their_headings() {
        let mut table = Table::of(["ARM calls", "Kubernetes writes"]);
        let time = Duration::from_millis(12_340);
        table.push(Row {
            phase: "up".into(),
            time,
            calls: 28,
            writes: 9,
        });
        let expected = "phase      time  ARM calls  Kubernetes writes\n\
                        up       12.3 s         28                  9\n\n\
                        peak memory of hyperlink ho: 1.5 MiB";
        assert_eq!(table.render(&[("ho", 3 << 19)]), expected);
    }
}
