// ns-3 (Debian's 3.37) runs the dumbbell of tools/bench with TCP and SACK, and prints one line:
//
//   result utilization=U cpu=S
//
// U: bits that the receivers got in order in [from, duration], headers included, / (rate x time). S: CPU time from
// then to then, s.
//
// Usage: dumbbell flows rate_bit/s queue_packets window_packets segment_B from_s duration_s

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/nix-vector-routing-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace ns3;

// IPv4, TCP, timestamps: what a whole packet has beside its data.
static const uint32_t HEADERS = 20 + 20 + 12;
// The point-to-point device's own, which our links do not have.
static const uint32_t FRAME = 2;

static NetDeviceContainer
Link(Ptr<Node> from, Ptr<Node> to, uint64_t rate, double delay, uint32_t queue)
{
    PointToPointHelper helper;
    helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    helper.SetChannelAttribute("Delay", TimeValue(Seconds(delay)));
    helper.SetQueue("ns3::DropTailQueue",
                    "MaxSize",
                    QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queue)));
    return helper.Install(from, to);
}

int
main(int argc, char** argv)
{
    if (argc != 8)
    {
        std::fprintf(stderr, "usage: dumbbell flows rate queue window segment from duration\n");
        return 2;
    }
    const uint32_t flows = std::atoi(argv[1]);
    const uint64_t rate = std::atoll(argv[2]);
    const uint32_t queue = std::atoi(argv[3]);
    const uint32_t window = std::atoi(argv[4]);
    const uint32_t segment = std::atoi(argv[5]);
    const double from = std::atof(argv[6]);
    const double duration = std::atof(argv[7]);
    const uint32_t data = segment - HEADERS;
    const double spread = 0.060;

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpLinuxReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(data));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(window * data));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(2 * window * data));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));

    NodeContainer routers, senders, receivers;
    routers.Create(2);
    senders.Create(flows);
    receivers.Create(flows);
    InternetStackHelper stack;
    // Global routing looks through a list of all hosts for each packet: twice the time with 100 flows.
    stack.SetRoutingHelper(Ipv4NixVectorHelper());
    stack.Install(routers);
    stack.Install(senders);
    stack.Install(receivers);

    Ipv4AddressHelper address("10.0.0.0", "255.255.255.252");
    TrafficControlHelper control;
    auto assign = [&](NetDeviceContainer devices) {
        Ipv4InterfaceContainer interfaces = address.Assign(devices);
        control.Uninstall(devices);
        address.NewNetwork();
        return interfaces;
    };
    // A frame is larger than our packet, and the rate by as much.
    const uint64_t scaled = rate * (segment + FRAME) / segment;
    assign(Link(routers.Get(0), routers.Get(1), scaled, 0.020, queue));
    ApplicationContainer sinks;
    for (uint32_t flow = 0; flow < flows; ++flow)
    {
        assign(Link(senders.Get(flow), routers.Get(0), scaled, 0.005, 1000000));
        Ipv4InterfaceContainer exit =
            assign(Link(routers.Get(1), receivers.Get(flow), scaled, 0.005, 1000000));
        const InetSocketAddress to(exit.GetAddress(1), 9);
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
        sinks.Add(sink.Install(receivers.Get(flow)));
        BulkSendHelper source("ns3::TcpSocketFactory", to);
        source.SetAttribute("MaxBytes", UintegerValue(0));
        source.SetAttribute("SendSize", UintegerValue(data));
        source.Install(senders.Get(flow)).Start(Seconds(spread * flow / flows));
    }

    auto received = [&]() {
        double bytes = 0;
        for (uint32_t flow = 0; flow < flows; ++flow)
        {
            bytes += double(DynamicCast<PacketSink>(sinks.Get(flow))->GetTotalRx());
        }
        return bytes / data * segment;
    };
    Simulator::Stop(Seconds(from));
    Simulator::Run();
    const double before = received();
    const std::clock_t began = std::clock();
    Simulator::Stop(Seconds(duration - from));
    Simulator::Run();
    const double cpu = double(std::clock() - began) / CLOCKS_PER_SEC;
    const double utilization = (received() - before) * 8 / (rate * (duration - from));
    Simulator::Destroy();
    std::printf("result utilization=%.6f cpu=%.3f\n", utilization, cpu);
    return 0;
}
