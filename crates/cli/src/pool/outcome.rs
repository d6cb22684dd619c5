//! Outcomes in words.

use super::entry::Outcome;

/// What came out, for the user.
#[must_use]
pub fn described(outcome: Outcome) -> String {
    let errno =
        |doing: &str, errno: i32| format!("{doing}: {}", std::io::Error::from_raw_os_error(errno));
    match outcome {
        Outcome::Digest(_) => "hashed".to_owned(),
        Outcome::Exited(code) => format!("exit {code}"),
        Outcome::Signaled(signal) => format!("signal {signal}"),
        Outcome::NotOpened(number) => errno("open", number),
        Outcome::NotRead(number) => errno("read", number),
        Outcome::NotRegular => "not a regular file any more".to_owned(),
        Outcome::NotStarted(number) => errno("start the command", number),
        Outcome::NotRecorded(number) => errno("record the command's output", number),
        Outcome::Damaged(kind) => format!("the worker's memory is damaged: outcome {kind}"),
    }
}

/// Whether the file is done, not failed.
#[must_use]
pub fn is_success(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Digest(_) | Outcome::Exited(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_digest_and_exit_0_are_success() {
        assert!(is_success(Outcome::Digest([0; 32])) && is_success(Outcome::Exited(0)));
        for failure in [
            Outcome::Exited(1),
            Outcome::Signaled(9),
            Outcome::NotRegular,
        ] {
            assert!(!is_success(failure), "{}", described(failure));
        }
    }

    #[test]
    fn failures_say_what_was_tried_and_what_the_system_said() {
        let denied = described(Outcome::NotOpened(13));
        assert!(denied.starts_with("open: Permission denied"), "{denied}");
        assert_eq!(described(Outcome::Signaled(9)), "signal 9");
    }
}
