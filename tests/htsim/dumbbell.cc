// htsim (Broadcom's csg-htsim) runs the dumbbell of tools/bench with its TCP, which is NewReno's without SACK, and
// prints one line:
//
//   result utilization=U cpu=S
//
// U: bits of all packets that came in order in [from, duration] / (rate x time). S: CPU time from then to then, s.
//
// Usage: dumbbell flows rate_bit/s queue_packets window_packets segment_B from_s duration_s

#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

// Of the access and exit links, which have no limit.
static const mem_b UNLIMITED = 1000000000;
// Time in which the flows begin, one after the other, s.
static const double SPREAD = 0.060;

// A link: its queue, and the wire behind it.
struct Link
{
    Link(uint64_t rate, double delay, mem_b limit)
        : queue(rate, limit, EventList::getTheEventList(), nullptr), pipe(timeFromSec(delay))
    {
    }

    Queue queue;
    Pipe pipe;
};

// A flow, with its access and exit, there and back.
struct Flow
{
    explicit Flow(uint64_t rate)
        : access(rate, 0.005, UNLIMITED), exit(rate, 0.005, UNLIMITED), access_back(rate, 0.005, UNLIMITED),
          exit_back(rate, 0.005, UNLIMITED), source(nullptr, nullptr, EventList::getTheEventList())
    {
    }

    Link access, exit, access_back, exit_back;
    Route out, back;
    TcpSrc source;
    TcpSink sink;
};

static void
Append(Route& route, Link& link)
{
    route.push_back(&link.queue);
    route.push_back(&link.pipe);
}

int
main(int argc, char** argv)
{
    if (argc != 8)
    {
        std::fprintf(stderr, "usage: dumbbell flows rate queue window segment from duration\n");
        return 2;
    }
    const int count = std::atoi(argv[1]);
    const uint64_t rate = std::atoll(argv[2]);
    const mem_b queue = std::atoll(argv[3]);
    const uint32_t window = std::atoi(argv[4]);
    const int segment = std::atoi(argv[5]);
    const double from = std::atof(argv[6]);
    const double duration = std::atof(argv[7]);

    Packet::set_packet_size(segment);
    EventList& events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(duration));
    // Limits are in bytes.
    Link bottleneck(rate, 0.020, queue * segment), reverse(rate, 0.020, queue * segment);
    TcpRtxTimerScanner scanner(timeFromMs(10), events);
    std::vector<std::unique_ptr<Flow>> flows;
    for (int n = 0; n < count; ++n)
    {
        flows.emplace_back(new Flow(rate));
        Flow& flow = *flows.back();
        Append(flow.out, flow.access);
        Append(flow.out, bottleneck);
        Append(flow.out, flow.exit);
        flow.out.push_back(&flow.sink);
        Append(flow.back, flow.exit_back);
        Append(flow.back, reverse);
        Append(flow.back, flow.access_back);
        flow.back.push_back(&flow.source);
        flow.source.set_cwnd(segment);
        flow.source.set_ssthresh(UINT32_MAX);
        flow.source._maxcwnd = window * segment;
        flow.source.connect(flow.out, flow.back, flow.sink, timeFromSec(SPREAD * n / count));
        scanner.registerTcp(flow.source);
    }
    auto received = [&]() {
        double bytes = 0;
        for (auto& flow : flows)
        {
            bytes += double(flow->sink._cumulative_ack);
        }
        return bytes;
    };
    while (events.now() < timeFromSec(from) && events.doNextEvent())
    {
    }
    const double before = received();
    const std::clock_t began = std::clock();
    while (events.doNextEvent())
    {
    }
    const double cpu = double(std::clock() - began) / CLOCKS_PER_SEC;
    const double utilization = (received() - before) * 8 / (rate * (duration - from));
    std::printf("result utilization=%.6f cpu=%.3f\n", utilization, cpu);
    return 0;
}
