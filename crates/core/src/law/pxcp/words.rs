//! Sentences about P-XCP's links.

use super::{Link, LinkConfig};
use crate::law::words::{LinkWords, Rule};

impl LinkWords for Link {
    fn explain_other(_: &LinkConfig) -> Rule {
        Rule::new(
            "the packet has no congestion header, so the law counts its bytes as input traffic and leaves it alone",
            "draft-03 section 4.2.3, L 1",
        )
    }
}
