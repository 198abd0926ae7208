//! The link law in floating point, line by line from docs/design/protocols.md 1.5 with 1.7's rules. It shares
//! no arithmetic with the law: seconds, bytes and B/s as `f64`, no fixed point, no rounding.

use super::{Duration, LinkConfig};

pub(crate) struct Config {
    pub(crate) capacity: f64,
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    pub(crate) gamma: f64,
    pub(crate) min_interval: f64,
    pub(crate) max_interval: f64,
    pub(crate) initial_interval: f64,
    pub(crate) allowed_queue: f64,
    pub(crate) capture: bool,
    pub(crate) bound_headers: bool,
    pub(crate) spread: bool,
}

impl From<&LinkConfig> for Config {
    fn from(config: &LinkConfig) -> Self {
        let seconds = |span: Duration| span.0 as f64 / 1e9;
        Self {
            capacity: config.capacity.0 as f64,
            alpha: 0.4,
            beta: 0.226,
            gamma: 0.1,
            min_interval: seconds(config.min_interval),
            max_interval: seconds(config.max_interval),
            initial_interval: seconds(config.initial_interval),
            allowed_queue: seconds(config.allowed_queue),
            capture: config.capture,
            bound_headers: config.bound_headers,
            spread: config.spread,
        }
    }
}

/// What packets with long round trips brought and have not counted for yet: size, X, X RTT, RTT, how many.
type Waiting = [f64; 5];

pub(crate) struct Link {
    pub(crate) config: Config,
    pub(crate) input_traffic: f64,
    pub(crate) sum_x: f64,
    pub(crate) sum_xr: f64,
    pub(crate) sum_r: f64,
    pub(crate) packets: f64,
    pub(crate) max_x: f64,
    pub(crate) avg_rtt: f64,
    pub(crate) res_pos: f64,
    pub(crate) res_neg: f64,
    pub(crate) cp: f64,
    pub(crate) cn: f64,
    pub(crate) y: f64,
    pub(crate) f: f64,
    pub(crate) ci: f64,
    pub(crate) queue: f64,
    pub(crate) min_queue: f64,
    pub(crate) tq: f64,
    pub(crate) proportional: Option<Proportional>,
    /// By how much longer than the interval the round trips are, and the X of those that came in this one.
    pub(crate) waiting: [Waiting; 4],
    pub(crate) long_x: f64,
}

/// What P-XCP adds (docs/design/protocols.md 2.4).
#[derive(Clone)]
pub(crate) struct Proportional {
    pub(crate) k: f64,
    pub(crate) r_max: f64,
    pub(crate) n: f64,
    pub(crate) n_lim: f64,
    pub(crate) scale: f64,
    /// Whether a flow is limited hung on the last bit, in this interval.
    pub(crate) is_doubtful: bool,
}

impl Proportional {
    pub(crate) fn new(k: f64, r_max: f64) -> Self {
        Self { k, r_max, n: 0.0, n_lim: 0.0, scale: 1.0, is_doubtful: false }
    }

    fn timeout(&mut self) {
        let r = if self.n > 0.0 { (self.n_lim / self.n).min(self.r_max) } else { 0.0 };
        self.scale = (self.k / (1.0 - r)).max(1.0);
        (self.n, self.n_lim, self.is_doubtful) = (0.0, 0.0, false);
    }
}

/// As a header can say it.
fn units(seconds: f64) -> f64 {
    (seconds * 268_435_456.0).round() / 268_435_456.0
}

impl Link {
    pub(crate) fn new(config: Config) -> Self {
        let initial = config.initial_interval;
        let max_x = if config.bound_headers { units(initial) } else { f64::INFINITY };
        Self {
            config,
            input_traffic: 0.0,
            sum_x: 0.0,
            sum_xr: 0.0,
            sum_r: 0.0,
            packets: 0.0,
            max_x,
            avg_rtt: initial,
            res_pos: 0.0,
            res_neg: 0.0,
            cp: 0.0,
            cn: 0.0,
            y: 0.0,
            f: 0.0,
            ci: initial,
            queue: 0.0,
            min_queue: 0.0,
            tq: initial,
            proportional: None,
            waiting: [[0.0; 5]; 4],
            long_x: 0.0,
        }
    }

    pub(crate) fn arrival(&mut self, x: f64, rtt: f64, size: f64) {
        let (x, rtt) = (x.min(self.max_x), rtt.min(self.config.max_interval));
        if rtt > 0.0 && x > 0.0 {
            self.sum_x += x;
            if let Some(p) = &mut self.proportional {
                p.n += (x / self.ci).min(1.0);
            }
            let times = rtt / self.ci;
            if self.config.spread && times > 2.0 {
                let class = [8.0, 32.0, 128.0].iter().filter(|&&bound| times > bound).count();
                let packet = [size, x, x * rtt, rtt, 1.0];
                self.waiting[class].iter_mut().zip(packet).for_each(|(sum, more)| *sum += more);
                self.long_x += x;
                return;
            }
            self.sum_xr += x * rtt;
            self.sum_r += rtt;
            self.packets += 1.0;
        }
        self.input_traffic += size;
    }

    pub(crate) fn control_timeout(&mut self, elapsed: f64) {
        let c = &self.config;
        let mut own_x = self.sum_x - self.long_x;
        for waiting in &mut self.waiting {
            let mean = waiting[3] / waiting[4];
            if mean > 0.0 {
                let part = if waiting[4] < 1.0 / 16.0 { 1.0 } else { (elapsed / mean).min(1.0) };
                let counted = waiting.map(|sum| sum * part);
                waiting.iter_mut().zip(counted).for_each(|(sum, counted)| *sum -= counted);
                self.input_traffic += counted[0];
                own_x += counted[1];
                self.sum_xr += counted[2];
                self.sum_r += counted[3];
                self.packets += counted[4];
            }
        }
        self.avg_rtt = if own_x > 0.0 { self.sum_xr / own_x } else { c.initial_interval };
        if c.bound_headers && self.packets > 0.0 {
            self.avg_rtt = self.avg_rtt.min(2.0 * self.sum_r / self.packets);
        }
        self.y = self.input_traffic / elapsed;
        let mut h = 0.0;
        self.f = 0.0;
        if self.input_traffic > 0.0 {
            self.f = c.alpha * (c.capacity - self.y) - c.beta * self.queue / self.avg_rtt;
            h = (c.gamma * self.y - self.f.abs()).max(0.0);
        }
        let left = self.res_neg;
        self.res_pos = h + self.f.max(0.0);
        if let Some(p) = &mut self.proportional {
            p.timeout();
            self.res_pos *= p.scale;
        }
        self.res_neg = h + (-self.f).max(0.0);
        self.cp = if self.sum_x > 0.0 { self.res_pos / self.sum_x } else { 0.0 };
        self.cn = if self.input_traffic > 0.0 { self.res_neg / self.input_traffic } else { 0.0 };
        if c.spread {
            self.res_neg = (self.res_neg + left).min(4.0 * self.res_neg);
        }
        (self.input_traffic, self.long_x) = (0.0, 0.0);
        self.sum_x = 0.0;
        (self.sum_xr, self.sum_r, self.packets) = (0.0, 0.0, 0.0);
        self.ci = self.avg_rtt.max(c.min_interval);
        if c.bound_headers {
            self.max_x = units(self.ci.min(c.initial_interval));
        }
    }

    /// The feedback that leaves with a packet that came with `demand`.
    pub(crate) fn departure(&mut self, demand: f64, x: f64, rtt: f64, size: f64, backlog: f64) -> f64 {
        let x = x.min(self.max_x);
        let mut pos = self.res_pos.min(self.cp * x);
        let mut neg = self.res_neg.min(self.cn * size);
        let fb = pos - neg;
        if let Some(p) = &mut self.proportional
            && x > 0.0
            && rtt > 0.0
        {
            p.n_lim += if demand < fb { (x / self.ci).min(1.0) } else { 0.0 };
            p.is_doubtful |= (demand - fb).abs() <= 1e-3 + (self.res_pos + self.res_neg) * 1e-7;
        }
        let mut delta = demand;
        if demand > fb {
            // A header's field ends at -2^31 B/s; the rest of the cut stays (1.7, field saturation).
            delta = fb.max(-2_147_483_648.0);
            neg -= delta - fb;
        } else if self.config.capture {
            neg = self.res_neg.min(neg + (fb - demand));
            pos = demand + neg;
        }
        self.res_pos = (self.res_pos - pos).max(0.0);
        self.res_neg = (self.res_neg - neg).max(0.0);
        if self.res_pos == 0.0 {
            self.cp = 0.0;
        }
        if self.res_neg == 0.0 {
            self.cn = 0.0;
        }
        self.min_queue = self.min_queue.min(backlog);
        delta
    }

    pub(crate) fn queue_timeout(&mut self, backlog: f64) {
        self.queue = self.min_queue;
        self.min_queue = backlog;
        self.tq = self.config.allowed_queue.max((self.avg_rtt - backlog / self.config.capacity) / 2.0);
    }
}
