//! Metrics in Prometheus' text format 0.0.4, for clients that do not ask for OpenMetrics: `curl`, `promtool`, older
//! scrapers.

/// Type of the content.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns true if a client with this `Accept` gets the text format. One that says nothing, or wants both
/// alike, gets OpenMetrics.
pub(super) fn is_wanted(accept: Option<&str>) -> bool {
    let Some(accept) = accept else { return false };
    let (mut open_metrics, mut text) = (0, 0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let quality = parts.find_map(|part| part.strip_prefix("q=")).map_or(1_000, thousandths);
        match kind.as_str() {
            "application/openmetrics-text" | "application/*" => open_metrics = quality.max(open_metrics),
            "text/plain" | "text/*" | "*/*" => text = quality.max(text),
            _ => {}
        }
    }
    text > open_metrics
}

/// A quality of `Accept`, in thousandths; what is none counts as the highest.
fn thousandths(quality: &str) -> u32 {
    let quality: f32 = quality.trim().parse().unwrap_or(1.0);
    // From 0 to 1000: the cast takes nothing away.
    (quality.clamp(0.0, 1.0) * 1_000.0).round() as u32
}

/// Translates OpenMetrics. There a counter's type stands at its name without `_total`, and an information's at its name
/// without `_info`; here at the names of their samples.
pub(super) fn of(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    // The help comes before the type, and with the same name.
    let mut help = None;
    for line in open_metrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "stateset" => ("", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
                text.push_str(&format!("# HELP {name}{suffix} {help}\n"));
            }
            text.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_text_gets_text() {
        for accept in [
            "text/plain;version=0.0.4",
            "*/*",
            "text/html, */*;q=0.1",
            "text/*",
            "application/openmetrics-text;q=0, text/plain",
            "text/plain;version=0.0.4, application/openmetrics-text;version=1.0.0;q=0.5",
        ] {
            assert!(is_wanted(Some(accept)), "{accept}");
        }
        for accept in [
            "application/openmetrics-text",
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "image/png",
            "",
            "text/plain;q=0",
            "*/*, application/openmetrics-text; q=good",
        ] {
            assert!(!is_wanted(Some(accept)), "{accept}");
        }
        assert!(!is_wanted(None));
    }

    #[test]
    fn types_and_helps_stand_at_the_names_of_samples() {
        let open_metrics = "# HELP quiver_build Version.\n# TYPE quiver_build info\nquiver_build_info{version=\"1\"} 1\n\
                            # HELP quiver_net_sent_bytes Bytes.\n# TYPE quiver_net_sent_bytes counter\n\
                            # UNIT quiver_net_sent_bytes bytes\nquiver_net_sent_bytes_total 42\n\
                            # HELP quiver_open Open.\n# TYPE quiver_open gauge\nquiver_open{a=\"# TYPE x\"} 1\n# EOF\n";
        assert_eq!(
            of(open_metrics),
            "# HELP quiver_build_info Version.\n# TYPE quiver_build_info gauge\nquiver_build_info{version=\"1\"} 1\n\
             # HELP quiver_net_sent_bytes_total Bytes.\n# TYPE quiver_net_sent_bytes_total counter\n\
             quiver_net_sent_bytes_total 42\n\
             # HELP quiver_open Open.\n# TYPE quiver_open gauge\nquiver_open{a=\"# TYPE x\"} 1\n"
        );
    }
}
