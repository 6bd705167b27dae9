//! Feeding an input from Python: which bytes, and how long they stay.

use fragtrack_capture::{Buffer, Failure, Input, Tail};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::buffer::Bytes;

/// The input being fed.
#[derive(Default)]
pub(crate) struct Feeding {
    name: String,
    /// The buffer of an input that stays, until the input ends: held fragments refer to it.
    stable: Option<Bytes>,
}

/// A piece of it: `buffer[start:stop]`.
pub(crate) struct Piece<'a, 'py> {
    pub(crate) buffer: &'a Bound<'py, PyAny>,
    pub(crate) start: usize,
    pub(crate) stop: usize,
    pub(crate) tail: Tail,
    pub(crate) kind: Buffer,
}

impl Feeding {
    pub(crate) fn begin(&mut self, name: String) {
        self.name = name;
    }

    /// The input ended; gives the buffer that stayed.
    pub(crate) fn end(&mut self) -> Option<Bytes> {
        self.name.clear();
        self.stable.take()
    }

    /// Has `take` take a piece, without the lock of the interpreter; returns where to go on.
    pub(crate) fn feed(
        &mut self,
        py: Python<'_>,
        piece: &Piece<'_, '_>,
        take: impl FnOnce(Input<'_>) -> Result<usize, Failure> + Send,
    ) -> PyResult<usize> {
        let &Piece { start, stop, tail, kind, .. } = piece;
        let borrowed = Bytes::of(piece.buffer)?;
        let bytes = borrowed.as_slice();
        if start > stop || stop > bytes.len() {
            let length = bytes.len();
            return Err(PyValueError::new_err(format!("[{start}, {stop}) is not in a buffer of {length} bytes")));
        }
        if let Some(before) = &self.stable
            && !core::ptr::eq(before.as_slice(), bytes)
        {
            return Err(PyValueError::new_err("another buffer in the same input, though the first was to stay"));
        }
        let fed = py.detach(|| take(Input { bytes, start, stop, tail }));
        // Kept even if that failed: what came before the failure may be held.
        if kind == Buffer::Stays && self.stable.is_none() {
            self.stable = Some(borrowed);
        }
        fed.map_err(|failure| failed(py, &self.name, &failure))
    }
}

/// The exception for what went wrong with the input `name`, or with the output.
fn failed(py: Python<'_>, name: &str, failure: &Failure) -> PyErr {
    static CAPTURE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static OUTPUT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let made = match failure {
        Failure::Input(damage) => CAPTURE
            .import(py, "fragtrack.errors", "CaptureError")
            .and_then(|class| class.call1((name, damage.offset, failure.to_string()))),
        Failure::Output { .. } => {
            OUTPUT.import(py, "fragtrack.errors", "OutputError").and_then(|class| class.call1((failure.to_string(),)))
        }
    };
    made.map_or_else(|error| error, PyErr::from_value)
}
