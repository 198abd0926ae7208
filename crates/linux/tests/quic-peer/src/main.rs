//! One end of a connection of QUIC (the stack is quinn's) that sends known bytes and checks the other's: `listen ADDRESS BYTES`,
//! `connect ADDRESS BYTES [EVERY]`. With `EVERY` each so-many-th datagram has a packet of SCONE (draft-ietf-scone-protocol) put before
//! what the stack made; the other end takes it off again. Neither end has a name: the client trusts whatever key comes.
//!
//! What it prints is for `tests/quic.rs`: a line for each datagram, `sent` or `came`, with its first byte and a hash, of codes that were
//! asked and heard, and of the end.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, io};

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
    ServerConfig, StreamEvent, StreamId, Transmit, VarInt,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as crypto, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// Version of a packet of SCONE without its highest bit, which is the lowest one of the code.
const VERSION: u32 = 0x6f7d_c0fd;
/// The code of who knows of no advice.
const UNKNOWN: u8 = 127;
/// Bytes of a connection's name, as quinn makes them.
const NAME: usize = 8;
/// Bytes that are on their way into the stack at once.
const PIECE: u64 = 4096;
/// The whole connection takes less than that, or something is wrong.
const PATIENCE: Duration = Duration::from_secs(30);

/// Trusts any key, and wants a proof that the peer has it.
#[derive(Debug)]
struct AnyKey(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyKey {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("QUIC has TLS 1.3".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(
            message,
            &key,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// A key of its own, made anew.
fn key(provider: &CryptoProvider) -> Arc<CertifiedKey> {
    let random = ring::rand::SystemRandom::new();
    let bytes = ring::signature::Ed25519KeyPair::generate_pkcs8(&random).expect("there is chance");
    let key = PrivatePkcs8KeyDer::from(bytes.as_ref().to_vec());
    let key = provider.key_provider.load_private_key(key.into()).expect("the key is one");
    let public = key.public_key().expect("it has a public part").to_vec();
    Arc::new(CertifiedKey::new(vec![public.into()], key))
}

fn server_config() -> ServerConfig {
    let provider = Arc::new(crypto::default_provider());
    let keys = AlwaysResolvesServerRawPublicKeys::new(key(&provider));
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring has TLS 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(keys));
    ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).expect("ciphers of QUIC")))
}

fn client_config() -> ClientConfig {
    let provider = Arc::new(crypto::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring has TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyKey(provider)))
        .with_no_client_auth();
    ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("ciphers of QUIC")))
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Byte at this place of what a side sends.
fn byte(is_server: bool, at: u64) -> u8 {
    let mixed = (at + 1 + (u64::from(is_server) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// A packet of SCONE for the datagram: the names are those of its first packet.
fn signal(datagram: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xc0 | UNKNOWN >> 1];
    bytes.extend((VERSION | u32::from(UNKNOWN & 1) << 31).to_be_bytes());
    if datagram[0] & 0x80 == 0 {
        bytes.push(NAME as u8);
        bytes.extend(&datagram[1..=NAME]);
        bytes.push(0);
    } else {
        let second = 6 + usize::from(datagram[5]);
        bytes.extend(&datagram[5..second + 1 + usize::from(datagram[second])]);
    }
    bytes
}

/// The code with which a datagram begins, and where what the stack made begins.
fn heard(datagram: &[u8]) -> Option<(u8, usize)> {
    let start: [u8; 5] = datagram.get(..5)?.try_into().ok()?;
    let version = u32::from_be_bytes([start[1], start[2], start[3], start[4]]);
    if start[0] & 0x80 == 0 || version & (u32::MAX >> 1) != VERSION {
        return None;
    }
    let second = 6 + usize::from(*datagram.get(5)?);
    let end = second + 1 + usize::from(*datagram.get(second)?);
    (end < datagram.len()).then_some(((start[0] & 0x3f) << 1 | (version >> 31) as u8, end))
}

struct Peer {
    socket: UdpSocket,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    is_server: bool,
    size: u64,
    every: Option<u64>,
    datagrams: u64,
    stream: Option<StreamId>,
    written: u64,
    received: u64,
    is_exact: bool,
    is_acknowledged: bool,
    /// Codes that came, and how often.
    codes: BTreeMap<u8, u64>,
    /// Lines for the end: who reads them may not do so before, and a full pipe would stop this side.
    lines: String,
}

impl Peer {
    fn note(&mut self, line: fmt::Arguments) {
        writeln!(self.lines, "{line}").expect("a string has room");
    }

    fn put(&mut self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        let asks = self.every.is_some_and(|every| self.datagrams % every == 0);
        self.datagrams += 1;
        self.note(format_args!("sent {:02x} {:016x}", bytes[0], hash(bytes)));
        if asks {
            self.socket.send_to(&[&signal(bytes)[..], bytes].concat(), to)?;
            self.note(format_args!("asked"));
        } else {
            self.socket.send_to(bytes, to)?;
        }
        Ok(())
    }

    fn transmit(&mut self, what: &Transmit, bytes: &[u8]) -> io::Result<()> {
        let size = what.segment_size.unwrap_or(what.size).max(1);
        bytes[..what.size].chunks(size).try_for_each(|bytes| self.put(bytes, what.destination))
    }

    fn take(&mut self, datagram: &[u8], from: SocketAddr, now: Instant) -> io::Result<()> {
        let mut bytes = datagram;
        if let Some((code, at)) = heard(datagram) {
            bytes = &datagram[at..];
            *self.codes.entry(code).or_default() += 1;
        }
        self.note(format_args!("came {:02x} {:016x}", bytes[0], hash(bytes)));
        let mut answer = Vec::new();
        match self.endpoint.handle(now, from, None, None, bytes.into(), &mut answer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                self.connection = Some(accepted.map_err(|error| io::Error::other(error.cause))?);
            }
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((known, connection)) = &mut self.connection
                    && *known == handle
                {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(what)) => self.transmit(&what, &answer)?,
            None => {}
        }
        Ok(())
    }

    /// Serves what the connection wants; returns whether it is over.
    fn drive(&mut self, now: Instant) -> io::Result<bool> {
        let Some((handle, mut connection)) = self.connection.take() else { return Ok(false) };
        if connection.poll_timeout().is_some_and(|due| due <= now) {
            connection.handle_timeout(now);
        }
        let mut is_lost = false;
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected if !self.is_server => self.stream = connection.streams().open(Dir::Bi),
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    self.stream = connection.streams().accept(Dir::Bi);
                }
                Event::Stream(StreamEvent::Finished { .. }) => self.is_acknowledged = true,
                Event::ConnectionLost { .. } => is_lost = true,
                _ => {}
            }
        }
        if let Some(stream) = self.stream {
            self.write(&mut connection, stream);
            self.read(&mut connection, stream);
        }
        if !self.is_server && self.is_acknowledged && self.received == self.size && !connection.is_closed() {
            connection.close(now, VarInt::from_u32(0), "done".into());
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        let mut bytes = Vec::new();
        while let Some(what) = connection.poll_transmit(now, 1, &mut bytes) {
            self.transmit(&what, &bytes)?;
            bytes.clear();
        }
        let is_over = is_lost || connection.is_closed();
        self.connection = Some((handle, connection));
        Ok(is_over)
    }

    fn write(&mut self, connection: &mut Connection, stream: StreamId) {
        while self.written < self.size {
            let end = self.size.min(self.written + PIECE);
            let piece: Vec<u8> = (self.written..end).map(|at| byte(self.is_server, at)).collect();
            match connection.send_stream(stream).write(&piece) {
                Ok(count) => self.written += count as u64,
                Err(_) => return,
            }
            if self.written == self.size {
                connection.send_stream(stream).finish().expect("it was open");
            }
        }
    }

    fn read(&mut self, connection: &mut Connection, stream: StreamId) {
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            let is_theirs = |(at, &found): (u64, &u8)| found == byte(!self.is_server, at);
            self.is_exact &= (chunk.offset..).zip(&chunk.bytes).all(is_theirs);
            self.received += chunk.bytes.len() as u64;
        }
        let _ = chunks.finalize();
    }

    fn run(&mut self) -> io::Result<()> {
        let began = Instant::now();
        let mut datagram = [0; 65536];
        while !self.drive(Instant::now())? {
            let now = Instant::now();
            if now - began > PATIENCE {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let due = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
            let pause = due.map_or(PATIENCE, |due| due.saturating_duration_since(now));
            self.socket.set_read_timeout(Some(pause.clamp(Duration::from_micros(200), PATIENCE)))?;
            match self.socket.recv_from(&mut datagram) {
                Ok((size, from)) if size > 0 => self.take(&datagram[..size], from, Instant::now())?,
                Err(error)
                    if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().collect();
    let [_, role, address, size, rest @ ..] = &words[..] else {
        panic!("listen|connect ADDRESS BYTES [EVERY]")
    };
    let address: SocketAddr = address.parse().expect("an address and a port");
    let is_server = role == "listen";
    let here = if is_server { address } else { "0.0.0.0:0".parse().expect("it is one") };
    let server = is_server.then(|| Arc::new(server_config()));
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), server, true, None);
    let mut connection = None;
    if !is_server {
        let begun = endpoint.connect(Instant::now(), client_config(), address, "peer");
        connection = Some(begun.map_err(io::Error::other)?);
    }
    let mut peer = Peer {
        socket: UdpSocket::bind(here)?,
        endpoint,
        connection,
        is_server,
        size: size.parse().expect("a number of bytes"),
        every: rest.first().map(|every| every.parse().expect("a number of datagrams")),
        datagrams: 0,
        stream: None,
        written: 0,
        received: 0,
        is_exact: true,
        is_acknowledged: false,
        codes: BTreeMap::new(),
        lines: String::new(),
    };
    let ended = peer.run();
    print!("{}", peer.lines);
    ended?;
    for (code, count) in &peer.codes {
        println!("heard {code} {count}");
    }
    println!("end {} {} {}", peer.received, peer.is_exact, peer.is_acknowledged);
    Ok(())
}
