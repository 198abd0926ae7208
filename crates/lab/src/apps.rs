//! The programs that send and receive: the project's own, iperf3, or curl with a server of the project.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddrV4;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use congestlab_scenario::net::packet::{PS_PER_NS, Picos};
use congestlab_scenario::net::tcp;
use congestlab_scenario::sim::model::{Group, GroupKind, Model};

use crate::endpoint::{self, Bursts, Message, Orders};
use crate::network::Network;
use crate::topology::{Flow, Topology};
use crate::watch::{FlowHistory, scale};
use crate::{App, Options};
use congestlab_linux::error::{Context, Error, Result};
use congestlab_linux::supervisor::Guard;
use congestlab_linux::sys::cgroup;
use congestlab_linux::sys::netns::Namespace;

/// The hidden subcommand that enters a control group and becomes another program.
pub const ENTER: &str = "enter";
/// How long a process of ours may take to get ready on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Enters a control group and becomes another program; returns only if that fails.
///
/// # Errors
/// If there is no such group or program.
pub fn enter(group: &Path, command: &[String]) -> Result<()> {
    cgroup::enter(group)?;
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::input("no command to run", ""));
    };
    Err(Command::new(program).args(arguments).exec()).context(|| format!("can not run {program}"))
}

/// Refuses a machine without the program.
pub(super) fn require(options: &Options) -> Result<()> {
    let mut programs = Vec::new();
    programs.extend(match options.app {
        App::Bulk => None,
        App::Iperf3 => Some("iperf3"),
        App::Curl => Some("curl"),
    });
    programs.extend(options.pcap.as_ref().map(|_| "tcpdump"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    for program in programs {
        if !std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
            return Err(Error::missing(
                format!("{program} is not installed"),
                format!("Debian and Ubuntu: apt-get install {program}"),
            ));
        }
    }
    Ok(())
}

/// The window that a group's receivers advertise at most, bytes.
fn window(group: &Group) -> Option<u32> {
    let GroupKind::Tcp(config) = &group.kind else { return None };
    let payload = u32::from(config.segment.saturating_sub(crate::headers(group)));
    config.awnd.map(|packets| packets.saturating_mul(payload))
}

/// The control group of a group of flows.
pub(super) fn cgroup(guard: &Guard, group: usize) -> PathBuf {
    guard.cgroup().join(format!("flows-{group}"))
}

/// A process of ours.
#[derive(Debug)]
struct Endpoint {
    child: Child,
    messages: mpsc::Receiver<Message>,
}

/// A flow whose program is started when the flow starts.
#[derive(Debug)]
struct Late {
    flow: usize,
    /// After time zero, ns.
    start: u64,
    command: Vec<String>,
    host: usize,
    group: PathBuf,
    output: PathBuf,
    child: Option<Child>,
    /// When to end it, ns after time zero.
    stop: Option<u64>,
    /// Bytes of the file that it fetches.
    size: Option<u64>,
    is_done: bool,
}

/// All programs of a lab. Its control group is the end of them.
#[derive(Debug)]
pub(super) struct Apps {
    endpoints: Vec<Endpoint>,
    late: Vec<Late>,
    /// iperf3's servers, tcpdump.
    others: Vec<Child>,
    namespaces: Vec<Namespace>,
    folder: PathBuf,
    app: App,
    failures: Vec<String>,
}

impl Apps {
    pub(super) fn start(
        guard: &Guard,
        model: &Model,
        topology: &Topology,
        network: &Network,
        congestion: &[String],
        options: &Options,
    ) -> Result<Self> {
        let folder = guard.folder().join("output");
        fs::create_dir(&folder).context(|| format!("can not make {}", folder.display()))?;
        let reopen = |namespace: &Namespace| Namespace::open(namespace.name());
        let namespaces = network.hosts.iter().map(reopen).collect::<Result<_>>()?;
        let mut apps = Self {
            endpoints: Vec::new(),
            late: Vec::new(),
            others: Vec::new(),
            namespaces,
            folder,
            app: options.app,
            failures: Vec::new(),
        };
        let mut orders = vec![Orders::default(); topology.hosts.len()];
        for (number, flow) in topology.flows.iter().enumerate() {
            let (group, name) = (&model.groups[flow.group], &congestion[flow.group]);
            let GroupKind::Tcp(_) = &group.kind else { continue };
            let cgroup = &self::cgroup(guard, flow.group);
            for host in [flow.source, flow.sink] {
                orders[host].cgroup.clone_from(cgroup);
            }
            let payload = |bytes: u64| (bytes as f64 / scale(group)).ceil() as u64;
            let [source, sink] = [flow.source, flow.sink]
                .map(|host| SocketAddrV4::new(topology.hosts[host].address, flow.port));
            match options.app {
                App::Bulk => {
                    let window = window(group);
                    orders[flow.sink].receivers.push(endpoint::Receiver { at: sink, window });
                    orders[flow.source].senders.push(sender(group, number, flow, sink, name, payload));
                }
                App::Iperf3 => apps.add_iperf3(model, number, flow, sink, name, cgroup)?,
                App::Curl => {
                    let size = size_of(&group.kind);
                    let congestion = name.clone();
                    orders[flow.source].servers.push(endpoint::Server {
                        at: source,
                        congestion,
                        flow: number,
                        size,
                    });
                    apps.add_curl(group.stop.0, number, flow, source, cgroup, size);
                }
            }
        }
        for (host, orders) in orders.into_iter().enumerate() {
            if !(orders.senders.is_empty() && orders.receivers.is_empty() && orders.servers.is_empty()) {
                let endpoint = Endpoint::start(&apps.namespaces[host], &orders)?;
                apps.endpoints.push(endpoint);
            }
        }
        for endpoint in &apps.endpoints {
            endpoint.await_ready()?;
        }
        if let Some(folder) = &options.pcap {
            apps.capture(model, network, folder)?;
        }
        Ok(apps)
    }

    fn add_iperf3(
        &mut self,
        model: &Model,
        number: usize,
        flow: &Flow,
        sink: SocketAddrV4,
        congestion: &str,
        cgroup: &Path,
    ) -> Result<()> {
        let group = &model.groups[flow.group];
        let (address, port) = (sink.ip(), flow.port);
        let server = format!("iperf3 -s -1 -B {address} -p {port}");
        let output = self.folder.join(format!("iperf3-server-{number}.txt"));
        let child = spawn(&self.namespaces[flow.sink], cgroup, &words(&server), &output)?;
        self.others.push(child);
        let mut client = words(&format!("iperf3 -J -c {address} -p {port} -C {congestion}"));
        let end = group.stop.0.min(model.duration / PS_PER_NS);
        match size_of(&group.kind) {
            Some(size) => {
                let payload = (size as f64 / scale(group)).ceil() as u64;
                client.extend(words(&format!("-n {payload}")));
            }
            // Whole seconds; the lab ends it when the flow stops.
            None => client.extend(words(&format!(
                "-t {}",
                (end - flow.start.0.min(end)).div_ceil(1_000_000_000).max(1) + 1
            ))),
        }
        self.late.push(Late {
            flow: number,
            start: flow.start.0,
            command: client,
            host: flow.source,
            group: cgroup.into(),
            output: self.folder.join(format!("iperf3-{}-{}.json", group.name.replace('/', "-"), flow.index)),
            child: None,
            stop: (group.stop.0 != u64::MAX).then_some(group.stop.0),
            size: None,
            is_done: false,
        });
        Ok(())
    }

    fn add_curl(
        &mut self,
        stop: u64,
        number: usize,
        flow: &Flow,
        source: SocketAddrV4,
        cgroup: &Path,
        size: Option<u64>,
    ) {
        let output = self.folder.join(format!("curl-{number}"));
        self.late.push(Late {
            flow: number,
            start: flow.start.0,
            command: words(&format!("curl --silent --show-error --fail --http1.0 http://{source}/")),
            host: flow.sink,
            group: cgroup.into(),
            output,
            child: None,
            stop: (stop != u64::MAX).then_some(stop),
            size,
            is_done: false,
        });
    }

    /// tcpdump at the head of every direction.
    fn capture(&mut self, model: &Model, network: &Network, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder).context(|| format!("can not make {}", folder.display()))?;
        for (direction, link) in model.links.iter().enumerate() {
            let (router, interface) = network.head(direction);
            let name: String = link.name.chars().map(|c| if c == '/' { '-' } else { c }).collect();
            let file = folder.join(format!("{name}.pcap"));
            let child = router.run(|| {
                Command::new("tcpdump")
                    .args(["-i", &interface, "-Q", "out", "-U", "-Z", "root", "-w"])
                    .arg(&file)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
            })?;
            self.others.push(child.context(|| "can not run tcpdump".into())?);
        }
        Ok(())
    }

    /// Tells everybody when time zero is.
    pub(super) fn go(&mut self, zero: u64) -> Result<()> {
        for endpoint in &mut self.endpoints {
            let input = endpoint.child.stdin.as_mut();
            let told = input.map_or(Ok(()), |input| writeln!(input, "{zero}"));
            told.context(|| "a sender or receiver has ended".into())?;
        }
        Ok(())
    }

    /// Starts and ends what is due, and hears what became of flows.
    pub(super) fn poll(&mut self, now: Picos, flows: &mut [FlowHistory]) -> Result<()> {
        let at = now / PS_PER_NS;
        for late in &mut self.late {
            if late.child.is_none() && !late.is_done && at >= late.start {
                let child = spawn(&self.namespaces[late.host], &late.group, &late.command, &late.output)?;
                late.child = Some(child);
            }
            let Some(child) = &mut late.child else { continue };
            if late.stop.is_some_and(|stop| at >= stop) {
                // Gone already, maybe.
                let _ = child.kill();
            }
            if let Some(status) = child.try_wait().context(|| "can not wait for a program".into())? {
                late.child = None;
                late.is_done = true;
                let was_ended = late.stop.is_some_and(|stop| at >= stop);
                if status.success() && late.size.is_some() {
                    flows[late.flow].completion = Some(now);
                } else if !status.success() && !was_ended {
                    let said = fs::read_to_string(late.output.with_extension("err")).unwrap_or_default();
                    let (program, flow) = (&late.command[0], late.flow);
                    self.failures
                        .push(format!("{program} of flow {flow} ended with {status}: {}", said.trim()));
                }
            }
        }
        for endpoint in &self.endpoints {
            for message in endpoint.messages.try_iter() {
                match message {
                    Message::Ready => {}
                    Message::Completed { flow, at } => flows[flow].completion = Some(at * PS_PER_NS),
                    Message::Failed { flow, why } => self.failures.push(format!("flow {flow}: {why}")),
                }
            }
        }
        Ok(())
    }

    /// The run is over: ends all programs, and compares what was fetched with what was served.
    pub(super) fn end(&mut self, flows: &mut [FlowHistory]) {
        for late in &mut self.late {
            if let Some(child) = &mut late.child {
                // iperf3 writes its report when it is told to end.
                let pid = rustix::process::Pid::from_child(child);
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
                let _ = child.wait();
            }
            if self.app == App::Curl
                && let Some(difference) =
                    difference(&late.output, late.flow, late.size.filter(|_| late.is_done))
            {
                self.failures
                    .push(format!("what curl got of flow {} is not what was sent: {difference}", late.flow));
                flows[late.flow].completion = None;
            }
        }
        for other in &mut self.others {
            let pid = rustix::process::Pid::from_child(other);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
            let _ = other.wait();
        }
        for endpoint in &mut self.endpoints {
            // Closing its input ends it.
            drop(endpoint.child.stdin.take());
            let _ = endpoint.child.wait();
        }
    }

    /// Returns the failures of the programs, in words.
    pub(super) fn failures(&self) -> impl Iterator<Item = String> {
        self.failures.iter().cloned()
    }

    /// Returns the output of iperf3: the name of a file and its bytes, for each flow.
    pub(super) fn files(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let mut files = Vec::new();
        for late in self.late.iter().filter(|_| self.app == App::Iperf3) {
            let name = late.output.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match fs::read(&late.output) {
                Ok(bytes) => files.push((name, bytes)),
                // A flow that never started wrote nothing.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(error).context(|| format!("can not read {}", late.output.display()));
                }
            }
        }
        Ok(files)
    }
}

impl Endpoint {
    fn start(namespace: &Namespace, orders: &Orders) -> Result<Self> {
        let child = namespace.run(|| {
            Command::new("/proc/self/exe")
                .arg(endpoint::SUBCOMMAND)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .process_group(0)
                .spawn()
        })?;
        let mut child = child.context(|| "can not start a sender or receiver".into())?;
        let text = serde_json::to_string(orders).unwrap_or_default();
        let told = child.stdin.as_mut().map_or(Ok(()), |input| writeln!(input, "{text}"));
        told.context(|| "a sender or receiver has ended".into())?;
        let (sender, messages) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                let lines = BufReader::new(output).lines().map_while(std::result::Result::ok);
                for message in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                    if sender.send(message).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self { child, messages })
    }

    fn await_ready(&self) -> Result<()> {
        match self.messages.recv_timeout(PATIENCE) {
            Ok(_) => Ok(()),
            Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut))
                .context(|| "a sender or receiver did not get ready".into()),
        }
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Starts a program in a namespace and control group, its output in a file.
fn spawn(namespace: &Namespace, group: &Path, command: &[String], output: &Path) -> Result<Child> {
    let create = |path: &Path| fs::File::create(path).context(|| format!("can not write {}", path.display()));
    let (file, errors) = (create(output)?, create(&output.with_extension("err"))?);
    let child = namespace.run(|| {
        Command::new("/proc/self/exe")
            .arg(ENTER)
            .arg(group)
            .arg("--")
            .args(command)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .process_group(0)
            .spawn()
    })?;
    child.context(|| format!("can not run {}", command[0]))
}

/// IP bytes that a flow is to send in all.
fn size_of(kind: &GroupKind) -> Option<u64> {
    match kind {
        GroupKind::Tcp(config) => match &config.app {
            tcp::App::Endless | tcp::App::Own => None,
            tcp::App::Transfer(size) => Some(size.0),
            tcp::App::Bursts { total, .. } => total.map(|total| total.0),
        },
        GroupKind::Source(_) => None,
    }
}

fn sender(
    group: &congestlab_scenario::sim::model::Group,
    number: usize,
    flow: &Flow,
    to: SocketAddrV4,
    congestion: &str,
    payload: impl Fn(u64) -> u64,
) -> endpoint::Sender {
    let bursts = match &group.kind {
        GroupKind::Tcp(tcp::Config { app: tcp::App::Bursts { size, pause, wait, buffer, .. }, .. }) => {
            Some(Bursts {
                size: payload(size.0),
                pause: pause.0,
                awaits_ack: *wait == tcp::Wait::Ack,
                buffer: payload(buffer.0),
            })
        }
        _ => None,
    };
    endpoint::Sender {
        flow: number,
        to,
        congestion: congestion.into(),
        start: flow.start.0,
        stop: (group.stop.0 != u64::MAX).then_some(group.stop.0),
        size: size_of(&group.kind).map(payload),
        bursts,
    }
}

/// Where what was fetched parts from what was served; a file that is not complete is compared as far
/// as it goes.
fn difference(path: &Path, flow: usize, size: Option<u64>) -> Option<String> {
    let Ok(mut file) = fs::File::open(path) else { return None };
    let mut served = endpoint::File::new(flow);
    let (mut got, mut expected) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut at = 0;
    loop {
        let count = match file.read(&mut got) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) => return Some(error.to_string()),
        };
        served.fill(&mut expected[..count]);
        if let Some(wrong) = got[..count].iter().zip(&expected).position(|(got, expected)| got != expected) {
            return Some(format!("byte {} differs", at + wrong as u64));
        }
        at += count as u64;
    }
    size.filter(|&size| size != at).map(|size| format!("{at} bytes of {size}"))
}
