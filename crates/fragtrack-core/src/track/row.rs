//! Connections and what is announced of them, as they were at some time.

use super::flow::{Flow, bit};
use super::packet::{self, Key};
use super::sctp;
use super::states::State;
use super::verdict::End;
use crate::event::Address;
use crate::wire::Family;

/// A connection as it was at some time.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// State, counts and times.
    pub flow: Flow,
    /// Whose it is.
    pub key: Key,
    /// Its number.
    pub id: u64,
    /// How it stands.
    pub end: End,
    /// Nanoseconds left, if it is in the table.
    pub left: Option<i64>,
}

/// What is announced.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// One of the bits of [`Events`](super::verdict::Events).
    pub kind: u8,
    /// When.
    pub time: i64,
    /// The frame that caused it; 0: time did.
    pub frame: u64,
    /// The connection right then.
    pub row: Row,
}

/// Who a connection is between, as its first packet has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Who sent the first packet.
    pub source: Address,
    /// To whom.
    pub destination: Address,
    /// What stands for ports.
    pub ports: Ports,
}

/// What stands for ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ports {
    /// Ports: source, destination.
    Numbers(u16, u16),
    /// ICMP: type, code, identifier.
    Query(u8, u8, u16),
    /// GRE: keys of source and destination.
    Keys(u16, u16),
    /// Nothing.
    None,
}

impl Row {
    /// Who it is between.
    #[must_use]
    pub const fn ends(&self) -> Ends {
        let Key { addr, wide: [a, b, c], ports, family, .. } = self.key;
        let (lower, upper) = match family {
            Family::V4 => (Address::V4((addr >> 32) as u32), Address::V4(addr as u32)),
            Family::V6 => (Address::V6((addr as u128) << 64 | a as u128), Address::V6((b as u128) << 64 | c as u128)),
        };
        let (low, high) = ((ports >> 16) as u16, ports as u16);
        let swapped = self.flow.has(bit::SWAPPED);
        let (source, destination, sport, dport) =
            if swapped { (upper, lower, high, low) } else { (lower, upper, low, high) };
        let ports = match self.flow.protocol {
            packet::TCP | packet::UDP | packet::UDP_LITE | packet::SCTP => Ports::Numbers(sport, dport),
            packet::ICMP | packet::ICMPV6 => Ports::Query((dport >> 8) as u8, dport as u8, sport),
            packet::GRE => Ports::Keys(sport, dport),
            _ => Ports::None,
        };
        Ends { source, destination, ports }
    }

    /// Name of the state, for protocols that have one.
    #[must_use]
    pub fn state(&self) -> Option<&'static str> {
        state_name(&self.flow)
    }
}

/// Name of the state of a connection, for protocols that have one.
#[must_use]
pub fn state_name(flow: &Flow) -> Option<&'static str> {
    name_of(flow.protocol, flow.state)
}

/// Name of a state of a protocol that has states.
#[must_use]
pub fn name_of(protocol: u8, state: u8) -> Option<&'static str> {
    let names: &[&str] = match protocol {
        packet::TCP => &State::NAMES,
        packet::SCTP => &sctp::STATES,
        _ => return None,
    };
    names.get(usize::from(state)).copied()
}
