//! Links over real sockets on the loopback.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;

use bumpless_standby::link::{FRAME_LEN_MAX, Link, LinkError, Server, UdpLink, UdpServer};

use crate::link_scene::{address, await_frame, await_request, await_some};
use crate::peer::{Peer, done, plays, say};

/// Both ends of a link over so many paths, and their addresses.
fn pair(paths: usize) -> (UdpLink, UdpLink, Vec<(SocketAddr, SocketAddr)>) {
    let here: Vec<_> = (0..paths).map(|_| (address(), address())).collect();
    let there: Vec<_> = here.iter().map(|(own, partner)| (*partner, *own)).collect();
    let connect = |paths: &[_]| UdpLink::connect(paths).unwrap();
    (connect(&here), connect(&there), here)
}

#[test]
fn a_frame_arrives_whole_over_every_path_and_the_paths_take_turns() {
    let (mut a, mut b, _) = pair(2);
    let frames = [vec![1; 1300], vec![2; FRAME_LEN_MAX], vec![3]];
    let rounds = await_some("six frames by turns", || {
        frames.iter().for_each(|frame| a.send(frame));
        let got: Vec<_> = (0..6).map(|_| await_frame(&mut b)).collect();
        for path in 0..2 {
            let over: Vec<_> = got.iter().filter(|(over, _)| *over == path).collect();
            assert!(
                over.iter().map(|(_, frame)| frame).eq(&frames),
                "path {path}"
            );
        }
        // A frame that comes late misses its turn.
        got.chunks(2)
            .all(|pair| pair[0].0 != pair[1].0)
            .then_some(a.counts().sent / 6)
    });
    assert_eq!(b.receive(&mut Vec::new()), None);
    assert_eq!(b.counts().received, 6 * rounds);
}

#[test]
fn a_storm_from_another_address_never_reaches_a_connected_socket() {
    let (mut a, mut b, paths) = pair(1);
    let stranger = UdpSocket::bind(address()).unwrap();
    let mut frame = Vec::new();
    for round in 0..200_u8 {
        for _ in 0..100 {
            // The kernel says that nobody listens there.
            let _ = stranger.send_to(&[0xff; 200], paths[0].1);
        }
        a.send(&[round]);
        assert_eq!(await_frame(&mut b), (0, vec![round]));
        assert_eq!(b.receive(&mut frame), None);
    }
    let counts = b.counts();
    assert_eq!((counts.received, counts.errors), (200, 0));
}

#[test]
fn empty_and_oversized_datagrams_are_counted_and_dropped_and_keep_nothing_back() {
    let (own, partner) = (address(), address());
    let raw = UdpSocket::bind(partner).unwrap();
    let mut link = UdpLink::connect(&[(own, partner)]).unwrap();
    for _ in 0..5 {
        raw.send_to(&[], own).unwrap();
        raw.send_to(&vec![7; FRAME_LEN_MAX + 1], own).unwrap();
        raw.send_to(&vec![7; 65_507], own).unwrap();
    }
    raw.send_to(b"frame", own).unwrap();
    assert_eq!(await_frame(&mut link), (0, b"frame".to_vec()));
    let counts = link.counts();
    assert_eq!(
        (counts.received, counts.empty, counts.oversized),
        (1, 5, 10)
    );
}

/// A caller that takes so many frames in a cycle does so much work, whatever there is.
#[test]
fn one_call_takes_one_datagram_also_of_those_that_it_drops() {
    let (own, partner) = (address(), address());
    let raw = UdpSocket::bind(partner).unwrap();
    let mut link = UdpLink::connect(&[(own, partner)]).unwrap();
    let junk: [&[u8]; 3] = [&[], &[7; FRAME_LEN_MAX + 1], b"junk"];
    for _ in 0..10 {
        for datagram in junk {
            raw.send_to(datagram, own).unwrap();
        }
    }
    let mut frame = Vec::new();
    for calls in 1..=30 {
        await_some("junk", || link.receive(&mut frame));
        let counts = link.counts();
        assert_eq!(counts.received + counts.empty + counts.oversized, calls);
    }
    assert_eq!(link.receive(&mut frame), None);
}

/// More junk than any queue holds, without a call in between.
#[test]
fn a_storm_of_junk_at_a_server_takes_no_room_from_requests() {
    let at = address();
    let mut server = UdpServer::bind(at).unwrap();
    let stranger = UdpSocket::bind(address()).unwrap();
    let mut link = UdpLink::connect(&[(address(), at)]).unwrap();
    let junk: [&[u8]; 4] = [&[], b"BLS", b"BLSC and more", &[0xff; 1000]];
    for _ in 0..5_000 {
        for datagram in junk {
            stranger.send_to(datagram, at).unwrap();
        }
    }
    link.send(b"BLSB");
    let (_, frame) = await_request(&mut server);
    assert_eq!(frame, b"BLSB");
    let counts = server.counts();
    assert_eq!((counts.received, counts.empty), (1, 0));
}

#[test]
fn what_cannot_be_a_datagram_is_not_sent_and_counted() {
    let (mut a, mut b, _) = pair(2);
    a.send(&[]);
    a.send(&vec![0; FRAME_LEN_MAX + 1]);
    assert_eq!((a.counts().sent, a.counts().unsent), (0, 4));
    assert_eq!(b.receive(&mut vec![1]), None);
}

#[test]
fn a_partner_that_is_not_there_is_no_error_and_the_first_frame_after_it_came_arrives() {
    let (own, partner) = (address(), address());
    let mut link = UdpLink::connect(&[(own, partner)]).unwrap();
    await_some("word that nobody listens", || {
        link.send(b"nobody listens");
        assert_eq!(link.receive(&mut Vec::new()), None);
        (link.counts().errors > 0).then_some(())
    });
    // The answer to this one, "nobody listens", waits in the socket while the partner starts.
    link.send(b"nobody listens");
    let mut there = UdpLink::connect(&[(partner, own)]).unwrap();
    link.send(b"frame");
    assert_eq!(await_frame(&mut there), (0, b"frame".to_vec()));
    there.send(b"answer");
    assert_eq!(await_frame(&mut link), (0, b"answer".to_vec()));
}

#[test]
fn a_cut_path_takes_nothing_from_the_other_one() {
    let (first, second) = ((address(), address()), (address(), address()));
    let mut link = UdpLink::connect(&[first, second]).unwrap();
    let mut there = UdpLink::connect(&[(second.1, second.0)]).unwrap();
    for round in 0..20_u8 {
        link.send(&[round]);
        assert_eq!(await_frame(&mut there), (0, vec![round]));
        there.send(&[round]);
        assert_eq!(await_frame(&mut link), (1, vec![round]));
    }
}

#[test]
fn three_cycles_of_a_state_of_64_kib_wait_in_the_queue() {
    let (mut a, mut b, _) = pair(1);
    for part in 0..3 * 55_u8 {
        a.send(&[part; 1300]);
    }
    for part in 0..3 * 55_u8 {
        assert_eq!(await_frame(&mut b).1, [part; 1300]);
    }
    assert_eq!(a.counts().unsent, 0);
}

#[test]
fn a_server_answers_whoever_asks_and_only_it() {
    let at = address();
    let mut server = UdpServer::bind(at).unwrap();
    assert_eq!(server.address().unwrap(), at);
    let nodes = [address(), address()];
    let mut links = nodes.map(|node| UdpLink::connect(&[(node, at)]).unwrap());
    for (name, link) in [b"BLSB a", b"BLSB b"].into_iter().zip(&mut links) {
        link.send(name);
    }
    for _ in 0..2 {
        let (peer, frame) = await_request(&mut server);
        server.send(peer, &frame);
    }
    for (name, link) in [b"BLSB a", b"BLSB b"].into_iter().zip(&mut links) {
        assert_eq!(await_frame(link), (0, name.to_vec()));
        assert_eq!(link.receive(&mut Vec::new()), None);
    }
    assert_eq!((server.counts().sent, server.counts().received), (2, 2));
}

#[test]
fn a_server_is_not_kept_from_anybody_by_a_client_that_is_gone() {
    let at = address();
    let mut server = UdpServer::bind(at).unwrap();
    let gone = UdpSocket::bind(address()).unwrap();
    gone.send_to(b"BLSB", at).unwrap();
    let (peer, _) = await_request(&mut server);
    drop(gone);
    let mut link = UdpLink::connect(&[(address(), at)]).unwrap();
    for round in 0..10_u8 {
        server.send(peer, b"to nobody");
        let request = [b"BLSB", &[round][..]].concat();
        link.send(&request);
        let (peer, frame) = await_request(&mut server);
        server.send(peer, &frame);
        assert_eq!(await_frame(&mut link), (0, request));
    }
}

#[test]
fn a_link_has_one_path_or_two_and_an_address_of_its_own() {
    let paths: Vec<_> = (0..3).map(|_| (address(), address())).collect();
    for found in [0, 3] {
        let error = UdpLink::connect(&paths[..found]).unwrap_err();
        assert!(
            matches!(error, LinkError::Paths { limit: 2, .. }),
            "{error}"
        );
    }
    let _first = UdpLink::connect(&paths[..1]).unwrap();
    let error = UdpLink::connect(&paths[..2]).unwrap_err();
    let wanted = format!("cannot bind a socket to {}: ", paths[0].0);
    assert!(error.to_string().starts_with(&wanted), "{error}");
}

#[test]
fn a_partner_that_is_killed_and_started_again_goes_on() {
    if let Some(folder) = plays("echo") {
        return echo(&folder);
    }
    let folder = tempfile::tempdir().unwrap();
    let (own, partner) = (address(), address());
    let text = format!("{partner} {own}");
    std::fs::write(folder.path().join("addresses"), text).unwrap();
    let mut link = UdpLink::connect(&[(own, partner)]).unwrap();
    for life in 0..3_u8 {
        let start = a_partner_that_is_killed_and_started_again_goes_on;
        let mut peer = Peer::start(&[], start, "echo", folder.path());
        assert_eq!(peer.hear().unwrap(), "ready");
        link.send(&[life]);
        assert_eq!(await_frame(&mut link), (0, vec![life]));
        peer.kill();
        link.send(b"to a dead one");
    }
    assert_eq!(link.counts().received, 3);
}

/// Sends back what it gets until it is killed.
fn echo(folder: &Path) {
    let text = std::fs::read_to_string(folder.join("addresses")).unwrap();
    let (own, partner) = text.split_once(' ').unwrap();
    let path = (own.parse().unwrap(), partner.parse().unwrap());
    let mut link = UdpLink::connect(&[path]).unwrap();
    say("ready");
    let (_, frame) = await_frame(&mut link);
    link.send(&frame);
    say("sent");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    done()
}
