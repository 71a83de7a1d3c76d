//! Our own stdin and stdout. Pipes and sockets are read through epoll, which costs a fraction of the thread pool that
//! tokio's own stdin and stdout go through; files and terminals fall back to that pool.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

/// Where the client's messages come from.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;
/// Where the client's messages go.
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Opens stdin and stdout.
///
/// # Errors
/// As the system says.
pub fn open() -> io::Result<(Input, Output)> {
    Ok((imp::input()?, imp::output()?))
}

#[cfg(unix)]
mod imp {
    use std::{io, os::fd::OwnedFd};

    use rustix::fs::{FileType, fstat};
    use tokio::net::{UnixStream, unix::pipe};

    use super::{Input, Output};

    /// What can be polled, by what it is.
    enum Handle {
        Pipe(OwnedFd),
        Socket(UnixStream),
        Other,
    }

    pub(super) fn input() -> io::Result<Input> {
        Ok(match handle(rustix::stdio::stdin().try_clone_to_owned()?, "/proc/self/fd/0")? {
            Handle::Pipe(fd) => Box::new(pipe::Receiver::from_owned_fd(fd)?),
            Handle::Socket(socket) => Box::new(socket),
            Handle::Other => Box::new(tokio::io::stdin()),
        })
    }

    pub(super) fn output() -> io::Result<Output> {
        Ok(match handle(rustix::stdio::stdout().try_clone_to_owned()?, "/proc/self/fd/1")? {
            Handle::Pipe(fd) => Box::new(pipe::Sender::from_owned_fd(fd)?),
            Handle::Socket(socket) => Box::new(socket),
            Handle::Other => Box::new(tokio::io::stdout()),
        })
    }

    fn handle(fd: OwnedFd, path: &str) -> io::Result<Handle> {
        Ok(match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
            FileType::Fifo => Handle::Pipe(reopened(path).unwrap_or(fd)),
            FileType::Socket => {
                let socket = std::os::unix::net::UnixStream::from(fd);
                socket.set_nonblocking(true)?;
                // A socket of another family than Unix answers the same calls.
                Handle::Socket(UnixStream::from_std(socket)?)
            }
            _ => Handle::Other,
        })
    }

    /// Non-blocking mode belongs to the open file, which others may share; a pipe can be opened anew on Linux.
    fn reopened(path: &str) -> Option<OwnedFd> {
        use rustix::fs::{Mode, OFlags, open};
        if !cfg!(target_os = "linux") {
            return None;
        }
        let access = if path.ends_with('0') { OFlags::RDONLY } else { OFlags::WRONLY };
        open(path, access | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()
    }
}

#[cfg(not(unix))]
mod imp {
    use std::io;

    use super::{Input, Output};

    pub(super) fn input() -> io::Result<Input> {
        Ok(Box::new(tokio::io::stdin()))
    }

    pub(super) fn output() -> io::Result<Output> {
        Ok(Box::new(tokio::io::stdout()))
    }
}
