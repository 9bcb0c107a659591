package model

import (
	"cmp"
	"hash/maphash"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/source/network"
)

// PodObject is the parsed form of a Pod. It is immutable.
type PodObject struct {
	podFacts
	labels []label
	ports  []namedPort
}

// podFacts are the parts that pods do not share.
type podFacts struct {
	name    types.NamespacedName
	uid     types.UID
	created int64
	node    string
	// addrs are the first valid address of each family, sorted. A pod in the host's network, or
	// ended, has no address (rules 9-11).
	addrs [2]netip.Addr
	bad   findings
}

type namedPort struct {
	name     string
	protocol Protocol
	port     uint16
}

func writePort(h *maphash.Hash, p namedPort) {
	_, _ = h.WriteString(p.name)
	_, _ = h.Write([]byte{0, byte(p.protocol), byte(p.port >> 8), byte(p.port)})
}

// ParsePod returns the parsed form of a Pod; without a UID, its name is the UID.
func ParsePod(o *corev1.Pod) *PodObject {
	message, err := o.Marshal()
	out, err2 := UnmarshalPod(message)
	if err = cmp.Or(err, err2); err != nil {
		out = &PodObject{podFacts: podFacts{name: types.NamespacedName{Namespace: intern(o.Namespace), Name: o.Name}, uid: o.UID}}
		out.bad.add("object", err)
	}
	return out
}

func (p *podFacts) setAddresses(field string, texts []string) {
	for i, text := range texts {
		a, err := parsePodAddr(text)
		if err != nil {
			p.bad.add(index(field, i), err)
			continue
		}
		if !slices.ContainsFunc(p.addresses(), func(b netip.Addr) bool { return a.BitLen() == b.BitLen() }) {
			p.addrs[len(p.addresses())] = a
		}
	}
	slices.SortFunc(p.addresses(), netip.Addr.Compare)
}

// The caller must not change the result.
func (p *podFacts) addresses() []netip.Addr {
	n := 0
	for n < len(p.addrs) && p.addrs[n].IsValid() {
		n++
	}
	return p.addrs[:n:n]
}

func (p *podFacts) absent() bool { return !p.addrs[0].IsValid() }

// Further named ports of a pod do not count.
const maxNamedPorts = 1000

func (p *PodObject) addPort(name string, protocol corev1.Protocol, number int32) {
	proto, err := network.ParseProtocol(protocol)
	port, err2 := network.ParsePort(number)
	if name == "" || err != nil || err2 != nil || len(p.ports) == maxNamedPorts {
		return
	}
	known := func(q namedPort) bool { return q.name == name && q.protocol == proto }
	if !slices.ContainsFunc(p.ports, known) {
		p.ports = append(p.ports, namedPort{intern(name), proto, port})
	}
}

func (p *PodObject) equal(o *PodObject) bool {
	return p.podFacts.equal(&o.podFacts) && slices.Equal(p.labels, o.labels) && slices.Equal(p.ports, o.ports)
}

func (p *podFacts) equal(o *podFacts) bool {
	return p.name == o.name && p.uid == o.uid && p.created == o.created && p.node == o.node && p.addrs == o.addrs && slices.Equal(p.bad, o.bad)
}

// NamespaceObject is the parsed form of a Namespace.
type NamespaceObject struct {
	name   string
	labels []label
}

// ParseNamespace returns the parsed form of a Namespace, with the API server's label for the name.
func ParseNamespace(o *corev1.Namespace) *NamespaceObject {
	out := &NamespaceObject{name: intern(o.Name), labels: parseLabels(o.Labels)}
	if _, ok := lookup(out.labels, corev1.LabelMetadataName); !ok {
		at, _ := slices.BinarySearchFunc(out.labels, corev1.LabelMetadataName, func(l label, key string) int { return strings.Compare(l.key, key) })
		out.labels = slices.Insert(out.labels, at, label{corev1.LabelMetadataName, out.name})
	}
	return out
}

// NodeObject is the parsed form of a Node.
type NodeObject struct {
	node Node
	bad  findings
}

// ParseNode returns the parsed form of a Node.
func ParseNode(o *corev1.Node) *NodeObject {
	out := &NodeObject{node: Node{Name: strings.Clone(o.Name)}}
	for i, a := range o.Status.Addresses {
		addr, err := network.ParseAddr(a.Address)
		switch {
		case err == nil:
			out.node.Addresses = append(out.node.Addresses, addr)
		case a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP:
			out.bad.add(index("status.addresses", i)+".address", err)
		}
	}
	slices.SortFunc(out.node.Addresses, netip.Addr.Compare)
	out.node.Addresses = slices.Compact(out.node.Addresses)
	cidrs := o.Spec.PodCIDRs
	if len(cidrs) == 0 {
		cidrs = []string{o.Spec.PodCIDR}
	}
	out.node.PodCIDRs = parsePrefixes("spec.podCIDRs", cidrs, &out.bad)
	return out
}

func equalNode(a, b *Node) bool {
	return a.Name == b.Name && slices.Equal(a.Addresses, b.Addresses) && slices.Equal(a.PodCIDRs, b.PodCIDRs)
}

// ServiceCIDRObject is the parsed form of a ServiceCIDR.
type ServiceCIDRObject struct {
	name   string
	ranges []netip.Prefix
	bad    findings
}

// ParseServiceCIDR returns the parsed form of a ServiceCIDR.
func ParseServiceCIDR(o *networkingv1.ServiceCIDR) *ServiceCIDRObject {
	out := &ServiceCIDRObject{name: strings.Clone(o.Name)}
	out.ranges = parsePrefixes("spec.cidrs", o.Spec.CIDRs, &out.bad)
	return out
}
