//! Process groups: asking one to end, ending it, and looking whether anything of it is left.

#[cfg(unix)]
mod imp {
    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

    fn group(id: u32) -> Option<Pid> {
        Pid::from_raw(i32::try_from(id).ok()?)
    }

    /// Sends SIGTERM to the whole group; one that is gone is fine.
    pub fn terminate(id: u32) {
        if let Some(pid) = group(id) {
            kill_process_group(pid, Signal::TERM).ok();
        }
    }

    /// Sends SIGKILL to the whole group; one that is gone is fine.
    pub fn kill(id: u32) {
        if let Some(pid) = group(id) {
            kill_process_group(pid, Signal::KILL).ok();
        }
    }

    /// Whether a process of the group is left.
    pub fn is_alive(id: u32) -> bool {
        group(id).is_some_and(|pid| test_kill_process_group(pid).is_ok())
    }
}

#[cfg(not(unix))]
mod imp {
    //! Without process groups only the direct child can be ended, which `child` does by its handle.

    /// Does nothing here.
    pub fn terminate(_id: u32) {}

    /// Does nothing here.
    pub fn kill(_id: u32) {}

    /// Always false here.
    pub fn is_alive(_id: u32) -> bool {
        false
    }
}

pub use imp::{is_alive, kill, terminate};
