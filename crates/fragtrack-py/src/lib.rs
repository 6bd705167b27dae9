//! The bridge to Python: a table of contents.

use pyo3::prelude::*;

mod batch;
mod buffer;
mod config;
mod connection;
mod domain;
mod feeding;
mod follower;
mod outcome;
mod reassembler;
mod rewriter;
mod tables;
mod track_config;
mod tracker;

/// The native part of fragtrack.
#[pymodule(name = "_core", gil_used = false)]
fn core_module(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<outcome::Outcome>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<reassembler::Reassembler>()?;
    module.add_class::<rewriter::Rewriter>()?;
    module.add_class::<tables::Connections>()?;
    module.add_class::<tables::Verdicts>()?;
    module.add_class::<tracker::Verdict>()?;
    module.add_class::<tracker::Tracker>()?;
    module.add_class::<follower::Follower>()
}
