//! Offloads of an interface, switched by the ethtool ioctl, which also tells its speed. Without them every frame is one packet
//! with its checksum filled in, as on a wire.
#![expect(unsafe_code, reason = "an ioctl that takes a pointer inside a structure")]

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType, socket};

use super::command;
use super::netns::Namespace;
use crate::error::{Context, Result};

/// SIOCETHTOOL (linux/sockios.h).
const REQUEST: libc::Ioctl = 0x8946;

/// Commands of linux/ethtool.h that read and write a switch. Checksums first: TSO depends on them.
const SWITCHES: [(u32, u32, &str); 4] = [
    (0x16, 0x17, "tx-checksumming"),          // ETHTOOL_GTXCSUM, ETHTOOL_STXCSUM
    (0x1e, 0x1f, "tcp-segmentation-offload"), // ETHTOOL_GTSO, ETHTOOL_STSO
    (0x23, 0x24, "generic-segmentation-offload"), // ETHTOOL_GGSO, ETHTOOL_SGSO
    (0x2b, 0x2c, "generic-receive-offload"),  // ETHTOOL_GGRO, ETHTOOL_SGRO
];

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// ETHTOOL_GSET.
const SETTINGS: u32 = 1;

/// `struct ethtool_cmd`, of which only the speed is of interest.
#[repr(C)]
#[derive(Default)]
struct Legacy {
    command: u32,
    modes: [u32; 2],
    speed: u16,
    places: [u8; 6],
    packets: [u32; 2],
    speed_high: u16,
    pairs: [u8; 2],
    partner: [u32; 3],
}

/// The offloads of an interface, switched off; restored when this is dropped.
#[derive(Debug)]
pub struct Offloads {
    interface: String,
    /// Namespace of the interface and of the socket.
    namespace: Namespace,
    socket: OwnedFd,
    /// Positions in [`SWITCHES`] that were on.
    switched: Vec<usize>,
    /// `gso_max_segs` before.
    segments: Option<u32>,
}

impl Offloads {
    /// Switches off the offloads of an interface in the thread's network namespace. TCP makes super-packets
    /// without any offload: `gso_max_segs 1` ends that, for sockets that connect from now on.
    ///
    /// # Errors
    /// If the privilege is missing, or there is no such interface.
    pub fn off(interface: &str) -> Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)
            .context(|| "can not open a socket".into())?;
        let namespace = Namespace::current()?;
        let mut offloads =
            Self { interface: interface.into(), namespace, socket, switched: Vec::new(), segments: None };
        for (position, &(read, write, name)) in SWITCHES.iter().enumerate() {
            // What an interface does not have is off.
            if offloads.call(read, 0).is_ok_and(|value| value != 0)
                && command::announce(&format!("ethtool -K {interface} {name} off"))
            {
                offloads.call(write, 0).context(|| format!("can not switch off {name} of {interface}"))?;
                offloads.switched.push(position);
            }
        }
        let segments = max_segments(interface)?;
        if segments != 1 {
            limit_segments(interface, 1)?;
            offloads.segments = Some(segments);
        }
        Ok(offloads)
    }

    /// Leaves the offloads off, for an interface that goes with its namespace.
    pub fn keep(mut self) {
        self.switched.clear();
        self.segments = None;
    }

    /// Reads or writes a switch; the answer is its state.
    fn call(&self, command: u32, data: u32) -> io::Result<u32> {
        let mut value = Value { command, data };
        ask(&self.socket, &self.interface, &mut value)?;
        Ok(value.data)
    }
}

/// Structures of plain numbers that the kernel takes with a command of their own, which is the first of them.
trait Question {}
impl Question for Value {}
impl Question for Legacy {}

fn ask(socket: &OwnedFd, interface: &str, question: &mut impl Question) -> io::Result<()> {
    // SAFETY: zeros are a valid request, whose name stays terminated by at least one of them;
    // the kernel reads and writes `question`, which is as long as its command says and outlives the call.
    let result = unsafe {
        let mut request: libc::ifreq = zeroed();
        let room = request.ifr_name.len() - 1;
        for (to, from) in request.ifr_name[..room].iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = std::ptr::from_mut(question).cast();
        libc::ioctl(socket.as_raw_fd(), REQUEST, &raw mut request)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the speed of an interface of the thread's network namespace, Mbit/s, as its driver tells it; `None`: it does not.
pub fn speed(interface: &str) -> Option<u32> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    let mut told = Legacy { command: SETTINGS, ..Legacy::default() };
    ask(&socket, interface, &mut told).ok()?;
    let speed = u32::from(told.speed_high) << 16 | u32::from(told.speed);
    (speed != 0 && speed != u32::MAX).then_some(speed)
}

impl Drop for Offloads {
    fn drop(&mut self) {
        // The interface may be gone by now, with its settings.
        for &position in &self.switched {
            let _ = self.call(SWITCHES[position].1, 1);
        }
        if let Some(segments) = self.segments {
            let _ = self.namespace.run(|| limit_segments(&self.interface, segments));
        }
    }
}

/// Returns the number of segments that the kernel may put into one packet on the interface (`gso_max_segs`).
///
/// # Errors
/// If there is no such interface.
pub fn max_segments(interface: &str) -> Result<u32> {
    let text = command::query(&format!("ip -d link show dev {interface}"))?;
    let mut words = text.split_whitespace().skip_while(|&word| word != "gso_max_segs");
    Ok(words.nth(1).and_then(|number| number.parse().ok()).unwrap_or(65_535))
}

/// Sets the number of segments that the kernel may put into one packet on the interface (`gso_max_segs`).
///
/// # Errors
/// If the privilege is missing, or there is no such interface.
pub fn limit_segments(interface: &str, segments: u32) -> Result<()> {
    command::run(&format!("ip link set dev {interface} gso_max_segs {segments}")).map(drop)
}
