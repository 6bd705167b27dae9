//! What keeps packets apart beyond IP: domains of fragments, zones of connections.

use fragtrack_core::frag::queue::DOMAIN;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Below 2^56: it shares its word with the IPv4 protocol.
#[derive(Clone, Copy)]
pub(crate) struct Domain(pub(crate) u64);

impl<'py> FromPyObject<'_, 'py> for Domain {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<u64>() {
            Ok(number) if number <= DOMAIN => Ok(Self(number)),
            Err(error) if !error.is_instance_of::<pyo3::exceptions::PyOverflowError>(object.py()) => Err(error),
            _ => Err(PyValueError::new_err(format!("{} is not from 0 to 2**56 - 1", object.str()?))),
        }
    }
}
