//! One cycle: sensors, then arrivals and ticks in the order of time.

use bumpless_standby::event::{Event, Promotion};
use bumpless_standby::message::{Action, Received, Request, Verdict};
use bumpless_standby::node::State;
use bumpless_standby::{Controller, Tick};

use super::disk::Office;
use super::ledger::{Accepted, Before};
use super::loops::Plant;
use super::net::Message;
use super::{A, B, KEPT, PERIOD_NS, Tapped, World};

impl<P: Plant> World<P> {
    pub(super) fn run_cycle(&mut self) {
        let end_ns = (self.cycle + 1) * PERIOD_NS;
        self.sample();
        loop {
            let ticks_ns = [self.seats[A].next_tick_ns, self.seats[B].next_tick_ns];
            let arrival_ns = self.queue.next_at_ns();
            let first_ns = arrival_ns.min(ticks_ns[A]).min(ticks_ns[B]);
            if first_ns >= end_ns {
                break;
            }
            if arrival_ns == first_ns {
                if let Some(message) = self.queue.pop() {
                    self.deliver(arrival_ns, message);
                }
            } else {
                let index = if ticks_ns[A] == first_ns { A } else { B };
                self.seats[index].next_tick_ns += self.seats[index].clock.period_ns();
                self.tick(index, first_ns);
            }
        }
        self.cycle += 1;
    }

    /// The sensors show the input of this cycle, and the ideal controller takes it.
    fn sample(&mut self) {
        let held = self.actuator.held().map(|held| &held.value);
        let input = self.plant.sample(self.cycle, held);
        self.ideal.step(&input);
        if self.inputs.len() == KEPT {
            self.inputs.pop_front();
            self.ideals.pop_front();
        }
        self.inputs.push_back((self.cycle, input));
        self.ideals.push_back((self.cycle, self.ideal.output()));
    }

    fn tick(&mut self, index: usize, now_ns: u64) {
        let Some(before) = self.before(index, now_ns) else {
            return;
        };
        let seat = &mut self.seats[index];
        let shown = self.cycle.saturating_sub(seat.input_age_cycles);
        let (Some((_, newest)), found) = (
            self.inputs.back(),
            self.inputs.iter().rev().find(|(cycle, _)| *cycle == shown),
        ) else {
            return;
        };
        let input = found.map_or(newest, |(_, input)| input).clone();
        let Some(mut tick) = seat.tick(now_ns, self.cycle, input) else {
            return;
        };
        if let Some(Action::Drive(_)) = tick.request.as_ref().map(|request| &request.action) {
            self.drove_at_ns[index] = now_ns;
        }
        if tick
            .events
            .iter()
            .any(|event| matches!(event, Event::Promoted { .. }))
        {
            self.began_at_ns[index] = now_ns;
        }
        self.note(index, before, &mut tick);
        self.send(index, now_ns, tick);
    }

    fn before(&self, index: usize, now_ns: u64) -> Option<Before> {
        let other = &self.seats[1 - index];
        let is_in_time = now_ns < other.last_tick_ns + PERIOD_NS / 4 * 7;
        let partner_is_primary = other.is_running()
            && is_in_time
            && matches!(self.state(1 - index), Some(State::Primary | State::Solo));
        Some(Before {
            adopted: self.seats[index].node.as_ref()?.adopted(),
            partner_is_primary,
        })
    }

    fn note(&mut self, index: usize, before: Before, tick: &mut Tick<P::Out>) {
        let (Some(node), Some(heartbeat)) = (&self.seats[index].node, &tick.heartbeat) else {
            return;
        };
        // A start, not a takeover: the ideal starts with what the node has.
        if tick.events.iter().any(is_start) {
            self.ideal = node.controller().clone();
            let output = self.ideal.output();
            if let Some(ideal) = self.ideals.back_mut() {
                ideal.1 = output;
            }
        }
        let status = node.status();
        let node_is = (&status, node.config(), node.adopted());
        let events = std::mem::take(&mut tick.events);
        self.ledger
            .note_tick(self.cycle, index, before, heartbeat, events, node_is);
    }

    fn send(&mut self, index: usize, now_ns: u64, tick: Tick<P::Out>) {
        let to = 1 - index;
        let paths = self.seats[index].config.paths;
        for path in 0..paths {
            if let Some(mut heartbeat) = tick.heartbeat.clone() {
                let is_sent = self.tap.as_mut().is_none_or(|tap| {
                    tap(&mut Tapped {
                        from: index,
                        path,
                        cycle: self.cycle.saturating_sub(self.base),
                        heartbeat: &mut heartbeat,
                    })
                });
                if !is_sent {
                    continue;
                }
                self.transmit(
                    now_ns,
                    Way::Sync(path, index),
                    Message::Heartbeat {
                        to,
                        path,
                        heartbeat,
                    },
                );
            }
            for fragment in tick.fragments.iter().cloned() {
                let message = Message::Fragment { to, path, fragment };
                self.transmit(now_ns, Way::Sync(path, index), message);
            }
        }
        if let Office::Witness(witness) = &self.seats[index].office
            && let Some((epoch, action)) = witness.request()
            && let Some(heartbeat) = &tick.heartbeat
        {
            let request = Request {
                cluster: heartbeat.cluster,
                node: heartbeat.node,
                incarnation: heartbeat.incarnation,
                epoch,
                seq: heartbeat.seq,
                actuator: 0,
                action,
            };
            self.transmit(now_ns, Way::Request(index), Message::Request(request));
        }
        if let Some(request) = tick.request {
            self.transmit(now_ns, Way::Request(index), Message::Request(request));
        }
    }

    fn transmit(&mut self, now_ns: u64, way: Way, message: Message<P::Out>) {
        let message = match &mut self.wire {
            Some(wire) => wire.pass(message, &mut self.rng),
            None => Some(message),
        };
        let link = match way {
            Way::Sync(path, from) => &self.links.sync[usize::from(path)][from],
            Way::Request(from) => &self.links.requests[from],
            Way::Reply(to) => &self.links.replies[to],
        };
        if let Some(message) = message {
            self.queue.send(now_ns, link, &mut self.rng, message);
        }
    }

    fn deliver(&mut self, now_ns: u64, message: Message<P::Out>) {
        let (to, received) = match message {
            Message::Request(request) => return self.actuate(now_ns, &request),
            Message::Heartbeat {
                to,
                path,
                heartbeat,
            } => (to, Received::Heartbeat { path, heartbeat }),
            Message::Fragment { to, path, fragment } => (to, Received::Fragment { path, fragment }),
            Message::Reply { to, reply } => {
                if let Office::Witness(witness) = &mut self.seats[to].office {
                    witness.receive(&reply);
                }
                (to, Received::Reply(reply))
            }
        };
        let seat = &mut self.seats[to];
        if seat.node.is_some() {
            seat.inbox.push(received);
        }
    }

    fn actuate(&mut self, now_ns: u64, request: &Request<P::Out>) {
        let reply = self
            .actuator
            .receive(now_ns, request, &mut self.actuator_disk);
        let Some(reply) = reply else { return };
        let writer = usize::from(request.node.0);
        if let (Action::Drive(value), Verdict::Ack) = (&request.action, reply.verdict) {
            let ideal = self
                .ideals
                .iter()
                .rev()
                .find(|(cycle, _)| *cycle == request.seq);
            let bump = ideal.map_or(0.0, |(_, ideal)| self.plant.steps_between(value, ideal));
            self.ledger.note_accepted(Accepted {
                writer,
                epoch: request.epoch,
                seq: request.seq,
                cycle: self.cycle,
                bump,
            });
        }
        let message = Message::Reply { to: writer, reply };
        self.transmit(now_ns, Way::Reply(writer), message);
    }
}

/// Over which link.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Over this path, from this node.
    Sync(u8, usize),
    Request(usize),
    Reply(usize),
}

fn is_start(event: &Event) -> bool {
    matches!(
        event,
        Event::Promoted {
            cause: Promotion::ColdStartWithPartner
                | Promotion::ColdStartByAuthority
                | Promotion::Forced,
            ..
        }
    )
}
