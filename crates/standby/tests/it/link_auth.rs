//! Frames that only holders of the key can make.

use std::collections::VecDeque;
use std::os::unix::fs::PermissionsExt;

use bumpless_standby::NodeId;
use bumpless_standby::link::auth::{ACTUATOR, TRAILER_LEN};
use bumpless_standby::link::{
    Authenticated, FRAME_LEN_MAX, Key, Link, LinkCounts, LinkError, Server, UdpLink, UdpServer,
};

use crate::link_scene::{address, await_frame, await_request};

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);

/// Sends nothing anywhere, and delivers what the test puts in.
#[derive(Default)]
struct Wire {
    arriving: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
    received: u64,
}

impl Link for &mut Wire {
    fn send(&mut self, frame: &[u8]) {
        self.sent.push(frame.to_vec());
    }

    fn receive(&mut self, frame: &mut Vec<u8>) -> Option<u8> {
        *frame = self.arriving.pop_front()?;
        self.received += 1;
        Some(0)
    }

    fn counts(&self) -> LinkCounts {
        LinkCounts {
            received: self.received,
            ..LinkCounts::default()
        }
    }
}

fn key(fill: u8) -> Key {
    Key::new(&[fill; 32]).unwrap()
}

/// What this sender with this key puts on the wire.
fn sealed(key: Key, sender: NodeId, frame: &[u8]) -> Vec<u8> {
    let mut wire = Wire::default();
    Authenticated::new(&mut wire, key, sender).send(frame);
    wire.sent.remove(0)
}

/// How many of these the receiver takes, and what it says of the rest.
fn taken(receiver: NodeId, arriving: impl IntoIterator<Item = Vec<u8>>) -> (u64, u64) {
    let mut wire = Wire {
        arriving: arriving.into_iter().collect(),
        ..Wire::default()
    };
    let mut link = Authenticated::new(&mut wire, key(1), receiver);
    let (mut frame, mut whole) = (Vec::new(), 0);
    while link.receive(&mut frame).is_some() {
        whole += u64::from(!frame.is_empty());
    }
    assert_eq!(link.counts().received, whole);
    (whole, link.counts().unauthentic)
}

/// From an implementation that is not ours.
#[test]
fn the_trailer_is_sender_and_half_an_hmac() {
    let bytes: Vec<u8> = (0..32).collect();
    let found = sealed(Key::new(&bytes).unwrap(), B, b"frame");
    let tag = [
        0xf8, 0x36, 0x02, 0xe4, 0xc0, 0xe3, 0x45, 0x13, 0xde, 0x16, 0x22, 0x62, 0xb3, 0x22, 0x0a,
        0x02,
    ];
    assert_eq!(found, [&b"frame\x01"[..], &tag].concat());
}

#[test]
fn a_frame_with_any_bit_changed_or_any_bytes_cut_off_is_dropped() {
    let good = sealed(key(1), B, b"the state of the plant");
    let flipped = (0..good.len() * 8).map(|bit| {
        let mut frame = good.clone();
        frame[bit / 8] ^= 1 << (bit % 8);
        frame
    });
    let cut = (1..good.len()).flat_map(|len| [good[..len].to_vec(), good[len..].to_vec()]);
    let bad: Vec<_> = flipped.chain(cut).collect();
    let count = bad.len() as u64;
    assert_eq!(taken(A, bad), (0, count));
    assert_eq!(taken(A, [good]), (1, 0));
}

#[test]
fn a_frame_of_another_key_or_of_none_is_dropped() {
    let foreign = sealed(key(2), B, b"frame");
    assert_eq!(taken(A, [foreign, b"frame".to_vec()]), (0, 2));
}

#[test]
fn a_frame_that_comes_back_to_its_sender_is_dropped_and_one_of_the_others_is_not() {
    let of = |sender| sealed(key(1), sender, b"frame");
    assert_eq!(taken(A, [of(A)]), (0, 1));
    assert_eq!(taken(A, [of(B), of(ACTUATOR)]), (2, 0));
    assert_eq!(taken(ACTUATOR, [of(A), of(B), of(ACTUATOR)]), (2, 1));
}

#[test]
fn a_frame_leaves_room_for_its_trailer_or_is_not_sent() {
    let (own, partner) = (address(), address());
    let connect = |path| UdpLink::connect(&[path]).unwrap();
    let mut a = Authenticated::new(connect((own, partner)), key(1), A);
    let mut b = Authenticated::new(connect((partner, own)), key(1), B);
    let longest = vec![5; FRAME_LEN_MAX - TRAILER_LEN];
    a.send(&longest);
    assert_eq!(await_frame(&mut b), (0, longest.clone()));
    a.send(&[longest, vec![5]].concat());
    a.send(&[]);
    assert_eq!((a.counts().sent, a.counts().unsent), (1, 2));
    assert_eq!(b.receive(&mut Vec::new()), None);
}

#[test]
fn a_server_answers_those_who_have_the_key() {
    let at = address();
    let mut server = Authenticated::new(UdpServer::bind(at).unwrap(), key(1), ACTUATOR);
    let connect = || UdpLink::connect(&[(address(), at)]).unwrap();
    let mut stranger = Authenticated::new(connect(), key(2), A);
    let mut node = Authenticated::new(connect(), key(1), A);
    stranger.send(b"BLSB drive");
    let (_, frame) = await_request(&mut server);
    assert!(frame.is_empty());
    node.send(b"BLSB drive");
    let (peer, frame) = await_request(&mut server);
    assert_eq!(frame, b"BLSB drive");
    server.send(peer, b"ack");
    assert_eq!(await_frame(&mut node), (0, b"ack".to_vec()));
    let counts = server.counts();
    assert_eq!((counts.received, counts.unauthentic), (1, 1));
}

#[test]
fn a_key_comes_from_a_file_that_only_its_owner_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pair.key");
    let write = |bytes: &[u8], mode| {
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    };
    write(&[1; 32], 0o600);
    let read = Key::from_file(&path).unwrap();
    assert_eq!(sealed(read.clone(), A, b"x"), sealed(key(1), A, b"x"));
    assert_eq!(format!("{read:?}"), "Key(..)");
    for mode in [0o640, 0o604, 0o620] {
        write(&[1; 32], mode);
        let error = Key::from_file(&path).unwrap_err();
        assert!(matches!(error, LinkError::KeyMode { found, .. } if found == mode));
    }
    for len in [0, 31, 4097, 9000] {
        write(&vec![1; len], 0o600);
        let error = Key::from_file(&path).unwrap_err();
        assert!(
            matches!(error, LinkError::KeyLen { found, .. } if found == len.min(4097)),
            "{error}"
        );
    }
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    for nothing in [folder.path().to_owned(), folder.path().join("absent"), pipe] {
        let error = Key::from_file(&nothing).unwrap_err();
        assert!(matches!(error, LinkError::KeyFile { .. }), "{error}");
    }
}
