//! Interfaces of the calling thread's network namespace, and programs at their egress and ingress: attached
//! by tcx, or before Linux 6.6 by filters of a clsact qdisc.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcHook, TcHookBuilder};
use serde::Serialize;
use serde_json::Value;

use crate::error::{Context, Error, Result, refused};
use crate::sys::bpf::{self, ProgramInfo, os};
use crate::sys::command;

/// Bytes of Ethernet's header, which a link's rate does not count (docs/design/contract.md 2).
pub const ETHERNET: u32 = 14;

/// The way in which a program is attached to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// By tcx, on Linux 6.6 and later.
    Tcx,
    /// By a filter of a clsact qdisc, on kernels before.
    Clsact,
}

/// Which packets a program sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    In,
    Out,
}

/// Where to hang a program of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) side: Side,
    /// Before the others that are there.
    pub(crate) is_first: bool,
    /// Handle and priority of the filter where the kernel has no tcx.
    pub(crate) filter: u32,
}

impl Place {
    fn kind(self) -> bpf::AttachType {
        match self.side {
            Side::In => bpf::BPF_TCX_INGRESS,
            Side::Out => bpf::BPF_TCX_EGRESS,
        }
    }
}

/// A program at an interface.
#[derive(Debug)]
pub(crate) struct Hung {
    pub(crate) program: OwnedFd,
    pub(crate) hook: Hook,
    pub(crate) info: ProgramInfo,
}

/// An interface of the calling thread's network namespace.
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: i32,
    pub(crate) link_header: u32,
    /// The longest IP packet that it sends.
    pub(crate) mtu: u32,
    pub(crate) is_up: bool,
    pub(crate) is_loopback: bool,
}

impl Interface {
    pub(crate) fn find(name: &str) -> Result<Self> {
        let all = Self::all()?;
        let names: Vec<String> = all.iter().map(|interface| interface.name.clone()).collect();
        all.into_iter().find(|interface| interface.name == name).ok_or_else(|| {
            Error::input(
                format!("there is no interface {name}"),
                format!("those here are: {}", names.join(", ")),
            )
        })
    }

    pub(crate) fn all() -> Result<Vec<Self>> {
        let list = json("ip -j link show")?;
        let each = |link: &Value| {
            let kind = link["link_type"].as_str()?;
            Some(Self {
                name: link["ifname"].as_str()?.to_owned(),
                index: i32::try_from(link["ifindex"].as_i64()?).ok()?,
                link_header: if ["ether", "loopback"].contains(&kind) { ETHERNET } else { 0 },
                mtu: u32::try_from(link["mtu"].as_u64()?).ok()?,
                is_up: link["flags"].as_array()?.iter().any(|flag| flag == "UP"),
                is_loopback: kind == "loopback",
            })
        };
        Ok(list.as_array().into_iter().flatten().filter_map(each).collect())
    }

    /// The programs that hang there, without filters that are not ours.
    pub(crate) fn programs(&self, place: Place) -> Result<Vec<Hung>> {
        libbpf_rs::set_print(None); // what fails is told by us
        let ids = match bpf::attached(self.index, place.kind()) {
            Ok(ids) => ids,
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => vec![], // no tcx here
            Err(error) => return Err(refused("ask the kernel for programs", error)),
        };
        let null = std::fs::File::open("/dev/null").context(|| "can not open /dev/null".into())?;
        let filter = self.filter(place, null.as_fd()).query().ok();
        let tcx = ids.into_iter().map(|id| (id, Hook::Tcx));
        let each = |(id, hook)| {
            let program =
                libbpf_rs::Program::fd_from_id(id).map_err(|error| refused("open a program", os(error)))?;
            let info = bpf::program_info(program.as_fd()).context(|| "can not ask about a program".into())?;
            Ok(Hung { program, hook, info })
        };
        tcx.chain(filter.map(|id| (id, Hook::Clsact))).map(each).collect()
    }

    /// Hangs a program there. Returns whether a clsact qdisc was made for that.
    pub(crate) fn attach(&self, place: Place, program: BorrowedFd<'_>) -> Result<bool> {
        // The variable is for the test of the older way.
        if std::env::var_os("CONGESTLAB_CLSACT").is_none() {
            match bpf::attach(program, self.index, place.kind(), place.is_first) {
                Ok(()) => return Ok(false),
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {} // no tcx here
                Err(error) => return Err(refused("attach a program", error)),
            }
        }
        let mut filter = self.filter(place, program);
        let list = json(&format!("tc -j qdisc show dev {}", self.name))?;
        let is_missing = list.as_array().into_iter().flatten().all(|qdisc| qdisc["kind"] != "clsact");
        if is_missing {
            filter.create().map_err(|error| refused("add a clsact qdisc", os(error)))?;
        }
        if let Err(error) = filter.attach() {
            if is_missing {
                self.remove_clsact()?;
            }
            return Err(refused("attach a program", os(error)));
        }
        Ok(is_missing)
    }

    /// Puts a program in the place of one that hangs there; no packet passes without either.
    pub(crate) fn replace(&self, place: Place, hung: &Hung, program: BorrowedFd<'_>) -> Result<()> {
        let done = match hung.hook {
            Hook::Tcx => bpf::replace(program, hung.program.as_fd(), self.index, place.kind()),
            Hook::Clsact => self.filter(place, program).replace(true).attach().map(drop).map_err(os),
        };
        done.map_err(|error| refused("replace a program", error))
    }

    pub(crate) fn detach(&self, place: Place, hung: &Hung) -> Result<()> {
        let done = match hung.hook {
            Hook::Tcx => bpf::detach(hung.program.as_fd(), self.index, place.kind()),
            Hook::Clsact => self.filter(place, hung.program.as_fd()).detach().map_err(os),
        };
        done.map_err(|error| refused("detach a program", error))
    }

    /// Removes the clsact qdisc, unless somebody's filter is there.
    pub(crate) fn remove_clsact(&self) -> Result<()> {
        for side in ["ingress", "egress"] {
            let filters = command::query(&format!("tc filter show dev {} {side}", self.name))?;
            if !filters.trim().is_empty() {
                return Ok(());
            }
        }
        command::run(&format!("tc qdisc del dev {} clsact", self.name)).map(drop)
    }

    fn filter(&self, place: Place, program: BorrowedFd<'_>) -> TcHook {
        let hook = match place.side {
            Side::In => TC_INGRESS,
            Side::Out => TC_EGRESS,
        };
        TcHookBuilder::new(program).ifindex(self.index).handle(place.filter).priority(place.filter).hook(hook)
    }
}

/// Returns the JSON that a command which changes nothing prints.
pub(crate) fn json(line: &str) -> Result<Value> {
    let text = command::query(line)?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Command { command: line.into(), message: error.to_string() })
}
