//! `TrackConfig` (Python) → `Config` (core).

use fragtrack_core::track::config::{Checksum, Config, Timeouts};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// SYN_SENT2 and the time before any state: no sysctl changes them.
const FIXED: i64 = 120_000_000_000;

/// Reads the attributes of a `fragtrack.track_config.TrackConfig`, which has checked them.
pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Config> {
    let flag = |name: &str| -> PyResult<bool> { object.getattr(name)?.extract() };
    let text = |name: &str| -> PyResult<String> { object.getattr(name)?.extract() };
    let time = |name: &str| -> PyResult<i64> { object.call_method1("nanoseconds", (name,))?.extract() };
    let tcp = |name: &str| time(&format!("tcp_timeout_{name}"));
    let sctp = |name: &str| time(&format!("sctp_timeout_{name}"));
    let checksum = match text("checksum")?.as_str() {
        "offload" => Checksum::Offload,
        "verify" => Checksum::Verify,
        "ignore" => Checksum::Ignore,
        other => return Err(PyValueError::new_err(format!("checksum: unknown value {other:?}"))),
    };
    let key: u128 = object.getattr("hash_key")?.extract::<Option<u128>>()?.unwrap_or(0);
    Ok(Config {
        pre_6_1: text("profile")? == "pre-6.1",
        checksum,
        max: object.getattr("max")?.extract()?,
        gap_tolerant: flag("gap_tolerant")?,
        tcp_loose: flag("tcp_loose")?,
        tcp_be_liberal: flag("tcp_be_liberal")?,
        tcp_ignore_invalid_rst: flag("tcp_ignore_invalid_rst")?,
        tcp_max_retrans: object.getattr("tcp_max_retrans")?.extract()?,
        rst_inexact_unacknowledged: text("rst_inexact_timeout")? == "unacknowledged",
        timeouts: Timeouts {
            tcp: [
                FIXED,
                tcp("syn_sent")?,
                tcp("syn_recv")?,
                tcp("established")?,
                tcp("fin_wait")?,
                tcp("close_wait")?,
                tcp("last_ack")?,
                tcp("time_wait")?,
                tcp("close")?,
                FIXED,
            ],
            tcp_max_retrans: tcp("max_retrans")?,
            tcp_unacknowledged: tcp("unacknowledged")?,
            udp: time("udp_timeout")?,
            udp_stream: time("udp_timeout_stream")?,
            icmp: time("icmp_timeout")?,
            icmpv6: time("icmpv6_timeout")?,
            sctp: [
                sctp("closed")?,
                sctp("closed")?,
                sctp("cookie_wait")?,
                sctp("cookie_echoed")?,
                sctp("established")?,
                sctp("shutdown_sent")?,
                sctp("shutdown_recd")?,
                sctp("shutdown_ack_sent")?,
                sctp("heartbeat_sent")?,
            ],
            gre: time("gre_timeout")?,
            gre_stream: time("gre_timeout_stream")?,
            generic: time("generic_timeout")?,
        },
        hash_key: (key as u64, (key >> 64) as u64),
    })
}
