//! Decreases that laws make, and count, by themselves.

use congestlab_core::law::{Reply, SenderLaw, abc, dctcp, prague};
use congestlab_core::units::{Bytes, Time};

use super::{Ack, Duration, MS, MSS, ack};

/// Returns the decreases of a window of whose packets one in 97 is marked, as they are seen and as the law counts them.
fn decreases<L: SenderLaw>(config: &L::Config, reply: fn(u32) -> Reply) -> (u32, u32) {
    let mut law = L::start(config, Bytes(MSS), Bytes(100 * MSS));
    let (mut seen, mut marks) = (0, 0);
    for number in 0..10_000 {
        marks += u32::from(number % 97 == 0);
        let (window, srtt) = (law.window(), Duration(30 * MS));
        let ack = Ack { flight: window, reply: reply(marks), srtt, rtt: srtt, ..ack(MSS) };
        law.on_ack(config, Time(number * MS), &ack);
        seen += u32::from(law.window() < window);
    }
    (seen, law.cuts())
}

#[test]
fn each_decrease_by_marks_is_counted() {
    let counted = |word| Reply { word, byte: 0 };
    let of_others = |marks| Reply { word: 0, byte: marks as u8 };
    for (seen, cuts) in [
        decreases::<dctcp::Sender>(&dctcp::Config::default(), counted),
        decreases::<prague::Sender>(&prague::Config::DEFAULT, counted),
        decreases::<abc::Sender>(&abc::SenderConfig {}, of_others),
    ] {
        assert!(seen == cuts && cuts > 10, "{cuts} counted, {seen} seen");
    }
}
