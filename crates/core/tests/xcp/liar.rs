//! A sender that lies to links.

use super::{Bytes, Duration, Profile, Ratio, SECOND, SenderConfig, Time, sender_config};
use congestlab_core::law::settings::{Field, Settings as _};
use congestlab_core::law::xcp::{self, Lies, Sender};
use congestlab_core::law::{Ack, Send, SenderLaw as _};

const MSS: Bytes = Bytes(1000);
/// Whole in headers.
const RTT: Duration = Duration(SECOND / 8);

fn ack(feedback: i32) -> Ack {
    let awnd = Bytes(u64::MAX);
    Ack { acked: MSS, awnd, rtt: RTT, srtt: RTT, reply: xcp::reply(feedback), ..Ack::default() }
}

fn lying(lies: Lies) -> SenderConfig {
    SenderConfig { profile: Profile::Liar(lies), ..sender_config() }
}

/// The window after this feedback, from ten segments on.
fn window_after(config: &SenderConfig, feedback: i32) -> u64 {
    let mut sender = Sender::new(MSS, Bytes(10_000));
    sender.on_ack(config, Time(SECOND), &ack(feedback));
    sender.window().0
}

#[test]
fn headers_state_the_round_trip_times_its_factor_and_all_else_as_it_is() {
    let send =
        Send { size: MSS, srtt: RTT, awnd: Bytes(u64::MAX), backlog: Bytes(u64::MAX), ..Send::default() };
    let header = |config: &SenderConfig| Sender::new(MSS, Bytes(10_000)).header(config, Time(SECOND), &send);
    let honest = header(&sender_config());
    for (factor, stated) in
        [(20_000_000, 20 * honest.rtt), (500_000, honest.rtt / 2), (0, 1), (1_000_000_000, u32::MAX)]
    {
        let lies = Lies { stated_rtt: Ratio::ppm(factor), ..Lies::NONE };
        assert_eq!(header(&lying(lies)), xcp::Header { rtt: stated, ..honest }, "{factor} ppm");
    }
    let unknown = Send { srtt: Duration(0), ..send };
    let lies = Lies { stated_rtt: Ratio::ppm(20_000_000), ..Lies::NONE };
    let first = Sender::new(MSS, Bytes(10_000)).header(&lying(lies), Time(SECOND), &unknown);
    assert_eq!(first, xcp::Header::default(), "nothing is known yet");
}

#[test]
fn who_is_deaf_keeps_what_it_has_and_takes_what_it_gets() {
    let deaf = lying(Lies { deaf: true, ..Lies::NONE });
    assert_eq!(window_after(&deaf, -16_000), 10_000);
    assert_eq!(window_after(&sender_config(), -16_000), 8_000);
    assert_eq!(window_after(&deaf, 16_000), window_after(&sender_config(), 16_000));
}

#[test]
fn forged_acks_bring_more_than_was_granted_and_take_no_more() {
    let forged = lying(Lies { forged: Ratio::ppm(2_000_000), ..Lies::NONE });
    assert_eq!(window_after(&sender_config(), 16_000), 12_000);
    assert_eq!(window_after(&forged, 16_000), 14_000);
    assert_eq!(window_after(&forged, -16_000), 8_000);
}

/// Settings of a scenario make a liar of a sender, and a sender of a liar; one that follows an implementation stays that.
#[test]
fn settings_say_whether_a_sender_lies() {
    let set = |config: &mut SenderConfig, deaf: bool| {
        config.each(&mut |key, _, field| {
            if let ("deaf", Field::Switch(value)) = (key, field) {
                *value = deaf;
            }
        });
    };
    let mut config = sender_config();
    set(&mut config, true);
    assert_eq!(config.profile, Profile::Liar(Lies { deaf: true, ..Lies::NONE }));
    set(&mut config, false);
    assert_eq!(config, sender_config());
    for profile in [Profile::Ns2, Profile::Thesis] {
        let mut config = SenderConfig { profile, ..sender_config() };
        set(&mut config, true);
        assert_eq!(config.profile, profile);
    }
}
