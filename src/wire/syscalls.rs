//! System calls that a confined process may not make: those that reach into other processes or into the kernel, those that make
//! new namespaces, and sockets beyond what the config allows. They fail as without a right, so that programs can do without.
//!
//! **Source:** Docker's and systemd's lists of such calls; the numbers are libc's.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// Calls that are denied whatever their arguments are.
const DENIED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    // What goes through a ring is not seen by a filter.
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];
/// The same, of PCs only.
#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[i64] = &[libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_kexec_file_load, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[i64] = &[];
/// The second calling convention of 64-bit PCs has these calls under other numbers, and all others with this bit.
#[cfg(target_arch = "x86_64")]
const OTHER_NUMBERS: &[(i64, i64)] = &[
    (libc::SYS_ptrace, 521),
    (libc::SYS_sendmsg, 518),
    (libc::SYS_kexec_load, 528),
    (libc::SYS_sendmmsg, 538),
    (libc::SYS_process_vm_readv, 539),
    (libc::SYS_process_vm_writev, 540),
    (libc::SYS_ioctl, 514),
];
#[cfg(target_arch = "x86_64")]
const OTHER_BIT: i64 = 0x4000_0000;

/// Flags of `clone` that make a namespace.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// Of a socket's type, without its flags.
const TYPE_MASK: u64 = 0xf;
/// Kinds of sockets besides streams and datagrams.
const OTHER_TYPES: [i32; 4] = [libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, 6];
/// Where names are looked up, over UDP.
const NAMES_PORT: u16 = 53;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Denies them to this process and all that it starts, for good. `ports` as in a sandbox: none, these, or all.
///
/// # Errors
/// The system does not take the filter, or there is none for this processor.
pub(super) fn deny(ports: Option<&[u16]>) -> Result<(), String> {
    let refused = |error: &dyn std::fmt::Display| format!("seccomp: {error}");
    let rules = rules(ports).map_err(|error| refused(&error))?;
    // With its flags in memory, where a filter cannot look; everybody goes on with `clone` where there is none.
    let missing = with_other_numbers(Rules::from([(libc::SYS_clone3, Vec::new())]));
    for (rules, errno) in [(rules, libc::EPERM), (missing, libc::ENOSYS)] {
        let program = filter(rules, errno.unsigned_abs()).map_err(|error| refused(&error))?;
        apply_filter(&program).map_err(|error| refused(&error))?;
    }
    Ok(())
}

fn filter(rules: Rules, errno: u32) -> Result<seccompiler::BpfProgram, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), arch)?.try_into()
}

fn rules(ports: Option<&[u16]>) -> Result<Rules, BackendError> {
    let mut rules: Rules = DENIED.iter().chain(DENIED_HERE).map(|call| (*call, Vec::new())).collect();
    let namespaces = NAMESPACES.map(|flag| flag.unsigned_abs().into());
    let making = namespaces.iter().map(|flag| rule(&[(0, SeccompCmpOp::MaskedEq(*flag), *flag)]));
    rules.insert(libc::SYS_clone, making.collect::<Result<_, _>>()?);
    // Typing into a terminal in the user's place.
    let typing = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| rule(&[(1, SeccompCmpOp::Eq, request)]));
    rules.insert(libc::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?);
    match ports {
        None => {}
        // Not even of the machine: behind some of those stands somebody with all rights. Pairs are left.
        Some([]) => drop(rules.insert(libc::SYS_socket, Vec::new())),
        Some(ports) => {
            rules.insert(libc::SYS_socket, other_sockets(ports.contains(&NAMES_PORT))?);
            // Connects without `connect`, past Landlock.
            let fast_open = libc::MSG_FASTOPEN.unsigned_abs().into();
            for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
                rules.insert(call, vec![rule(&[(flags, SeccompCmpOp::MaskedEq(fast_open), fast_open)])?]);
            }
        }
    }
    Ok(with_other_numbers(rules))
}

/// All but TCP, whose ports Landlock knows, and UDP where names are to be looked up.
fn other_sockets(has_udp: bool) -> Result<Vec<SeccompRule>, BackendError> {
    let is_not = |argument, values: &[i32]| {
        let all: Vec<_> =
            values.iter().map(|value| (argument, SeccompCmpOp::Ne, u64::from(value.unsigned_abs()))).collect();
        rule(&all)
    };
    let of_type = |kind: i32| rule(&[(1, SeccompCmpOp::MaskedEq(TYPE_MASK), kind.unsigned_abs().into())]);
    let mut rules = vec![is_not(0, &[libc::AF_INET, libc::AF_INET6])?];
    for kind in OTHER_TYPES {
        rules.push(of_type(kind)?);
    }
    if has_udp {
        rules.push(is_not(2, &[0, libc::IPPROTO_TCP, libc::IPPROTO_UDP])?);
    } else {
        rules.push(of_type(libc::SOCK_DGRAM)?);
        // Others are streams too, such as MPTCP, of which Landlock knows no ports.
        rules.push(is_not(2, &[0, libc::IPPROTO_TCP])?);
    }
    Ok(rules)
}

/// Holds where all of these hold: number of an argument, comparison, value.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let condition = |(argument, comparison, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, comparison.clone(), *value)
    };
    SeccompRule::new(conditions.iter().map(condition).collect::<Result<_, _>>()?)
}

#[cfg(target_arch = "x86_64")]
fn with_other_numbers(mut rules: Rules) -> Rules {
    let other = |(call, rules): (&i64, &Vec<SeccompRule>)| {
        let number = OTHER_NUMBERS.iter().find(|(known, _)| known == call).map_or(*call, |(_, number)| *number);
        (number | OTHER_BIT, rules.clone())
    };
    let others: Vec<(i64, Vec<SeccompRule>)> = rules.iter().map(other).collect();
    rules.extend(others);
    rules
}

#[cfg(not(target_arch = "x86_64"))]
fn with_other_numbers(rules: Rules) -> Rules {
    rules
}
