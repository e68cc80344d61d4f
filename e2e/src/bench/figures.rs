//! The measured figures: a table for people and JSON for tools. This module does not measure anything.

use std::fmt::Write;

use serde::Serialize;

/// One measured figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// The measured value, rounded to hundredths.
    pub value: f64,
    /// The value's unit.
    pub unit: &'static str,
    /// The highest value that meets the goal, or the lowest, if there is a goal.
    pub goal: Option<f64>,
    /// Whether a higher value is better.
    #[serde(skip)]
    more: bool,
}

impl Figure {
    /// A figure that should be no more than its goal.
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str, goal: f64) -> Self {
        Self {
            goal: Some(goal),
            ..Self::without_goal(name, value, unit)
        }
    }

    /// A figure that should be no less than its goal.
    pub fn at_least(name: impl Into<String>, value: f64, unit: &'static str, goal: f64) -> Self {
        Self {
            more: true,
            ..Self::new(name, value, unit, goal)
        }
    }

    /// A figure without a goal.
    pub fn without_goal(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            name: name.into(),
            value: (value * 100.0).round() / 100.0,
            unit,
            goal: None,
            more: false,
        }
    }

    fn verdict(&self) -> &'static str {
        match self.goal {
            None => "",
            Some(goal) if (self.more && self.value >= goal) || (!self.more && self.value <= goal) => "met",
            Some(_) => "MISSED",
        }
    }
}

/// The table as text, one line for each figure.
pub fn table(figures: &[Figure]) -> String {
    let width = figures.iter().map(|figure| figure.name.len()).max().unwrap_or_default();
    let mut text = format!("{:width$}  {:>8}  {:7}  {:>6}\n", "figure", "value", "unit", "goal");
    for figure in figures {
        let goal = figure.goal.map(|goal| format!("{goal}")).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:width$}  {:>8}  {:7}  {goal:>6}  {}",
            figure.name,
            figure.value,
            figure.unit,
            figure.verdict()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goal_is_met_with_its_value_and_on_its_better_side() {
        let verdicts = [
            Figure::new("x", 31.0, "calls", 32.0),
            Figure::new("x", 32.001, "calls", 32.0),
            Figure::new("x", 32.01, "calls", 32.0),
            Figure::without_goal("x", 1e9, "calls"),
            Figure::at_least("x", 5000.0, "1/s", 5000.0),
            Figure::at_least("x", 4999.0, "1/s", 5000.0),
        ]
        .map(|figure| figure.verdict());
        assert_eq!(verdicts, ["met", "met", "MISSED", "", "met", "MISSED"]);
    }
}
