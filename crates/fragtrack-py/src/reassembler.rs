//! `Reassembler`: packets pushed one by one, or in batches.

use fragtrack_core::engine::Batch as Frames;
use fragtrack_core::event::{Atomic, Datagram, GivenUp, Sink};
use fragtrack_core::icmp::IcmpError;
use fragtrack_core::reason::Reason;
use fragtrack_core::wire::{Family, ipv4, ipv6};
use fragtrack_core::{Engine, Frame, LinkType};
use pyo3::exceptions::{PyAssertionError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::batch::{Batch, Columns};
use crate::buffer::Bytes;
use crate::config;
use crate::domain::Domain;
use crate::outcome::{Kind, Lost, Outcome, Whole, counts, error, positive};

/// Takes the events of one packet.
struct One {
    kind: Kind,
    reason: Option<Reason>,
    packet: Vec<u8>,
    whole: Option<Whole>,
    problem: Option<IcmpError>,
    lost: Vec<Lost>,
    now: i64,
}

impl Sink for One {
    fn pass(&mut self, _at: usize) {
        self.kind = Kind::Whole;
    }

    fn held(&mut self, _at: usize) {
        self.kind = Kind::Held;
    }

    fn dropped(&mut self, _at: usize, reason: Reason) {
        (self.kind, self.reason) = (Kind::Dropped, Some(reason));
    }

    fn problem(&mut self, _at: usize, code: u8, pointer: u32, packet: &[u8]) {
        self.problem = IcmpError::parameter_problem(code, pointer, packet);
    }

    fn atomic(&mut self, _at: usize, atomic: &Atomic<'_>) {
        self.kind = Kind::Complete;
        self.packet.extend_from_slice(atomic.packet());
        let payload = atomic.payload().len();
        self.whole = Some(Whole { key: atomic.key(), frames: Vec::new(), times: (self.now, self.now), payload });
    }

    fn complete(&mut self, _at: usize, datagram: &Datagram<'_>) {
        self.kind = Kind::Complete;
        self.packet.reserve(datagram.packet_len());
        datagram.write_packet(&mut self.packet);
        self.whole = Some(Whole::of(datagram));
    }

    fn given_up(&mut self, given_up: &GivenUp<'_>) {
        self.lost.push(Lost::of(given_up));
    }
}

impl One {
    const fn new(now: i64) -> Self {
        Self { kind: Kind::Whole, reason: None, packet: Vec::new(), whole: None, problem: None, lost: Vec::new(), now }
    }
}

fn objects<'py>(py: Python<'py>, lost: &[Lost]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    lost.iter().map(|lost| lost.object(py)).collect()
}

/// Puts fragments back together, packet by packet. See `fragtrack.Reassembler`.
#[pyclass(module = "fragtrack._core")]
pub(crate) struct Reassembler {
    engine: Engine,
    pushed: u64,
}

#[pymethods]
impl Reassembler {
    #[new]
    fn new(config: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self { engine: Engine::new(config::read(config)?, true), pushed: 0 })
    }

    /// Takes one packet, from its IP header on.
    #[pyo3(signature = (packet, time_ns, domain = Domain(0)))]
    fn push<'py>(&mut self, packet: &Bound<'py, PyAny>, time_ns: i64, domain: Domain) -> PyResult<Bound<'py, Outcome>> {
        let py = packet.py();
        if let Ok(bytes) = packet.cast::<PyBytes>() {
            return self.push_bytes(py, bytes.as_bytes(), Some(bytes), time_ns, domain);
        }
        let buffer = Bytes::of(packet)?;
        if buffer.is_read_only() {
            return self.push_bytes(py, buffer.as_slice(), None, time_ns, domain);
        }
        let copy = buffer.copy(py)?;
        self.push_bytes(py, &copy, None, time_ns, domain)
    }

    /// Takes many packets of one buffer; see `fragtrack.Reassembler.push_batch`.
    #[pyo3(signature = (buffer, offsets, lengths, times_ns, *, domain = Domain(0)))]
    fn push_batch(
        &mut self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        offsets: &Bound<'_, PyAny>,
        lengths: &Bound<'_, PyAny>,
        times_ns: &Bound<'_, PyAny>,
        domain: Domain,
    ) -> PyResult<Batch> {
        let bytes = Bytes::of(buffer)?;
        let columns = Columns::read(py, offsets, lengths, times_ns, bytes.as_slice().len())?;
        let first = self.pushed + 1;
        self.pushed += columns.len() as u64;
        let engine = &mut self.engine;
        let taken = py.detach(|| columns.run(engine, bytes.as_slice(), first, domain.0));
        Ok(Batch::new(bytes, taken))
    }

    /// Time passes: what ends.
    fn advance<'py>(&mut self, py: Python<'py>, time_ns: i64) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut sink = One::new(time_ns);
        self.engine.advance(&[], time_ns, &mut sink);
        objects(py, &sink.lost)
    }

    /// Everything open is given up.
    fn flush<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut sink = One::new(0);
        self.engine.flush(&[], &mut sink);
        objects(py, &sink.lost)
    }

    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (v4, v6) = (self.engine.counters(Family::V4).named(), self.engine.counters(Family::V6).named());
        counts(py, v4.into_iter().zip(v6).map(|((name, a), (_, b))| (name, a + b)))
    }

    #[getter]
    fn counters4<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counts(py, self.engine.counters(Family::V4).named())
    }

    #[getter]
    fn counters6<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counts(py, self.engine.counters(Family::V6).named())
    }

    #[getter]
    fn reasons<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        positive(py, Reason::ALL.map(|reason| (reason.name(), self.engine.totals().lost(reason))))
    }

    #[getter]
    fn queues(&self) -> usize {
        self.engine.queues()
    }

    #[getter]
    fn memory(&self) -> u64 {
        self.engine.memory()
    }

    /// Asserts all invariants from scratch.
    fn check(&self) -> PyResult<()> {
        self.engine.check().map_err(PyAssertionError::new_err)
    }
}

impl Reassembler {
    fn push_bytes<'py>(
        &mut self,
        py: Python<'py>,
        bytes: &[u8],
        object: Option<&Bound<'py, PyBytes>>,
        time: i64,
        domain: Domain,
    ) -> PyResult<Bound<'py, Outcome>> {
        let length = u32::try_from(bytes.len()).map_err(|_| PyTypeError::new_err("a packet of 4 GiB"))?;
        self.pushed += 1;
        let frame = Frame { start: 0, time, record: length, captured: length, head: 0, link: LinkType(101) };
        let batch = Frames { segment: bytes, frames: &[frame], first: self.pushed, origin: 0, transient: true };
        let mut one = One::new(time);
        self.engine.push(batch, domain.0, &mut one);
        self.engine.settle(bytes);
        if one.kind == Kind::Held && one.lost.is_empty() {
            static HELD: PyOnceLock<Py<Outcome>> = PyOnceLock::new();
            let held = HELD.get_or_try_init(py, || {
                Py::new(
                    py,
                    Outcome { kind: Kind::Held, reason: None, packet: None, icmp: None, given_up: None, whole: None },
                )
            })?;
            return Ok(held.bind(py).clone());
        }
        if let Some(whole) = &mut one.whole
            && whole.frames.is_empty()
        {
            whole.frames.push(self.pushed);
        }
        let packet = match one.kind {
            Kind::Whole => Some(trimmed(py, bytes, object).unbind()),
            Kind::Complete => Some(PyBytes::new(py, &one.packet).unbind()),
            Kind::Held | Kind::Dropped => None,
        };
        let icmp = one.problem.as_ref().map(|problem| error(py, problem).map(Bound::unbind)).transpose()?;
        let given_up =
            if one.lost.is_empty() { None } else { Some(PyTuple::new(py, objects(py, &one.lost)?)?.unbind()) };
        Bound::new(py, Outcome { kind: one.kind, reason: one.reason, packet, icmp, given_up, whole: one.whole })
    }
}

/// The packet without what lies behind its IP length.
fn cut(bytes: &[u8]) -> &[u8] {
    let length = match bytes.first().map(|byte| byte >> 4) {
        Some(4) => ipv4::total_length(bytes),
        Some(6) => ipv6::packet(bytes).len(),
        _ => bytes.len(),
    };
    bytes.get(..length).unwrap_or(bytes)
}

fn trimmed<'py>(py: Python<'py>, bytes: &[u8], object: Option<&Bound<'py, PyBytes>>) -> Bound<'py, PyBytes> {
    let packet = cut(bytes);
    match object {
        Some(object) if packet.len() == bytes.len() => object.clone(),
        _ => PyBytes::new(py, packet),
    }
}
