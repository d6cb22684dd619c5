//! What differs between two states of equal length.
//!
//! ```text
//!   run, any number of times, ascending, disjoint:
//!   at 0          4          8
//!      ┌──────────┬──────────┬─────────────┐
//!      │ offset   │ length n │ n new bytes │     u32, little-endian; offset into the state
//!      └──────────┴──────────┴─────────────┘
//! ```

const RUN_HEADER_LEN: usize = 8;

/// Bytes are compared so many at a time; a run may hold unchanged bytes of a word that changed.
const WORD_LEN: usize = 8;

/// The runs that make `state` of `base`; `None` if they would not be shorter than `state`, or if the two
/// differ in length.
pub fn encode(base: &[u8], state: &[u8]) -> Option<Vec<u8>> {
    if base.len() != state.len() {
        return None;
    }
    let (old_words, old_tail) = base.as_chunks::<WORD_LEN>();
    let (new_words, new_tail) = state.as_chunks::<WORD_LEN>();
    let differing_words = old_words
        .iter()
        .zip(new_words)
        .enumerate()
        .filter(|(_, (old, new))| old != new)
        .map(|(index, _)| index * WORD_LEN..(index + 1) * WORD_LEN);
    let tail = state.len() - new_tail.len()..state.len();
    let differing = differing_words.chain((old_tail != new_tail).then_some(tail));

    let mut delta = Vec::new();
    // The run that still grows.
    let mut run = 0..0;
    for range in differing {
        // One unchanged word costs as much as the header of a new run.
        if run.is_empty() || range.start > run.end + RUN_HEADER_LEN {
            push_run(&mut delta, state, run)?;
            run = range;
        } else {
            run.end = range.end;
        }
        if delta.len() + RUN_HEADER_LEN + run.len() >= state.len() {
            return None;
        }
    }
    push_run(&mut delta, state, run)?;
    Some(delta)
}

fn push_run(delta: &mut Vec<u8>, state: &[u8], run: std::ops::Range<usize>) -> Option<()> {
    if !run.is_empty() {
        delta.reserve(RUN_HEADER_LEN + run.len());
        delta.extend_from_slice(&u32::try_from(run.start).ok()?.to_le_bytes());
        delta.extend_from_slice(&u32::try_from(run.len()).ok()?.to_le_bytes());
        delta.extend_from_slice(state.get(run)?);
    }
    Some(())
}

/// Applies the runs; `None` if they are no runs of such a state.
pub fn apply(mut delta: &[u8], state: &mut [u8]) -> Option<()> {
    let mut free_from = 0;
    while !delta.is_empty() {
        let (offset, rest) = delta.split_first_chunk::<4>()?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let offset = usize::try_from(u32::from_le_bytes(*offset)).ok()?;
        let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
        let (bytes, rest) = rest.split_at_checked(len)?;
        let end = offset.checked_add(len)?;
        if offset < free_from || len == 0 {
            return None;
        }
        state.get_mut(offset..end)?.copy_from_slice(bytes);
        (free_from, delta) = (end, rest);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(len: usize, at: &[usize]) -> (Vec<u8>, Vec<u8>) {
        let base: Vec<u8> = (0..len).map(|n| n as u8).collect();
        let mut state = base.clone();
        for at in at {
            state[*at] ^= 0xff;
        }
        (base, state)
    }

    #[test]
    fn a_delta_makes_the_state_of_its_base() {
        for at in [vec![], vec![0], vec![99], vec![0, 8, 9, 40, 99]] {
            let (mut base, state) = changed(100, &at);
            let delta = encode(&base, &state).unwrap();
            assert_eq!(apply(&delta, &mut base), Some(()));
            assert_eq!(base, state, "changed at {at:?}");
        }
    }

    #[test]
    fn neighbours_share_a_run_and_distant_changes_do_not() {
        let (base, state) = changed(100, &[3, 17]);
        assert_eq!(encode(&base, &state).unwrap().len(), 8 + 24);
        let (base, state) = changed(100, &[3, 25]);
        assert_eq!(encode(&base, &state).unwrap().len(), 2 * (8 + 8));
    }

    #[test]
    fn a_delta_that_is_not_shorter_than_the_state_is_none() {
        let (base, state) = changed(16, &[0]);
        assert_eq!(encode(&base, &state), None);
        let (base, state) = changed(17, &[0]);
        assert_eq!(encode(&base, &state).unwrap().len(), 16);
        assert_eq!(encode(&[1; 9], &[1; 10]), None);
        assert_eq!(encode(&[], &[]), Some(vec![]));
    }

    #[test]
    fn runs_outside_the_state_or_out_of_order_are_refused() {
        let run = |offset: u32, len: u32, bytes: &[u8]| {
            [&offset.to_le_bytes(), &len.to_le_bytes(), bytes].concat()
        };
        for delta in [
            vec![0],
            vec![0; 7],
            run(0, 2, &[1]),
            run(9, 2, &[1, 2]),
            run(u32::MAX, 1, &[1]),
            run(0, u32::MAX, &[1]),
            run(3, 0, &[]),
            [run(4, 2, &[1, 2]), run(5, 1, &[3])].concat(),
        ] {
            assert_eq!(apply(&delta, &mut [0; 10]), None, "{delta:?}");
        }
    }
}
