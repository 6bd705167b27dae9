//! `Rewriter`: captures in, the same captures with whole datagrams out.

use fragtrack_capture::rewrite::{Incomplete, Row, Rows};
use fragtrack_capture::{Buffer, Output, Tail, rewrite};
use fragtrack_core::reason::Reason;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};

use crate::buffer::Bytes;
use crate::config;
use crate::connection::vlan;
use crate::feeding::{Feeding, Piece};
use crate::outcome::{counts, positive, text, version};

/// Reassembles the fragments of captures, and writes them again. See `fragtrack.reference.rewriter.Rewriter`.
#[pyclass(module = "fragtrack._core")]
pub(crate) struct Rewriter {
    inner: rewrite::Rewriter,
    feeding: Feeding,
    policy: String,
}

#[pymethods]
impl Rewriter {
    #[new]
    #[pyo3(signature = (config, *, output, keep_incomplete, rows, payloads))]
    fn new(
        config: &Bound<'_, PyAny>,
        output: Option<&str>,
        keep_incomplete: bool,
        rows: bool,
        payloads: bool,
    ) -> PyResult<Self> {
        let output = match output {
            None => None,
            Some("pcap") => Some(Output::Pcap),
            Some("pcapng") => Some(Output::Pcapng),
            Some(other) => return Err(PyValueError::new_err(format!("output: unknown format {other:?}"))),
        };
        let incomplete = if keep_incomplete { Incomplete::Keep } else { Incomplete::Drop };
        let rows = match (rows, payloads) {
            (false, _) => Rows::None,
            (true, false) => Rows::Keys,
            (true, true) => Rows::Payloads,
        };
        Ok(Self {
            inner: rewrite::Rewriter::new(config::read(config)?, output, incomplete, rows),
            feeding: Feeding::default(),
            policy: config.getattr("policy")?.extract()?,
        })
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

    /// Gives the output since the last call.
    fn take<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = PyBytes::new(py, self.inner.output());
        self.inner.clear_output();
        bytes
    }

    /// Gives the datagrams that ended since the last call, in the order of their ending.
    fn take_rows<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let rows = self.inner.take_rows();
        rows.iter().map(|row| self.row(py, row)).collect()
    }

    /// Ends the input; what it left open may be completed by the next one.
    fn end(&mut self) {
        let stayed = self.feeding.end();
        self.inner.end(stayed.as_ref().map_or(&[], Bytes::as_slice));
    }

    /// Ends everything: what is open is given up, the output is completed.
    fn finish(&mut self) {
        self.inner.finish();
    }

    /// The first damage in the last input begun: its name, offset of the record, what is wrong.
    #[getter]
    fn damaged(&self) -> Option<(String, u64, String)> {
        self.inner.damaged().map(|it| (it.name.clone(), it.damage.offset, it.damage.why.to_string()))
    }

    /// Counts: of packets, bytes, fragments, datagrams, fragments by reason, datagrams by reason, anomalies.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = self.inner.totals();
        let summary = PyDict::new(py);
        summary.set_item("packets", self.inner.packets())?;
        summary.set_item("bytes", self.inner.bytes())?;
        let [v4, v6] = totals.fragments;
        summary.set_item("fragments", counts(py, [("ipv4", v4), ("ipv6", v6)])?)?;
        let datagrams = [("complete", totals.complete), ("incomplete", totals.incomplete)];
        summary.set_item("datagrams", counts(py, datagrams)?)?;
        summary.set_item("written", self.inner.written())?;
        let reasons = Reason::ALL.map(|reason| (reason.name(), totals.lost(reason)));
        summary.set_item("reasons", positive(py, reasons)?)?;
        let given_up = Reason::ALL.map(|reason| (reason.name(), totals.gave_up(reason)));
        summary.set_item("given_up", positive(py, given_up)?)?;
        let anomalies = [("bad_checksum", totals.bad_checksum)];
        summary.set_item("anomalies", positive(py, anomalies)?)?;
        Ok(summary)
    }

    /// Asserts all invariants from scratch.
    fn check(&self) -> PyResult<()> {
        self.inner.engine().check().map_err(pyo3::exceptions::PyAssertionError::new_err)
    }
}

impl Rewriter {
    fn row<'py>(&self, py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let key = &row.key;
        let payload = row.packet.as_ref().map(|packet| {
            let start = packet.len().saturating_sub(row.length as usize);
            PyBytes::new(py, packet.get(start..).unwrap_or(&[]))
        });
        let packet = row.packet.as_ref().map(|packet| PyBytes::new(py, packet));
        let fields: [Bound<'py, PyAny>; 16] = [
            row.times.0.into_pyobject(py)?.into_any(),
            row.times.1.into_pyobject(py)?.into_any(),
            version(key).into_pyobject(py)?.into_any(),
            text(key.source).into_pyobject(py)?.into_any(),
            text(key.destination).into_pyobject(py)?.into_any(),
            key.protocol.into_pyobject(py)?.into_any(),
            key.id.into_pyobject(py)?.into_any(),
            vlan(key.domain).into_pyobject(py)?.into_any(),
            py.None().into_bound(py),
            row.frames.len().into_pyobject(py)?.into_any(),
            PyTuple::new(py, &row.frames)?.into_any(),
            row.length.into_pyobject(py)?.into_any(),
            row.reason.map_or("complete", Reason::name).into_pyobject(py)?.into_any(),
            self.policy.as_str().into_pyobject(py)?.into_any(),
            payload.into_pyobject(py)?.into_any(),
            packet.into_pyobject(py)?.into_any(),
        ];
        CLASS.import(py, "fragtrack.events", "DatagramRow")?.call1(PyTuple::new(py, fields)?)
    }
}
