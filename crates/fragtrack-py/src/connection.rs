//! Connections and events as Python objects: the classes of `fragtrack.verdicts`.

use fragtrack_core::event::Address;
use fragtrack_core::track::flow::bit;
use fragtrack_core::track::row::{Event, Ports, Row};
use fragtrack_core::track::verdict::{Direction, Events};
use fragtrack_core::wire::Family;
use fragtrack_core::zeek;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

use crate::outcome::text;

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// Where zones come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZonesOf {
    /// The caller gives them.
    Caller,
    /// They are VLAN tags.
    Tags,
}

/// A row with everything in the form that tables have.
pub(crate) struct Cells {
    pub(crate) id: u64,
    pub(crate) times: (i64, i64),
    pub(crate) version: u8,
    pub(crate) protocol: u8,
    pub(crate) source: Address,
    pub(crate) destination: Address,
    pub(crate) ports: Option<(u16, u16)>,
    pub(crate) vlan: Option<String>,
    pub(crate) state: Option<&'static str>,
    pub(crate) assured: bool,
    pub(crate) answered: bool,
    pub(crate) original: (u64, u64),
    pub(crate) reply: (u64, u64),
    pub(crate) fragments: u32,
    pub(crate) invalid: u32,
    pub(crate) end: &'static str,
    pub(crate) timeout: Option<i64>,
    pub(crate) zone: u64,
    pub(crate) icmp: Option<(u8, u8, u16)>,
    pub(crate) gre: Option<(u16, u16)>,
}

impl Cells {
    pub(crate) fn of(row: &Row, zones: ZonesOf) -> Self {
        let ends = row.ends();
        let count = |side| {
            let (packets, bytes) = row.flow.counted(side);
            (u64::from(packets), bytes)
        };
        let (vlan, zone) = match zones {
            ZonesOf::Caller => (None, row.key.zone),
            ZonesOf::Tags => (vlan(row.key.zone), 0),
        };
        Self {
            id: row.id,
            times: (row.flow.first, row.flow.latest),
            version: if row.key.family == Family::V4 { 4 } else { 6 },
            protocol: row.flow.protocol,
            source: ends.source,
            destination: ends.destination,
            ports: if let Ports::Numbers(a, b) = ends.ports { Some((a, b)) } else { None },
            vlan,
            state: row.state(),
            assured: row.flow.has(bit::ASSURED),
            answered: row.flow.has(bit::SEEN_REPLY),
            original: count(Direction::Original),
            reply: count(Direction::Reply),
            fragments: row.flow.fragments,
            invalid: row.flow.invalid,
            end: row.end.name(),
            timeout: row.left.map(|left| left / SECOND),
            zone,
            icmp: if let Ports::Query(a, b, c) = ends.ports { Some((a, b, c)) } else { None },
            gre: if let Ports::Keys(a, b) = ends.ports { Some((a, b)) } else { None },
        }
    }

    /// A `fragtrack.verdicts.Connection`.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let icmp = self.icmp;
        let fields: [Bound<'py, PyAny>; 26] = [
            self.id.into_pyobject(py)?.into_any(),
            self.times.0.into_pyobject(py)?.into_any(),
            self.times.1.into_pyobject(py)?.into_any(),
            self.version.into_pyobject(py)?.into_any(),
            self.protocol.into_pyobject(py)?.into_any(),
            text(self.source).into_pyobject(py)?.into_any(),
            self.ports.map(|ports| ports.0).into_pyobject(py)?.into_any(),
            text(self.destination).into_pyobject(py)?.into_any(),
            self.ports.map(|ports| ports.1).into_pyobject(py)?.into_any(),
            self.vlan.as_deref().into_pyobject(py)?.into_any(),
            self.state.into_pyobject(py)?.into_any(),
            self.assured.into_pyobject(py)?.to_owned().into_any(),
            self.answered.into_pyobject(py)?.to_owned().into_any(),
            self.original.0.into_pyobject(py)?.into_any(),
            self.original.1.into_pyobject(py)?.into_any(),
            self.reply.0.into_pyobject(py)?.into_any(),
            self.reply.1.into_pyobject(py)?.into_any(),
            self.fragments.into_pyobject(py)?.into_any(),
            self.invalid.into_pyobject(py)?.into_any(),
            self.end.into_pyobject(py)?.into_any(),
            self.timeout.into_pyobject(py)?.into_any(),
            self.zone.into_pyobject(py)?.into_any(),
            icmp.map(|icmp| icmp.0).into_pyobject(py)?.into_any(),
            icmp.map(|icmp| icmp.1).into_pyobject(py)?.into_any(),
            icmp.map(|icmp| icmp.2).into_pyobject(py)?.into_any(),
            self.gre.into_pyobject(py)?.into_any(),
        ];
        CLASS.import(py, "fragtrack.verdicts", "Connection")?.call1(PyTuple::new(py, fields)?)
    }
}

/// VLAN identifiers, outermost first, joined by dots.
pub(crate) fn vlan(domain: u64) -> Option<String> {
    let tags = domain >> 48 & 7;
    (tags > 0).then(|| {
        let ids: Vec<String> = (0..tags).map(|i| (domain >> (12 * i) & 0xfff).to_string()).collect();
        ids.join(".")
    })
}

/// A `fragtrack.verdicts.Event`.
pub(crate) fn event<'py>(py: Python<'py>, event: &Event, zones: ZonesOf) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let frame = (event.frame != 0).then_some(event.frame);
    let connection = Cells::of(&event.row, zones).object(py)?;
    let class = CLASS.import(py, "fragtrack.verdicts", "Event")?;
    class.call1((event_name(event.kind), event.time, frame, connection))
}

/// The name of an event by its bit.
pub(crate) const fn event_name(kind: u8) -> &'static str {
    match kind {
        Events::NEW => "new",
        Events::UPDATE => "update",
        _ => "destroy",
    }
}

/// A `fragtrack.zeek.ZeekRow`.
pub(crate) fn zeek_row<'py>(py: Python<'py>, row: &zeek::Row) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let address = |number: u128| text(if row.version == 4 { Address::V4(number as u32) } else { Address::V6(number) });
    let history = row.history.as_str();
    let fields: [Bound<'py, PyAny>; 18] = [
        row.ts.into_pyobject(py)?.into_any(),
        row.uid.as_str().into_pyobject(py)?.into_any(),
        address(row.orig_h).into_pyobject(py)?.into_any(),
        row.orig_p.into_pyobject(py)?.into_any(),
        address(row.resp_h).into_pyobject(py)?.into_any(),
        row.resp_p.into_pyobject(py)?.into_any(),
        row.proto().into_pyobject(py)?.into_any(),
        row.duration.into_pyobject(py)?.into_any(),
        row.orig_bytes.into_pyobject(py)?.into_any(),
        row.resp_bytes.into_pyobject(py)?.into_any(),
        row.conn_state.name().into_pyobject(py)?.into_any(),
        row.missed_bytes.into_pyobject(py)?.into_any(),
        (!history.is_empty()).then_some(history).into_pyobject(py)?.into_any(),
        row.orig_pkts.into_pyobject(py)?.into_any(),
        row.orig_ip_bytes.into_pyobject(py)?.into_any(),
        row.resp_pkts.into_pyobject(py)?.into_any(),
        row.resp_ip_bytes.into_pyobject(py)?.into_any(),
        row.ip_proto.into_pyobject(py)?.into_any(),
    ];
    CLASS.import(py, "fragtrack.zeek", "ZeekRow")?.call1(PyTuple::new(py, fields)?)
}
