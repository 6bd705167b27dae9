//! Borrowing the bytes of a Python object.

#![allow(unsafe_code)]

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

/// The bytes of an object that supports the buffer protocol, borrowed for as long as this lives.
pub(crate) struct Bytes(PyBuffer<u8>);

impl Bytes {
    /// # Errors
    /// `BufferError`, `TypeError`: no contiguous bytes.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyBuffer::<u8>::get(object)?;
        if buffer.is_c_contiguous() { Ok(Self(buffer)) } else { Err(PyBufferError::new_err("contiguous bytes wanted")) }
    }

    /// The bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        let length = self.0.len_bytes();
        if length == 0 {
            return &[];
        }
        // SAFETY: the exporter keeps `length` contiguous bytes at this address valid while the buffer is held,
        // which `self` does. Nobody may write to them meanwhile: `bytes` and read-only maps cannot be written; for
        // other exporters the documentation of `push_batch` and `feed` asks for it, as every function that
        // releases the interpreter lock over a buffer must.
        unsafe { core::slice::from_raw_parts(self.0.buf_ptr().cast::<u8>(), length) }
    }
}
