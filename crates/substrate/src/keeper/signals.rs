//! The keeper's thread handles no signal: those of the process are for the threads of its user.

use core::mem::MaybeUninit;

/// Blocks all signals of the calling thread, and thereby of threads that it starts, until dropped.
pub(super) struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    pub(super) fn new() -> Self {
        let mut all = MaybeUninit::uninit();
        // SAFETY: fills the set it is given.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        let mut before = MaybeUninit::uninit();
        // SAFETY: `all` was filled above; `before` is a place for a set, and written by the call, which
        // fails only for an unknown first argument.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
        // SAFETY: written by the call above.
        let before = unsafe { before.assume_init() };
        Self { before }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        let none = core::ptr::null_mut();
        // SAFETY: `before` is the set that `new` got from the same call; nothing is written.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, none) };
    }
}
