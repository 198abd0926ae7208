//! The oracle of XI IV: knows the available bandwidth because it sees the links of the cloud.

use super::round::{Answer, Bandwidth, Probing, Step};
use crate::random::Stream;
use congestlab_core::units::{Bytes, Duration, Rate, Ratio, Time, mul_div};

/// A look at the links of one cloud. Whoever simulates the links makes it, and gives it to the
/// [`Oracle`] alone:
///
/// ```
/// # use congestlab_net::{estimator, random::Stream, xcp_i::{LinkView, Oracle, OracleConfig, Prober}};
/// fn prober<V: LinkView>(view: V, errors: Stream) -> Prober<V> {
///     Prober::Oracle(Oracle::new(OracleConfig::default(), view, errors))
/// }
/// ```
///
/// Estimators of packets and clocks have no place for one:
///
/// ```compile_fail,E0308
/// # use congestlab_net::{estimator, random::Stream, xcp_i::{LinkView, Oracle, OracleConfig, Prober}};
/// fn prober<V: LinkView>(view: V, config: estimator::Config) -> Prober<V> {
///     Prober::Probes(Box::new(estimator::Prober::new(config, view)))
/// }
/// ```
pub trait LinkView {
    /// Calls `each` for every link of the cloud with its capacity at `now` and the bytes that arrived
    /// at it from `since` until `now`, which does not count, dropped or not. `since` is at most
    /// [`LOOK_BACK`] before `now`.
    fn read(&mut self, since: Time, now: Time, each: impl FnMut(Rate, Bytes));
}

/// Time for which a [`LinkView`] must know the past: the longest control interval (draft-03 §4.2.4).
pub const LOOK_BACK: Duration = Duration(1_000_000_000);

/// Quantity of which an error of the estimate is a part (C-16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorBase {
    /// The capacity: C (1 + e) - y. XI says that estimates pass the capacity.
    #[default]
    Capacity,
    /// The residual: (C - y) (1 + e). XI says that the available bandwidth is off.
    Residual,
}

/// Error of the oracle's estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OracleConfig {
    /// Bound of the error, which is drawn from [-error, error] for each estimate, uniformly (A-11).
    pub error: Ratio,
    /// Quantity of which the error is a part.
    pub base: ErrorBase,
}

/// Estimator that reads what is left of the bottleneck over the last control interval: C - load, the least of all
/// links, signed.
#[derive(Clone, Debug)]
pub struct Oracle<V> {
    config: OracleConfig,
    view: V,
    /// Stream of the errors; nothing is drawn without one.
    stream: Stream,
    found: Option<(Time, Bandwidth)>,
}

impl<V> Oracle<V> {
    /// Creates the estimator of one cloud; `stream` is where errors are drawn from.
    pub const fn new(config: OracleConfig, view: V, stream: Stream) -> Self {
        Self { config, view, stream, found: None }
    }

    /// Returns the number of random words drawn.
    pub const fn draws(&self) -> u64 {
        self.stream.draws()
    }
}

impl<V: LinkView> Probing for Oracle<V> {
    /// The parameter is the control interval, ns.
    fn begin(&mut self, now: Time, parameter: u64) -> Duration {
        let span = Duration(parameter.clamp(1, LOOK_BACK.0));
        let since = Time(now.0.saturating_sub(span.0));
        let error = match self.config.error.0 {
            0 => 0,
            most => self.stream.below(2 * u64::from(most) + 1) as i64 - i64::from(most),
        };
        let mut least = Bandwidth::MAX;
        self.view.read(since, now, |capacity, arrived| {
            let capacity = capacity.0.min(i64::MAX as u64) as i64;
            let load = if since == now { 0 } else { arrived.per(now - since).0.min(i64::MAX as u64) as i64 };
            let residual = match self.config.base {
                ErrorBase::Capacity => off(capacity, error).saturating_sub(load),
                ErrorBase::Residual => off(capacity.saturating_sub(load), error),
            };
            least = least.min(residual);
        });
        self.found = Some((now, least));
        Duration(0)
    }

    fn next_deadline(&self) -> Time {
        self.found.map_or(Time::NEVER, |(at, _)| at)
    }

    fn poll(&mut self, _now: Time) -> Option<Step> {
        let (_, bandwidth) = self.found.take()?;
        Some(Step::Done(Answer::Bandwidth(bandwidth)))
    }
}

/// `value * (1 + millionths)`, toward zero; `millionths` at least -1e6.
fn off(value: i64, millionths: i64) -> i64 {
    let factor = (1_000_000 + millionths).max(0) as u64;
    let size = mul_div(value.unsigned_abs(), factor, 1_000_000).min(i64::MAX as u64) as i64;
    if value < 0 { -size } else { size }
}
