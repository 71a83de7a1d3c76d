//! HTTP as bytes: requests that no client would send, and connections that dawdle.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

/// A connection to the host and port of this URL.
pub(crate) fn connect(url: &str) -> TcpStream {
    let address = url.trim_start_matches("http://").split('/').next().expect("a URL has an address");
    let stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("there is such an option");
    stream.set_nodelay(true).expect("there is such an option");
    stream
}

/// Sends bytes as they are and returns all that comes until the connection is closed.
pub(crate) fn exchange(url: &str, bytes: impl AsRef<[u8]>) -> String {
    let mut stream = connect(url);
    // What is refused early may be closed before all of it is written.
    stream.write_all(bytes.as_ref()).ok();
    rest(&mut stream)
}

/// All that comes until the connection is closed.
pub(crate) fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        match stream.read(&mut chunk) {
            Ok(size @ 1..) => all.extend_from_slice(&chunk[..size]),
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}, after {}", String::from_utf8_lossy(&all)),
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// The statuses of all responses in what came.
pub(crate) fn statuses(said: &str) -> Vec<u16> {
    let heads = said.split("HTTP/1.").skip(1);
    heads.filter_map(|head| head.split(' ').nth(1)?.parse().ok()).collect()
}

/// Reads until this has come.
pub(crate) fn until(stream: &mut TcpStream, part: &str) {
    let mut all = Vec::new();
    let mut byte = [0];
    while !all.ends_with(part.as_bytes()) {
        let size =
            stream.read(&mut byte).unwrap_or_else(|error| panic!("{error}, after {}", String::from_utf8_lossy(&all)));
        assert_eq!(size, 1, "it is over: {}", String::from_utf8_lossy(&all));
        all.push(byte[0]);
    }
}
