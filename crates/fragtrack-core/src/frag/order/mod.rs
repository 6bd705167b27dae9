//! How the held bytes of a datagram are kept in order.
//!
//! | ordering | for | cost of one fragment |
//! | --- | --- | --- |
//! | [`runs`] | `linux` | constant: appended to the last run, or found by bits |
//! | [`pieces`] | every other policy | logarithmic: a tree of pieces |

pub mod pieces;
pub mod runs;

/// What an arriving range is to the ranges held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// It shares no byte with any.
    Free,
    /// It lies inside one.
    Inside,
    /// It shares bytes otherwise.
    Across,
}
