//! `GET /` of the control face: a plain page that shows resources, operations in flight and the last calls. Shows; changes nothing.

use std::fmt::Write as _;

use serde_json::Value;

/// Rows that a table shows at most.
pub(crate) const ROWS: usize = 200;

/// One table: a title, how many rows there are in all, column names, rows.
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) total: usize,
    pub(crate) columns: &'static [&'static str],
    pub(crate) rows: Vec<Vec<String>>,
}

/// The page; everything that came from outside is escaped.
pub(crate) fn render(subtitle: &str, tables: &[Table]) -> String {
    let mut html = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>armsim</title><style>body{font:14px sans-serif;margin:2em}\
         table{border-collapse:collapse;margin-bottom:2em}td,th{border:1px solid #ccc;padding:2px 8px;text-align:left;font:12px monospace}\
         </style></head><body><h1>armsim</h1>",
    );
    let _ = write!(html, "<p>{}</p>", escape(subtitle));
    for table in tables {
        let _ = write!(
            html,
            "<h2>{} ({})</h2><table><tr>",
            table.title, table.total
        );
        for column in table.columns {
            let _ = write!(html, "<th>{column}</th>");
        }
        html.push_str("</tr>");
        for row in &table.rows {
            html.push_str("<tr>");
            for cell in row {
                let _ = write!(html, "<td>{}</td>", escape(cell));
            }
            html.push_str("</tr>");
        }
        html.push_str("</table>");
    }
    html.push_str("</body></html>\n");
    html
}

/// A field of a JSON object as a cell.
pub(crate) fn cell(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_from_outside_is_escaped() {
        let table = Table {
            title: "Calls",
            total: 1,
            columns: &["path"],
            rows: vec![vec!["/<script>\"&".into()]],
        };
        let html = render("now", &[table]);
        assert!(
            html.contains("<td>/&lt;script&gt;&quot;&amp;</td>"),
            "{html}"
        );
    }
}
