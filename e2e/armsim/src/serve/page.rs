//! `GET /` of the control API: a plain page that shows resources, operations in flight and the last calls. Shows;
//! changes nothing.

use std::fmt::Write as _;

use serde_json::Value;

/// One table: a title, how many rows there are in all, column names, rows.
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) total: usize,
    pub(crate) columns: &'static [&'static str],
    pub(crate) rows: Vec<Vec<String>>,
}

const STYLE: &str = "body{font:14px sans-serif;margin:2em;color:#222}h2{margin:1.5em 0 .4em;font-size:16px}table{border-collapse:collapse}\
    td,th{border:1px solid #ccc;padding:2px 8px;text-align:left;font:12px monospace;white-space:nowrap}td.id{white-space:normal;overflow-wrap:anywhere}th{background:#f2f2f2}\
    input{font:12px monospace;width:50em;max-width:70%}.note{color:#666}";

/// The page; everything that came from outside is escaped. `prefix` is what the resources are narrowed to.
pub(crate) fn render(subtitle: &str, prefix: &str, tables: &[Table]) -> String {
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>armsim</title><style>{STYLE}</style></head><body><h1>armsim</h1>\
         <p>{}</p><form><label>Resources whose id begins with <input name=\"prefix\" value=\"{}\" placeholder=\"/subscriptions/…\"></label> \
         <button>show</button></form>",
        escape(subtitle),
        escape(prefix)
    );
    for table in tables {
        show(&mut html, table);
    }
    html.push_str("</body></html>\n");
    html
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
            let class = if cell.starts_with('/') { " class=\"id\"" } else { "" };
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
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_from_outside_is_escaped() {
        let table = Table {
            title: "Calls",
            total: 3,
            columns: &["path"],
            rows: vec![vec!["/<script>\"&'".into()]],
        };
        let html = render("now", "\"><script>", &[table]);
        assert!(
            html.contains("<td class=\"id\">/&lt;script&gt;&quot;&amp;&#39;</td>"),
            "{html}"
        );
        assert!(html.contains("value=\"&quot;&gt;&lt;script&gt;\""), "{html}");
        assert!(html.contains("2 more are not shown"), "{html}");
    }
}
