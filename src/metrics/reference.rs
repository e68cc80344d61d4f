//! The reference of all metrics, as Markdown, from their declarations.

use std::fmt::Write as _;

use super::declare::{Description, Label, Values};

/// One entry for each metric.
pub(super) fn markdown(described: &[Description]) -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         Written by `hyperlink metrics`; do not edit. Served on `/metrics` of every process; where it is served, and to whom, is\n\
         in `hyperlink run --help`. Metrics of custom resources come from leaders alone, from each role, and from a process for\n\
         all namespaces also of those that have one of their own: take the `max` over processes, and count by name,\n\
         `count(max by (control_plane, name) (…))`. Most counters have no series before something was counted.\n\n\
         | metric | type | unit | meaning |\n|---|---|---|---|\n",
    );
    for one in described {
        let Description { name, kind, help, .. } = one;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| `{name}` | {kind} | {} | {help} |", one.unit());
    }
    text.push_str("\n## Labels\n\n| metric | label | values |\n|---|---|---|\n");
    for Description { name, labels, .. } in described {
        for Label { name: label, values } in labels {
            let values = match values {
                Values::These(all) => all
                    .iter()
                    .map(|value| format!("`{value}`"))
                    .collect::<Vec<_>>()
                    .join(", "),
                Values::Words(words) => (*words).to_owned(),
            };
            let _ = writeln!(text, "| `{name}` | `{label}` | {values} |");
        }
    }
    text
}
