package scale

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	namespaces = 50
	// perSlice is the EndpointSlice controller's default.
	perSlice = 100
	// nodes of the endpoints, beside the measured node
	nodes      = 100
	port       = 80
	targetPort = 8080
)

// endpointCIDR has the addresses of all endpoints ever, serviceCIDR the ClusterIPs.
var (
	endpointCIDR = netip.MustParsePrefix("10.128.0.0/9")
	serviceCIDR  = netip.MustParsePrefix("10.96.0.0/16")
)

type size struct {
	services  int
	endpoints int // per service
}

// parseSize reads "10000x10".
func parseSize(s string) (size, error) {
	services, endpoints, _ := strings.Cut(s, "x")
	n, err := strconv.Atoi(services)
	m, err2 := strconv.Atoi(endpoints)
	if err != nil || err2 != nil || n < 1 || m < 1 || n > 60_000 || n*m > 1_000_000 {
		return size{}, fmt.Errorf("size %q: want SERVICESxENDPOINTS, such as 10000x10, at most 60000 services and 1000000 endpoints", s)
	}
	return size{n, m}, nil
}

func (s size) String() string { return fmt.Sprintf("%dx%d", s.services, s.endpoints) }

func (s size) total() int { return s.services * s.endpoints }

// population has the slices as last written.
type population struct {
	size
	slices []*discoveryv1.EndpointSlice
	// used counts addresses, which are never reused.
	used uint32
}

func newPopulation(s size) *population {
	p := &population{size: s}
	for i := range s.services {
		for first := 0; first < s.endpoints; first += perSlice {
			slice := newSlice(i, first/perSlice)
			for range min(perSlice, s.endpoints-first) {
				slice.Endpoints = append(slice.Endpoints, p.endpoint())
			}
			p.slices = append(p.slices, slice)
		}
	}
	return p
}

func (p *population) address() netip.Addr {
	base := endpointCIDR.Addr().As4()
	p.used++
	binary.BigEndian.PutUint32(base[:], binary.BigEndian.Uint32(base[:])+p.used)
	return netip.AddrFrom4(base)
}

// endpoint is never on the measured node.
func (p *population) endpoint() discoveryv1.Endpoint {
	yes, no := true, false
	address := p.address().String()
	node := nodeName(int(p.used) % nodes)
	return discoveryv1.Endpoint{
		Addresses:  []string{address},
		NodeName:   &node,
		Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &no},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "pod-" + strings.ReplaceAll(address, ".", "-")},
	}
}

// replace replaces n endpoints of a slice, and returns the new addresses.
func (p *population) replace(slice *discoveryv1.EndpointSlice, first, n int) []netip.Addr {
	var all []netip.Addr
	for range n {
		e := p.endpoint()
		slice.Endpoints[first%len(slice.Endpoints)] = e
		all = append(all, address(e))
		first++
	}
	return all
}

func address(e discoveryv1.Endpoint) netip.Addr { return netip.MustParseAddr(e.Addresses[0]) }

func namespaceName(i int) string { return "ns-" + strconv.Itoa(i%namespaces) }

func serviceName(i int) string { return "svc-" + strconv.Itoa(i) }

// the measured node is [node]
func nodeName(i int) string { return "other-" + strconv.Itoa(i) }

// clusterIP begins at .1.0: Kubernetes uses the addresses before.
func clusterIP(i int) netip.Addr {
	base := serviceCIDR.Addr().As4()
	binary.BigEndian.PutUint32(base[:], binary.BigEndian.Uint32(base[:])+uint32(i)+256)
	return netip.AddrFrom4(base)
}

// Without a selector, the controllers of a real cluster leave the Service's slices alone.
func newService(i int) *corev1.Service {
	ip := clusterIP(i).String()
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaceName(i), Name: serviceName(i)},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(targetPort)}},
		},
	}
}

func newSlice(service, n int) *discoveryv1.EndpointSlice {
	name, protocol, target := "http", corev1.ProtocolTCP, int32(targetPort)
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceName(service), Name: fmt.Sprintf("%s-%d", serviceName(service), n),
			Labels: map[string]string{discoveryv1.LabelServiceName: serviceName(service), discoveryv1.LabelManagedBy: "scale"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Protocol: &protocol, Port: &target}},
	}
}

func newNode(name string, address netip.Addr) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.String()}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
		},
	}
}
