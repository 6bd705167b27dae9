//! Tables that leave as Arrow columns, by the capsule interface, or row by row.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch, RecordBatchIterator, StringArray,
    TimestampNanosecondArray,
};
use arrow_schema::ArrowError;
use arrow_schema::ffi::FFI_ArrowSchema;
use fragtrack_capture::follow;
use fragtrack_core::reason::Reason;
use fragtrack_core::track;
use fragtrack_core::track::row::{Row, name_of};
use fragtrack_core::track::verdict::Class;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};

use crate::connection::{Cells, ZonesOf};
use crate::outcome::text;

fn failed(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// One batch as a stream, in a capsule.
fn stream<'py>(py: Python<'py>, batch: RecordBatch) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    let stream = FFI_ArrowArrayStream::new(Box::new(reader));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

fn schema<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(batch.schema().as_ref()).map_err(|error| failed(&error))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

fn numbers<T: ArrowPrimitiveType>(values: impl Iterator<Item = T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(values))
}

fn optional<T: ArrowPrimitiveType>(values: impl Iterator<Item = Option<T::Native>>) -> ArrayRef {
    Arc::new(values.collect::<PrimitiveArray<T>>())
}

fn times(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(TimestampNanosecondArray::from_iter_values(values).with_timezone("UTC"))
}

fn flags(values: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(values.map(Some).collect::<BooleanArray>())
}

fn texts<S: AsRef<str>>(values: impl Iterator<Item = Option<S>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

/// Connections, one a row.
#[pyclass(module = "fragtrack._core", frozen)]
pub(crate) struct Connections {
    rows: Vec<Row>,
    zones: ZonesOf,
}

impl Connections {
    pub(crate) const fn new(rows: Vec<Row>, zones: ZonesOf) -> Self {
        Self { rows, zones }
    }

    fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let cells: Vec<Cells> = self.rows.iter().map(|row| Cells::of(row, self.zones)).collect();
        let all = || cells.iter();
        let address = |of: fn(&Cells) -> fragtrack_core::event::Address| -> ArrayRef {
            let mut column = StringBuilder::with_capacity(cells.len(), cells.len() * 16);
            cells.iter().for_each(|row| column.append_value(text(of(row))));
            Arc::new(column.finish())
        };
        RecordBatch::try_from_iter_with_nullable([
            ("id", numbers::<UInt64Type>(all().map(|row| row.id)), false),
            ("time_first", times(all().map(|row| row.times.0)), false),
            ("time_last", times(all().map(|row| row.times.1)), false),
            ("ip_version", numbers::<UInt8Type>(all().map(|row| row.version)), false),
            ("protocol", numbers::<UInt8Type>(all().map(|row| row.protocol)), false),
            ("src", address(|row| row.source), false),
            ("sport", optional::<UInt16Type>(all().map(|row| row.ports.map(|ports| ports.0))), true),
            ("dst", address(|row| row.destination), false),
            ("dport", optional::<UInt16Type>(all().map(|row| row.ports.map(|ports| ports.1))), true),
            ("vlan", texts(all().map(|row| row.vlan.as_deref())), true),
            ("state", texts(all().map(|row| row.state)), true),
            ("assured", flags(all().map(|row| row.assured)), false),
            ("reply_seen", flags(all().map(|row| row.answered)), false),
            ("packets_orig", numbers::<UInt64Type>(all().map(|row| row.original.0)), false),
            ("bytes_orig", numbers::<UInt64Type>(all().map(|row| row.original.1)), false),
            ("packets_reply", numbers::<UInt64Type>(all().map(|row| row.reply.0)), false),
            ("bytes_reply", numbers::<UInt64Type>(all().map(|row| row.reply.1)), false),
            ("fragments", numbers::<UInt32Type>(all().map(|row| row.fragments)), false),
            ("invalid", numbers::<UInt32Type>(all().map(|row| row.invalid)), false),
            ("end", texts(all().map(|row| Some(row.end))), false),
            ("timeout", optional::<UInt32Type>(all().map(|row| row.timeout.map(saturated))), true),
            ("zone", numbers::<UInt64Type>(all().map(|row| row.zone)), false),
            ("icmp_type", optional::<UInt8Type>(all().map(|row| row.icmp.map(|icmp| icmp.0))), true),
            ("icmp_code", optional::<UInt8Type>(all().map(|row| row.icmp.map(|icmp| icmp.1))), true),
            ("icmp_id", optional::<UInt16Type>(all().map(|row| row.icmp.map(|icmp| icmp.2))), true),
            ("gre_srckey", optional::<UInt16Type>(all().map(|row| row.gre.map(|gre| gre.0))), true),
            ("gre_dstkey", optional::<UInt16Type>(all().map(|row| row.gre.map(|gre| gre.1))), true),
        ])
    }
}

fn saturated(seconds: i64) -> u32 {
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

#[pymethods]
impl Connections {
    fn __len__(&self) -> usize {
        self.rows.len()
    }

    /// A list of `fragtrack.verdicts.Connection`.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows: Vec<_> =
            self.rows.iter().map(|row| Cells::of(row, self.zones).object(py)).collect::<PyResult<_>>()?;
        PyList::new(py, rows)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let empty = Self::new(Vec::new(), self.zones).batch();
        schema(py, &empty.map_err(|error| failed(&error))?)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer may wish for another schema; it has to take this one.
        let _ = requested_schema;
        let batch = py.detach(|| self.batch());
        stream(py, batch.map_err(|error| failed(&error))?)
    }
}

/// Verdicts, one a row.
#[pyclass(module = "fragtrack._core", frozen)]
pub(crate) struct Verdicts {
    inner: follow::Verdicts,
}

impl Verdicts {
    pub(crate) const fn new(inner: follow::Verdicts) -> Self {
        Self { inner }
    }

    fn connections(&self) -> impl Iterator<Item = Option<u64>> {
        self.inner.connection.iter().map(|id| (*id != 0).then_some(*id))
    }

    fn classes(&self) -> impl Iterator<Item = &'static str> {
        self.inner.class.iter().map(|code| Class::NAMES.get(usize::from(*code)).copied().unwrap_or(""))
    }

    fn directions(&self) -> impl Iterator<Item = Option<&'static str>> {
        self.inner.direction.iter().map(|code| match code {
            0 => Some("original"),
            1 => Some("reply"),
            _ => None,
        })
    }

    fn states(&self) -> impl Iterator<Item = Option<&'static str>> {
        self.inner.state.iter().map(|(protocol, state)| name_of(*protocol, *state))
    }

    fn reasons(&self) -> impl Iterator<Item = Option<&'static str>> {
        self.inner.class.iter().zip(&self.inner.reason).map(|(class, reason)| {
            let at = usize::from(*reason).checked_sub(1)?;
            if *class == Class::Dropped as u8 {
                return Reason::ALL.get(at).map(|reason| reason.name());
            }
            track::Reason::ALL.get(at).map(|reason| reason.name())
        })
    }

    fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let inner = &self.inner;
        RecordBatch::try_from_iter_with_nullable([
            ("frame", numbers::<UInt64Type>(inner.frame.iter().copied()), false),
            ("connection", optional::<UInt64Type>(self.connections()), true),
            ("class", texts(self.classes().map(Some)), false),
            ("direction", texts(self.directions()), true),
            ("state", texts(self.states()), true),
            ("reason", texts(self.reasons()), true),
            ("got", optional::<UInt32Type>(inner.got.iter().copied()), true),
            ("bound", optional::<UInt32Type>(inner.bound.iter().copied()), true),
        ])
    }
}

#[pymethods]
impl Verdicts {
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// A list of tuples: frame, connection, class, direction, state, reason, got, bound.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let inner = &self.inner;
        let numbers = inner.frame.iter().zip(self.connections()).zip(inner.got.iter().zip(&inner.bound));
        let words = self.classes().zip(self.directions()).zip(self.states().zip(self.reasons()));
        let mut rows: Vec<Bound<'py, PyTuple>> = Vec::with_capacity(inner.len());
        for (((frame, connection), (got, bound)), ((class, direction), (state, reason))) in numbers.zip(words) {
            rows.push((*frame, connection, class, direction, state, reason, *got, *bound).into_pyobject(py)?);
        }
        PyList::new(py, rows)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let empty = Self::new(follow::Verdicts::default()).batch();
        schema(py, &empty.map_err(|error| failed(&error))?)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batch = py.detach(|| self.batch());
        stream(py, batch.map_err(|error| failed(&error))?)
    }
}
