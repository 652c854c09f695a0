// SPDX-License-Identifier: BSD-3-Clause
//! A web server on tokio, and its client: `web serve PORT`, then `web ask PORT N`, N requests over each of two
//! connections.
//!
//! Each connection is a task, each request a span, and its steps are parts of it: it reads a file, and then adds up the
//! content, for longer in one of three requests.

use std::convert::Infallible;
use std::env;
use std::fs;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tracing::{info, info_span, instrument};

/// The file that a request reads.
const FILE: &str = "/etc/services";

/// Number of earlier requests.
static ASKED: AtomicU64 = AtomicU64::new(0);

#[instrument(skip_all, fields(number = ASKED.fetch_add(1, Ordering::Relaxed), path = request.uri().path()))]
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let text = info_span!("read").in_scope(|| fs::read(FILE)).unwrap_or_default();
    let times = if request.uri().path() == "/slow" { 20 } else { 1 };
    let sum = info_span!("sum", times).in_scope(|| sum(&text, times));
    info!(status = 200, sum, "answered");
    Ok(Response::new(Full::new(Bytes::from(format!("{sum}\n")))))
}

fn sum(text: &[u8], times: u64) -> u64 {
    (0..times).map(|time| text.iter().fold(time, |sum, byte| black_box(sum).rotate_left(5) ^ u64::from(*byte))).sum()
}

fn serve(port: u16) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_io().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
            tokio::spawn(kutrace_tracing::task("connection", async { drop(served.await) }));
        }
    })
}

/// One of three requests takes longer.
fn ask(port: u16, requests: u64) -> io::Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    for n in 0..requests {
        let path = if n % 3 == 2 { "/slow" } else { "/quick" };
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())?;
        let mut answer = [0; 1024];
        let bytes = stream.read(&mut answer)?;
        if !answer[..bytes].starts_with(b"HTTP/1.1 200") {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |n: usize| -> Option<u64> { arguments.get(n)?.parse().ok() };
    let ended = match (arguments.first().map_or("", String::as_str), number(1), number(2)) {
        ("serve", Some(port), None) => match kutrace_tracing::subscriber().install() {
            Ok(()) => serve(port as u16),
            Err(error) => Err(io::Error::other(error)),
        },
        ("ask", Some(port), Some(requests)) => {
            let asking = [(); 2].map(|()| thread::spawn(move || ask(port as u16, requests)));
            asking.into_iter().try_for_each(|one| one.join().map_err(|_| io::Error::other("a thread panicked"))?)
        }
        _ => Err(io::Error::other("expected `serve PORT` or `ask PORT N`")),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("web: {error}");
            ExitCode::FAILURE
        }
    }
}
