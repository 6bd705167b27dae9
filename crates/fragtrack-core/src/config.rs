//! What a reassembler may be told. Plain values: reading and defaults are the caller's business.

/// How fragments that share bytes are put together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Current Linux: inside one run a duplicate, any other shared byte kills the queue.
    Linux,
    /// RFC 5722: any overlap discards the datagram, with what is still to come.
    Rfc5722,
    /// Bytes that came first stay.
    First,
    /// Bytes that come last win.
    Last,
    /// The piece that starts lower wins, the older one on a tie (4.4BSD).
    Bsd,
    /// The piece that starts higher wins, the newer one on a tie.
    BsdRight,
    /// The piece that starts lower wins, the newer one on a tie (Linux before 4.19).
    LinuxOld,
    /// A held piece goes only if the new one reaches beyond it on both sides.
    Windows,
    /// As Windows, but a piece that ends where the new one ends goes too; trimmed left to right.
    Solaris,
}

impl Policy {
    /// Every policy with its name.
    pub const ALL: [(&'static str, Self); 9] = [
        ("linux", Self::Linux),
        ("rfc5722", Self::Rfc5722),
        ("first", Self::First),
        ("last", Self::Last),
        ("bsd", Self::Bsd),
        ("bsd-right", Self::BsdRight),
        ("linux-old", Self::LinuxOld),
        ("windows", Self::Windows),
        ("solaris", Self::Solaris),
    ];
}

/// Which of the kernel's two reassemblers is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// Local delivery (`ip_defrag` from `ip_local_deliver`, `ipv6_frag_rcv`).
    Local,
    /// Connection tracking (`ip_defrag` from `nf_defrag_ipv4`, `nf_ct_frag6_gather`).
    Netfilter,
}

/// What a held fragment costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CostModel {
    /// Our own structures and the captured bytes.
    Capture,
    /// Buffer sizes of a packet written to a TUN device of Linux 6.18.
    Kernel,
}

/// What happens when the memory limit is passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reclaim {
    /// Refuse every fragment until memory is free again (Linux since 4.17).
    Refuse,
    /// Give up the datagrams idle for longest (Linux before 3.9: the LRU list).
    Lru,
    /// Give up the oldest datagrams of the arriving fragment's own bucket (Linux 3.9 to 4.16).
    BucketOldest,
    /// Give up the oldest datagrams of the source prefixes that hold the most.
    Fair,
}

/// Whether a wrong IPv4 header checksum keeps a fragment out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// As a host does.
    Verify,
    /// Captures of a sender with checksum offload have none.
    Ignore,
}

/// Whether RFC 5722 lets an exact duplicate pass (erratum 3089).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duplicates {
    /// An exact duplicate is dropped alone.
    Ignore,
    /// An exact duplicate is an overlap like any other.
    Discard,
}

/// What `windows` and `bsd-right` compare the new fragment with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// The piece as it is now.
    Piece,
    /// The fragment as it came.
    Original,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Config {
    /// Overlap policy.
    pub policy: Policy,
    /// Which kernel path.
    pub path: Path,
    /// Reassembly time, IPv4, nanoseconds.
    pub timeout4: i64,
    /// Reassembly time, IPv6, nanoseconds.
    pub timeout6: i64,
    /// Memory limit per family, bytes by the cost model.
    pub memory: u64,
    /// Cost model.
    pub cost: CostModel,
    /// Fragments of one source between two of a datagram; 0 is off.
    pub max_dist: u32,
    /// What to do at the limit.
    pub reclaim: Reclaim,
    /// IPv4 header checksums.
    pub checksum: Checksum,
    /// Exact duplicates under RFC 5722.
    pub duplicates: Duplicates,
    /// What extents mean to `windows` and `bsd-right`.
    pub extent: Extent,
    /// The host's own IPv4 networks (address, mask); `None`: every destination is the host.
    pub local: Option<Vec<(u32, u32)>>,
    /// Key of the hash: comes from outside, so that the core stays pure.
    pub hash_key: (u64, u64),
}

impl Config {
    /// The defaults for captures: current Linux, local delivery, everything that can be put together.
    #[must_use]
    pub const fn capture(hash_key: (u64, u64)) -> Self {
        const SECOND: i64 = 1_000_000_000;
        Self {
            policy: Policy::Linux,
            path: Path::Local,
            timeout4: 30 * SECOND,
            timeout6: 60 * SECOND,
            memory: 512 << 20,
            cost: CostModel::Capture,
            max_dist: 0,
            reclaim: Reclaim::Fair,
            checksum: Checksum::Ignore,
            duplicates: Duplicates::Ignore,
            extent: Extent::Piece,
            local: None,
            hash_key,
        }
    }
}
