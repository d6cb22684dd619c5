//! Mailboxes in real files, with writers that are killed.

use std::os::unix::fs::FileExt;
use std::path::Path;

use bumpless_standby::link::{
    End, FRAME_LEN_MAX, Link, LinkError, MailboxLink, MailboxServer, Server,
};
use bumpless_substrate::region::RegionError;
use proptest::prelude::*;

use crate::link_scene::{await_frame, await_some};
use crate::peer::{Peer, done, plays, say};

const FRAME_LEN: usize = 256;
const PREAMBLE_LEN: usize = 64;
/// A head, the heads of 32 buffers, and the buffers.
const LANE_LEN: usize = 64 + 32 * 16 + 32 * FRAME_LEN;

fn open(path: &Path, end: End) -> MailboxLink {
    MailboxLink::create(path, end, FRAME_LEN).unwrap()
}

fn receive_all(link: &mut impl Link) -> Vec<Vec<u8>> {
    let (mut frames, mut frame) = (Vec::new(), Vec::new());
    while link.receive(&mut frame).is_some() {
        frames.push(frame.clone());
    }
    frames
}

#[test]
fn frames_arrive_whole_and_in_order_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mbox");
    let (mut a, mut b) = (open(&path, End::A), open(&path, End::B));
    let frames: Vec<Vec<u8>> = (1..=31)
        .map(|len| vec![len; usize::from(len) * 8])
        .collect();
    for frame in &frames {
        a.send(frame);
        b.send(&frame[1..]);
    }
    assert_eq!(receive_all(&mut b), frames);
    let shorter: Vec<_> = frames.iter().map(|frame| frame[1..].to_vec()).collect();
    assert_eq!(receive_all(&mut a), shorter);
    assert_eq!((a.counts().sent, a.counts().received), (31, 31));
}

#[test]
fn the_newest_frames_win_and_the_lost_ones_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mbox");
    let (mut a, mut b) = (open(&path, End::A), open(&path, End::B));
    for number in 0..100 {
        a.send(&[number]);
    }
    let newest: Vec<_> = (69..100).map(|number| vec![number]).collect();
    assert_eq!(receive_all(&mut b), newest);
    assert_eq!((b.counts().received, b.counts().overtaken), (31, 69));
}

#[test]
fn who_comes_later_gets_what_is_sent_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mbox");
    let mut a = open(&path, End::A);
    a.send(b"to nobody");
    let mut b = open(&path, End::B);
    a.send(b"to b");
    assert_eq!(receive_all(&mut b), [b"to b"]);
    drop(b);
    a.send(b"to nobody");
    let mut b = open(&path, End::B);
    assert_eq!(receive_all(&mut b), [b""; 0]);
    drop(a);
    let mut a = open(&path, End::A);
    a.send(b"of the second a");
    assert_eq!(receive_all(&mut b), [b"of the second a"]);
}

#[test]
fn what_is_empty_or_too_long_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mbox");
    let (mut a, mut b) = (open(&path, End::A), open(&path, End::B));
    a.send(&[]);
    a.send(&[1; FRAME_LEN + 1]);
    assert_eq!((a.counts().sent, a.counts().unsent), (0, 2));
    a.send(&[1; FRAME_LEN]);
    assert_eq!(receive_all(&mut b), [[1; FRAME_LEN]]);
}

#[test]
fn an_end_has_one_owner_and_both_ends_one_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mbox");
    let _a = open(&path, End::A);
    // Without locks on slots nobody is refused.
    if !cfg!(bumpless_portable) {
        let error = MailboxLink::create(&path, End::A, FRAME_LEN).unwrap_err();
        assert!(
            matches!(error, LinkError::EndHeld { end: End::A, .. }),
            "{error}"
        );
    }
    let error = MailboxLink::create(&path, End::B, 2 * FRAME_LEN).unwrap_err();
    assert!(
        matches!(
            error,
            LinkError::Region(RegionError::CapacityDiffers { .. })
        ),
        "{error}"
    );
    for found in [0, 63, FRAME_LEN_MAX + 1] {
        let error = MailboxLink::create(&path, End::B, found).unwrap_err();
        assert!(matches!(error, LinkError::FrameLen { .. }), "{error}");
    }
    let path = folder.path().join("longest");
    drop(MailboxLink::create(&path, End::B, FRAME_LEN_MAX).unwrap());
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 3_933_376);
}

#[test]
fn a_server_answers_each_node_in_its_own_mailbox_and_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["0", "1"].map(|name| folder.path().join(name));
    let mut server = MailboxServer::create(&paths, FRAME_LEN).unwrap();
    let mut nodes = [0, 1].map(|index: usize| open(&paths[index], End::A));
    for node in &mut nodes {
        (0..5).for_each(|number| node.send(&[number]));
    }
    let mut frame = Vec::new();
    let mut peers = Vec::new();
    while let Some(peer) = server.receive(&mut frame) {
        peers.push(peer);
        server.send(peer, &[peer as u8, frame[0]]);
    }
    assert_eq!(peers, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    for (index, node) in nodes.iter_mut().enumerate() {
        let wanted: Vec<_> = (0..5).map(|number| vec![index as u8, number]).collect();
        assert_eq!(receive_all(node), wanted);
    }
    server.send(2, b"to nobody");
    let counts = server.counts();
    assert_eq!((counts.sent, counts.received, counts.unsent), (10, 10, 1));
}

/// A frame that shows whether it is whole: its number, and bytes that follow from it.
fn numbered(number: u64) -> Vec<u8> {
    let len = 8 + (number % 240) as usize;
    let mut frame = number.to_le_bytes().to_vec();
    frame.resize(len, number as u8);
    frame
}

#[track_caller]
fn check_whole(frame: &[u8]) -> u64 {
    let number = u64::from_le_bytes(frame[..8].try_into().unwrap());
    assert_eq!(frame, numbered(number), "torn");
    number
}

#[test]
fn a_writer_that_is_killed_leaves_whole_frames_and_the_next_one_goes_on() {
    if let Some(folder) = plays("writer") {
        return send_until_killed(&folder);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut reader = open(&folder.path().join("mbox"), End::B);
    let mut frame = Vec::new();
    let mut taken = 0;
    for _ in 0..5 {
        let start = a_writer_that_is_killed_leaves_whole_frames_and_the_next_one_goes_on;
        let mut peer = Peer::start(&[], start, "writer", folder.path());
        assert_eq!(peer.hear().unwrap(), "ready");
        let mut last = None;
        await_some("a thousand frames", || {
            reader.receive(&mut frame)?;
            let number = check_whole(&frame);
            assert!(last < Some(number), "{number} after {last:?}");
            last = Some(number);
            taken += 1;
            (taken % 1_000 == 0).then_some(())
        });
        peer.kill();
        while reader.receive(&mut frame).is_some() {
            check_whole(&frame);
        }
    }
    // The kernel drops the dead one's lock a little later than the rest of it.
    let path = folder.path().join("mbox");
    let mut writer = await_some("the end of a dead one", || {
        MailboxLink::create(&path, End::A, FRAME_LEN).ok()
    });
    writer.send(b"goes on");
    assert_eq!(await_frame(&mut reader), (0, b"goes on".to_vec()));
}

fn send_until_killed(folder: &Path) {
    let path = folder.join("mbox");
    let mut writer = await_some("the end of a dead one", || {
        MailboxLink::create(&path, End::A, FRAME_LEN).ok()
    });
    say("ready");
    for number in 0..u64::MAX {
        writer.send(&numbered(number));
        if number % 16 == 0 {
            // Flat out it would overtake a reader for ever.
            std::thread::yield_now();
        }
    }
    done()
}

/// Noise, or the same byte everywhere.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let len = 2 * LANE_LEN;
    prop_oneof![
        8 => proptest::collection::vec(any::<u8>(), len),
        1 => any::<u8>().prop_map(move |byte| vec![byte; len]),
        // The heads alone: then the marks can fit.
        1 => proptest::collection::vec(0_u8..3, 64 + 32 * 16),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_the_bytes_every_call_returns_and_the_next_frame_gets_through(
        before in any_bytes(),
        opens_after in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mbox");
        let (mut a, mut b) = (open(&path, End::A), open(&path, End::B));
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(&before, PREAMBLE_LEN as u64).unwrap();
        if opens_after {
            drop(b);
            b = open(&path, End::B);
        }
        let mut frame = Vec::new();
        for _ in 0..40 {
            for link in [&mut a, &mut b] {
                let took = link.receive(&mut frame);
                prop_assert!(frame.len() <= FRAME_LEN && (took.is_some() || frame.is_empty()));
            }
        }
        a.send(b"good");
        prop_assert!((0..40).any(|_| b.receive(&mut frame).is_some() && frame == b"good"));
        b.send(b"answer");
        prop_assert!((0..40).any(|_| a.receive(&mut frame).is_some() && frame == b"answer"));
        let end = (PREAMBLE_LEN + 2 * LANE_LEN) as u64;
        prop_assert_eq!(std::fs::metadata(&path).unwrap().len(), end);
    }
}
