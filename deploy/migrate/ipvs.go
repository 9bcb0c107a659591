package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/kubeproxy"
	"github.com/weft-proxy/weft/cmd/weft/sockdiag"
	"github.com/weft-proxy/weft/cmd/weft/takeover/ipvs"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// addScheduler compares a scheduler of IPVS with weft, which has no other choice than at random.
func (r *report) addScheduler(subject, scheduler string) {
	const random = "the scheduler of IPVS is %s: weft chooses endpoints at random, all with the same probability"
	switch scheduler {
	case "rr", "wrr": // kube-proxy gives all endpoints the weight 1
		r.add(note, subject, "", random+". Over many connections the shares are the same", scheduler)
	case "lc", "wlc", "sed", "nq":
		r.add(differs, subject, "let clients or servers limit the connections of an endpoint", random+", and does not count their connections", scheduler)
	case "sh", "dh", "mh", "lblc", "lblcr":
		r.add(differs, subject, "give Services that need it sessionAffinity: ClientIP", random+", so that a client does not keep its endpoint", scheduler)
	default:
		r.add(differs, subject, "", random, scheduler)
	}
}

// addIPVS adds findings about the configuration of mode ipvs.
func (r *report) addIPVS(s *kubeproxy.Settings) {
	const subject = "configuration"
	c := &s.Configuration.IPVS
	r.strictARP = c.StrictARP
	r.addScheduler(subject, cmp.Or(c.Scheduler, "rr"))
	if d := s.Config.Detect; d.Mode == render.DetectCIDRs && len(d.CIDRs) == 0 && !s.Config.MasqueradeAll {
		r.add(blocks, subject, "set clusterCIDR or another detectLocalMode, or nftables.masqueradeAll", "the addresses of pods are not known: while kube-ipvs0 is there, connections of the node's processes to Services have a Service's address as their source, which weft does not masquerade then")
	}
	if c.TCPTimeout.Duration > 0 || c.TCPFinTimeout.Duration > 0 || c.UDPTimeout.Duration > 0 {
		r.add(differs, subject, "set conntrack.tcpEstablishedTimeout, tcpCloseWaitTimeout, udpTimeout and udpStreamTimeout", "idle connections end after ipvs.tcpTimeout, tcpFinTimeout and udpTimeout (%v, %v, %v): with weft only the timeouts of connection tracking count",
			c.TCPTimeout.Duration, c.TCPFinTimeout.Duration, c.UDPTimeout.Duration)
	}
	if len(c.ExcludeCIDRs) > 0 {
		r.add(note, subject, "", "virtual servers in ipvs.excludeCIDRs (%s) are not kube-proxy's: weft leaves them", strings.Join(c.ExcludeCIDRs, ", "))
	}
	r.add(differs, subject, "look on a node for programs that bind to addresses of Services (weft migrate assess there), and for checks that ping them", "addresses of Services are local addresses of the nodes, on kube-ipvs0, until weft has taken over: then no program can bind to them, and they do not answer ping")
}

// addIPVSServices adds findings about Services that mode ipvs treats differently.
func (r *report) addIPVSServices(all []corev1.Service) {
	const subject = "Services"
	if r.Mode != kubeproxy.ModeIPVS {
		return
	}
	var outside, inside, local []string
	for i := range all {
		s := &all[i]
		name := s.Namespace + "/" + s.Name
		if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
			outside = append(outside, name)
		}
		if p := s.Spec.InternalTrafficPolicy; p != nil && *p == corev1.ServiceInternalTrafficPolicyLocal {
			inside = append(inside, name)
		}
		if len(s.Spec.ExternalIPs) > 0 || slices.ContainsFunc(s.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) bool { return i.IP != "" }) {
			local = append(local, name)
		}
	}
	if len(outside) > 0 {
		r.add(differs, subject, "send clients only to nodes with an endpoint (healthCheckNodePort), as a load balancer does", "%d have externalTrafficPolicy Local: a node without an endpoint drops packets from outside, for which mode ipvs used endpoints of other nodes; pods and nodes reach all endpoints by external addresses, for which mode ipvs used local ones: %s", len(outside), cli.Some(outside))
	}
	if len(inside) > 0 {
		r.add(differs, subject, "see that each node with clients has an endpoint", "%d have internalTrafficPolicy Local: a node without an endpoint drops packets, for which mode ipvs used endpoints of other nodes: %s", len(inside), cli.Some(inside))
	}
	if len(local) > 0 && !r.strictARP {
		r.add(differs, subject, "see that a route, a load balancer or MetalLB leads their packets to the nodes", "the nodes answer ARP for external addresses of %d, because they are on kube-ipvs0 and ipvs.strictARP is false: with weft they do not: %s", len(local), cli.Some(local))
	}
}

// sysctls are set by kube-proxy in mode ipvs, below net/ipv4.
var sysctls = []string{"vs/conntrack", "vs/conn_reuse_mode", "vs/expire_nodest_conn", "vs/expire_quiescent_template", "ip_forward", "conf/all/arp_ignore", "conf/all/arp_announce"}

// addIPVSHost examines this machine if it has kube-ipvs0 or virtual servers.
func (r *report) addIPVSHost(proc string, left *ipvs.Left) {
	const subject = "this machine"
	if len(left.Servers) == 0 && len(left.Addresses) == 0 {
		return
	}
	schedulers := make(map[string]bool)
	for _, s := range left.Servers {
		schedulers[s.Scheduler] = true
	}
	for _, s := range slices.Sorted(maps.Keys(schedulers)) {
		r.addScheduler(subject, s)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(proc, "sys/net/ipv4", name))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	if read("vs/nat_icmp_send") == "1" {
		r.add(blocks, subject, "set it to 0", "net.ipv4.vs.nat_icmp_send is 1: IPVS rejects answers of endpoints on connections that it does not know, such as weft's")
	}
	var values []string
	for _, name := range sysctls {
		if v := read(name); v != "" {
			values = append(values, strings.ReplaceAll(name, "/", ".")+"="+v)
		}
	}
	r.add(note, subject, "set them back if nothing else, such as MetalLB, needs them", "values of net.ipv4 that kube-proxy may have set stay: %s", strings.Join(values, ", "))
	bound, err := sockdiag.Bound(func(a netip.Addr) bool { return slices.Contains(left.Addresses, a) })
	if err != nil {
		r.add(note, subject, "", "programs that bind to addresses of kube-ipvs0 are not examined: %v", err)
	}
	if len(bound) > 0 {
		r.add(differs, subject, "let these programs bind to other addresses: new connections to theirs go to weft's rules, and they cannot start again",
			"programs listen on addresses of kube-ipvs0: %s", cli.Some(cli.Map(bound, func(s sockdiag.Socket) string { return fmt.Sprint(s.Local) })))
	}
}
