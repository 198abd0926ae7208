//! Checks of P-XCP's settings.

use super::LinkConfig;
use crate::law::settings::{Finding, Settings as _};
use crate::units::Ratio;

/// `r_max` keeps the scale k / (1 - r) finite.
pub(super) fn check(config: &LinkConfig, tell: &mut dyn FnMut(Finding)) {
    config.xcp.check(tell);
    if config.r_max >= Ratio::ONE {
        let help = "allowed: 0 to below 1; k / (1 - r) scales positive feedback";
        tell(Finding::range("r_max", "is 1", help));
    }
}
