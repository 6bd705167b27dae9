//! Borrowing the bytes of a Python object.

#![allow(unsafe_code)]

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

/// The bytes of an object that supports the buffer protocol, borrowed for as long as this lives: the object
/// cannot be resized or closed meanwhile.
pub(crate) struct Bytes(PyBuffer<u8>);

impl Bytes {
    /// # Errors
    /// `BufferError`, `TypeError`: no contiguous bytes.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::<u8>::get(object)?;
        if buffer.is_c_contiguous() { Ok(Self(buffer)) } else { Err(PyBufferError::new_err("contiguous bytes wanted")) }
    }

    /// Whether nobody may write to them.
    pub(crate) fn is_read_only(&self) -> bool {
        self.0.readonly()
    }

    /// A copy of the bytes.
    pub(crate) fn copy(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        self.0.to_vec(py)
    }

    /// The bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        let length = self.0.len_bytes();
        if length == 0 {
            return &[];
        }
        // SAFETY: the exporter keeps `length` contiguous bytes at this address valid while the buffer is held,
        // which `self` does. Nobody may write to them meanwhile: `bytes` and read-only maps cannot be written; of
        // other exporters the documentation of `push_batch`, `Batch` and `feed` asks that nobody does, as every
        // function that releases the interpreter lock over a buffer must; `push` copies what can be written.
        unsafe { core::slice::from_raw_parts(self.0.buf_ptr().cast::<u8>(), length) }
    }
}
