//! `Tracker`: packets pushed one by one, verdicts out.

use fragtrack_core::config::{Checksum as HeaderChecksum, Config};
use fragtrack_core::engine::Batch;
use fragtrack_core::event::{Atomic, Datagram, GivenUp, Sink};
use fragtrack_core::reason::Reason as Lost;
use fragtrack_core::track::flow::bit;
use fragtrack_core::track::packet::TCP;
use fragtrack_core::track::row::state_name;
use fragtrack_core::track::stats::Totals;
use fragtrack_core::track::tracker::Record;
use fragtrack_core::track::verdict::{Class, Direction, Events, Why};
use fragtrack_core::track::{self, Packet, Reason, Tracker as Core};
use fragtrack_core::{Engine, Frame, LinkType, wire};
use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::buffer::Bytes;
use crate::connection::{ZonesOf, event, event_name};
use crate::domain::Domain;
use crate::outcome::{counts, positive};
use crate::tables::Connections;
use crate::{config, track_config};

const SECOND: i64 = 1_000_000_000;

/// What tracking makes of one packet. See `fragtrack.verdicts.Verdict`.
#[pyclass(module = "fragtrack._core", frozen)]
pub(crate) struct Verdict {
    class: Class,
    direction: Option<Direction>,
    connection: u64,
    state: Option<&'static str>,
    left: Option<i64>,
    bits: u8,
    why: Option<Why>,
    lost: Option<Lost>,
    events: Events,
}

#[pymethods]
impl Verdict {
    #[getter]
    fn ct_class(&self) -> &'static str {
        self.class.name()
    }

    #[getter]
    fn direction(&self) -> Option<&'static str> {
        self.direction.map(Direction::name)
    }

    #[getter]
    fn connection(&self) -> Option<u64> {
        (self.connection != 0).then_some(self.connection)
    }

    #[getter]
    fn state(&self) -> Option<&'static str> {
        self.state
    }

    #[getter]
    fn timeout(&self) -> Option<i64> {
        self.left.map(|left| left.max(0) / SECOND)
    }

    #[getter]
    fn assured(&self) -> bool {
        self.bits & bit::ASSURED != 0
    }

    #[getter]
    fn seen_reply(&self) -> bool {
        self.bits & bit::SEEN_REPLY != 0
    }

    #[getter]
    fn reason(&self) -> Option<&'static str> {
        self.why.map(|why| why.reason.name()).or_else(|| self.lost.map(Lost::name))
    }

    #[getter]
    fn got(&self) -> Option<u32> {
        self.why.and_then(|why| why.got)
    }

    #[getter]
    fn bound(&self) -> Option<u32> {
        self.why.and_then(|why| why.bound)
    }

    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let order = [Events::DESTROY, Events::NEW, Events::UPDATE];
        let names: Vec<&str> = order.into_iter().filter(|kind| self.events.has(*kind)).map(event_name).collect();
        PyTuple::new(py, names)
    }

    /// What was compared, in one line; None where there is nothing to say.
    #[getter]
    fn detail<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(why) = self.why else { return Ok(None) };
        let explain = py.import("fragtrack.verdicts")?.getattr("explain")?;
        explain.call1((why.reason.name(), why.got, why.bound)).map(Some)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = format!("<Verdict {}", self.class.name());
        for word in [self.direction(), self.state, self.reason()].into_iter().flatten() {
            text.push(' ');
            text.push_str(word);
        }
        if let Some(detail) = self.detail(py)? {
            text.push_str(": ");
            text.push_str(&detail.extract::<String>()?);
        }
        text.push('>');
        Ok(text)
    }
}

/// Takes what reassembly makes of one packet.
#[derive(Default)]
struct One {
    stopped: Option<(Class, Option<Lost>)>,
    whole: bool,
}

struct Taken<'a> {
    one: &'a mut One,
    scratch: &'a mut Vec<u8>,
}

impl Sink for Taken<'_> {
    fn pass(&mut self, _at: usize) {}

    fn held(&mut self, _at: usize) {
        self.one.stopped = Some((Class::Held, None));
    }

    fn dropped(&mut self, _at: usize, reason: Lost) {
        self.one.stopped = Some((Class::Dropped, Some(reason)));
    }

    fn atomic(&mut self, _at: usize, atomic: &Atomic<'_>) {
        self.scratch.clear();
        self.scratch.extend_from_slice(atomic.packet());
        self.one.whole = true;
    }

    fn complete(&mut self, _at: usize, datagram: &Datagram<'_>) {
        self.scratch.clear();
        datagram.write_packet(self.scratch);
        self.one.whole = true;
    }

    fn given_up(&mut self, _given_up: &GivenUp<'_>) {}
}

/// Follows connections, packet by packet. See `fragtrack.Tracker`.
#[pyclass(module = "fragtrack._core")]
pub(crate) struct Tracker {
    core: Core,
    engine: Engine,
    scratch: Vec<u8>,
    pushed: u64,
}

/// Reads both settings.
pub(crate) fn settings(
    tracking: &Bound<'_, PyAny>,
    reassembly: &Bound<'_, PyAny>,
) -> PyResult<(track::Config, Config)> {
    Ok((track_config::read(tracking)?, config::read(reassembly)?))
}

#[pymethods]
impl Tracker {
    #[new]
    #[pyo3(signature = (config, reassembly, *, events = true, ended = true))]
    fn new(config: &Bound<'_, PyAny>, reassembly: &Bound<'_, PyAny>, events: bool, ended: bool) -> PyResult<Self> {
        let (tracking, reassembly) = settings(config, reassembly)?;
        let header_checksum = reassembly.checksum == HeaderChecksum::Verify;
        let record = Record { rows: ended, events };
        Ok(Self {
            core: Core::new(tracking, header_checksum, record),
            engine: Engine::new(reassembly, false),
            scratch: Vec::new(),
            pushed: 0,
        })
    }

    /// Takes one packet, from its IP header on.
    #[pyo3(signature = (packet, time_ns, zone = Domain(0)))]
    fn push(&mut self, packet: &Bound<'_, PyAny>, time_ns: i64, zone: Domain) -> PyResult<Verdict> {
        if let Ok(bytes) = packet.cast::<PyBytes>() {
            return Ok(self.take(bytes.as_bytes(), time_ns, zone.0));
        }
        let copy = Bytes::of(packet)?.copy(packet.py())?;
        Ok(self.take(&copy, time_ns, zone.0))
    }

    /// Lets time pass; what runs out ends.
    fn advance(&mut self, time_ns: i64) {
        let mut one = One::default();
        self.engine.advance(&[], time_ns, &mut Taken { one: &mut one, scratch: &mut self.scratch });
        self.core.advance(time_ns);
    }

    /// Ends the input: open fragments are given up, connections stay.
    fn flush(&mut self) {
        let mut one = One::default();
        self.engine.flush(&[], &mut Taken { one: &mut one, scratch: &mut self.scratch });
    }

    /// Gives what was announced since the last call.
    fn take_events<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let events = self.core.take_events();
        let events: Vec<_> = events.iter().map(|it| event(py, it, ZonesOf::Caller)).collect::<PyResult<_>>()?;
        PyList::new(py, events)
    }

    /// Gives the connections that ended since the last call.
    fn take_ended(&mut self) -> Connections {
        Connections::new(self.core.take_ended(), ZonesOf::Caller)
    }

    /// Gives the connections in the table.
    fn connections(&self) -> Connections {
        Connections::new(self.core.rows(), ZonesOf::Caller)
    }

    /// Gives at most so many of the connections in the table, and where to go on, or None.
    fn page(&self, cursor: u32, limit: usize) -> (Connections, Option<u32>) {
        let (rows, next) = self.core.page(cursor, limit.max(1));
        (Connections::new(rows, ZonesOf::Caller), next)
    }

    /// Tells the window state of a TCP connection, or None.
    fn inspect<'py>(&self, py: Python<'py>, connection: u64) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(flow) = self.core.slot(connection).and_then(|slot| self.core.flow(slot)) else { return Ok(None) };
        if flow.protocol != TCP {
            return Ok(None);
        }
        let side = |direction| {
            let (side, flags) = (flow.sides(direction).0, flow.flags(direction).0);
            let scale = u32::from(flow.scale(direction));
            [side.end, side.maxend, side.maxwin, side.maxack, scale, u32::from(flags)]
        };
        let dict = PyDict::new(py);
        dict.set_item("win", [side(Direction::Original), side(Direction::Reply)].map(Vec::from).to_vec())?;
        dict.set_item("retrans", flow.retrans)?;
        let (kind, direction) = flow.last();
        dict.set_item("last", vec![kind as u32, direction as u32])?;
        Ok(Some(dict))
    }

    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counters(py, self.core.totals(), self.core.len())
    }

    #[getter]
    fn reasons<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        reasons(py, self.core.totals())
    }

    #[getter]
    fn fragments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = self.engine.totals();
        let [v4, v6] = totals.fragments;
        counts(py, [("seen", v4 + v6), ("complete", totals.complete), ("incomplete", totals.incomplete)])
    }

    #[getter]
    fn orphans<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = self.engine.totals();
        positive(py, Lost::ALL.map(|reason| (reason.name(), totals.lost(reason))))
    }

    /// Bytes that the table of connections has.
    #[getter]
    fn memory(&self) -> usize {
        self.core.memory()
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    /// Asserts all invariants from scratch.
    fn check(&self) -> PyResult<()> {
        self.core.check().and_then(|()| self.engine.check()).map_err(PyAssertionError::new_err)
    }
}

impl Tracker {
    fn take(&mut self, bytes: &[u8], time: i64, zone: u64) -> Verdict {
        self.pushed += 1;
        let mut one = One::default();
        let mut sink = Taken { one: &mut one, scratch: &mut self.scratch };
        if wire::is_fragment(bytes) {
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let frame = Frame { start: 0, time, record: length, captured: length, head: 0, link: LinkType(101) };
            let frames = std::slice::from_ref(&frame);
            let batch = Batch { segment: bytes, frames, first: self.pushed, origin: 0, transient: true };
            self.engine.push(batch, zone, &mut sink);
            self.engine.settle(bytes);
        } else {
            self.engine.advance(&[], time, &mut sink);
        }
        if let Some((class, lost)) = one.stopped {
            self.core.see_fragment(class, time);
            let events = Events::default();
            return Verdict {
                class,
                direction: None,
                connection: 0,
                state: None,
                left: None,
                bits: 0,
                why: None,
                lost,
                events,
            };
        }
        let bytes = if one.whole { &self.scratch } else { bytes };
        let mut packet = Packet::lost(Why::bare(Reason::Header));
        self.core.stage(bytes, zone, &mut packet);
        packet.fragmented = one.whole;
        let verdict = self.core.follow(&packet, bytes, time, self.pushed);
        let flow = verdict.slot.and_then(|slot| self.core.flow(slot));
        Verdict {
            class: verdict.class,
            direction: verdict.direction,
            connection: verdict.connection,
            state: flow.and_then(state_name),
            left: flow.map(|flow| flow.deadline - self.core.now()),
            bits: flow.map_or(0, |flow| flow.bits),
            why: verdict.why,
            lost: None,
            events: verdict.events,
        }
    }
}

/// The kernel's counters, and the packets seen.
pub(crate) fn counters<'py>(py: Python<'py>, totals: &Totals, entries: usize) -> PyResult<Bound<'py, PyDict>> {
    let c = &totals.counters;
    counts(
        py,
        [
            ("entries", entries as u64),
            ("packets", totals.packets),
            ("found", c.found),
            ("new", c.new),
            ("invalid", c.invalid),
            ("ignore", c.ignore),
            ("delete", c.delete),
            ("insert", c.insert),
            ("insert_failed", c.insert_failed),
            ("drop", c.drop),
            ("early_drop", c.early_drop),
            ("icmp_error", c.icmp_error),
        ],
    )
}

/// Packets by reason.
pub(crate) fn reasons<'py>(py: Python<'py>, totals: &Totals) -> PyResult<Bound<'py, PyDict>> {
    positive(py, Reason::ALL.map(|reason| (reason.name(), totals.reason(reason))))
}
