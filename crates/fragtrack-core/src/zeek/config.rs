//! Settings of the Zeek view; the defaults are Zeek's.

const SECOND: i64 = 1_000_000_000;

/// Letters a history holds; the next one becomes an `x` (`X`), the last.
pub const HISTORY_LIMIT: usize = 62;
/// Pieces of a TCP stream that may stand beyond holes, one side of a connection. With more the search for gaps in
/// that side is given up, with an `x` (`X`) in the history.
pub const PIECES_LIMIT: usize = 64;

/// TCP ports that the scripts Zeek loads by default add to `likely_server_ports`.
pub const TCP_SERVER_PORTS: [u16; 51] = [
    21, 22, 25, 26, 53, 79, 80, 81, 88, 110, 135, 139, 143, 389, 443, 445, 502, 563, 585, 587, 614, 631, 636, 853, 989,
    990, 992, 993, 995, 1080, 1434, 1883, 2811, 3128, 3268, 3306, 3389, 5222, 5223, 5269, 5432, 5900, 6379, 6666, 6667,
    6668, 6669, 8000, 8080, 8888, 20000,
];
/// UDP ports of the same list.
pub const UDP_SERVER_PORTS: [u16; 23] = [
    53, 67, 88, 123, 137, 161, 162, 389, 443, 514, 547, 1194, 1812, 2123, 2152, 3544, 4789, 5060, 5072, 5353, 5355,
    6081, 20000,
];
/// TCP ports whose established connections may rest for longer.
pub const INTERACTIVE_PORTS: [u16; 4] = [21, 22, 23, 513];

/// A set of ports.
#[derive(Clone, PartialEq, Eq)]
pub struct Ports(Box<[u64; 1024]>);

impl Ports {
    /// Of these ports.
    #[must_use]
    pub fn new(ports: &[u16]) -> Self {
        let mut bits = Box::new([0u64; 1024]);
        for port in ports {
            if let Some(word) = bits.get_mut(usize::from(port >> 6)) {
                *word |= 1 << (port & 63);
            }
        }
        Self(bits)
    }

    /// Whether a port is one of them.
    #[inline(always)]
    #[must_use]
    pub fn contains(&self, port: u16) -> bool {
        self.0.get(usize::from(port >> 6)).is_some_and(|word| word >> (port & 63) & 1 != 0)
    }
}

impl core::fmt::Debug for Ports {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries((0..=u16::MAX).filter(|&port| self.contains(port))).finish()
    }
}

/// How the Zeek view follows connections. Times are nanoseconds.
#[derive(Clone, Debug)]
pub struct Config {
    /// Flows open at once, at least 1. One more ends the flow that has rested for longest.
    pub max: u32,
    /// Rest after which a TCP connection ends; it starts with that of UDP, until its handshake is over.
    pub tcp_inactivity: i64,
    /// Rest after which a flow of UDP ends.
    pub udp_inactivity: i64,
    /// Rest after which a flow of ICMP ends.
    pub icmp_inactivity: i64,
    /// Rest after which a flow of another protocol ends.
    pub unknown_ip_inactivity: i64,
    /// Rest after which an established connection to one of `interactive_ports` ends.
    pub interactive_inactivity: i64,
    /// After which a TCP flow is looked at for the first time.
    pub tcp_syn_timeout: i64,
    /// How long an unanswered SYN is waited for.
    pub tcp_attempt_delay: i64,
    /// How long a flow stays once both sides closed.
    pub tcp_close_delay: i64,
    /// How long a flow stays of which one side sent a RST after its FIN.
    pub tcp_reset_delay: i64,
    /// How often a flow with one closed side is looked at.
    pub tcp_session_timer: i64,
    /// Rest after which it then ends.
    pub tcp_connection_linger: i64,
    /// How long a flow stays of which one side is known by nothing but its FIN.
    pub tcp_partial_close_delay: i64,
    /// Whether that applies: in Zeek, if a script handles `connection_partial_close`.
    pub partial_close: bool,
    /// TCP ports of likely servers.
    pub tcp_server_ports: Ports,
    /// UDP ports of likely servers.
    pub udp_server_ports: Ports,
    /// Ports whose connections may rest for longer.
    pub interactive_ports: Ports,
    /// Whether an ICMP reply without its request makes its sender the responder.
    pub icmp_by_type: bool,
    /// Key of the hash that gives connections their identifier, low half first.
    pub uid_key: (u64, u64),
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max: 262_144,
            tcp_inactivity: 300 * SECOND,
            udp_inactivity: 60 * SECOND,
            icmp_inactivity: 60 * SECOND,
            unknown_ip_inactivity: 60 * SECOND,
            interactive_inactivity: 3600 * SECOND,
            tcp_syn_timeout: 5 * SECOND,
            tcp_attempt_delay: 5 * SECOND,
            tcp_close_delay: 5 * SECOND,
            tcp_reset_delay: 5 * SECOND,
            tcp_session_timer: 6 * SECOND,
            tcp_connection_linger: 5 * SECOND,
            tcp_partial_close_delay: 3 * SECOND,
            partial_close: false,
            tcp_server_ports: Ports::new(&TCP_SERVER_PORTS),
            udp_server_ports: Ports::new(&UDP_SERVER_PORTS),
            interactive_ports: Ports::new(&INTERACTIVE_PORTS),
            icmp_by_type: true,
            uid_key: (0, 0),
        }
    }
}
