//! Giving files to workers, and accepting what they committed.
//!
//! Contract: a result counts when its entry is PUBLISHED under the ticket that was given, and its unit
//! is not in flight any more in a slot that is not fenced: the worker has completed it. The entry is
//! read before the slot, so that a unit not in flight is one that *was* completed.

use bumpless_heartbeat::UnitSet;

use super::entry::{EntryState, Outcome};
use super::exec::attempt_dir;
use super::lane::ENTRIES;
use super::outcome::{described, is_success};
use super::parent::Pool;
use super::tenant::Assignment;
use super::walk::shown;

/// Commands are long: few of them wait in a lane.
const COMMANDS: usize = 2;

impl Pool<'_> {
    /// Accepts what live workers have committed.
    pub(super) fn collect(&mut self) {
        for lane in 0..self.tenants.len() {
            for assignment in self.committed(lane) {
                self.accept(lane, assignment);
            }
        }
    }

    fn committed(&mut self, lane: usize) -> Vec<Assignment> {
        let entries = self.lanes.entries(lane);
        let Some(tenant) = self.tenants.get_mut(lane).and_then(Option::as_mut) else {
            return Vec::new();
        };
        let Some(owner) = tenant.owner.filter(|_| tenant.settled.is_none()) else {
            return Vec::new();
        };
        let is_published = |assignment: &Assignment| {
            entries[assignment.entry].state(assignment.ticket) == EntryState::Published
        };
        let mut published = 0_u128;
        for assignment in tenant
            .assigned
            .iter()
            .filter(|assignment| is_published(assignment))
        {
            published |= 1 << assignment.entry;
        }
        if published == 0 {
            return Vec::new();
        }
        let snapshot = self
            .table
            .snapshot(owner.slot)
            .filter(|snapshot| snapshot.generation == owner.generation && !snapshot.is_fenced);
        let Some(snapshot) = snapshot else {
            return Vec::new();
        };
        let committed = UnitSet::from_bits(published & !snapshot.in_flight_bitmap.bits());
        tenant.take_over(|assignment| assignment.is_in(committed))
    }

    /// Takes a committed result into the account.
    pub(super) fn accept(&mut self, lane: usize, assignment: Assignment) {
        let Assignment {
            entry,
            file,
            ticket,
        } = assignment;
        let outcome = self.lanes.entries(lane)[entry].outcome();
        let kept = self.keep_output(assignment);
        let path = || shown(self.ledger.path(file).as_os_str());
        let problem = match kept {
            Ok(()) if is_success(outcome) => None,
            Ok(()) => Some(format!("{}: {}", path(), described(outcome))),
            Err(error) => Some(format!("{}: keep the command's output: {error}", path())),
        };
        if let Some(problem) = problem {
            self.progress.say(&problem);
            self.ledger.fail(file, ticket);
            return;
        }
        let digest = match outcome {
            Outcome::Digest(digest) => digest,
            _ => [0; 32],
        };
        self.ledger.accept(file, ticket, digest);
    }

    /// Gives the output of an attempt the file's name.
    fn keep_output(&self, assignment: Assignment) -> std::io::Result<()> {
        let Some(output_dir) = &self.settings.output_dir else {
            return Ok(());
        };
        let attempt = attempt_dir(output_dir, assignment.ticket);
        let place = output_dir.join((u64::from(assignment.file) + 1).to_string());
        match std::fs::rename(&attempt, place) {
            // The attempt could not even make its folder; its outcome says so.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Fills the lanes, evenly when there is not enough for all.
    pub(super) fn give(&mut self) {
        self.even_out();
        let mut lanes: Vec<usize> = (0..self.tenants.len())
            .filter(|lane| self.may_give(*lane))
            .collect();
        // The idle first: what was taken back for them must not go where it came from.
        lanes.sort_by_key(|lane| self.tenants[*lane].as_ref().map_or(0, |t| t.assigned.len()));
        let share = self.ledger.waiting().div_ceil(lanes.len().max(1));
        for lane in lanes {
            let mut given = 0;
            while given < share && self.offer_next(lane) {
                given += 1;
            }
            if given > 0
                && let Some(lane) = self.lanes.lane(lane)
            {
                lane.bell.ring();
            }
        }
    }

    fn window(&self) -> usize {
        if self.settings.output_dir.is_some() {
            COMMANDS
        } else {
            ENTRIES as usize
        }
    }

    fn may_give(&self, lane: usize) -> bool {
        self.tenants[lane].as_ref().is_some_and(|tenant| {
            tenant.is_serving() && tenant.stop.is_none() && tenant.assigned.len() < self.window()
        })
    }

    /// Offers one file; whether there was one, and room for it.
    fn offer_next(&mut self, lane: usize) -> bool {
        if !self.may_give(lane) {
            return false;
        }
        let Some(tenant) = &mut self.tenants[lane] else {
            return false;
        };
        let Some(entry) = tenant.free_entry() else {
            return false;
        };
        let Some((file, ticket)) = self.ledger.next() else {
            return false;
        };
        let path = self.ledger.path(file);
        let name = || shown(path.as_os_str());
        let problem = if let Some(attempts) = self.attempts.poison(file) {
            Some(format!(
                "{}: poison: its worker died or hung {attempts} times",
                name()
            ))
        } else if !self.lanes.entries(lane)[entry]
            .offer(ticket, path.as_os_str().as_encoded_bytes())
        {
            Some(format!("{}: the path is longer than 4096 bytes", name()))
        } else {
            tenant.assign(Assignment {
                entry,
                file,
                ticket,
            });
            None
        };
        if let Some(problem) = problem {
            self.progress.say(&problem);
            self.ledger.fail(file, ticket);
        }
        true
    }

    /// When nothing waits and a worker is idle, half of what the fullest lane has not begun waits
    /// again.
    fn even_out(&mut self) {
        if self.ledger.waiting() > 0 {
            return;
        }
        let idle = |tenant: &super::tenant::Tenant| {
            tenant.is_serving()
                && tenant.stop.is_none()
                && tenant.assigned.is_empty()
                && tenant.owner.is_some()
        };
        if !self.tenants.iter().flatten().any(idle) {
            return;
        }
        let fullest = (0..self.tenants.len()).max_by_key(|lane| self.offers(*lane).len());
        let Some(lane) = fullest else {
            return;
        };
        let offers = self.offers(lane);
        let entries = self.lanes.entries(lane);
        let taken_back: Vec<Assignment> = offers[offers.len() / 2..]
            .iter()
            .copied()
            .filter(|offer| entries[offer.entry].retract(offer.ticket))
            .collect();
        if let Some(tenant) = &mut self.tenants[lane] {
            tenant.take_over(|assignment| taken_back.contains(assignment));
        }
        self.give_back(&taken_back);
    }

    /// What a lane was offered and has not begun, if it may be taken back.
    fn offers(&self, lane: usize) -> Vec<Assignment> {
        let entries = self.lanes.entries(lane);
        let Some(tenant) = self.tenants[lane]
            .as_ref()
            .filter(|tenant| tenant.settled.is_none())
        else {
            return Vec::new();
        };
        let is_offered = |assignment: &&Assignment| {
            entries[assignment.entry].state(assignment.ticket) == EntryState::Offered
        };
        tenant.assigned.iter().filter(is_offered).copied().collect()
    }

    /// Puts files back to the front of the queue.
    pub(super) fn give_back(&mut self, assignments: &[Assignment]) {
        let files: Vec<(u32, u64)> = assignments
            .iter()
            .map(|assignment| (assignment.file, assignment.ticket))
            .collect();
        self.ledger.give_back(&files);
    }
}
