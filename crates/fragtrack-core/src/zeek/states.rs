//! What a packet does to the states of both sides of a TCP connection.

use super::Role;
use super::config::Config;
use super::endpoint::State;
use super::flow::Base;
use super::segment::{ACK, FIN, RST, SYN, Segment};
use super::tcp::{CONTROL, Tcp};

impl Tcp {
    pub(super) fn change(&mut self, base: &mut Base, role: Role, state: State, config: &Config) {
        let (end, peer) = self.ends.both_mut(role);
        if state == end.state {
            return;
        }
        if !state.is_handshake() && end.state.is_handshake() && peer.state.is_handshake() {
            base.rest(config.tcp_inactivity);
        }
        (end.before, end.state) = (end.state, state);
    }

    /// Lets a packet change the states; whether its sender closes. Swapped roles swap that of the sender.
    #[inline(always)]
    pub(super) fn step(
        &mut self,
        base: &mut Base,
        role: &mut Role,
        packet: &Segment,
        time: i64,
        config: &Config,
    ) -> bool {
        match self.ends.of(*role).state {
            State::Established | State::Partial => {
                packet.has(CONTROL) && self.step_established(base, *role, packet, config)
            }
            State::Inactive => self.step_first(base, role, packet, time, config),
            State::SynSent | State::SynAckSent => self.step_opening(base, *role, packet, config),
            State::Closed => self.step_after_fin(base, *role, packet, time, config),
            State::Reset => false,
        }
    }

    fn step_first(&mut self, base: &mut Base, role: &mut Role, packet: &Segment, time: i64, config: &Config) -> bool {
        if packet.has(SYN) {
            if *role == Role::Orig {
                let state = if packet.has(ACK) { State::SynAckSent } else { State::SynSent };
                self.change(base, Role::Orig, state, config);
                base.timers.attempt = time.saturating_add(config.tcp_attempt_delay);
            } else {
                self.answered(base, role, packet, config);
            }
        }
        if packet.has(FIN) {
            self.change(base, *role, State::Closed, config);
        }
        if packet.has(RST) {
            self.change(base, *role, State::Reset, config);
        }
        if self.ends.of(*role).state == State::Inactive {
            self.unmarked(base, *role, packet, config);
        }
        packet.has(FIN | RST)
    }

    /// Takes the first packet of the responder, with a SYN.
    fn answered(&mut self, base: &mut Base, role: &mut Role, packet: &Segment, config: &Config) {
        if !packet.has(ACK) && self.ends.orig.state == State::SynAckSent {
            // The SYN was captured behind its SYN/ACK.
            self.swap(base);
            base.history.flip();
            *role = Role::Orig;
            self.change(base, Role::Resp, State::Established, config);
        }
        let peer = role.other();
        if self.ends.of(peer).state == State::SynSent {
            self.change(base, peer, State::Established, config);
        }
        self.change(base, *role, State::Established, config);
        if self.ends.of(peer).state != State::Partial && config.interactive_ports.contains(base.ends.resp.port) {
            base.rest(config.interactive_inactivity);
        }
    }

    /// Takes the first packet of a side, with none of SYN, FIN, RST.
    fn unmarked(&mut self, base: &mut Base, role: Role, packet: &Segment, config: &Config) {
        let peer = self.ends.of(role.other()).state;
        if role == Role::Resp && packet.payload == 0 && peer == State::SynSent {
            return; // some acknowledge a SYN before they answer it
        }
        if packet.has(ACK) && peer == State::Established {
            self.change(base, role, State::Established, config); // only its SYN was missed
            self.begun_late = false;
        } else {
            self.change(base, role, State::Partial, config);
        }
    }

    fn step_opening(&mut self, base: &mut Base, role: Role, packet: &Segment, config: &Config) -> bool {
        if packet.has(FIN) {
            self.change(base, role, State::Closed, config);
        }
        if packet.has(RST) {
            self.change(base, role, State::Reset, config);
            self.active = false;
        }
        packet.has(FIN | RST)
    }

    fn step_established(&mut self, base: &mut Base, role: Role, packet: &Segment, config: &Config) -> bool {
        let (end, peer) = self.ends.both_mut(role);
        let (peer_state, peer_before) = (peer.state, peer.before);
        if packet.asks() && end.state == State::Partial && peer_state == State::Inactive {
            self.change(base, role, State::SynSent, config);
        }
        if packet.has(RST) {
            self.change(base, role, State::Reset, config);
            if peer_state != State::Reset || peer_before != State::Established {
                self.active = false;
            }
        } else if packet.has(FIN) {
            self.change(base, role, State::Closed, config);
            if peer_state == State::Reset && peer_before == State::Closed {
                // A RST behind its FIN, then the FIN of the other side: both finished.
                self.change(base, role.other(), State::Closed, config);
            }
        }
        packet.has(FIN | RST)
    }

    fn step_after_fin(&mut self, base: &mut Base, role: Role, packet: &Segment, time: i64, config: &Config) -> bool {
        if !packet.has(RST) || self.ends.of(role.other()).state == State::Closed {
            return false;
        }
        self.change(base, role, State::Reset, config);
        base.timers.reset = time.saturating_add(config.tcp_reset_delay);
        !self.ends.of(role).closed
    }
}
