//! Frames byte by byte: golden, damaged, cut off, of another version, with values that mean nothing.

use bumpless_standby::frame::{Frame, FrameError, VERSION, decode, encode_request, encode_sample};
use bumpless_standby::message::{Action, Flags, Request};

use crate::golden;

const AT_VERSION: usize = 4;
const AT_KIND: usize = 6;
const AT_CODE: usize = 7;
const AT_FLAGS: usize = 42;
const AT_PAYLOAD_LEN: usize = 44;
const PAYLOAD: usize = 48;
/// Behind the heartbeat's fields.
const AT_HEARTBEAT_PART: usize = PAYLOAD + 48;
/// Behind the fragment's.
const AT_FRAGMENT_PART: usize = PAYLOAD + 8;

/// Puts the CRC of the bytes before it at the end, as a program with a mistake would.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let covered = bytes.len() - 4;
    let crc = crc32c::crc32c(&bytes[..covered]);
    bytes[covered..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The error of a golden frame with some bytes changed and the CRC made right again.
fn error_of(bytes: &[u8], changes: &[(usize, u8)]) -> FrameError {
    let mut bytes = bytes.to_vec();
    for (at, byte) in changes {
        bytes[*at] = *byte;
    }
    decode::<f64>(&resealed(bytes)).unwrap_err()
}

/// The error of a golden frame whose payload has other bytes from `at` on.
fn error_with_tail(bytes: &[u8], at: usize, tail: &[u8]) -> FrameError {
    let mut bytes = bytes[..at].to_vec();
    bytes.extend_from_slice(tail);
    let payload_len = (bytes.len() - PAYLOAD) as u32;
    bytes[AT_PAYLOAD_LEN..PAYLOAD].copy_from_slice(&payload_len.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    decode::<f64>(&resealed(bytes)).unwrap_err()
}

fn bytes_of(index: usize) -> Vec<u8> {
    golden::all().remove(index).1
}

#[test]
fn each_kind_has_its_golden_bytes_and_comes_back_from_them() {
    for (frame, bytes) in golden::all() {
        assert_eq!(golden::encode(&frame), bytes, "{frame:?}");
        assert_eq!(decode(&bytes), Ok(frame));
    }
    // `Unhashed` compares equal always.
    let Ok(Frame::<f64>::Heartbeat(heartbeat)) = decode(&bytes_of(0)) else {
        panic!("no heartbeat")
    };
    assert_eq!(heartbeat.heard_paths.0, 3);
}

#[test]
fn a_frame_is_appended_to_what_the_buffer_holds() {
    let mut bytes = vec![0xee; 3];
    encode_request(&golden::request(), &mut bytes);
    assert_eq!(bytes[..3], [0xee; 3]);
    assert_eq!(decode(&bytes[3..]), Ok(Frame::Request(golden::request())));
}

#[test]
fn every_single_bit_error_of_every_golden_frame_is_refused() {
    for (frame, bytes) in golden::all() {
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode::<f64>(&damaged).is_err(), "bit {bit} of {frame:?}");
        }
    }
}

#[test]
fn every_truncation_and_every_trailing_byte_is_refused() {
    for (_, bytes) in golden::all() {
        for len in 0..bytes.len() {
            assert!(decode::<f64>(&bytes[..len]).is_err(), "{len} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        let payload_len = bytes.len() - PAYLOAD - 4;
        let wanted = payload_len as u32;
        let found = payload_len + 1;
        assert_eq!(
            decode::<f64>(&longer),
            Err(FrameError::Length { found, wanted })
        );
    }
    let (found, wanted) = (51, 52);
    assert_eq!(
        decode::<f64>(&[0; 51]),
        Err(FrameError::TooShort { found, wanted })
    );
}

#[test]
fn two_frames_in_one_datagram_are_refused() {
    let bytes = bytes_of(3);
    let error = decode::<f64>(&[&bytes[..], &bytes[..]].concat());
    assert!(matches!(error, Err(FrameError::Length { .. })));
}

#[test]
fn another_version_is_refused_as_such_whatever_its_length_and_crc() {
    for version in [0, VERSION + 1, u16::MAX] {
        let mut bytes = bytes_of(0);
        bytes[AT_VERSION..AT_KIND].copy_from_slice(&version.to_le_bytes());
        let (found, wanted) = (version, VERSION);
        let refused = Err(FrameError::Version { found, wanted });
        assert_eq!(decode::<f64>(&bytes), refused);
        assert_eq!(decode::<f64>(&bytes[..60]), refused);
        assert_eq!(decode::<f64>(&resealed(bytes)), refused);
    }
    let error = FrameError::Version {
        found: 2,
        wanted: 1,
    };
    assert_eq!(error.to_string(), "frame of version 2, wanted 1");
}

#[test]
fn another_mark_is_refused() {
    let mut bytes = bytes_of(0);
    bytes[0] = b'X';
    let found = *b"XLSB";
    assert_eq!(decode::<f64>(&bytes), Err(FrameError::Magic { found }));
}

#[test]
fn unknown_kinds_codes_and_flags_are_refused_by_name() {
    let [heartbeat, fragment, request, nack] = [0, 2, 3, 5].map(bytes_of);
    let unknown = |what, found| FrameError::Unknown { what, found };
    for kind in [0, 6, 255] {
        assert_eq!(
            error_of(&heartbeat, &[(AT_KIND, kind)]),
            unknown("kind", kind.into())
        );
    }
    for standing in [7, 255] {
        let error = error_of(&heartbeat, &[(AT_CODE, standing)]);
        assert_eq!(error, unknown("standing", standing.into()));
    }
    assert_eq!(error_of(&request, &[(AT_CODE, 4)]), unknown("action", 4));
    let error = error_of(&nack, &[(AT_CODE, 3), (PAYLOAD + 42, 0)]);
    assert_eq!(error, unknown("verdict", 3));
    for refusal in [0, 8] {
        let error = error_of(&nack, &[(PAYLOAD + 42, refusal)]);
        assert_eq!(error, unknown("refusal", refusal.into()));
    }
    let error = error_of(&heartbeat, &[(AT_FLAGS, 0xff)]);
    assert_eq!(error, unknown("flags", 0xff & !u32::from(Flags::ALL.0)));
    let error = error_of(&heartbeat, &[(AT_FLAGS + 1, 0x80)]);
    assert_eq!(error, unknown("flags", 0x8000));
    // Flags of a kind that has none.
    assert_eq!(error_of(&request, &[(AT_FLAGS, 1)]), unknown("flags", 1));
    let error = error_of(&heartbeat, &[(AT_HEARTBEAT_PART, 3)]);
    assert_eq!(error, unknown("kind of part", 3));
    let error = error_with_tail(&fragment, AT_FRAGMENT_PART, &[0; 24]);
    assert_eq!(error, unknown("kind of part", 0));
}

#[test]
fn bytes_without_meaning_must_be_zero() {
    let [heartbeat, bare, fragment, grant, nack] = [0, 1, 2, 4, 5].map(bytes_of);
    for (bytes, at) in [
        (&heartbeat, PAYLOAD + 46),
        (&heartbeat, PAYLOAD + 47),
        (&heartbeat, AT_HEARTBEAT_PART + 1),
        (&heartbeat, AT_HEARTBEAT_PART + 3),
        (&bare, AT_HEARTBEAT_PART + 4),
        (&bare, AT_HEARTBEAT_PART + 8),
        (&bare, AT_HEARTBEAT_PART + 12),
        (&bare, AT_HEARTBEAT_PART + 16),
        (&fragment, AT_CODE),
        (&fragment, AT_FRAGMENT_PART + 16),
        (&grant, PAYLOAD + 42),
        (&grant, PAYLOAD + 43),
        (&grant, PAYLOAD + 44),
        (&nack, PAYLOAD + 24),
        (&nack, PAYLOAD + 32),
        (&nack, PAYLOAD + 41),
    ] {
        let error = error_of(bytes, &[(at, 9)]);
        assert!(matches!(error, FrameError::NotZero { .. }), "{at}: {error}");
    }
}

#[test]
fn payloads_of_another_length_than_their_kind_are_refused() {
    let [heartbeat, bare, request, nack] = [0, 1, 3, 5].map(bytes_of);
    let (found, wanted) = (47, 48);
    let short = FrameError::Payload { found, wanted };
    assert_eq!(error_with_tail(&heartbeat, PAYLOAD + 47, &[]), short);
    let (found, wanted) = (23, 24);
    let short = FrameError::Payload { found, wanted };
    assert_eq!(
        error_with_tail(&heartbeat, AT_HEARTBEAT_PART + 23, &[]),
        short
    );
    let trailing = FrameError::Trailing { found: 2 };
    assert_eq!(
        error_with_tail(&bare, AT_HEARTBEAT_PART, &[0; 26]),
        trailing
    );
    assert_eq!(error_with_tail(&nack, PAYLOAD + 48, &[0; 2]), trailing);
    let value = FrameError::Value { found: 7 };
    assert_eq!(error_with_tail(&request, PAYLOAD + 8, &[0; 7]), value);

    let mut probe = vec![];
    let action = Action::Probe;
    encode_request(
        &Request {
            action,
            ..golden::request()
        },
        &mut probe,
    );
    assert_eq!(error_with_tail(&probe, PAYLOAD + 8, &[0; 2]), trailing);
}

#[test]
fn a_sample_is_nobodys_and_of_no_epoch() {
    let mut sample = vec![];
    encode_sample(&golden::sample(), &mut sample);
    for (at, what) in [
        (7, "code of a sample"),
        (41, "node of a sample"),
        (24, "epoch of a sample"),
        (40, "epoch owner of a sample"),
    ] {
        assert_eq!(
            error_of(&sample, &[(at, 1)]),
            FrameError::NotZero { what, found: 1 }
        );
    }
}
