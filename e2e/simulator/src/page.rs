//! `GET /` of the control API: a plain page that shows tables of what there is and what was called. Shows; changes
//! nothing.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

/// A page of a simulator.
pub struct Page<'a> {
    /// The simulator's.
    pub name: &'a str,
    /// Below the name.
    pub subtitle: &'a str,
    /// What the resources are narrowed to.
    pub prefix: &'a str,
    /// How ids begin.
    pub ids_begin: &'a str,
    /// In their order.
    pub tables: &'a [Table],
}

/// One table: a title, how many rows there are in all, column names, rows.
pub struct Table {
    title: &'static str,
    total: usize,
    columns: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these objects' fields, of `total` in all.
    pub fn new(
        title: &'static str,
        columns: &'static [&'static str],
        rows: impl Iterator<Item = impl Serialize>,
        total: usize,
    ) -> Self {
        let row = |row| {
            let value = json!(row);
            columns.iter().map(|column| cell(&value[column])).collect()
        };
        Self {
            title,
            total,
            columns,
            rows: rows.map(row).collect(),
        }
    }
}

const STYLE: &str = "body{font:14px sans-serif;margin:2em;color:#222}h2{margin:1.5em 0 .4em;font-size:16px}table{border-collapse:collapse}\
    td,th{border:1px solid #ccc;padding:2px 8px;text-align:left;font:12px monospace;white-space:nowrap}td.id{white-space:normal;overflow-wrap:anywhere}th{background:#f2f2f2}\
    input{font:12px monospace;width:50em;max-width:70%}.note{color:#666}";

impl Page<'_> {
    /// The page's HTML; everything that came from outside is escaped.
    #[must_use]
    pub fn render(&self) -> String {
        let Self { name, ids_begin, .. } = self;
        let mut html = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{name}</title><style>{STYLE}</style></head><body>\
             <h1>{name}</h1><p>{}</p><form><label>Resources whose id begins with <input name=\"prefix\" value=\"{}\" \
             placeholder=\"{ids_begin}\"></label> <button>show</button></form>",
            escape(self.subtitle),
            escape(self.prefix)
        );
        for table in self.tables {
            show(&mut html, table);
        }
        html.push_str("</body></html>\n");
        html
    }
}

fn show(html: &mut String, table: &Table) {
    let _ = write!(html, "<h2>{} ({})</h2>", table.title, table.total);
    if table.rows.is_empty() {
        return;
    }
    html.push_str("<table><tr>");
    for column in table.columns {
        let _ = write!(html, "<th>{column}</th>");
    }
    html.push_str("</tr>");
    for row in &table.rows {
        html.push_str("<tr>");
        for cell in row {
            // Ids and paths are long, and may be broken anywhere.
            let is_long = cell.starts_with('/') || cell.starts_with("arn:");
            let class = if is_long { " class=\"id\"" } else { "" };
            let _ = write!(html, "<td{class}>{}</td>", escape(cell));
        }
        html.push_str("</tr>");
    }
    html.push_str("</table>");
    let left = table.total - table.rows.len();
    if left > 0 {
        let _ = write!(html, "<p class=\"note\">{left} more are not shown.</p>");
    }
}

/// A field as a cell.
fn cell(field: &Value) -> String {
    match field {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_from_outside_is_escaped() {
        let rows = [json!({"path": "/<script>\"&'"})];
        let page = Page {
            name: "sim",
            subtitle: "now",
            prefix: "\"><script>",
            ids_begin: "/",
            tables: &[Table::new("Calls", &["path"], rows.iter(), 3)],
        };
        let html = page.render();
        assert!(
            html.contains("<td class=\"id\">/&lt;script&gt;&quot;&amp;&#39;</td>"),
            "{html}"
        );
        assert!(html.contains("value=\"&quot;&gt;&lt;script&gt;\""), "{html}");
        assert!(html.contains("2 more are not shown"), "{html}");
    }
}
