//! What comes out, as Python objects. Rare things are made with the classes of `fragtrack.events`; the outcome of
//! a push, of which there is one per packet, is native and makes its parts when they are asked for.

use std::net::{Ipv4Addr, Ipv6Addr};

use fragtrack_core::event::{Address, Datagram, GivenUp, Key};
use fragtrack_core::icmp::IcmpError;
use fragtrack_core::reason::Reason;
use fragtrack_core::wire::{Family, be16};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};

/// A class of `fragtrack.events`.
fn class<'py>(py: Python<'py>, cell: &'static PyOnceLock<Py<PyType>>, name: &str) -> PyResult<&'py Bound<'py, PyType>> {
    cell.import(py, "fragtrack.events", name)
}

/// A dictionary of counts, in the order given.
pub(crate) fn counts<'py>(
    py: Python<'py>,
    items: impl IntoIterator<Item = (&'static str, u64)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, count) in items {
        dict.set_item(name, count)?;
    }
    Ok(dict)
}

/// A dictionary of those counts that are not 0.
pub(crate) fn positive<'py>(
    py: Python<'py>,
    items: impl IntoIterator<Item = (&'static str, u64)>,
) -> PyResult<Bound<'py, PyDict>> {
    counts(py, items.into_iter().filter(|(_, count)| *count > 0))
}

/// An address as text (RFC 5952).
pub(crate) fn text(address: Address) -> String {
    match address {
        Address::V4(number) => Ipv4Addr::from_bits(number).to_string(),
        Address::V6(number) => Ipv6Addr::from_bits(number).to_string(),
    }
}

pub(crate) fn version(key: &Key) -> u8 {
    if matches!(key.source, Address::V4(_)) { 4 } else { 6 }
}

/// The fields that say which datagram: the first ones of both classes.
fn identity<'py>(py: Python<'py>, key: &Key) -> PyResult<[Bound<'py, PyAny>; 6]> {
    Ok([
        version(key).into_pyobject(py)?.into_any(),
        text(key.source).into_pyobject(py)?.into_any(),
        text(key.destination).into_pyobject(py)?.into_any(),
        key.protocol.into_pyobject(py)?.into_any(),
        key.id.into_pyobject(py)?.into_any(),
        key.domain.into_pyobject(py)?.into_any(),
    ])
}

/// A datagram that was given up, taken out of the engine's borrow.
pub(crate) struct Lost {
    pub(crate) key: Key,
    pub(crate) reason: Reason,
    pub(crate) frames: Vec<(u64, u32)>,
    pub(crate) times: (i64, i64),
    pub(crate) length: u32,
    pub(crate) icmp: Option<IcmpError>,
}

impl Lost {
    pub(crate) fn of(given_up: &GivenUp<'_>) -> Self {
        Self {
            key: given_up.key(),
            reason: given_up.reason(),
            frames: given_up.frames(),
            times: given_up.times(),
            length: given_up.length(),
            icmp: given_up.icmp(),
        }
    }

    pub(crate) fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let icmp = self.icmp.as_ref().map(|icmp| error(py, icmp)).transpose()?;
        let [version, source, destination, protocol, id, domain] = identity(py, &self.key)?;
        let fields = [
            version,
            source,
            destination,
            protocol,
            id,
            domain,
            self.reason.name().into_pyobject(py)?.into_any(),
            self.frames.len().into_pyobject(py)?.into_any(),
            PyTuple::new(py, self.frames.iter().map(|(number, _)| *number))?.into_any(),
            self.times.0.into_pyobject(py)?.into_any(),
            self.times.1.into_pyobject(py)?.into_any(),
            self.length.into_pyobject(py)?.into_any(),
            icmp.into_pyobject(py)?.into_any(),
            PyTuple::new(py, self.frames.iter().map(|(_, offset)| *offset))?.into_any(),
        ];
        class(py, &CLASS, "GivenUp")?.call1(PyTuple::new(py, fields)?)
    }
}

/// An error to be sent: from the quoted packet's destination to its source.
pub(crate) fn error<'py>(py: Python<'py>, icmp: &IcmpError) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let word = |at: usize| be16(&icmp.quote, at).map_or(0, u128::from);
    let address = |at: usize| match icmp.family {
        Family::V4 => Address::V4((word(at) << 16 | word(at + 2)) as u32),
        Family::V6 => Address::V6((0..8).fold(0, |sum, i| sum << 16 | word(at + 2 * i))),
    };
    let (version, source, destination) = match icmp.family {
        Family::V4 => (4, address(12), address(16)),
        Family::V6 => (6, address(8), address(24)),
    };
    class(py, &CLASS, "IcmpError")?.call1((
        version,
        icmp.kind,
        icmp.code,
        icmp.rest,
        text(destination),
        text(source),
        PyBytes::new(py, &icmp.quote),
    ))
}

/// A complete datagram, taken out of the engine's borrow.
pub(crate) struct Whole {
    pub(crate) key: Key,
    pub(crate) frames: Vec<u64>,
    pub(crate) times: (i64, i64),
    pub(crate) payload: usize,
}

impl Whole {
    pub(crate) fn of(datagram: &Datagram<'_>) -> Self {
        Self {
            key: datagram.key(),
            frames: datagram.distinct_frames(),
            times: datagram.times(),
            payload: datagram.payload_len(),
        }
    }

    pub(crate) fn object<'py>(&self, py: Python<'py>, packet: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let bytes = packet.as_bytes();
        let payload = bytes.get(bytes.len().saturating_sub(self.payload)..).unwrap_or(&[]);
        let [version, source, destination, protocol, id, domain] = identity(py, &self.key)?;
        let fields = [
            version,
            source,
            destination,
            protocol,
            id,
            domain,
            PyTuple::new(py, &self.frames)?.into_any(),
            self.frames.len().into_pyobject(py)?.into_any(),
            self.times.0.into_pyobject(py)?.into_any(),
            self.times.1.into_pyobject(py)?.into_any(),
            self.payload.into_pyobject(py)?.into_any(),
            PyBytes::new(py, payload).into_any(),
            packet.clone().into_any(),
        ];
        class(py, &CLASS, "Datagram")?.call1(PyTuple::new(py, fields)?)
    }
}

/// Kinds of outcome; the number is the code in columns.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Whole = 0,
    Held = 1,
    Complete = 2,
    Dropped = 3,
}

/// What became of one packet; the attributes are those of `fragtrack.events.Outcome`.
#[pyclass(frozen, module = "fragtrack._core")]
pub(crate) struct Outcome {
    pub(crate) kind: Kind,
    pub(crate) reason: Option<Reason>,
    pub(crate) packet: Option<Py<PyBytes>>,
    pub(crate) icmp: Option<Py<PyAny>>,
    pub(crate) given_up: Option<Py<PyTuple>>,
    pub(crate) whole: Option<Whole>,
}

#[pymethods]
impl Outcome {
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        match self.kind {
            Kind::Whole => intern!(py, "whole"),
            Kind::Held => intern!(py, "held"),
            Kind::Complete => intern!(py, "complete"),
            Kind::Dropped => intern!(py, "dropped"),
        }
        .clone()
    }

    #[getter]
    fn reason(&self) -> Option<&'static str> {
        self.reason.map(Reason::name)
    }

    #[getter]
    fn packet(&self, py: Python<'_>) -> Option<Py<PyBytes>> {
        self.packet.as_ref().map(|packet| packet.clone_ref(py))
    }

    #[getter]
    fn icmp(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.icmp.as_ref().map(|icmp| icmp.clone_ref(py))
    }

    #[getter]
    fn given_up<'py>(&self, py: Python<'py>) -> Bound<'py, PyTuple> {
        self.given_up.as_ref().map_or_else(|| PyTuple::empty(py), |tuple| tuple.bind(py).clone())
    }

    #[getter]
    fn datagram<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match (&self.whole, &self.packet) {
            (Some(whole), Some(packet)) => whole.object(py, packet.bind(py)).map(Some),
            _ => Ok(None),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let reason = self.reason.map_or("", Reason::name);
        let bytes = self.packet.as_ref().map_or(0, |packet| packet.bind(py).as_bytes().len());
        match self.kind {
            Kind::Held => "Outcome(kind='held')".to_owned(),
            Kind::Dropped => format!("Outcome(kind='dropped', reason='{reason}')"),
            Kind::Whole => format!("Outcome(kind='whole', packet=<{bytes} bytes>)"),
            Kind::Complete => format!("Outcome(kind='complete', packet=<{bytes} bytes>)"),
        }
    }
}
