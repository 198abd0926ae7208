//! The virtual router: an ordinary link law that is told its spare bandwidth (XI III-A.4).

use congestlab_core::law::{LinkConfig, pxcp, xcp};
use congestlab_core::units::{Bytes, Duration, Rate, Time};

/// What virtual routers run: the law of the link that they stand before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtualLaw {
    /// XCP.
    Xcp(xcp::LinkConfig),
    /// P-XCP.
    Pxcp(pxcp::LinkConfig),
}

impl VirtualLaw {
    /// Of a link with this law; `None` if it is not of XCP's family.
    pub const fn of(link: &LinkConfig) -> Option<Self> {
        match link {
            LinkConfig::Xcp(config) => Some(Self::Xcp(*config)),
            LinkConfig::Pxcp(config) => Some(Self::Pxcp(*config)),
        }
    }

    /// XCP's part.
    pub const fn xcp(&self) -> &xcp::LinkConfig {
        match self {
            Self::Xcp(config) => config,
            Self::Pxcp(config) => &config.xcp,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum VirtualRouter {
    Xcp(xcp::Link),
    Pxcp(pxcp::Link),
}

macro_rules! each {
    ($self:expr, $law:ident => $body:expr) => {
        match $self {
            VirtualRouter::Xcp($law) => $body,
            VirtualRouter::Pxcp($law) => $body,
        }
    };
}

impl VirtualRouter {
    /// Its first interval begins at `now`. It serves no deadline of its own.
    pub(super) fn new(law: &VirtualLaw, now: Time) -> Self {
        let never = Duration(u64::MAX);
        let mut router = match law {
            VirtualLaw::Xcp(config) => Self::Xcp(xcp::Link::new(*config, never, never)),
            VirtualLaw::Pxcp(config) => Self::Pxcp(pxcp::Link::new(*config, never, never)),
        };
        router.close(now, &xcp::Told::default());
        router
    }

    #[inline]
    pub(super) fn on_arrival(&mut self, now: Time, header: &xcp::Header, size: Bytes) {
        each!(self, law => law.on_arrival(now, header, size));
    }

    /// Q is told, so there is no backlog.
    #[inline]
    pub(super) fn on_departure(&mut self, now: Time, header: &mut xcp::Header, size: Bytes) {
        each!(self, law => law.on_departure(now, header, size, Bytes(0)));
    }

    pub(super) fn close(&mut self, now: Time, told: &xcp::Told) {
        each!(self, law => law.close_told(now, told));
    }

    pub(super) fn input(&self, now: Time) -> Rate {
        each!(self, law => law.input(now))
    }

    pub(super) fn report(&self) -> xcp::Report {
        match self {
            Self::Xcp(law) => law.report(),
            Self::Pxcp(law) => law.report().xcp,
        }
    }
}
