-- congestlab's dissector of XCP, the eXplicit Control Protocol for congestion, for Wireshark and
-- tshark. Not the automotive XCP: everything here is named xcp_cc.
-- SPDX-License-Identifier: MIT OR Apache-2.0
--
-- Two forms:
--   * a header of 20 bytes between IP and transport: version 3 of draft-falk-xcp-spec-03 section 3.2,
--     version 2 of drafts -01 and -02, version 1 of draft -00 section 2.2; with what XCP-i and XCP-r
--     add to version 3, 28 or 36 bytes;
--   * an experimental TCP option (RFC 6994): kind, length, ExID, then RTT (us), X (ns),
--     Delta_Throughput, Reverse_Feedback on data (20 bytes), or Reverse_Feedback alone (8 bytes).
-- IP protocol, option kind and ExID are preferences: nobody assigned any.
--
-- Nothing here needs more than Lua 5.2 (Wireshark 4.0); 5.4 (Wireshark 4.4) runs it too.

local xcp = Proto("xcp_cc", "XCP Congestion Header")
-- Looks at packets after everyone else; a packet is xcp_cc in either form.
local option = Proto("xcp_cc_option", "XCP Congestion Header (TCP option)")

xcp.prefs.protocol = Pref.uint("IP protocol", 253, "IP protocol number of the congestion header")
xcp.prefs.option_enabled = Pref.bool("Look for TCP options", true, "Dissect the form as a TCP option")
xcp.prefs.option_kind = Pref.uint("TCP option kind", 253, "253 or 254 (RFC 4727)")
xcp.prefs.option_exid = Pref.uint("TCP option ExID", 0x5843, "Experiment identifier (RFC 6994)")

local LENGTH = 20
local protocols = { [1] = "ICMP", [6] = "TCP", [17] = "UDP" }
local formats = {
    [1] = "standard", [2] = "minimal", [3] = "with XCP-i's extension", [4] = "with XCP-r's extension",
    [5] = "with XCP-i's and XCP-r's extensions",
}
-- Formats of our own, of version 3: how long the header is, and where the extensions begin.
local extended = {
    [3] = { length = 28, router = 20 },
    [4] = { length = 28, window = 20 },
    [5] = { length = 36, router = 20, window = 28 },
}

local f = {
    version = ProtoField.uint8("xcp_cc.version", "Version"),
    format = ProtoField.uint8("xcp_cc.format", "Format", base.DEC, formats),
    protocol = ProtoField.uint8("xcp_cc.protocol", "Next protocol", base.DEC, protocols),
    length = ProtoField.uint8("xcp_cc.length", "Header length"),
    x = ProtoField.uint32("xcp_cc.x", "X (time between packets)"),
    x_ms = ProtoField.double("xcp_cc.x_ms", "X in ms"),
    rtt = ProtoField.uint32("xcp_cc.rtt", "RTT"),
    rtt_ms = ProtoField.double("xcp_cc.rtt_ms", "RTT in ms"),
    throughput = ProtoField.uint32("xcp_cc.throughput", "Throughput"),
    delta = ProtoField.int32("xcp_cc.delta_throughput", "Delta_Throughput"),
    reverse = ProtoField.int32("xcp_cc.reverse_feedback", "Reverse_Feedback"),
    xcp_ttl = ProtoField.uint8("xcp_cc.xcp_ttl", "xcp_ttl"),
    last_xcp_router = ProtoField.ipv4("xcp_cc.last_xcp_router", "last_xcp_router"),
    cwnd = ProtoField.uint32("xcp_cc.cwnd", "Cwnd"),
    congestion = ProtoField.bool("xcp_cc.congestion", "Congestion flag", 8, nil, 0x01),
    epoch = ProtoField.uint8("xcp_cc.epoch", "Epoch"),
    option_kind = ProtoField.uint8("xcp_cc.option.kind", "Option kind"),
    option_length = ProtoField.uint8("xcp_cc.option.length", "Option length"),
    option_exid = ProtoField.uint16("xcp_cc.option.exid", "Experiment identifier", base.HEX),
    option_rtt = ProtoField.uint32("xcp_cc.option.rtt_us", "RTT"),
    option_x = ProtoField.uint32("xcp_cc.option.x_ns", "X (time between packets)"),
}
xcp.fields = f

local e = {
    truncated = ProtoExpert.new("xcp_cc.truncated", "Shorter than a congestion header",
        expert.group.MALFORMED, expert.severity.ERROR),
    version = ProtoExpert.new("xcp_cc.version.unknown", "Version is none of 1, 2 and 3",
        expert.group.PROTOCOL, expert.severity.ERROR),
    length = ProtoExpert.new("xcp_cc.length.invalid", "Header length is not that of its version and format",
        expert.group.PROTOCOL, expert.severity.ERROR),
    format = ProtoExpert.new("xcp_cc.format.unknown", "Unknown format, taken as minimal",
        expert.group.PROTOCOL, expert.severity.WARN),
    nested = ProtoExpert.new("xcp_cc.nested", "A congestion header in a congestion header",
        expert.group.PROTOCOL, expert.severity.WARN),
    option = ProtoExpert.new("xcp_cc.option.length.invalid", "Option length is neither 8 nor 20",
        expert.group.PROTOCOL, expert.severity.ERROR),
}
xcp.experts = e

-- A rate, for people. Feedback is in bytes a second.
local function rate(bytes)
    local bits = bytes * 8
    local size = math.abs(bits)
    if size >= 1e9 then return string.format("%.4g Gbit/s", bits / 1e9) end
    if size >= 1e6 then return string.format("%.4g Mbit/s", bits / 1e6) end
    if size >= 1e3 then return string.format("%.4g kbit/s", bits / 1e3) end
    return string.format("%d bit/s", bits)
end

local function add_feedback(tree, field, range)
    tree:add(field, range):append_text(string.format(" B/s (%s)", rate(range:int())))
    return range:int()
end

-- A time whose unit is `scale` ms: as it stands, and in ms.
local function add_time(tree, raw, in_ms, range, scale)
    local ms = range:uint() * scale
    local text = range:uint() == 0 and " (unknown)" or string.format(" (%.6g ms)", ms)
    tree:add(raw, range):append_text(text)
    tree:add(in_ms, range, ms):set_generated()
end

-- Layouts: where the first four bytes and the words have what.
local FRACTION = 1000 / 2 ^ 28
local layouts = {
    [1] = { protocol = 1, length = 2, rtt = 4, unit = 1, throughput = 8, delta = 12, reverse = 16 },
    [2] = { protocol = 0, length = 1, rtt = 4, unit = FRACTION, x = 8, delta = 12, reverse = 16 },
    [3] = { protocol = 0, length = 1, x = 4, rtt = 8, unit = FRACTION, reverse = 12, delta = 16 },
}

-- The versions have their number in different places; as version 1 has its length where the others
-- have theirs, they can not be mistaken for each other.
local function version_of(tvb)
    if tvb(0, 1):bitfield(0, 4) == 1 and tvb(2, 1):uint() == LENGTH then
        return 1, tvb(0, 1)
    end
    return tvb(2, 1):bitfield(0, 4), tvb(2, 1)
end

-- What follows the header. Lua can not say that a packet was longer than what was captured, and TCP
-- must know: so what is missing is filled with zeros. (congestlab's payloads are zeros, so checksums
-- hold; of other captures that were cut they can not be checked.)
local function rest_of(tvb, header)
    local length = tvb:reported_len() - header
    if tvb:len() - header == length then return tvb(header):tvb() end
    local bytes = tvb(header):bytes()
    bytes:set_size(length)
    return bytes:tvb("Behind the congestion header, zeros where not captured")
end

local function hand_on_as_data(tvb, pinfo, tree)
    if tvb:len() > LENGTH then Dissector.get("data"):call(rest_of(tvb, LENGTH), pinfo, tree) end
    return tvb:len()
end

local function hand_on(protocol, header, tvb, pinfo, tree)
    if tvb:len() <= header then return tvb:len() end
    if protocol == xcp.prefs.protocol then return hand_on_as_data(tvb, pinfo, tree) end
    local rest = rest_of(tvb, header)
    if not DissectorTable.get("ip.proto"):try(protocol, rest, pinfo, tree) then
        Dissector.get("data"):call(rest, pinfo, tree)
    end
    return tvb:len()
end

function xcp.dissector(tvb, pinfo, root)
    pinfo.cols.protocol = "XCP"
    if tvb:reported_len() < LENGTH or tvb:len() < LENGTH then
        local tree = root:add(xcp, tvb())
        if tvb:reported_len() < LENGTH then
            tree:add_proto_expert_info(e.truncated)
        else
            tree:append_text(" (not captured)")
        end
        return tvb:len()
    end
    local version, first = version_of(tvb)
    local layout = layouts[version]
    local format = first:bitfield(4, 4)
    local extension = version == 3 and extended[format]
    local size = extension and extension.length or LENGTH
    local tree = root:add(xcp, tvb(0, math.min(size, tvb:len())))
    tree:add(f.version, first, version)
    if not layout then
        tree:add_proto_expert_info(e.version)
        pinfo.cols.info = string.format("XCP of unknown version %d", version)
        return hand_on_as_data(tvb, pinfo, root)
    end
    local length = tvb(layout.length, 1)
    tree:add(f.length, length)
    if length:uint() ~= size then
        tree:add_proto_expert_info(e.length)
        pinfo.cols.info = string.format("XCP header of %d bytes", length:uint())
        return hand_on_as_data(tvb, pinfo, root)
    end
    if tvb:len() < size then
        tree:add_proto_expert_info(e.truncated)
        return tvb:len()
    end
    local is_standard = format == 1 or extension ~= nil and extension ~= false
    local name = (format <= 2 or extension) and formats[format]
    tree:add(f.format, first, format)
    if not name then tree:add_proto_expert_info(e.format) end
    local protocol = tvb(layout.protocol, 1)
    tree:add(f.protocol, protocol)
    if protocol:uint() == xcp.prefs.protocol then tree:add_proto_expert_info(e.nested) end

    -- A minimal header states nothing but the feedback that returns.
    local summary = {}
    if is_standard then
        if layout.x then
            add_time(tree, f.x, f.x_ms, tvb(layout.x, 4), layout.unit)
        else
            local range = tvb(layout.throughput, 4)
            tree:add(f.throughput, range):append_text(
                string.format(" B/ms (%s)", rate(range:uint() * 1000)))
        end
        add_time(tree, f.rtt, f.rtt_ms, tvb(layout.rtt, 4), layout.unit)
        local delta = add_feedback(tree, f.delta, tvb(layout.delta, 4))
        summary[1] = string.format("Delta=%d", delta)
    end
    local reverse = add_feedback(tree, f.reverse, tvb(layout.reverse, 4))
    if reverse ~= 0 or not is_standard then
        summary[#summary + 1] = string.format("Reverse=%d", reverse)
    end
    if extension and extension.router then
        tree:add(f.xcp_ttl, tvb(extension.router, 1))
        tree:add(f.last_xcp_router, tvb(extension.router + 4, 4))
        summary[#summary + 1] = "Last=" .. tostring(tvb(extension.router + 4, 4):ipv4())
    end
    if extension and extension.window then
        local window = tvb(extension.window, 4)
        -- Bit 1 of the flags: the sum of the sender's own changes stands there.
        local is_sum = tvb(extension.window + 4, 1):bitfield(6, 1) == 1
        tree:add(f.cwnd, window):append_text(is_sum and " bytes, sum of the sender's own changes" or " bytes")
        tree:add(f.congestion, tvb(extension.window + 4, 1))
        tree:add(f.epoch, tvb(extension.window + 5, 1))
        summary[#summary + 1] = string.format(is_sum and "Own=%d Epoch=%d" or "Cwnd=%d Epoch=%d",
            is_sum and window:int() or window:uint(), tvb(extension.window + 5, 1):uint())
    end
    summary = table.concat(summary, " ")
    tree:append_text(string.format(", version %d, %s, %s", version, name or "unknown", summary))
    pinfo.cols.info = "XCP " .. summary
    hand_on(protocol:uint(), size, tvb, pinfo, root)
    pinfo.cols.info:append(" XCP " .. summary)
    return tvb:len()
end

local options = Field.new("tcp.options.experimental")

function option.dissector(_, pinfo, root)
    if not xcp.prefs.option_enabled then return end
    for _, info in ipairs({ options() }) do
        local range = info.range
        local length = range:len()
        if length >= 4 and range(0, 1):uint() == xcp.prefs.option_kind
            and range(2, 2):uint() == xcp.prefs.option_exid then
            local tree = root:add(xcp, range)
            tree:append_text(", TCP option")
            tree:add(f.option_kind, range(0, 1))
            tree:add(f.option_length, range(1, 1))
            tree:add(f.option_exid, range(2, 2))
            if length == 20 then
                add_time(tree, f.option_rtt, f.rtt_ms, range(4, 4), 1e-3)
                add_time(tree, f.option_x, f.x_ms, range(8, 4), 1e-6)
                local delta = add_feedback(tree, f.delta, range(12, 4))
                add_feedback(tree, f.reverse, range(16, 4))
                pinfo.cols.info:append(string.format(" XCP Delta=%d", delta))
            elseif length == 8 then
                local reverse = add_feedback(tree, f.reverse, range(4, 4))
                pinfo.cols.info:append(string.format(" XCP Reverse=%d", reverse))
            else
                tree:add_proto_expert_info(e.option)
            end
        end
    end
end

register_postdissector(option)

local ip_protocols = DissectorTable.get("ip.proto")
local registered = xcp.prefs.protocol
ip_protocols:add(registered, xcp)

function xcp.prefs_changed()
    if registered ~= xcp.prefs.protocol then
        ip_protocols:remove(registered, xcp)
        registered = xcp.prefs.protocol
        ip_protocols:add(registered, xcp)
    end
end
