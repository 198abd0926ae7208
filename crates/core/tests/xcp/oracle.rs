//! The link law in floating point, line by line from docs/design/protocols.md 1.5 with 1.7's rules. It shares
//! no arithmetic with the law: seconds, bytes and B/s as `f64`, no fixed point, no rounding.

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
}

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
        }
    }

    pub(crate) fn arrival(&mut self, x: f64, rtt: f64, size: f64) {
        self.input_traffic += size;
        let (x, rtt) = (x.min(self.max_x), rtt.min(self.config.max_interval));
        if rtt > 0.0 && x > 0.0 {
            self.sum_x += x;
            self.sum_xr += x * rtt;
            self.sum_r += rtt;
            self.packets += 1.0;
            if let Some(p) = &mut self.proportional {
                p.n += (x / self.ci).min(1.0);
            }
        }
    }

    pub(crate) fn control_timeout(&mut self, elapsed: f64) {
        let c = &self.config;
        self.avg_rtt = if self.sum_x > 0.0 { self.sum_xr / self.sum_x } else { c.initial_interval };
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
        self.res_pos = h + self.f.max(0.0);
        if let Some(p) = &mut self.proportional {
            p.timeout();
            self.res_pos *= p.scale;
        }
        self.res_neg = h + (-self.f).max(0.0);
        self.cp = if self.sum_x > 0.0 { self.res_pos / self.sum_x } else { 0.0 };
        self.cn = if self.input_traffic > 0.0 { self.res_neg / self.input_traffic } else { 0.0 };
        self.input_traffic = 0.0;
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
