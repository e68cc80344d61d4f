//! Where probes and metrics are served, and to whom. Metrics are plain on loopback only.

use super::reader::Reader;
use super::{parse, setting};
use crate::http::{Certificate, Serving};

/// The settings of the HTTP server; `None` when one is wrong, which is then a problem of `reader`.
pub(super) fn serving(reader: &mut Reader<'_>) -> Option<Serving> {
    use setting::{METRICS_BIND, METRICS_SECURE, PROBE_BIND};
    let metrics = reader.one(&METRICS_BIND, parse::address)?;
    let probes = reader.one(&PROBE_BIND, parse::address);
    let is_secure = reader.one(&METRICS_SECURE, parse::boolean)?;
    let secure = certificate(reader, is_secure);
    if !is_secure && !metrics.ip().is_loopback() {
        reader.problem(format!(
            "--{} {metrics} is not on loopback: metrics are served there only with --{} true; --{} serves the probes alone",
            METRICS_BIND.flag, METRICS_SECURE.flag, PROBE_BIND.flag
        ));
    }
    Some(Serving {
        metrics,
        probes,
        secure,
    })
}

fn certificate(reader: &mut Reader<'_>, is_secure: bool) -> Option<Certificate> {
    use setting::{METRICS_CERT_FILE, METRICS_KEY_FILE, METRICS_SECURE};
    let given = [&METRICS_CERT_FILE, &METRICS_KEY_FILE].map(|setting| reader.is_given(setting));
    if !is_secure {
        if given.contains(&true) {
            reader.missing(&METRICS_SECURE, "; a certificate is of no use without it");
        }
        return None;
    }
    let loaded = if given.contains(&true) {
        let why = "; certificate and key go together";
        let certificate = reader.required(&METRICS_CERT_FILE, why, parse::path)?;
        let key = reader.required(&METRICS_KEY_FILE, why, parse::path)?;
        Certificate::from_files(&certificate, &key)
    } else {
        Certificate::self_signed()
    };
    loaded
        .map_err(|error| reader.problem(format!("--{}: {error}", METRICS_CERT_FILE.flag)))
        .ok()
}
