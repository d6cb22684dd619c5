//! Who leads, and in which term.

use bumpless_election::{ElectionError, Fence, SharedLeaderElection};
use bumpless_heartbeat::HeartbeatError;

use crate::scene::{Scene, assert_refused, die, fence, follow, lead, open, register};

#[test]
fn the_first_leads_and_is_named_to_the_others() {
    let scene = Scene::new();
    let table = scene.table(4);
    let election = open(&table);
    let [one, two] = [(); 2].map(|()| register(&table));
    assert_eq!(
        (election.election_term(), election.current_leader()),
        (0, None)
    );
    let token = lead(&election, two);
    assert_eq!((token.term(), token.slot(), token.generation()), (1, 1, 1));
    let leader = follow(&election, one);
    assert_eq!((leader.slot, leader.generation), (1, 1));
    assert_eq!((leader.pid, leader.term), (std::process::id(), 1));
    assert_eq!(election.current_leader(), Some(leader));
    assert_eq!(lead(&election, two), token, "the same term");
    assert_eq!(election.am_i_leader(one).unwrap(), None);
    assert_eq!(election.am_i_leader(two).unwrap(), Some(token));
    assert_eq!(election.beat_as_leader(two).unwrap(), Some(token));
    assert_eq!(
        open(&table).current_leader(),
        Some(leader),
        "for all who open it"
    );
}

#[test]
fn stepping_down_and_claiming_is_one_hand_over_and_the_term_rises_by_one() {
    let scene = Scene::new();
    let table = scene.table(4);
    let election = open(&table);
    let [one, two] = [(); 2].map(|()| register(&table));
    for term in 1..=5 {
        let next = if term % 2 == 1 { one } else { two };
        let other = if term % 2 == 1 { two } else { one };
        assert_eq!(lead(&election, next).term(), term);
        assert!(!election.step_down(other).unwrap(), "never another's seat");
        assert!(election.step_down(next).unwrap());
        assert_eq!(
            (election.current_leader(), election.election_term()),
            (None, term)
        );
        assert!(!election.step_down(next).unwrap(), "no more");
    }
}

#[test]
fn whoever_finds_the_leader_gone_appoints_the_lowest_that_stands() {
    let scene = Scene::new();
    let table = scene.table(4);
    let election = open(&table);
    let handles = [(); 4].map(|()| register(&table));
    lead(&election, handles[0]);
    for handle in &handles[1..] {
        assert_eq!(follow(&election, *handle).slot, 0);
    }
    die(&table, handles[0]);
    assert_eq!(election.current_leader(), None);
    let leader = follow(&election, handles[3]);
    assert_eq!(
        (leader.slot, leader.term),
        (1, 2),
        "the lowest, not the caller"
    );
    assert_eq!(
        election.am_i_leader(handles[1]).unwrap().map(|t| t.term()),
        Some(2)
    );
    // Who stands no more is passed over.
    election.step_down(handles[2]).unwrap();
    die(&table, handles[1]);
    assert_eq!(lead(&election, handles[3]).term(), 3);
}

#[test]
fn a_fenced_leader_learns_it_and_its_token_is_refused_behind_the_next() {
    let scene = Scene::new();
    let table = scene.table(4);
    let election = open(&table);
    let [late, next] = [(); 2].map(|()| register(&table));
    let mut sink = Fence::new();
    let old = lead(&election, late);
    sink.admit(&old).unwrap();
    follow(&election, next);
    fence(&table, late);
    for told in [election.am_i_leader(late), election.beat_as_leader(late)] {
        assert_refused!(
            told,
            ElectionError::Table(HeartbeatError::Fenced { slot: 0, .. })
        );
    }
    assert_refused!(
        election.try_claim_leadership(late),
        ElectionError::Table(HeartbeatError::Fenced { slot: 0, .. })
    );
    let new = lead(&election, next);
    assert_eq!(new.term(), old.term() + 1);
    sink.admit(&new).unwrap();
    assert_refused!(
        sink.admit(&old),
        ElectionError::TermOver {
            term: 1,
            highest: 2
        }
    );
}

#[test]
fn a_leader_that_unregisters_leads_no_more_and_its_slots_next_owner_does_not_either() {
    let scene = Scene::new();
    let table = scene.table(1);
    let election = open(&table);
    let first = register(&table);
    lead(&election, first);
    table.unregister(first).unwrap();
    assert_eq!(election.current_leader(), None);
    let second = register(&table);
    assert_eq!((second.slot(), second.generation()), (0, 2));
    assert_eq!(election.am_i_leader(second).unwrap(), None);
    assert_refused!(
        election.am_i_leader(first),
        ElectionError::Table(HeartbeatError::StaleHandle { .. })
    );
    assert_eq!(lead(&election, second).term(), 2);
    assert_refused!(
        election.step_down(first),
        ElectionError::Table(HeartbeatError::StaleHandle { .. })
    );
    assert!(election.am_i_leader(second).unwrap().is_some());
}

#[test]
fn a_live_leader_is_left_alone_unless_the_claimer_preempts() {
    let scene = Scene::new();
    let table = scene.table(3);
    let (election, preempting) = (open(&table), open(&table).preempting());
    let [low, high, higher] = [(); 3].map(|()| register(&table));
    lead(&election, high);
    assert_eq!(follow(&election, low).slot, 1);
    assert_eq!(
        follow(&preempting, higher).slot,
        1,
        "a higher one never preempts"
    );
    assert_eq!(lead(&preempting, low).term(), 2);
    assert_eq!(election.am_i_leader(high).unwrap(), None);
    assert_eq!(
        lead(&preempting, low).term(),
        2,
        "nor does the leader itself"
    );
}

#[test]
fn a_leader_that_withdrew_while_it_was_appointed_leads_nobody() {
    let scene = Scene::new();
    let table = scene.table(3);
    let election = open(&table);
    let [gone, other] = [(); 2].map(|()| register(&table));
    lead(&election, gone);
    // What is left when it withdraws its candidacy right before it is appointed.
    let path = scene.path("table.job.election");
    let bytes = std::fs::read(&path).unwrap();
    election.step_down(gone).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes[64..72], 64).unwrap();
    assert_eq!(election.current_leader(), None);
    assert_eq!(election.am_i_leader(gone).unwrap(), None);
    assert_eq!(lead(&election, other).term(), 2);
}

#[test]
fn elections_of_one_table_know_nothing_of_each_other() {
    let scene = Scene::new();
    let table = scene.table(4);
    let [one, two] = [(); 2].map(|()| register(&table));
    let other = SharedLeaderElection::open(&table, "other").unwrap();
    lead(&open(&table), one);
    assert_eq!(lead(&other, two).term(), 1);
}

#[test]
fn a_handle_of_another_table_is_refused() {
    let scene = Scene::new();
    let (table, elsewhere) = (
        scene.table(2),
        bumpless_heartbeat::HeartbeatTable::create(scene.path("elsewhere"), 2).unwrap(),
    );
    let election = open(&table);
    let stranger = register(&elsewhere);
    assert_refused!(
        election.try_claim_leadership(stranger),
        ElectionError::Table(HeartbeatError::StaleHandle { .. })
    );
    assert_eq!(election.election_term(), 0);
}
