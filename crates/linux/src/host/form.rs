//! The programs of a host that a kernel can run, found from the kernel's type information (BTF).

use libbpf_rs::btf::types::{Func, FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, ReferencesType as _};

use crate::error::{Error, Result};

/// The congestion control in `host.bpf.c`, as kernels call it since 6.10 and before.
pub(super) const CONTROLS: [&str; 2] = ["congestlab_xcp", "congestlab_old"];

/// Properties of a kernel that decide which programs of a host are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Name of the `struct_ops` map to load; the other one is left out.
    pub control: &'static str,
    /// True if programs may read the kernel's own packet structure (since 6.2).
    pub has_casts: bool,
}

impl Form {
    /// Finds the properties of the kernel that these types describe.
    ///
    /// # Errors
    /// If it takes no congestion control as a BPF program.
    pub fn of(kernel: &Btf<'_>) -> Result<Self> {
        if kernel.type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_none() {
            return Err(no_control());
        }
        let control = match arguments(kernel) {
            Some(4) => CONTROLS[0],
            Some(2) => CONTROLS[1],
            _ => return Err(no_control()),
        };
        let knows = |name| kernel.type_by_name::<Func<'_>>(name).is_some();
        Ok(Self { control, has_casts: knows("bpf_cast_to_kern_ctx") && knows("bpf_rdonly_cast") })
    }

    /// Finds the properties of the running kernel.
    ///
    /// # Errors
    /// As [`Form::of`], and if it does not describe its types.
    pub fn of_kernel() -> Result<Self> {
        let kernel = Btf::from_vmlinux().map_err(|error| {
            Error::missing(
                format!("the kernel does not describe its types: {error}"),
                "a kernel with CONFIG_DEBUG_INFO_BTF=y, such as those of Debian 12 and Ubuntu 22.04",
            )
        })?;
        Self::of(&kernel)
    }
}

/// How many arguments a kernel gives to `cong_control`.
pub(crate) fn arguments(kernel: &Btf<'_>) -> Option<usize> {
    let operations = kernel.type_by_name::<Struct<'_>>("tcp_congestion_ops")?;
    let member = operations.iter().find(|member| member.name == Some("cong_control".as_ref()))?;
    let pointer = kernel.type_by_id::<Ptr<'_>>(member.ty)?;
    let prototype = FuncProto::try_from(pointer.referenced_type().skip_mods_and_typedefs()).ok()?;
    Some(prototype.len())
}

pub(super) fn no_control() -> Error {
    Error::missing(
        "the kernel takes no congestion control as a BPF program",
        "Linux 6.1 or later with CONFIG_BPF_SYSCALL=y, CONFIG_BPF_JIT=y and CONFIG_DEBUG_INFO_BTF=y",
    )
}
