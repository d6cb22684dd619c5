//! Every field of every frame, at its offset. The assertions hold at compile time: fields follow each
//! other without a gap, and fill their block.
//!
//! ```text
//!   header ││ heartbeat ││ part ││ bytes of the part ││ CRC
//!   header ││ fragment  ││ part ││ bytes of the part ││ CRC
//!   header ││ request   ││ bytes of the value        ││ CRC
//!   header ││ reply                                  ││ CRC
//!       48         48      24                            4     heartbeat
//!                   8      24                                  fragment
//!                   8                                          request
//!                  48                                          reply
//! ```
//!
//! The offsets of a block count from its own start.

use crate::field::block;

/// The first bytes of every frame of every version: bumpless, standby.
pub const MAGIC: [u8; 4] = *b"BLSB";

/// Of the layout. It rises with every change.
pub const VERSION: u16 = 1;

pub const HEADER_LEN: usize = 48;
pub const HEARTBEAT_LEN: usize = 48;
pub const FRAGMENT_LEN: usize = 8;
pub const PART_LEN: usize = 24;
pub const REQUEST_LEN: usize = 8;
pub const REPLY_LEN: usize = 48;
pub const CRC_LEN: usize = 4;

block! { header, HEADER_LEN;
    MAGIC: u32 = 0,
    VERSION: u16 = 4,
    KIND: u8 = 6,
    CODE: u8 = 7,
    CLUSTER: u64 = 8,
    INCARNATION: u64 = 16,
    EPOCH_COUNTER: u64 = 24,
    SEQ: u64 = 32,
    EPOCH_OWNER: u8 = 40,
    NODE: u8 = 41,
    FLAGS: u16 = 42,
    PAYLOAD_LEN: u32 = 44,
}

block! { heartbeat, HEARTBEAT_LEN;
    PROGRAM: u64 = 0,
    SCHEMA: u64 = 8,
    ECHO: u64 = 16,
    HELD_COUNTER: u64 = 24,
    HELD_SEQ: u64 = 32,
    INPUT_DIGEST: u32 = 40,
    HELD_OWNER: u8 = 44,
    HEARD_PATHS: u8 = 45,
    ZERO: u16 = 46,
}

block! { fragment, FRAGMENT_LEN;
    SCHEMA: u64 = 0,
}

block! { part, PART_LEN;
    KIND: u8 = 0,
    ZERO_8: u8 = 1,
    ZERO_16: u16 = 2,
    TOTAL_LEN: u32 = 4,
    OFFSET: u32 = 8,
    STATE_DIGEST: u32 = 12,
    BASE_SEQ: u64 = 16,
}

block! { request, REQUEST_LEN;
    ACTUATOR: u64 = 0,
}

block! { reply, REPLY_LEN;
    ACTUATOR: u64 = 0,
    LEVEL_COUNTER: u64 = 8,
    LAST_SEQ: u64 = 16,
    GRANTED_COUNTER: u64 = 24,
    IDLE_NS: u64 = 32,
    LEVEL_OWNER: u8 = 40,
    GRANTED_OWNER: u8 = 41,
    REFUSAL: u8 = 42,
    ZERO_8: u8 = 43,
    ZERO_32: u32 = 44,
}
