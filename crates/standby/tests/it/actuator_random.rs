//! Whatever the two nodes ask, in whatever order, over restarts and failures of the memory.

use bumpless_standby::message::{Action, Request, Verdict};
use bumpless_standby::{Epoch, NodeId};
use proptest::prelude::*;

use crate::plant::{A, B, Plant, request};

#[derive(Debug, Clone)]
enum Step {
    Send {
        node: NodeId,
        incarnation: u64,
        epoch: Epoch,
        seq: u64,
        has_heard: bool,
        action: Action<i64>,
    },
    Restart,
    Fill(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let action = prop_oneof![
        6 => any::<i64>().prop_map(Action::Drive),
        1 => Just(Action::Probe),
        1 => Just(Action::Confirm),
        3 => Just(Action::Reserve),
    ];
    let node = prop_oneof![Just(A), Just(B)];
    let epoch = (0..12_u64, node.clone()).prop_map(|(counter, owner)| Epoch::new(counter, owner));
    let send = (node, 0..2_u64, epoch, 0..6_u64, any::<bool>(), action).prop_map(
        |(node, incarnation, epoch, seq, has_heard, action)| Step::Send {
            node,
            incarnation,
            epoch,
            seq,
            has_heard,
            action,
        },
    );
    let step = prop_oneof![
        20 => send,
        1 => Just(Step::Restart),
        1 => any::<bool>().prop_map(Step::Fill),
    ];
    proptest::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_is_asked_the_level_never_falls_outputs_go_on_and_grants_are_unique(steps in steps()) {
        let mut plant = Plant::at(Epoch::NONE);
        let (mut last_output, mut grants) = (None, Vec::<(NodeId, u64, Epoch)>::new());
        let mut level = plant.actuator.level();
        for step in steps {
            match step {
                Step::Restart => plant.restart(),
                Step::Fill(is_full) => plant.memory.is_full = is_full,
                Step::Send { node, incarnation, epoch, seq, has_heard, action } => {
                    let drives = matches!(action, Action::Drive(_));
                    let actuator = if has_heard { plant.life() } else { 0 };
                    let request = Request { incarnation, actuator, ..request(node, epoch, seq, action) };
                    match plant.send(&request).unwrap().verdict {
                        Verdict::Ack if drives => {
                            prop_assert_eq!(epoch.owner(), node);
                            // Over a restart the cycle is not remembered: the owner sends in order then.
                            let now = (epoch, plant.life(), seq);
                            prop_assert!(Some(now) > last_output, "{:?} behind {:?}", now, last_output);
                            last_output = Some(now);
                        }
                        Verdict::Granted { epoch, .. } => {
                            prop_assert_eq!(epoch.owner(), node);
                            prop_assert!(epoch > request.epoch && epoch > level);
                            let asker = (node, incarnation, epoch);
                            let same_life = grants.contains(&asker);
                            prop_assert!(same_life || grants.iter().all(|grant| grant.2 < epoch));
                            grants.push(asker);
                        }
                        _ => {}
                    }
                }
            }
            prop_assert!(plant.actuator.level() >= level);
            level = plant.actuator.level();
        }
    }
}
