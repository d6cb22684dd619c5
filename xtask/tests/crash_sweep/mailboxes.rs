//! What victims do in the shared memory of a standby pair, and who reads there.
//!
//! Contract: the reader was there before the victim came, and has read nothing yet. After the death it
//! finds what was there before, and what the victim wrote as a whole or not at all; and the next writer
//! goes on at once.

use anyhow::{Context, Result};
use bumpless_standby::link::{End, Link, MailboxLink};
use bumpless_standby::node::{Counts, Redundancy, State, Status};
use bumpless_standby::tag::{TagReader, TagSnapshot, TagWriter};
use bumpless_standby::{Epoch, NodeId};
use bumpless_substrate::proof::Proof;
use bumpless_substrate::region::Access;

use crate::findings::{Findings, Kind};
use crate::stage::Stage;
use crate::victim::Window;

const FRAME_LEN: usize = 128;
/// More than wait for a reader: the victim's frame goes where an older one is.
const BEFORE: u8 = 40;
/// So many wait.
const WAITING: u8 = 31;

/// A frame of which every byte, and the length, is its number.
fn frame(number: u8) -> Vec<u8> {
    vec![number; number.into()]
}

fn status(number: u8) -> Status {
    let number = number.into();
    Status {
        node: NodeId(0),
        incarnation: number,
        state: State::Solo,
        epoch: Epoch::new(number, NodeId(0)),
        cycle: Some(number),
        redundancy: Redundancy::Lost,
        partner: None,
        checkpoint_len: [0; 3],
        paths: Vec::new(),
        active_alarms: Default::default(),
        latched_alarms: Default::default(),
        service_level: 200,
        redundancy_support: 3,
        counts: Counts {
            states_different: number,
            ..Counts::default()
        },
    }
}

/// Sends a frame over the oldest one.
pub fn send(stage: &Stage, window: &Window) -> Result<()> {
    let mut link = MailboxLink::create(stage.table(), End::A, FRAME_LEN)?;
    (1..=BEFORE).for_each(|number| link.send(&frame(number)));
    let next = frame(BEFORE + 1);
    window.open();
    link.send(&next);
    window.close();
    Ok(())
}

/// Writes a tag over the oldest one.
pub fn write_tag(stage: &Stage, window: &Window) -> Result<()> {
    let mut writer = TagWriter::create(stage.table(), Access::Private)?;
    (1..=BEFORE).for_each(|number| writer.write(&status(number), None, number.into()));
    let next = status(BEFORE + 1);
    window.open();
    writer.write(&next, None, (BEFORE + 1).into());
    window.close();
    Ok(())
}

/// Who reads what the victim wrote.
#[derive(Debug)]
pub enum Recipient {
    /// The other end of the mailbox.
    Mailbox(MailboxLink),
    /// Anybody.
    Tag(TagReader),
}

impl Recipient {
    /// The other end of a new mailbox.
    pub fn of_mailbox(stage: &Stage) -> Result<Self> {
        let link = MailboxLink::create(stage.table(), End::B, FRAME_LEN)?;
        Ok(Self::Mailbox(link))
    }

    /// A reader of a new tag.
    pub fn of_tag(stage: &Stage) -> Result<Self> {
        drop(TagWriter::create(stage.table(), Access::Private)?);
        Ok(Self::Tag(TagReader::open(stage.table())?))
    }

    /// What it finds, and what the next writer can do.
    pub fn look(self, stage: &Stage) -> Result<Findings> {
        let mut findings = Findings::default();
        match self {
            Self::Mailbox(link) => look_in_mailbox(link, stage, &mut findings),
            Self::Tag(reader) => look_at_tag(&reader, stage, &mut findings)?,
        }
        Ok(findings)
    }
}

fn look_in_mailbox(mut link: MailboxLink, stage: &Stage, findings: &mut Findings) {
    let mut received = Vec::new();
    let mut bytes = Vec::new();
    while link.receive(&mut bytes).is_some() {
        let number = bytes.first().copied().unwrap_or(0);
        findings.require(Kind::Lost, bytes == frame(number), || {
            format!("torn: {bytes:?}")
        });
        received.push(number);
    }
    let waiting = |last: u8| (last - WAITING + 1..=last).eq(received.iter().copied());
    let is_whole = waiting(BEFORE) || waiting(BEFORE + 1);
    findings.require(Kind::Lost, is_whole, || {
        format!("frames {received:?} of {BEFORE} and one")
    });
    match MailboxLink::create(stage.table(), End::A, FRAME_LEN) {
        Ok(mut next) => {
            next.send(&frame(BEFORE + 2));
            let took = link.receive(&mut bytes);
            let is_there = took == Some(0) && bytes == frame(BEFORE + 2);
            findings.require(Kind::Lost, is_there, || {
                format!("the next writer's frame comes as {bytes:?}")
            });
            let rest = link.receive(&mut bytes);
            findings.require(Kind::Doubled, rest.is_none(), || {
                format!("and after it {bytes:?}")
            });
        }
        Err(error) => findings.add(Kind::Unclaimable, format!("the dead one's end: {error}")),
    }
}

fn look_at_tag(reader: &TagReader, stage: &Stage, findings: &mut Findings) -> Result<()> {
    let is_of = |tag: &TagSnapshot, number: u8| {
        tag.status == status(number) && tag.written_at_ns == number.into()
    };
    match reader.read() {
        Some(tag) => {
            let is_whole = is_of(&tag, BEFORE) || is_of(&tag, BEFORE + 1);
            findings.require(Kind::Lost, is_whole, || format!("torn: {tag:?}"));
            let proof = tag.writer_proof();
            findings.require(Kind::Hung, proof == Proof::Gone, || {
                format!("its writer is {proof:?}")
            });
        }
        None => findings.add(Kind::Lost, "no tag, and there was one"),
    }
    match TagWriter::create(stage.table(), Access::Private) {
        Ok(mut next) => {
            next.write(&status(BEFORE + 2), None, (BEFORE + 2).into());
            let tag = reader.read().context("no tag of the next writer")?;
            findings.require(Kind::Lost, is_of(&tag, BEFORE + 2), || {
                format!("the next writer's tag comes as {tag:?}")
            });
        }
        Err(error) => findings.add(Kind::Unclaimable, format!("the dead one's tag: {error}")),
    }
    Ok(())
}
