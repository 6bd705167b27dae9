//! Many packets in one crossing: columns in, columns out.

use fragtrack_core::engine::Batch as Frames;
use fragtrack_core::event::{Atomic, Datagram, GivenUp, Sink};
use fragtrack_core::reason::Reason;
use fragtrack_core::{Engine, Frame, LinkType};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::buffer::Bytes;
use crate::outcome::{Kind, Lost};

/// Packets handed to the engine at once.
const CHUNK: usize = 512;

/// Where packets are in a buffer, and when they came.
pub(crate) struct Columns {
    offsets: Vec<u64>,
    lengths: Vec<u64>,
    times: Vec<i64>,
}

fn column<T: Element + Copy>(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    PyBuffer::<T>::get(object)?.to_vec(py)
}

/// A column of unsigned numbers: `array('Q')`, `array('I')`, numpy's uint64, uint32 or int64.
fn numbers(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    if let Ok(wide) = column::<u64>(py, object) {
        return Ok(wide);
    }
    if let Ok(narrow) = column::<u32>(py, object) {
        return Ok(narrow.into_iter().map(u64::from).collect());
    }
    // A negative number becomes one that lies behind every buffer.
    Ok(column::<i64>(py, object)?.into_iter().map(|n| n as u64).collect())
}

impl Columns {
    /// # Errors
    /// `ValueError`: columns of different lengths, or a packet outside the buffer.
    pub(crate) fn read(
        py: Python<'_>,
        offsets: &Bound<'_, PyAny>,
        lengths: &Bound<'_, PyAny>,
        times: &Bound<'_, PyAny>,
        buffer: usize,
    ) -> PyResult<Self> {
        let columns = Self {
            offsets: numbers(py, offsets)?,
            lengths: numbers(py, lengths)?,
            times: match column::<i64>(py, times) {
                Ok(times) => times,
                Err(_) => numbers(py, times)?.into_iter().map(i64::try_from).collect::<Result<_, _>>()?,
            },
        };
        let count = columns.offsets.len();
        if columns.lengths.len() != count || columns.times.len() != count {
            return Err(PyValueError::new_err(format!(
                "offsets, lengths and times must be equally long, not {count}, {} and {}",
                columns.lengths.len(),
                columns.times.len()
            )));
        }
        let inside = |(offset, length): (&u64, &u64)| {
            *length <= u64::from(u32::MAX) && offset.checked_add(*length).is_some_and(|end| end <= buffer as u64)
        };
        match columns.offsets.iter().zip(&columns.lengths).position(|packet| !inside(packet)) {
            Some(at) => Err(PyValueError::new_err(format!("packet {at} lies outside the buffer of {buffer} bytes"))),
            None => Ok(columns),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Takes the packets through the engine. What is still held afterwards is copied: the buffer may go.
    pub(crate) fn run(&self, engine: &mut Engine, segment: &[u8], first: u64, domain: u64) -> Taken {
        let mut taken = Taken::new(self.len());
        let mut frames = Vec::with_capacity(CHUNK);
        for (chunk, offsets) in self.offsets.chunks(CHUNK).enumerate() {
            let base = chunk * CHUNK;
            frames.clear();
            let rest = self.lengths.iter().zip(&self.times).skip(base);
            frames.extend(offsets.iter().zip(rest).map(|(offset, (length, time))| Frame {
                start: *offset,
                time: *time,
                record: *length as u32,
                captured: *length as u32,
                head: 0,
                link: LinkType(101),
            }));
            let batch = Frames { segment, frames: &frames, first: first + base as u64, origin: 0, transient: true };
            engine.run_packets(batch, domain, &mut Taking { taken: &mut taken, base, offsets });
        }
        engine.settle(segment);
        taken
    }
}

/// What came out of a batch.
#[derive(Default)]
pub(crate) struct Taken {
    kinds: Vec<u8>,
    reasons: Vec<u8>,
    completed: Vec<u32>,
    /// Headers of whole datagrams, one after the other, and where each ends.
    headers: Vec<u8>,
    header_ends: Vec<u64>,
    /// Payload ranges: place in the buffer, or in `side`; where each datagram's ranges end.
    places: Vec<u64>,
    lengths: Vec<u32>,
    sources: Vec<u8>,
    slice_ends: Vec<u64>,
    side: Vec<u8>,
    lost: Vec<Lost>,
}

impl Taken {
    fn new(packets: usize) -> Self {
        let mut taken = Self::default();
        // Most datagrams have two or three fragments.
        taken.completed.reserve(packets / 2);
        taken.header_ends.reserve(packets / 2);
        taken.slice_ends.reserve(packets / 2);
        taken.places.reserve(packets);
        taken.lengths.reserve(packets);
        taken.sources.reserve(packets);
        taken.headers.reserve(packets * 10);
        taken.kinds.reserve(packets);
        taken.reasons.reserve(packets);
        taken
    }

    /// The headers and payload slices of the `at`-th whole datagram.
    fn parts<'a>(&'a self, at: usize, buffer: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let (start, end) = range(&self.header_ends, at);
        let headers = self.headers.get(start..end).unwrap_or(&[]);
        let (start, end) = range(&self.slice_ends, at);
        let slices = (start..end).filter_map(move |slice| {
            let place = *self.places.get(slice)? as usize;
            let length = *self.lengths.get(slice)? as usize;
            let from = if self.sources.get(slice) == Some(&0) { buffer } else { &self.side };
            from.get(place..place + length)
        });
        core::iter::once(headers).chain(slices)
    }

    /// Where each whole datagram ends, if they stand one after the other.
    fn ends(&self) -> Vec<u64> {
        let mut sum = 0;
        let payload = |at| {
            let (start, end) = range(&self.slice_ends, at);
            self.lengths.get(start..end).unwrap_or(&[]).iter().map(|length| u64::from(*length)).sum::<u64>()
        };
        let length = |at| {
            let (start, end) = range(&self.header_ends, at);
            (end - start) as u64 + payload(at)
        };
        (0..self.completed.len())
            .map(|at| {
                sum += length(at);
                sum
            })
            .collect()
    }

    fn note(&mut self, kind: Kind, reason: u8) {
        self.kinds.push(kind as u8);
        self.reasons.push(reason);
    }
}

/// Takes the events of one chunk of the packets.
struct Taking<'a> {
    taken: &'a mut Taken,
    /// Number of its first packet in the batch.
    base: usize,
    /// Where its packets start in the buffer.
    offsets: &'a [u64],
}

impl Taking<'_> {
    fn note_complete(&mut self, at: usize) {
        self.taken.note(Kind::Complete, 0);
        self.taken.completed.push((self.base + at) as u32);
    }
}

impl Sink for Taking<'_> {
    fn pass(&mut self, _at: usize) {
        self.taken.note(Kind::Whole, 0);
    }

    fn held(&mut self, _at: usize) {
        self.taken.note(Kind::Held, 0);
    }

    fn dropped(&mut self, _at: usize, reason: Reason) {
        self.taken.note(Kind::Dropped, reason.code());
    }

    fn atomic(&mut self, at: usize, atomic: &Atomic<'_>) {
        self.note_complete(at);
        let (packet, payload) = (atomic.packet(), atomic.payload());
        let header = packet.len() - payload.len();
        self.taken.headers.extend(packet.iter().take(header));
        self.taken.header_ends.push(self.taken.headers.len() as u64);
        self.taken.places.push(self.offsets.get(at).copied().unwrap_or(0) + header as u64);
        self.taken.lengths.push(payload.len() as u32);
        self.taken.sources.push(0);
        self.taken.slice_ends.push(self.taken.places.len() as u64);
    }

    fn complete(&mut self, at: usize, datagram: &Datagram<'_>) {
        self.note_complete(at);
        datagram.write_header(&mut self.taken.headers);
        self.taken.header_ends.push(self.taken.headers.len() as u64);
        for (slice, bytes) in datagram.slices() {
            if let Some(place) = slice.position() {
                self.taken.places.push(place);
                self.taken.sources.push(0);
            } else {
                self.taken.places.push(self.taken.side.len() as u64);
                self.taken.sources.push(1);
                self.taken.side.extend_from_slice(bytes);
            }
            self.taken.lengths.push(slice.len());
        }
        self.taken.slice_ends.push(self.taken.places.len() as u64);
    }

    fn given_up(&mut self, given_up: &GivenUp<'_>) {
        self.taken.lost.push(Lost::of(given_up));
    }
}

/// What became of a batch of packets; see `fragtrack.Reassembler.push_batch`. It keeps the buffer, which nobody may
/// write to as long as packets are asked for.
#[pyclass(frozen, module = "fragtrack._core")]
pub(crate) struct Batch {
    buffer: Bytes,
    taken: Taken,
    packets: PyOnceLock<Py<PyBytes>>,
}

impl Batch {
    pub(crate) const fn new(buffer: Bytes, taken: Taken) -> Self {
        Self { buffer, taken, packets: PyOnceLock::new() }
    }
}

/// The `at`-th of consecutive ranges that end at `ends`.
fn range(ends: &[u64], at: usize) -> (usize, usize) {
    let start = at.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    (start as usize, ends.get(at).copied().unwrap_or(start) as usize)
}

/// A read-only view with a format, over a copy of the column.
fn view<'py>(py: Python<'py>, bytes: &[u8], format: &str) -> PyResult<Bound<'py, PyAny>> {
    PyMemoryView::from(&PyBytes::new(py, bytes))?.call_method1("cast", (format,))
}

fn wide(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_ne_bytes()).collect()
}

fn narrow(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_ne_bytes()).collect()
}

#[pymethods]
impl Batch {
    /// One byte per packet: 0 whole, 1 held, 2 complete, 3 dropped.
    #[getter]
    fn kinds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view(py, &self.taken.kinds, "B")
    }

    /// One byte per packet: the code of the reason, 0 if it was not dropped.
    #[getter]
    fn reasons<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view(py, &self.taken.reasons, "B")
    }

    /// Packets (0-based, within the batch) that completed a datagram.
    #[getter]
    fn completed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view(py, &narrow(&self.taken.completed), "I")
    }

    /// Headers of the whole datagrams, one after the other.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.taken.headers)
    }

    /// Where each header ends in `headers`.
    #[getter]
    fn header_ends<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view(py, &wide(&self.taken.header_ends), "Q")
    }

    /// Where each payload slice starts: in the buffer, or in `side`.
    #[getter]
    fn slice_places<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view(py, &wide(&self.taken.places), "Q")
    }

    /// Bytes of each payload slice.
    #[getter]
    fn slice_lengths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view(py, &narrow(&self.taken.lengths), "I")
    }

    /// Where each payload slice is: 0 in the buffer, 1 in `side`.
    #[getter]
    fn slice_sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view(py, &self.taken.sources, "B")
    }

    /// Where the slices of each datagram end.
    #[getter]
    fn slice_ends<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view(py, &wide(&self.taken.slice_ends), "Q")
    }

    /// Payload of fragments that were held from earlier batches.
    #[getter]
    fn side<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.taken.side)
    }

    /// Whole packets, one after the other: copied out of the buffer when first asked for.
    #[getter]
    fn packets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let made = self.packets.get_or_try_init(py, || {
            let length = self.taken.ends().last().copied().unwrap_or(0);
            let bytes = self.buffer.as_slice();
            let packets = PyBytes::new_with(py, length as usize, |to| {
                let mut end = 0;
                for at in 0..self.taken.completed.len() {
                    for part in self.taken.parts(at, bytes) {
                        let start = end;
                        end += part.len();
                        if let Some(to) = to.get_mut(start..end) {
                            to.copy_from_slice(part);
                        }
                    }
                }
                Ok(())
            })?;
            Ok::<_, PyErr>(packets.unbind())
        })?;
        Ok(made.bind(py).clone())
    }

    /// Where each packet ends in `packets`.
    #[getter]
    fn packet_ends<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        view(py, &wide(&self.taken.ends()), "Q")
    }

    /// Datagrams that were given up.
    #[getter]
    fn given_up<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.taken.lost.iter().map(|lost| lost.object(py)).collect()
    }

    /// Number of whole datagrams.
    fn __len__(&self) -> usize {
        self.taken.completed.len()
    }

    /// The `i`-th whole datagram, from its IP header on.
    fn packet<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Bound<'py, PyBytes>> {
        let count = self.taken.completed.len();
        if i >= count {
            return Err(PyIndexError::new_err(format!("there are {count} datagrams")));
        }
        let parts: Vec<&[u8]> = self.taken.parts(i, self.buffer.as_slice()).collect();
        Ok(PyBytes::new(py, &parts.concat()))
    }

    fn __repr__(&self) -> String {
        format!("Batch({} packets, {} whole datagrams)", self.taken.kinds.len(), self.taken.completed.len())
    }
}
