//! `Follower`: captures in, connections and verdicts out.

use fragtrack_capture::follow::{self, Tables, Zones};
use fragtrack_capture::{Buffer, Tail};
use fragtrack_core::reason::Reason;
use fragtrack_core::track::Class;
use pyo3::exceptions::{PyAssertionError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::buffer::Bytes;
use crate::connection::{ZonesOf, event, zeek_row};
use crate::feeding::{Feeding, Piece};
use crate::outcome::{counts, positive};
use crate::tables::{Connections, Verdicts};
use crate::tracker::{counters, reasons, settings};

/// Follows the connections of captures. See `fragtrack.reference.follower.Follower`.
#[pyclass(module = "fragtrack._core")]
pub(crate) struct Follower {
    inner: follow::Follower,
    feeding: Feeding,
}

#[pymethods]
impl Follower {
    #[new]
    #[pyo3(signature = (config, reassembly, *, verdicts, events, zeek = false))]
    fn new(
        config: &Bound<'_, PyAny>,
        reassembly: &Bound<'_, PyAny>,
        verdicts: bool,
        events: bool,
        zeek: bool,
    ) -> PyResult<Self> {
        let (tracking, reassembly) = settings(config, reassembly)?;
        let zones = match config.getattr("zones")?.extract::<String>()?.as_str() {
            "vlan" => Zones::Vlan,
            "none" => Zones::None,
            other => return Err(PyValueError::new_err(format!("zones: unknown value {other:?}"))),
        };
        let inner = follow::Follower::new(tracking, reassembly, zones, Tables { verdicts, events, zeek });
        Ok(Self { inner, feeding: Feeding::default() })
    }

    /// Begins an input; its frames are numbered from 1.
    fn begin(&mut self, name: String) {
        self.end();
        self.inner.begin(&name);
        self.feeding.begin(name);
    }

    /// Processes the whole records in `buffer[start:stop]`; returns where to go on. Nobody may write to the buffer
    /// meanwhile, nor, if it is stable, before the input has ended.
    #[pyo3(signature = (buffer, start, stop, *, r#final, stable, base = 0, budget = 1 << 20))]
    #[allow(clippy::too_many_arguments)]
    fn feed(
        &mut self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        start: usize,
        stop: usize,
        r#final: bool,
        stable: bool,
        base: u64,
        budget: usize,
    ) -> PyResult<usize> {
        // The reader counts the bytes of the input itself.
        let _ = base;
        let kind = if stable { Buffer::Stays } else { Buffer::Goes };
        let piece = Piece { buffer, start, stop, tail: Tail::from(r#final), kind };
        let inner = &mut self.inner;
        self.feeding.feed(py, &piece, |input| inner.feed(input, kind, budget))
    }

    /// Ends the input; what it left open may go on in the next one.
    fn end(&mut self) {
        let stayed = self.feeding.end();
        self.inner.end(stayed.as_ref().map_or(&[], Bytes::as_slice));
    }

    /// Ends everything: open fragments are given up, connections in the table become rows.
    fn finish(&mut self) {
        self.inner.finish();
    }

    /// Gives the connections that ended since the last call; at the end those in the table, too.
    fn take_connections(&mut self) -> Connections {
        Connections::new(self.inner.take_connections(), ZonesOf::Tags)
    }

    /// Gives the verdicts since the last call.
    fn take_verdicts(&mut self) -> Verdicts {
        Verdicts::new(self.inner.take_verdicts())
    }

    /// Gives what was announced since the last call.
    fn take_events<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let events = self.inner.take_events();
        let events: Vec<_> = events.iter().map(|it| event(py, it, ZonesOf::Tags)).collect::<PyResult<_>>()?;
        PyList::new(py, events)
    }

    /// Gives the connections as Zeek sees them, that ended since the last call.
    fn take_zeek<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = self.inner.take_zeek();
        let rows: Vec<_> = rows.iter().map(|row| zeek_row(py, row)).collect::<PyResult<_>>()?;
        PyList::new(py, rows)
    }

    /// The first damage in the last input begun: its name, offset of the record, what is wrong.
    #[getter]
    fn damaged(&self) -> Option<(String, u64, String)> {
        self.inner.damaged().map(|it| (it.name.clone(), it.damage.offset, it.damage.why.to_string()))
    }

    /// Counts: of packets, bytes, fragments, datagrams, connections; packets by class and by reason.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (engine, tracker) = (self.inner.engine().totals(), self.inner.tracker());
        let (packets, ip) = self.inner.packets();
        let summary = PyDict::new(py);
        summary.set_item("packets", packets)?;
        summary.set_item("bytes", self.inner.bytes())?;
        summary.set_item("ip", ip)?;
        let [v4, v6] = engine.fragments;
        summary.set_item("fragments", counts(py, [("ipv4", v4), ("ipv6", v6)])?)?;
        let datagrams = [("complete", engine.complete), ("incomplete", engine.incomplete)];
        summary.set_item("datagrams", counts(py, datagrams)?)?;
        let orphans = Reason::ALL.map(|reason| (reason.name(), engine.lost(reason)));
        summary.set_item("orphans", positive(py, orphans)?)?;
        summary.set_item("connections", tracker.made())?;
        summary.set_item("open", tracker.len())?;
        let totals = tracker.totals();
        summary.set_item("ends", positive(py, self.inner.ends().map(|(end, count)| (end.name(), count)))?)?;
        let protocols = PyDict::new(py);
        for (number, count) in totals.protocols() {
            protocols.set_item(number, count)?;
        }
        summary.set_item("protocols", protocols)?;
        let classes = [
            Class::New,
            Class::Established,
            Class::Related,
            Class::Invalid,
            Class::Untracked,
            Class::Held,
            Class::Dropped,
        ];
        summary.set_item("classes", positive(py, classes.map(|class| (class.name(), totals.class(class))))?)?;
        summary.set_item("reasons", reasons(py, totals)?)?;
        summary.set_item("counters", counters(py, totals, tracker.len())?)?;
        Ok(summary)
    }

    /// Asserts all invariants from scratch.
    fn check(&self) -> PyResult<()> {
        let engine = self.inner.engine();
        self.inner.tracker().check().and_then(|()| engine.check()).map_err(PyAssertionError::new_err)
    }
}
