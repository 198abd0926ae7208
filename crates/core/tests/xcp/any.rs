//! Any sender that could be configured.

use super::random::Random;
use congestlab_core::law::xcp::{Feedback, LossPolicy, Profile, RateSource, RequestPolicy, SenderConfig};
use congestlab_core::units::{Rate, Ratio};

/// Of the standard profile.
pub(crate) fn sender_config(random: &mut Random) -> SenderConfig {
    SenderConfig {
        request: [RequestPolicy::Demand, RequestPolicy::Unlimited][random.below(2) as usize],
        loss: [LossPolicy::Tcp, LossPolicy::Maintain, LossPolicy::Fallback][random.below(3) as usize],
        safety_net: random.below(2) == 0,
        clamp: random.coin(),
        aging: [None, Some(Ratio(random.half())), Some(Ratio::ppm(500_000))][random.below(3) as usize],
        pacing: random.coin(),
        feedback: [Feedback::Rate, Feedback::Bytes, Feedback::Sum][random.below(3) as usize],
        verify: false, // the oracle believes every ACK
        rate_source: [RateSource::Window, RateSource::Measured][random.below(2) as usize],
        price: Ratio(random.half()),
        desired_rate: Rate(random.word()),
        profile: Profile::Standard,
    }
}
