# ns-2 (2.35) runs a network that congestlab describes: what follows this text on stdin are calls of the procedures
# below, `go` the last. Numbers after docs/ns2.md are its entries.
#
# It prints, at the end,
#   link I B A P D Q M E      bytes that left in [warmup, duration], packets that arrived, left, were dropped, mean queue
#        AW PW DW             over that time, its maximum and its end; A, P and D at the warmup
#   flow F G S D N R T C M W  bytes in order and bytes sent over the flow's measured time, bytes in order in all, data packets
#        DW NW RW TW I IA     sent, retransmitted, timeouts, completion (-1: none), mean and maximum of the window; D, N, R
#                             and T at the warmup; the longest time without data sent, from the warmup on and in all
# and, while it runs, if there are bins,
#   bin K link I B Q          bytes that left in bin K, packets waiting at its end
#   bin K flow F G S W        bytes in order, bytes sent, window at its end
# The packet in service has left ns-2's queue and counts in none of these, as in congestlab. Maxima of queues, means and maxima
# of windows, and times without data are of samples.

set ns [new Simulator]
# Flows name their way themselves: ns-2 would take the fewest hops, and a minute for 1000 pairs of nodes (docs/ns2.md
# 17).
Agent/rtProto/Static proc init-all args {}
$ns rtproto Static

# The whole packet is packetSize_: ns-2 would add 40 B to it. The SYN stays 40 B, as do the ACKs.
Agent/TCP set useHeaders_ false
# RFC 6298 §2: 1 s before the first measurement; ns-2's own value is older (3 s).
Agent/TCP set rtxcur_init_ 1.0
# docs/ns2.md 11: XCP's srtt counts ticks, 10 ms by default.
Agent/TCP set tcpTick_ 0.0001
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false

set null [open /dev/null w]
set links {}
set flows {}

proc run {settings} {
    global duration warmup bin
    foreach {duration warmup bin seed} $settings {}
    ns-random $seed
}

proc nodes {count} {
    global ns node
    for {set i 0} {$i < $count} {incr i} { set node($i) [$ns node] }
}

# kind: droptail, red {min max 1/max_p weight gentle ecn wait use_mark_p packet_size}, xcp {shared}
proc link {i from to rate delay limit kind {about {}}} {
    global ns node null links ends monitor law
    set discipline [dict get {droptail DropTail red RED xcp XCP} $kind]
    $ns simplex-link $node($from) $node($to) $rate $delay $discipline
    set ends($i) [list $node($from) $node($to)]
    set queue [[$ns link {*}$ends($i)] queue]
    # docs/ns2.md 19: a limit of n holds n - 1 packets; RED's holds n.
    $ns queue-limit {*}$ends($i) [expr {$kind eq "red" ? $limit : $limit + 1}]
    if {$kind eq "red"} {
        foreach {min max linterm weight gentle ecn wait use_mark_p size} $about {}
        foreach {name value} [list thresh_ $min maxthresh_ $max linterm_ $linterm q_weight_ $weight \
            gentle_ $gentle setbit_ $ecn wait_ $wait use_mark_p_ $use_mark_p mean_pktsize_ $size] { $queue set $name $value }
    } elseif {$kind eq "xcp"} {
        # docs/ns2.md 9: TCP beside XCP has a queue of its own, and half of the capacity is XCP's.
        $queue set tcp_xcp_on_ $about
        # docs/ns2.md 10: the capacity is 0 until told.
        $queue set-link-capacity $rate
    }
    set law($i) $kind
    set monitor($i) [$ns monitor-queue {*}$ends($i) $null 0.1]
    foreach counter {bytes measured max} { set ::link_${counter}($i) 0 }
    set ::link_last($i) 0
    lappend links $i
}

proc rate {i at rate} {
    global ns
    $ns at $at "change $i $rate"
}
proc change {i rate} {
    global ns ends law
    set link [$ns link {*}$ends($i)]
    [$link link] set bandwidth_ $rate
    if {$law($i) eq "xcp"} { [$link queue] set-link-capacity $rate }
}

# A wire that loses packets at its far end, from some time on; unit: pkt, or byte: as many as if of packets of `size` bytes that
# part broke.
proc lossy {i unit rate {size 1} {from 0}} {
    global ns ends
    set model [new ErrorModel]
    $model unit $unit
    set rate [expr {$unit eq "byte" ? 1 - pow(1 - $rate, 1.0 / $size) : $rate}]
    $model set rate_ [expr {$from > 0 ? 0 : $rate}]
    if {$from > 0} { $ns at $from "$model set rate_ $rate" }
    $model ranvar [new RandomVariable/Uniform]
    $ns link-lossmodel $model {*}$ends($i)
    # docs/ns2.md 13: otherwise the losses go to the queue monitor.
    $model drop-target [new Agent/Null]
}

# A hop of a flow's own, both ways; long enough never to drop: our access links have no limit.
proc pipe {one other rate delay} {
    global ns
    $ns duplex-link $one $other $rate $delay DropTail
    $ns queue-limit $one $other 1000000
    $ns queue-limit $other $one 1000000
}

proc route {way} {
    global ns
    set to [lindex $way end]
    foreach from [lrange $way 0 end-1] next [lrange $way 1 end] {
        $from add-route [$to id] [[$ns link $from $next] head]
    }
}

# The nodes where a way begins and ends, behind hops of its own; way, back: numbers of nodes; access, exit: {} or {rate delay}.
proc ends {way back access exit} {
    global ns node
    set forth [lmap i $way { set node($i) }]
    set back [lmap i $back { set node($i) }]
    set source [lindex $forth 0]
    set target [lindex $forth end]
    if {$access ne ""} {
        set source [$ns node]
        pipe $source [lindex $forth 0] {*}$access
        set forth [linsert $forth 0 $source]
        lappend back $source
    }
    if {$exit ne ""} {
        set target [$ns node]
        pipe [lindex $forth end] $target {*}$exit
        lappend forth $target
        set back [linsert $back 0 $target]
    }
    route $forth
    route $back
    return [list $source $target]
}

# A source of datagrams, the one of that index; schedule: {} or how many are active, from when on: {time count time count ...}.
proc datagrams {index way back access exit segment rate start stop schedule} {
    global ns duration
    foreach {source target} [ends $way $back $access $exit] {}
    set udp [new Agent/UDP]
    # docs/ns2.md 25: otherwise a link with XCP queues them apart, where its law does not see them.
    $udp set prio_ 10
    $udp set packetSize_ $segment
    set null [new Agent/Null]
    $ns attach-agent $source $udp
    $ns attach-agent $target $null
    $ns connect $udp $null
    set cbr [new Application/Traffic/CBR]
    $cbr set packetSize_ $segment
    $cbr set rate_ $rate
    $cbr attach-agent $udp
    if {$schedule eq ""} { set schedule [list $start [expr {$index + 1}]] }
    set active 0
    foreach {at count} $schedule {
        set at [expr {max($at, $start)}]
        set now [expr {$index < $count && $at < $stop}]
        if {$now != $active && $at < $duration} { $ns at $at "$cbr [expr {$now ? "start" : "stop"}]" }
        set active $now
    }
    if {$active && $stop < $duration} { $ns at $stop "$cbr stop" }
}

# way, back, access, exit: as in `ends`; ack: size of ACKs; delayed: one for two segments, or after 100 ms; packets: -1 has no end; from, to: the measured time;
# bursts: {} or {packets pause write|ack buffer}, in place of `packets`.
proc flow {f kind way back access exit segment ack delayed window initial min_rto ecn start stop packets from to bursts} {
    global ns flows tcps sinks duration
    foreach {source target} [ends $way $back $access $exit] {}
    set agent $kind
    set sink Agent/TCPSink
    switch -glob $kind {
        XCP { set agent Reno/XCP; set sink Agent/TCPSink/XCPSink }
        Sack1 - Fack { set sink Agent/TCPSink/Sack1 }
        HighSpeed { set agent Sack1; set sink Agent/TCPSink/Sack1 }
        linux-* { set agent Linux; set sink Agent/TCPSink/Sack1 }
    }
    set tcp [new Agent/TCP/$agent]
    set sink [new [expr {$delayed ? "$sink/DelAck" : $sink}]]
    $sink set packetSize_ $ack
    switch -glob $kind {
        XCP {
            # docs/ns2.md 12: exact round trip times for retransmitted packets too.
            $tcp set timestamps_ true
        }
        HighSpeed {
            # RFC 3649's formulas, by its author.
            $tcp set windowOption_ 8
        }
        linux-* {
            $tcp set timestamps_ true
            $sink set ts_echo_rfc1323_ true
            $ns at 0 "$tcp select_ca [string range $kind 6 end]"
        }
    }
    foreach {name value} [list packetSize_ $segment window_ $window windowInit_ $initial minrto_ $min_rto ecn_ $ecn] {
        $tcp set $name $value
    }
    $ns attach-agent $source $tcp
    $ns attach-agent $target $sink
    $ns connect $tcp $sink
    set tcps($f) $tcp
    set sinks($f) $sink
    foreach counter {got sent got_measured sent_measured window_sum window_count window_max packets packets_at idle idle_total} {
        set ::flow_${counter}($f) 0
    }
    set ::flow_last_got($f) 0
    set ::flow_last_sent($f) 0
    set ::flow_done($f) -1
    $tcp proc done {} [list finished $f]
    if {$bursts ne ""} {
        set ::flow_written($f) 0
        # The SYN is a packet of its own.
        $ns at $start "begin_bursts $f"
        set ::flow_bursts($f) $bursts
        $tcp proc done {} [list wrote $f]
    } elseif {$packets < 0} {
        $ns at $start "$tcp send -1"
        if {$stop < $duration} { $ns at $stop "$tcp advance 0" }
    } else {
        # The SYN is a packet of its own.
        $ns at $start "$tcp advance [expr {$packets + 1}]"
    }
    # A flow that never is measured counts nothing.
    if {$from < $to} {
        lappend ::measure($from) [list $f -1]
        if {$to < $duration} { lappend ::measure($to) [list $f 1] }
    }
    set ::flow_span($f) [list $from $to]
    lappend flows $f
}

# The first burst is there when the connection opens.
proc begin_bursts {f} {
    global flow_bursts flow_opened
    set flow_opened($f) 0
    $::tcps($f) advanceby 1
}
# Who waits for the last ACK pauses from it on; the first one is that of the SYN.
proc wrote {f} {
    global ns flow_bursts flow_opened
    foreach {packets pause wait buffer} $flow_bursts($f) {}
    if {!$flow_opened($f)} {
        set flow_opened($f) 1
        $ns at [$ns now] "write $f"
    } elseif {$wait eq "ack"} {
        $ns at [expr {[$ns now] + $pause}] "write $f"
    }
}
proc write {f} {
    global tcps flow_bursts flow_written
    foreach {packets pause wait buffer} $flow_bursts($f) {}
    incr flow_written($f) $packets
    $tcps($f) advanceby $packets
    if {$wait eq "write"} { buffered $f }
}
# Who waits for room pauses from when all that was written has it; looked at every 10 ms where it has not.
proc buffered {f} {
    global ns tcps flow_bursts flow_written
    foreach {packets pause wait buffer} $flow_bursts($f) {}
    if {$flow_written($f) - [$tcps($f) set ack_] <= $buffer} {
        $ns at [expr {[$ns now] + $pause}] "write $f"
    } else {
        $ns at [expr {[$ns now] + 0.01}] "buffered $f"
    }
}

proc finished {f} {
    global ns flow_done
    if {$flow_done($f) < 0} { set flow_done($f) [$ns now] }
}

# docs/ns2.md 15: byte counters are 32 bits wide and signed; read every second, a difference is right.
proc grown {last now} {
    return [expr {($now - $last) & 0xffffffff}]
}
proc read_link {i} {
    global monitor link_bytes link_last
    set now [$monitor($i) set bdepartures_]
    incr link_bytes($i) [grown $link_last($i) $now]
    set link_last($i) $now
}
proc read_flow {f} {
    global tcps sinks flow_got flow_sent flow_last_got flow_last_sent
    set got [$sinks($f) set bytes_]
    incr flow_got($f) [grown $flow_last_got($f) $got]
    set flow_last_got($f) $got
    set sent [$tcps($f) set ndatabytes_]
    incr flow_sent($f) [grown $flow_last_sent($f) $sent]
    set flow_last_sent($f) $sent
}
proc read_all {} {
    global links flows
    foreach i $links { read_link $i }
    foreach f $flows { read_flow $f }
}
proc every_second {} {
    global ns
    read_all
    $ns at [expr {[$ns now] + 1.0}] every_second
}

# Takes what was counted so far from what is measured, or adds it.
proc measure_flows {at} {
    global measure flow_got flow_sent flow_got_measured flow_sent_measured
    foreach pair $measure($at) {
        foreach {f sign} $pair {}
        read_flow $f
        incr flow_got_measured($f) [expr {$sign * $flow_got($f)}]
        incr flow_sent_measured($f) [expr {$sign * $flow_sent($f)}]
    }
}

proc integrate {i} {
    global ns monitor
    set integrator [$monitor($i) get-pkts-integrator]
    $integrator newpoint [$ns now] [$integrator set lasty_]
    return $integrator
}
proc begin {} {
    global links link_bytes link_measured flows flow_got early
    foreach f $flows {
        read_flow $f
        set early(f$f) "$flow_got($f) [sent $f]"
    }
    foreach i $links {
        set early(l$i) [passed $i]
        read_link $i
        set link_measured($i) [expr {-$link_bytes($i)}]
        [integrate $i] set sum_ 0.0
    }
}

# What a link and a sender have counted so far.
proc passed {i} {
    set m $::monitor($i)
    return "[$m set parrivals_] [$m set pdepartures_] [$m set pdrops_]"
}
proc sent {f} {
    set tcp $::tcps($f)
    return "[$tcp set ndatapack_] [$tcp set nrexmitpack_] [$tcp set nrexmit_]"
}

proc look_at_queues {every} {
    global ns links monitor link_max
    foreach i $links {
        set packets [$monitor($i) set pkts_]
        if {$packets > $link_max($i)} { set link_max($i) $packets }
    }
    $ns at [expr {[$ns now] + $every}] "look_at_queues $every"
}
proc look_at_windows {sample every} {
    global ns flows tcps flow_span flow_window_sum flow_window_count flow_window_max
    global flow_packets flow_packets_at flow_idle flow_idle_total flow_done
    set now [$ns now]
    foreach f $flows {
        foreach {from to} $flow_span($f) {}
        set window [$tcps($f) set cwnd_]
        if {$window > $flow_window_max($f)} { set flow_window_max($f) $window }
        if {$now >= $from && $now <= $to} {
            set flow_window_sum($f) [expr {$flow_window_sum($f) + $window}]
            incr flow_window_count($f)
        }
        set packets [$tcps($f) set ndatapack_]
        # The first is the SYN. Who has sent it and nothing yet is not idle.
        if {$flow_packets($f) > 1 && $flow_done($f) < 0} {
            # Whole samples from the one that saw the last packet to this one, which may see the next.
            set idle [expr {($sample - $flow_packets_at($f)) * $every}]
            set flow_idle_total($f) [expr {max($idle, $flow_idle_total($f))}]
            if {$now >= $from && $now <= $to} { set flow_idle($f) [expr {max($idle, $flow_idle($f))}] }
        }
        if {$packets != $flow_packets($f)} {
            set flow_packets($f) $packets
            set flow_packets_at($f) $sample
        }
    }
    $ns at [expr {$now + $every}] "look_at_windows [incr sample] $every"
}

proc end_of_bin {k} {
    global ns bin bins done links flows monitor tcps link_bytes flow_got flow_sent was
    read_all
    foreach i $links {
        puts "bin $k link $i [expr {$link_bytes($i) - $was(l$i)}] [$monitor($i) set pkts_]"
        set was(l$i) $link_bytes($i)
    }
    foreach f $flows {
        puts "bin $k flow $f [expr {$flow_got($f) - $was(g$f)}] [expr {$flow_sent($f) - $was(s$f)}] [$tcps($f) set cwnd_]"
        set was(g$f) $flow_got($f)
        set was(s$f) $flow_sent($f)
    }
    set done $k
    if {$k < $bins} { $ns at [expr {($k + 1) * $bin}] "end_of_bin [expr {$k + 1}]" }
}

proc finish {} {
    global ns duration warmup bins done links flows monitor flow_span early
    if {$done < $bins} { end_of_bin $bins }
    read_all
    foreach i $links {
        set mean [expr {[[integrate $i] set sum_] / ($duration - $warmup)}]
        set m $monitor($i)
        set end [$m set pkts_]
        puts "link $i [expr {$::link_measured($i) + $::link_bytes($i)}] [passed $i]\
            $mean [expr {max($end, $::link_max($i))}] $end $early(l$i)"
    }
    foreach f $flows {
        foreach {from to} $flow_span($f) {}
        set rest [expr {$from < $to && $to >= $duration}]
        set count $::flow_window_count($f)
        puts "flow $f [expr {$::flow_got_measured($f) + $rest * $::flow_got($f)}]\
            [expr {$::flow_sent_measured($f) + $rest * $::flow_sent($f)}] $::flow_got($f) [sent $f] $::flow_done($f)\
            [expr {$count > 0 ? $::flow_window_sum($f) / $count : -1}] $::flow_window_max($f) $early(f$f)\
            $::flow_idle($f) $::flow_idle_total($f)"
    }
    puts end
    flush stdout
    exit 0
}

# A sample of each queue every millisecond and of each window every ten, but at most a million of each.
proc go {} {
    global ns duration warmup bin bins done links flows was measure
    set bins 0
    set done 0
    foreach i $links { set was(l$i) 0 }
    foreach f $flows { set was(g$f) 0; set was(s$f) 0 }
    if {$bin > 0} {
        set bins [expr {int($duration / $bin + 1e-9)}]
        if {$bins > 0} { $ns at $bin "end_of_bin 1" }
    }
    foreach at [array names measure] { $ns at $at "measure_flows $at" }
    $ns at $warmup begin
    $ns at 0 every_second
    set queues [expr {max(0.001, $duration * [llength $links] / 1e6)}]
    set windows [expr {max(0.01, $duration * [llength $flows] / 1e6)}]
    $ns at 0 "look_at_queues $queues"
    $ns at 0 "look_at_windows 0 $windows"
    $ns at $duration finish
    $ns run
}
