package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/net"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

func checkForwarding(_ context.Context, n *node, r *findings) error {
	for _, f := range []struct{ family, all string }{{"ipv4", "proc/sys/net/ipv4/ip_forward"}, {"ipv6", "proc/sys/net/ipv6/conf/all/forwarding"}} {
		on, exists, err := n.number(f.all)
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		setting := strings.ReplaceAll(strings.TrimPrefix(f.all, "proc/sys/"), "/", ".")
		if on == 0 {
			if f.family == "ipv6" && !n.hasIPv6() {
				continue
			}
			r.add(Error, setting+" is 0", "The kernel drops every packet that is not for the node itself: of pods, of NodePorts with endpoints elsewhere, of load balancers",
				fmt.Sprintf("`sysctl -w %s=1`, and write it to /etc/sysctl.d so that it survives a reboot", setting))
			continue
		}
		if f.family == "ipv6" {
			continue
		}
		if off := n.deaf(); len(off) > 0 {
			r.add(Warning, fmt.Sprintf("net.ipv4.conf.DEVICE.forwarding is 0 for %s, although %s is 1", cli.Some(off), setting),
				"Packets that arrive on these devices for others are dropped", "Set it to 1 for devices of pods and of the cluster's network")
		}
	}
	return nil
}

// deaf returns devices without forwarding, only for IPv4: for IPv6 the kernel reads only the setting
// of all devices.
func (n *node) deaf() []string {
	var off []string
	for _, device := range n.devices("proc/sys/net/ipv4/conf/*") {
		if device == "all" || device == "default" {
			continue
		}
		if v, ok, err := n.number("proc/sys/net/ipv4/conf/" + device + "/forwarding"); err == nil && ok && v == 0 {
			off = append(off, device)
		}
	}
	return off
}

func (n *node) hasIPv6() bool {
	text, err := n.text("proc/net/if_inet6")
	if err != nil {
		return false
	}
	for line := range strings.Lines(text) {
		// Address, index, prefix length, scope, flags, device: scope 0 is global.
		if words := strings.Fields(line); len(words) == 6 && words[3] == "00" {
			return true
		}
	}
	return false
}

func checkReversePath(_ context.Context, n *node, r *findings) error {
	dropped, err := n.netstat("TcpExt", "IPReversePathFilter")
	if err != nil || dropped == 0 {
		return err
	}
	all, _, err := n.number("proc/sys/net/ipv4/conf/all/rp_filter")
	if err != nil {
		return err
	}
	var strict []string
	for _, device := range n.devices("proc/sys/net/ipv4/conf/*") {
		own, _, err := n.number("proc/sys/net/ipv4/conf/" + device + "/rp_filter")
		// The kernel takes the greater value; 2 is the loose check.
		if err == nil && max(all, own) == 1 && device != "all" && device != "default" {
			strict = append(strict, device)
		}
	}
	if len(strict) == 0 {
		return nil
	}
	r.add(Error, fmt.Sprintf("the strict check of sources (rp_filter=1 on %s) has dropped %d packets", cli.Some(strict), dropped),
		"A packet is dropped if the way back to its source leads through another device: replies of pods and of other nodes' NodePorts can be among them",
		"`sysctl -w net.ipv4.conf.all.rp_filter=2`, which accepts a source that any device reaches, and look at the routes (`ip route get SOURCE`)")
	return nil
}

// netstat returns a value of /proc/net/netstat, or 0 if it is missing.
func (n *node) netstat(group, name string) (uint64, error) {
	text, err := n.text("proc/net/netstat")
	if err != nil {
		return 0, err
	}
	var names []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != group+":" {
			continue
		}
		if names == nil {
			names = words
			continue
		}
		if i := slices.Index(names, name); i > 0 && i < len(words) {
			return strconv.ParseUint(words[i], 10, 64)
		}
	}
	return 0, nil
}

// checkBridges reports bridges whose packets bypass nftables.
func checkBridges(_ context.Context, n *node, r *findings) error {
	var bridges []string
	for _, device := range n.devices("sys/class/net/*") {
		if ports := n.devices("sys/class/net/" + device + "/brif/*"); len(ports) > 1 {
			bridges = append(bridges, device)
		}
	}
	if len(bridges) == 0 {
		return nil
	}
	var off []string
	for _, setting := range []string{"bridge-nf-call-iptables", "bridge-nf-call-ip6tables"} {
		on, _, err := n.number("proc/sys/net/bridge/" + setting)
		if err != nil {
			return err
		}
		if on != 1 {
			off = append(off, "net.bridge."+setting)
		}
	}
	if len(off) == 0 {
		return nil
	}
	r.add(Warning, fmt.Sprintf("bridge %s has several ports, and %s is not 1", cli.Some(bridges), cli.Some(off)),
		"If pods are ports of it: network policies do not see their packets to each other, and a pod that reaches another one on it through a Service gets replies from the wrong address",
		fmt.Sprintf("If pods are connected to it: `modprobe br_netfilter` and `sysctl -w %s=1`", strings.Join(off, "=1 ")))
	return nil
}

// The default of --service-node-port-range.
const firstNodePort, lastNodePort = 30000, 32767

// checkPorts reports NodePorts in the kernel's range of local ports.
func checkPorts(_ context.Context, n *node, r *findings) error {
	text, err := n.text("proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return err
	}
	var first, last int
	if _, err := fmt.Sscan(text, &first, &last); err != nil || first > lastNodePort || last < firstNodePort {
		return nil //nolint:nilerr // it is not a range
	}
	reserved, err := n.text("proc/sys/net/ipv4/ip_local_reserved_ports")
	if err != nil || covers(reserved, max(first, firstNodePort), min(last, lastNodePort)) {
		return err
	}
	r.add(Warning, fmt.Sprintf("the kernel gives clients on this node ports from %d to %d, which are NodePorts too", max(first, firstNodePort), min(last, lastNodePort)),
		"A connection from the node that gets such a port can lose its replies to the NodePort's Service",
		fmt.Sprintf("`sysctl -w net.ipv4.ip_local_reserved_ports=%d-%d`, or `sysctl -w net.ipv4.ip_local_port_range=\"32768 60999\"`", firstNodePort, lastNodePort))
	return nil
}

// list is such as "80,30000-32767".
func covers(list string, first, last int) bool {
	for part := range strings.SplitSeq(list, ",") {
		if ports, err := net.ParsePortRange(strings.TrimSpace(part)); err == nil && ports.Contains(first) && ports.Contains(last) {
			return true
		}
	}
	return false
}

func checkNeighbours(_ context.Context, n *node, r *findings) error {
	for _, t := range []struct{ file, family string }{{"arp_cache", "ipv4"}, {"ndisc_cache", "ipv6"}} {
		values, err := n.perCPU(t.file)
		if err != nil {
			return err
		}
		if full := values["table_fulls"]; full > 0 {
			most, _, err := n.number("proc/sys/net/" + t.family + "/neigh/default/gc_thresh3")
			if err != nil {
				return err
			}
			r.add(Error, fmt.Sprintf("the table of neighbours was full %d times (%s: at most %d entries)", full, t.family, most),
				"Packets to pods and nodes that were not in the table were dropped",
				fmt.Sprintf("Raise net.%s.neigh.default.gc_thresh1, gc_thresh2 and gc_thresh3, for example to four times as much", t.family))
		}
	}
	return nil
}
