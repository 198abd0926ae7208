//! The discipline of two classes, XCP and everything else.

use congestlab_core::units::Ratio;

use crate::language::queue::Amount;
use congestlab_text::decode::{At, Chance, record, words};

record! {
    /// XCP's packets in a queue of their own beside everything else (NS2; K02, 8.2).
    XcpTcp {
        /// XCP's part of the link and the rest's, 1 in sum; [0.5, 0.5] (NS2).
        weights: Vec<At<Chance>>,
        /// Let the weights follow the traffic; false.
        dynamic: bool,
        /// What dynamic weights follow; "windows".
        follow: Follow,
        /// Gain of weights that follow windows; 0.1.
        kappa: Ratio,
        /// Least and most that a dynamic weight becomes; [0.05, 0.95].
        bounds: Vec<At<Chance>>,
        /// Limit of XCP's queue; the link's queue.
        xcp_queue: Amount,
        /// Limit of the other queue; the link's queue.
        tcp_queue: Amount,
        /// Random early detection in the other queue.
        red: ClassRed,
    }
}

words! {
    /// What dynamic weights follow.
    Follow {
        /// The mean windows of both (K02, 8.2).
        Windows = "windows",
        /// The numbers of flows of both.
        Flows = "flows",
    }
}

record! {
    /// Random early detection in the queue of a class (K02, 5: gentle, a third and two thirds, ECN).
    ClassRed {
        /// Average queue from which packets are dropped or marked at random; a third of the queue.
        min: Amount,
        /// Average queue from which all packets are dropped or marked; gentle: from twice of it; two thirds of the
        /// queue.
        max: Amount,
        /// Probability just below max; 0.1.
        max_p: Chance,
        /// Weight of an arrival in the average; 0.002.
        weight: Chance,
        /// Let the probability rise from max_p to 1 between max and twice of it; true.
        gentle: bool,
        /// Mark packets of ECN-capable flows instead of dropping them at random; true.
        ecn: bool,
        /// Let 1/p packets pass after one that was dropped or marked, as ns-2's `wait_`; false.
        wait: bool,
        /// Mark only where the probability is below a tenth, and drop from there on, as ns-2's `use_mark_p_`; false.
        use_mark_p: bool,
    }
}
