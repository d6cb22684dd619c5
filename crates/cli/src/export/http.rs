//! As much of HTTP as a scrape needs: one request, one answer, and the end of the connection.
//!
//! ```text
//!   accept ─▶ read the head ─▶ answer ─▶ write ─▶ close
//!             └ the limit ┘             └ the limit ┘
//! ```
//! Contract: a fixed number of threads; who sends slowly holds one of them for no longer than the limit, and so
//! does who reads slowly, and nobody else. No request makes it panic, and none is kept beyond [`HEAD_MAX`].

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The longest head of a request; unit: bytes.
const HEAD_MAX: usize = 8 << 10;

/// After a failure that may be over soon, as when there are too many files.
const PAUSE: Duration = Duration::from_millis(100);

/// What is said to a request.
#[derive(Debug)]
pub struct Answer {
    /// Code and words.
    pub status: &'static str,
    /// The text.
    pub body: Arc<str>,
}

/// What those who ask are allowed.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections that are served at the same time; more wait.
    pub threads: usize,
    /// For what one connection sends, and again for what it is sent. How long the answer takes is not its fault.
    pub time: Duration,
}

/// Serves from now on. `answer` gets method and path, without the query.
pub fn serve(
    listener: TcpListener,
    content_type: &'static str,
    limits: Limits,
    answer: impl Fn(&str, &str) -> Answer + Send + Sync + 'static,
) {
    let shared = Arc::new((listener, answer));
    for _ in 0..limits.threads {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            let (listener, answer) = &*shared;
            loop {
                match listener.accept() {
                    // Who asked has gone, or is too slow.
                    Ok((stream, _)) => drop(converse(&stream, content_type, limits.time, answer)),
                    Err(_) => thread::sleep(PAUSE),
                }
            }
        });
    }
}

fn converse(
    mut stream: &TcpStream,
    content_type: &str,
    limit: Duration,
    answer: impl Fn(&str, &str) -> Answer,
) -> std::io::Result<()> {
    let head = read_head(stream, Instant::now() + limit)?;
    let line = head.split(|byte| *byte == b'\r' || *byte == b'\n').next();
    let line = String::from_utf8_lossy(line.unwrap_or_default());
    let mut words = line.split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let is_http = version.is_some_and(|version| version.starts_with("HTTP/1."));
    let Answer { status, body } = match (method, target) {
        (Some(method), Some(target)) if is_http && words.next().is_none() => {
            let path = target.split('?').next().unwrap_or_default();
            answer(method, path)
        }
        _ => Answer {
            status: "400 Bad Request",
            body: "this is no request of HTTP/1\n".into(),
        },
    };
    let until = Instant::now() + limit;
    // The body is not to wait until the head has come.
    stream.set_nodelay(true)?;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    write(stream, head.as_bytes(), until)?;
    if method != Some("HEAD") {
        write(stream, body.as_bytes(), until)?;
    }
    // What was sent beyond the head would make the kernel take the answer back: it is read away.
    stream.shutdown(Shutdown::Write)?;
    let mut rest = [0; 1024];
    loop {
        stream.set_read_timeout(Some(time_left(until)?))?;
        match stream.read(&mut rest) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn write(mut stream: &TcpStream, mut left: &[u8], until: Instant) -> std::io::Result<()> {
    while !left.is_empty() {
        stream.set_write_timeout(Some(time_left(until)?))?;
        match stream.write(left) {
            Ok(written) => left = left.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The bytes until the empty line, or as many as are let in.
fn read_head(mut stream: &TcpStream, until: Instant) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut bytes = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_MAX {
        stream.set_read_timeout(Some(time_left(until)?))?;
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => head.extend_from_slice(bytes.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(head)
}

/// Above 0, which would mean without a limit.
fn time_left(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ErrorKind::TimedOut.into());
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::mpsc::{RecvTimeoutError, channel};

    use super::*;

    /// Long enough for the busiest machine, and short enough to be waited for.
    const LIMIT: Duration = Duration::from_millis(800);

    const THREADS: usize = 2;

    fn server(body_len: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let limits = Limits {
            threads: THREADS,
            time: LIMIT,
        };
        serve(listener, "text/plain", limits, move |method, path| {
            if path == "/slow" {
                let (_sender, never) = channel::<()>();
                let waited = never.recv_timeout(LIMIT);
                assert_eq!(waited, Err(RecvTimeoutError::Timeout));
            }
            Answer {
                status: "200 OK",
                body: format!("{method} {path} {}", "x".repeat(body_len)).into(),
            }
        });
        address
    }

    /// What is answered; also to what is not read to its end.
    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn method_and_path_are_answered_and_a_head_is_all_of_a_head() {
        let address = server(0);
        let got = ask(address, b"GET /metrics?a=b HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
        assert!(got.ends_with("\r\n\r\nGET /metrics "), "{got}");
        let head = ask(address, b"HEAD / HTTP/1.0\r\n\r\n");
        assert!(head.contains("Content-Length: 7\r\n"), "{head}");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
    }

    #[test]
    fn an_answer_that_takes_longer_than_the_limit_comes_all_the_same() {
        let got = ask(server(0), b"GET /slow HTTP/1.1\r\n\r\n");
        assert!(got.ends_with("\r\n\r\nGET /slow "), "{got}");
    }

    #[test]
    fn what_is_no_request_is_told_so() {
        let address = server(0);
        let long = [b"GET /".as_slice(), &[b'a'; 3 * HEAD_MAX]].concat();
        let garbage: [&[u8]; 5] = [
            b"\r\n\r\n",
            b"\xff\xfe\x00\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET / HTTP/1.1 more\r\n\r\n",
            &long,
        ];
        for request in garbage {
            let told = ask(address, request);
            let start = request.get(..9.min(request.len()));
            assert!(told.starts_with("HTTP/1.1 400 "), "{start:?}: {told}");
        }
    }

    #[test]
    fn who_does_not_send_or_does_not_read_holds_up_nobody_for_longer_than_the_limit() {
        // More than the kernel takes for who does not read.
        let address = server(16 << 20);
        let connect = || TcpStream::connect(address).unwrap();
        let silent: Vec<TcpStream> = (0..THREADS).map(|_| connect()).collect();
        let deaf: Vec<TcpStream> = (0..THREADS).map(|_| connect()).collect();
        for mut stream in &deaf {
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        }
        let start = Instant::now();
        let got = ask(address, b"GET /me HTTP/1.1\r\n\r\n");
        assert!(got.contains("GET /me"), "{} bytes", got.len());
        // Behind two rounds of them.
        assert!(start.elapsed() >= LIMIT, "{:?}", start.elapsed());
        drop((silent, deaf));
    }
}
