//! All connections: where they are kept, and how they are found.

use super::flow::{Flow, bit};
use super::packet::Key;
use crate::frag::index::Index;
use crate::frag::key::Multilinear;
use crate::prefetch;
use crate::wire::Family;

/// Most connections of one bucket (the kernel draws a limit from 50 to 79 for each insertion).
pub const CHAIN: usize = 64;
/// Neighboring buckets that are looked at for something to drop (`NF_CT_EVICTION_RANGE`).
pub const RANGE: u32 = 8;
/// Fewest buckets.
const FEWEST: u32 = 1024;

/// Invariant: the index holds exactly the slots whose connection is live, each under the hash of its key; `free` the
/// others. `wide` and `zones` reach at least to the last slot that needs them.
pub struct Flows {
    index: Index,
    slots: Vec<Flow>,
    /// IPv6: the part of the addresses that is not in [`Flow::addr`].
    wide: Vec<[u64; 3]>,
    /// Zones, as far as there are any but 0.
    zones: Vec<u64>,
    free: Vec<u32>,
    hasher: Multilinear,
    /// Bits of the hash that a bucket does not have.
    shift: u32,
}

impl Flows {
    /// An empty table with buckets for so many connections.
    #[must_use]
    pub fn new(hash_key: (u64, u64), max: u32) -> Self {
        let buckets = max.max(FEWEST).next_power_of_two();
        Self {
            index: Index::new(),
            slots: Vec::new(),
            wide: Vec::new(),
            zones: Vec::new(),
            free: Vec::new(),
            hasher: Multilinear::new(hash_key),
            shift: 32 - buckets.trailing_zeros(),
        }
    }

    /// Connections in the table.
    #[inline(always)]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Asks for the line of the index.
    #[inline(always)]
    pub fn prefetch_index(&self, hash: u32) {
        self.index.prefetch(hash);
    }

    /// Asks for the connection that the index probably points to, or for the slot of a new one.
    #[inline(always)]
    pub fn prefetch_flow(&self, hash: u32) {
        let slot = self.index.guess(hash);
        if let Some(flow) = self.slots.get(slot as usize) {
            prefetch::line(flow);
            prefetch::line(&flow.number);
        }
        if let Some(wide) = self.wide.get(slot as usize) {
            prefetch::line(wide);
        }
    }

    /// The connection of a key.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, key: &Key, hash: u32) -> Option<u32> {
        self.index.find(hash, |slot| self.is(slot, key))
    }

    #[inline(always)]
    fn is(&self, slot: u32, key: &Key) -> bool {
        let Some(flow) = self.slots.get(slot as usize) else { return false };
        flow.addr == key.addr
            && flow.ports == key.ports
            && flow.protocol == key.protocol
            && flow.has(bit::V6) == (key.family == Family::V6)
            && self.zone(slot) == key.zone
            && (key.family == Family::V4 || self.wide(slot) == key.wide)
    }

    /// A connection.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, slot: u32) -> Option<&Flow> {
        self.slots.get(slot as usize)
    }

    /// A connection, to change.
    #[inline(always)]
    pub fn at_mut(&mut self, slot: u32) -> Option<&mut Flow> {
        self.slots.get_mut(slot as usize)
    }

    /// Its zone.
    #[inline(always)]
    #[must_use]
    pub fn zone(&self, slot: u32) -> u64 {
        self.zones.get(slot as usize).copied().unwrap_or(0)
    }

    /// The rest of its addresses.
    #[inline(always)]
    #[must_use]
    pub fn wide(&self, slot: u32) -> [u64; 3] {
        self.wide.get(slot as usize).copied().unwrap_or([0; 3])
    }

    /// Its key.
    #[must_use]
    pub fn key(&self, slot: u32) -> Option<Key> {
        let flow = self.at(slot)?;
        Some(Key {
            addr: flow.addr,
            wide: self.wide(slot),
            ports: flow.ports,
            protocol: flow.protocol,
            family: flow.family(),
            zone: self.zone(slot),
        })
    }

    fn hash(&self, key: &Key) -> u32 {
        let rest = u64::from(key.ports) << 32 | u64::from(key.protocol);
        let [a, b, c] = key.wide;
        match key.family {
            Family::V4 => self.hasher.hash([key.addr, rest, key.zone]),
            Family::V6 => self.hasher.hash([key.addr, a, b, c, rest, key.zone]),
        }
    }

    /// Puts a new connection in; gives its slot.
    #[inline(always)]
    pub fn insert(&mut self, flow: Flow, key: &Key, hash: u32) -> u32 {
        let slot = if let Some(slot) = self.free.pop() {
            if let Some(place) = self.slots.get_mut(slot as usize) {
                *place = flow;
            }
            slot
        } else {
            prefetch::push(&mut self.slots, flow);
            (self.slots.len() - 1) as u32
        };
        if key.family == Family::V6 {
            put(&mut self.wide, slot, key.wide, [0; 3]);
        }
        if key.zone != 0 || !self.zones.is_empty() {
            put(&mut self.zones, slot, key.zone, 0);
        }
        self.index.insert(hash, slot);
        slot
    }

    /// Takes a connection out.
    pub fn remove(&mut self, slot: u32) {
        let Some(key) = self.key(slot) else { return };
        self.index.remove(self.hash(&key), slot);
        if let Some(flow) = self.slots.get_mut(slot as usize) {
            flow.bits &= !bit::LIVE;
        }
        self.free.push(slot);
    }

    /// Connections in the bucket of a hash, up to [`CHAIN`]; costs little where there are few.
    #[inline(always)]
    #[must_use]
    pub fn chain(&self, hash: u32) -> usize {
        if self.index.is_calm(hash) { 0 } else { self.bucket(hash).take(CHAIN).count() }
    }

    /// The slots in the bucket of a hash.
    fn bucket(&self, hash: u32) -> impl Iterator<Item = u32> {
        let low = hash >> self.shift << self.shift;
        self.index.range(low, low | ((1u64 << self.shift) - 1) as u32)
    }

    /// The slots of the bucket so many behind that of a hash.
    pub fn near(&self, hash: u32, ahead: u32) -> impl Iterator<Item = u32> {
        self.bucket(hash.wrapping_add(ahead.wrapping_mul(1u32.wrapping_shl(self.shift))))
    }

    /// The live slots from a place on, and where to go on; `None`: that was all.
    #[must_use]
    pub fn page(&self, from: u32, most: usize) -> (Vec<u32>, Option<u32>) {
        let behind = (from..).zip(self.slots.get(from as usize..).unwrap_or(&[]));
        let mut live = behind.filter(|(_, flow)| flow.has(bit::LIVE)).map(|(slot, _)| slot);
        let page: Vec<u32> = live.by_ref().take(most).collect();
        (page, live.next())
    }

    /// All live slots.
    pub fn live(&self) -> impl Iterator<Item = u32> {
        (0u32..).zip(&self.slots).filter(|(_, flow)| flow.has(bit::LIVE)).map(|(slot, _)| slot)
    }

    /// Bytes in use.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.index.memory()
            + self.slots.capacity() * size_of::<Flow>()
            + self.wide.capacity() * 24
            + self.zones.capacity() * 8
            + self.free.capacity() * 4
    }

    /// Bytes in use, without what is kept for growth.
    #[must_use]
    pub fn used(&self) -> usize {
        let columns = self.wide.len() * 24 + self.zones.len() * 8 + self.free.len() * 4;
        self.index.memory() + self.slots.len() * size_of::<Flow>() + columns
    }

    /// Asserts the invariant from scratch.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        if !self.index.check() {
            return Err("the index does not hold together");
        }
        let mut live = 0usize;
        for slot in self.live() {
            live += 1;
            let found = self.key(slot).is_some_and(|key| self.find(&key, self.hash(&key)) == Some(slot));
            if !found {
                return Err("a connection is not found under its key");
            }
        }
        if live != self.index.len() || live + self.free.len() != self.slots.len() {
            return Err("slots and index differ");
        }
        Ok(())
    }
}

fn put<T: Copy>(column: &mut Vec<T>, slot: u32, value: T, none: T) {
    let at = slot as usize;
    if at >= column.len() {
        column.resize(at + 1, none);
    }
    if let Some(place) = column.get_mut(at) {
        *place = value;
    }
}
