# ns-2 (2.35) runs one dumbbell of the comparison and prints one line:
#
#   result utilization=U queue=Q drops=D cpu=S goodput=B0,B1,...
#
# U      bits that left the bottleneck in [warmup, duration] / (rate x time)
# Q      time-weighted mean of the packets waiting in the bottleneck over the same time; the packet
#        in service has left ns-2's queue, so it does not count (the same in congestlab)
# D      packets that the bottleneck's queue dropped, whole run; losses on the wire are not in it
# S      CPU time that ns-2 took from warmup to duration, s (0 where /proc has none)
# B      bit/s of each flow over [max(warmup, its start), duration], counted when bytes arrive in order
#
# Usage: ns dumbbell.tcl key=value ...
#   kind=xcp|reno|newreno|sack|fack|highspeed|vegas|linux-NAME (NAME of Agent/TCP/Linux: highspeed, bic, cubic, vegas)
#   rate=bit/s  delay=s  queue=packets  duration=s  warmup=s  seed=n
#   min_rto=s  tick=s  per=P  error_size=bytes  ack_loss=P  groups=n, and for each group i
#   i.count  i.segment=bytes  i.start=s  i.every=s  i.access_rate=bit/s  i.access_delay=s (rate 0: no
#   access and exit links)  i.window=packets
#
# Numbers after docs/ns2.md are its entries.

array set opt {kind xcp queue 100 warmup 0 seed 1 min_rto 0.2 tick 0.0001 per 0 error_size 1000 ack_loss 0}
foreach argument $argv {
    if {![regexp {^([^=]+)=(.*)$} $argument -> key value]} {
        puts stderr "dumbbell.tcl: $argument is not key=value"
        exit 2
    }
    set opt($key) $value
}

ns-random $opt(seed)

# The whole packet is packetSize_: ns-2 would add 40 B to it. The SYN stays 40 B, as do the ACKs.
Agent/TCP set useHeaders_ false
Agent/TCP set minrto_ $opt(min_rto)
# RFC 6298 §2: 1 s before the first measurement; ns-2's own value is older (3 s).
Agent/TCP set rtxcur_init_ 1.0
# docs/ns2.md 11: XCP's srtt counts ticks, 10 ms by default.
Agent/TCP set tcpTick_ $opt(tick)
Agent/TCP set windowInit_ 2
# docs/ns2.md 9: with one kind of traffic XCP has the whole link.
Queue/XCP set tcp_xcp_on_ 0

set ns [new Simulator]
# Routing tables are static: flows never change their way.
$ns rtproto Static
set left [$ns node]
set right [$ns node]

if {$opt(kind) eq "xcp"} { set discipline XCP } else { set discipline DropTail }
$ns simplex-link $left $right $opt(rate) $opt(delay) $discipline
$ns simplex-link $right $left $opt(rate) $opt(delay) DropTail
# docs/ns2.md 19: a limit of n holds n - 1 packets.
$ns queue-limit $left $right [expr {$opt(queue) + 1}]
$ns queue-limit $right $left [expr {$opt(queue) + 1}]
if {$opt(kind) eq "xcp"} {
    # docs/ns2.md 10: the capacity is 0 until told.
    [[$ns link $left $right] queue] set-link-capacity $opt(rate)
}

set monitor [$ns monitor-queue $left $right [open /dev/null w] 0.1]

# A wire that loses packets at its far end, as often as bits of packets of error_size would.
proc lossy {from to rate unit} {
    global ns
    set model [new ErrorModel]
    $model unit $unit
    $model set rate_ $rate
    $model ranvar [new RandomVariable/Uniform]
    $ns link-lossmodel $model $from $to
    # docs/ns2.md 13: otherwise the losses go to the queue monitor.
    $model drop-target [new Agent/Null]
}
if {$opt(per) > 0} {
    lossy $left $right [expr {1 - pow(1 - $opt(per), 1.0 / $opt(error_size))}] byte
}
if {$opt(ack_loss) > 0} {
    lossy $right $left $opt(ack_loss) pkt
}

set sinks {}
set starts {}
for {set g 0} {$g < $opt(groups)} {incr g} {
    for {set i 0} {$i < $opt($g.count)} {incr i} {
        if {$opt($g.access_rate) > 0} {
            set source [$ns node]
            set target [$ns node]
            # Long enough never to drop: our access links have no limit.
            $ns duplex-link $source $left $opt($g.access_rate) $opt($g.access_delay) DropTail
            $ns duplex-link $right $target $opt($g.access_rate) $opt($g.access_delay) DropTail
            foreach {from to} [list $source $left $left $source $right $target $target $right] {
                $ns queue-limit $from $to 1000000
            }
        } else {
            set source $left
            set target $right
        }
        if {$opt(kind) eq "xcp"} {
            set tcp [new Agent/TCP/Reno/XCP]
            set sink [new Agent/TCPSink/XCPSink]
            # docs/ns2.md 12: exact round trip times for retransmitted packets too.
            $tcp set timestamps_ true
        } else {
            set sink [new Agent/TCPSink/Sack1]
            switch -glob $opt(kind) {
                reno { set tcp [new Agent/TCP/Reno] }
                newreno { set tcp [new Agent/TCP/Newreno] }
                sack { set tcp [new Agent/TCP/Sack1] }
                fack { set tcp [new Agent/TCP/Fack] }
                highspeed {
                    # RFC 3649's formulas, by its author.
                    set tcp [new Agent/TCP/Sack1]
                    $tcp set windowOption_ 8
                }
                vegas {
                    set tcp [new Agent/TCP/Vegas]
                    set sink [new Agent/TCPSink]
                }
                linux-* {
                    set tcp [new Agent/TCP/Linux]
                    $tcp set timestamps_ true
                    $sink set ts_echo_rfc1323_ true
                    $ns at 0 "$tcp select_ca [string range $opt(kind) 6 end]"
                }
            }
        }
        $tcp set packetSize_ $opt($g.segment)
        $tcp set window_ $opt($g.window)
        $ns attach-agent $source $tcp
        $ns attach-agent $target $sink
        $ns connect $tcp $sink
        set ftp [new Application/FTP]
        $ftp attach-agent $tcp
        set start [expr {$opt($g.start) + $i * $opt($g.every)}]
        $ns at $start "$ftp start"
        lappend sinks $sink
        lappend starts $start
    }
}

# docs/ns2.md 15: byte counters are 32 bits wide and signed; read every second, a difference is right.
proc grown {name now} {
    global total last
    set total($name) [expr {$total($name) + (($now - $last($name)) & 0xffffffff)}]
    set last($name) $now
}
proc read_counters {} {
    global monitor sinks
    grown link [$monitor set bdepartures_]
    foreach sink $sinks { grown $sink [$sink set bytes_] }
}
proc every_second {} {
    global ns
    read_counters
    $ns at [expr {[$ns now] + 1.0}] every_second
}
proc zero {name now} {
    global total last
    set total($name) 0
    set last($name) $now
}
proc integrate {} {
    global ns monitor
    set integrator [$monitor get-pkts-integrator]
    $integrator newpoint [$ns now] [$integrator set lasty_]
    return $integrator
}
# CPU time so far, s: utime and stime, behind the name, which may hold spaces; Linux counts both in hundredths.
proc cpu {} {
    if {[catch {open /proc/self/stat} file]} { return 0.0 }
    set told [read $file]
    close $file
    set fields [string range $told [expr {[string last ")" $told] + 2}] end]
    return [expr {([lindex $fields 11] + [lindex $fields 12]) / 100.0}]
}
proc begin {} {
    global monitor sinks began
    zero link [$monitor set bdepartures_]
    foreach sink $sinks { zero $sink [$sink set bytes_] }
    [integrate] set sum_ 0.0
    every_second
    set began [cpu]
}
proc finish {} {
    global ns opt monitor sinks starts total began
    set cpu [expr {[cpu] - $began}]
    read_counters
    set time [expr {$opt(duration) - $opt(warmup)}]
    set utilization [expr {$total(link) * 8.0 / ($opt(rate) * $time)}]
    set queue [expr {[[integrate] set sum_] / $time}]
    set goodputs {}
    foreach sink $sinks start $starts {
        set from [expr {$start > $opt(warmup) ? $start : $opt(warmup)}]
        lappend goodputs [format %.1f [expr {$total($sink) * 8.0 / ($opt(duration) - $from)}]]
    }
    puts [format "result utilization=%.6f queue=%.4f drops=%d cpu=%.2f goodput=%s" \
        $utilization $queue [$monitor set pdrops_] $cpu [join $goodputs ,]]
    exit 0
}
$ns at $opt(warmup) begin
$ns at $opt(duration) finish
$ns run
