//! The form of log lines: one per event, as text or JSON, with fixed field names. Does not decide what is logged.
//!
//! Control characters are escaped in both forms, so no value from outside can start a line of its own or control a
//! terminal. Libraries that carry tokens on the wire are never logged below `info`, whatever the filter says.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value, json};
use tracing::field::Field;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::{FilterExt, ParseError, Targets, filter_fn};
use tracing_subscriber::fmt::format::{JsonFields, Writer, debug_fn};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// The names of log fields and what each holds. Code that logs such a value uses this name; a test checks it.
pub const FIELDS: &[(&str, &str)] = &[
    ("controller", "the controller, as in the metrics"),
    ("namespace", "namespace of the Kubernetes object"),
    ("name", "name of the Kubernetes object"),
    (
        "verb",
        "what is done: `put`, `delete`, … for steps, the HTTP verb for calls",
    ),
    ("kind", "kind of the ARM resource, as in the metrics"),
    ("id", "ARM id of the resource"),
    ("status", "HTTP status, a number"),
    ("code", "ARM's error code"),
    ("class", "the error class, as in the metrics"),
    ("correlation_id", "correlation id of the reconcile, as sent to ARM"),
    ("took_ms", "duration in milliseconds, a number"),
    ("error", "an error in words"),
    ("reason", "why, in a word or a sentence of Hyperlink's"),
    ("text", "Azure's own words, cut to length"),
    ("again_in_s", "seconds until the next try"),
    ("accepted", "whether Azure has only accepted the request yet"),
    ("finalizer", "the finalizer that is removed"),
    ("condition", "type of the condition"),
    ("holds", "status of the condition"),
    ("lease", "name of the lease"),
    ("holder", "whom the lease names"),
    ("identity", "as whom this process campaigns"),
    ("address", "where the process serves metrics"),
    ("probes", "where the process serves its probes"),
    ("version", "of this program"),
    ("commit", "of this program's source"),
];

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `time LEVEL span{key=value …}: target: message key=value …`
    Text,
    /// One flat JSON object: `timestamp`, `level`, `target`, `message`, and the fields of the event and its spans.
    Json,
}

/// Libraries that log too much. A filter that names one of them turns it on again.
const QUIET: &str = "kube_client=warn,kube_runtime=warn,hyper::=warn,hyper_util=warn,h2=warn,tower=warn,\
     rustls=warn,reqwest=warn,azure_core=warn,azure_identity=warn,typespec=warn,\
     aws_sigv4=warn,aws_smithy=warn";

/// Libraries that handle headers or bodies with tokens, by the beginning of their targets.
const CARRIES_TOKENS: [&str; 10] = [
    "hyper::",
    "hyper_util",
    "h2",
    "rustls",
    "reqwest",
    "azure_core",
    "azure_identity",
    "typespec",
    "aws_sigv4",
    "aws_smithy",
];

/// This target logs whole answers that it cannot parse, also Secrets and tokens. The caller gets the error anyway.
const SHOWS_BODIES: &str = "kube_client::client";

/// Builds the filter from directives as in `RUST_LOG`: `info`, `debug,kube_runtime=info`.
pub fn filter(directives: &str) -> Result<Targets, ParseError> {
    format!("{QUIET},{directives}").parse()
}

/// Logs to standard error from now on, for the whole process. Fails if logging was set up before.
pub fn init(format: Format, filter: Targets) -> Result<(), TryInitError> {
    tracing_subscriber::registry()
        .with(lines(format, filter, std::io::stderr))
        .try_init()
}

/// Why the process ends, in the log's format: also before logging is set up, and for readers of the log alone.
pub fn last_words(format: Format, error: &str) -> String {
    match format {
        Format::Text => format!("hyperlink: {error}\n"),
        Format::Json => {
            let level = Level::ERROR.as_str();
            let target = env!("CARGO_PKG_NAME");
            let line = json!({"timestamp": now(), "level": level, "target": target, "message": error});
            escape_control(&line.to_string()) + "\n"
        }
    }
}

/// From now on, writes each panic and where it was as a line of the log.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| tracing::error!(error = %panic, "panicked")));
}

/// The layer that writes to `out`, behind `filter` and the limit for libraries that carry tokens.
fn lines<S, W>(format: Format, filter: Targets, out: W) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let time: fn(&mut Writer<'_>) -> fmt::Result = |line| line.write_str(&now());
    let layer = tracing_subscriber::fmt::layer().with_writer(out).with_ansi(false);
    let layer = layer.with_timer(time);
    let lines = match format {
        Format::Text => {
            let fields = debug_fn(text_field).delimited(" ");
            layer.fmt_fields(fields).map_event_format(OneLine).boxed()
        }
        Format::Json => {
            let layer = layer.json().flatten_event(true);
            let layer = layer.with_current_span(false).with_span_list(false);
            layer.map_event_format(|event| OneLine(Flat(event))).boxed()
        }
    };
    lines.with_filter(filter.and(filter_fn(harmless)))
}

/// Writes a field as `name=value`, and the message as it is.
fn text_field(line: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let text = format!("{value:?}");
    if field.name() == "message" {
        return line.write_str(&text);
    }
    // A text from outside must not look like another field.
    let is_word = !text.is_empty() && !text.contains([' ', '"', '=']);
    if is_word || serde_json::from_str::<String>(&text).is_ok() {
        write!(line, "{}={text}", field.name())
    } else {
        write!(line, "{}={text:?}", field.name())
    }
}

fn harmless(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let is_detail = *metadata.level() > Level::INFO;
    let opens_details = is_detail && CARRIES_TOKENS.iter().any(|library| target.starts_with(library));
    !opens_details && target != SHOWS_BODIES
}

/// Escapes what could end a line early or control a terminal: the library escapes some of it, in some places.
struct OneLine<F>(F);

impl<S, N, F> FormatEvent<S, N> for OneLine<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        writeln!(out, "{}", escape_control(line.trim_end()))
    }
}

/// Puts the fields of an event's spans beside its own.
struct Flat<F>(F);

impl<S, F> FormatEvent<S, JsonFields> for Flat<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    F: FormatEvent<S, JsonFields>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut own = String::new();
        self.0.format_event(context, Writer::new(&mut own), event)?;
        let mut line = object(&own);
        // The event's own span comes first, the root last; what is there already stays.
        for span in context.event_scope().into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<FormattedFields<JsonFields>>() {
                for (name, value) in object(fields) {
                    line.entry(name).or_insert(value);
                }
            }
        }
        write!(out, "{}", Value::Object(line))
    }
}

fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// Escapes characters that move the cursor, start a line or change the direction of writing.
pub fn escape_control(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        let is_bidi = matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match c {
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            // As in JSON, which has no other form for these.
            _ if c.is_control() || is_bidi => {
                let _ = write!(safe, "\\u{:04x}", c as u32);
            }
            _ => safe.push(c),
        }
    }
    safe
}

/// The time, always with three digits of its second: lines then sort as text.
fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use rstest::rstest;

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: Format, directives: &str, work: impl FnOnce()) -> String {
        let sink = Sink::default();
        let out = sink.clone();
        let layer = lines(format, filter(directives).unwrap(), move || out.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        let bytes = sink.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn json_line_is_flat_and_holds_the_fields_of_its_spans() {
        let out = logged(Format::Json, "info", || {
            let reconcile = tracing::info_span!(
                "reconcile",
                controller = "private_endpoint",
                name = "private-router",
                status = 202
            );
            reconcile.in_scope(|| tracing::info!(status = 201, took_ms = 15, "put the endpoint"));
        });
        let line: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(line["controller"], "private_endpoint");
        assert_eq!(line["name"], "private-router");
        assert_eq!(line["status"], 201);
        assert_eq!(line["took_ms"], 15);
        assert_eq!(line["message"], "put the endpoint");
        assert_eq!(line["level"], "INFO");
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
    }

    #[rstest]
    #[case::pair("x status=200")]
    #[case::quotes(r#""a" status=200 "b""#)]
    fn foreign_text_imitates_no_field(#[case] foreign: &str) {
        let out = logged(Format::Text, "info", || tracing::info!(error = %foreign, "read"));
        let (_, fields) = out.trim_end().split_once("error=").unwrap();
        assert_eq!(serde_json::from_str::<String>(fields).unwrap(), foreign);
    }

    #[test]
    fn a_text_line_reads_as_span_message_and_pairs() {
        let out = logged(Format::Text, "info", || {
            let reconcile = tracing::info_span!("reconcile", controller = "private_endpoint");
            reconcile.in_scope(|| tracing::info!(kind = "subnet", error = "not found", status = 404, "read"));
        });
        let (_, rest) = out.split_once(' ').unwrap();
        assert_eq!(
            rest,
            " INFO reconcile{controller=\"private_endpoint\"}: hyperlink::telemetry::tests: read kind=\"subnet\" \
             error=\"not found\" status=404\n"
        );
    }

    #[rstest]
    #[case::text(Format::Text)]
    #[case::json(Format::Json)]
    fn a_value_from_outside_cannot_start_a_line_or_steer_a_terminal(#[case] format: Format) {
        let hostile = "x\r\n2026-01-01 INFO all is well \u{1b}[2J\u{9b}2J\u{202e}\u{2066}\u{7f}";
        let out = logged(format, "info", || {
            let span = tracing::info_span!("reconcile", a = %hostile, b = hostile);
            span.in_scope(|| tracing::warn!(c = %hostile, d = hostile, e = ?hostile, "{hostile}"));
        });
        assert_eq!(out.matches('\n').count(), 1, "{out}");
        assert!(!out.trim_end().contains(|c: char| c.is_control()), "{out}");
        assert!(!out.contains(['\u{202e}', '\u{2066}']), "{out}");
        if format == Format::Json {
            let line: Value = serde_json::from_str(&out).unwrap();
            for name in ["a", "b", "c", "d", "message"] {
                assert_eq!(line[name], hostile);
            }
        }
    }

    #[rstest]
    #[case::by_default_libraries_are_quiet("info", "kube_runtime::controller", false)]
    #[case::debug_does_not_wake_them("debug", "hyper_util::client", false)]
    #[case::unless_named("debug,kube_runtime=info", "kube_runtime::controller", true)]
    #[case::own_is_not_taken_for_hyper("info", "hyperlink_azure::arm::client", true)]
    fn info_of_a_library(#[case] directives: &str, #[case] target: &str, #[case] is_logged: bool) {
        let out = logged(Format::Text, directives, || match target {
            "kube_runtime::controller" => tracing::info!(target: "kube_runtime::controller", "x"),
            "hyper_util::client" => tracing::info!(target: "hyper_util::client", "x"),
            _ => tracing::info!(target: "hyperlink_azure::arm::client", "x"),
        });
        assert_eq!(!out.is_empty(), is_logged, "{out}");
    }

    #[test]
    fn no_filter_opens_the_details_of_a_library_that_carries_tokens() {
        let out = logged(
            Format::Text,
            "trace,hyper::=trace,azure_core=trace,aws_sigv4=trace",
            || {
                tracing::debug!(target: "hyper::proto", "authorization: Bearer x");
                tracing::debug!(target: "azure_core::http", "authorization: Bearer x");
                tracing::trace!(target: "aws_sigv4::http_request::sign", "x-amz-security-token: x");
                tracing::trace!(target: "hyperlink_azure", "ours");
            },
        );
        assert_eq!(out.lines().count(), 1, "{out}");
        assert!(out.contains("ours"), "{out}");
    }

    #[test]
    fn answer_of_the_api_server_that_cannot_be_read_is_not_shown() {
        let out = logged(Format::Text, "trace,kube_client=trace", || {
            tracing::warn!(target: "kube_client::client", "token: x, Error(\"expected value\")");
            tracing::warn!(target: "kube_client::config", "seen");
        });
        assert!(out.lines().count() == 1 && out.contains("seen"), "{out}");
    }

    #[test]
    fn a_filter_that_does_not_parse_is_refused() {
        assert!(filter("hyperlink=loud").is_err());
    }

    #[test]
    fn no_field_has_two_names() {
        let mut names = FIELDS.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FIELDS.len());
    }
}
