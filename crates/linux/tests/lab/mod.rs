//! A namespace with interfaces that nobody else uses.

use std::sync::atomic::{AtomicU32, Ordering};

use congestlab_linux::sys::command::run;
use congestlab_linux::sys::netns::Namespace;

/// Namespaces of this process so far, of which each has a name of its own.
static LABS: AtomicU32 = AtomicU32::new(0);

/// A namespace with a pair of interfaces, v0 and v1, removed in the end.
pub(crate) struct Lab(Option<Namespace>);

impl Lab {
    /// Or the reason why there is none.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        let name = format!("cl-test-{}-{number}", std::process::id());
        let namespace = match Namespace::create(&name) {
            Ok(namespace) => namespace,
            Err(error) => {
                eprintln!("SKIP {test}: no namespace: {error}");
                return None;
            }
        };
        let lab = Self(Some(namespace));
        lab.inside(|| {
            // Its neighbour discovery would be counted, too.
            let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
            run("ip link add v0 type veth peer name v1").unwrap();
            run("ip link set v1 up").unwrap();
            run("ip link set v0 up").unwrap();
            run("ip address add 10.77.0.1/24 dev v0").unwrap();
            run("ip neighbour add 10.77.0.2 lladdr 02:00:00:00:00:02 dev v0").unwrap();
        });
        Some(lab)
    }

    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.0.as_ref().unwrap().run(work).unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.0.take().map(Namespace::delete);
    }
}
