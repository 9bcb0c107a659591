package demo

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The Services of the demo. web has three endpoints, TCP and UDP ports, and NodePorts;
// solo has one endpoint; lonely has none.
var (
	webVIP    = at("10.96.0.10", "fd00:96::10")
	soloVIP   = at("10.96.0.20", "fd00:96::20")
	lonelyVIP = at("10.96.0.30", "fd00:96::30")
)

// The ports of the Services.
const (
	webPort     = 80
	dnsPort     = 53
	webNodePort = 30080
	dnsNodePort = 30053
)

// manifests is the directory of manifests that weft watches.
type manifests struct {
	dir     string
	cluster *cluster
	// web is the pods that are endpoints of the Service web.
	web []*pod
}

// writeAll writes every manifest.
func (m *manifests) writeAll() error {
	var nodes []any
	for _, n := range m.cluster.nodes {
		node := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
		for _, addr := range n.all() {
			node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: addr.String()})
		}
		nodes = append(nodes, node)
	}
	if err := m.write("nodes.yaml", nodes...); err != nil {
		return err
	}
	tcp := corev1.ServicePort{Name: "web", Protocol: corev1.ProtocolTCP, Port: webPort}
	udp := corev1.ServicePort{Name: "dns", Protocol: corev1.ProtocolUDP, Port: dnsPort, NodePort: dnsNodePort}
	webTCP := tcp
	webTCP.NodePort = webNodePort
	if err := m.write("services.yaml",
		service("web", corev1.ServiceTypeNodePort, webVIP, webTCP, udp),
		service("solo", corev1.ServiceTypeClusterIP, soloVIP, tcp),
		service("lonely", corev1.ServiceTypeClusterIP, lonelyVIP, tcp),
	); err != nil {
		return err
	}
	if err := m.write("solo-endpoints.yaml", endpoints("solo", soloVIP.V4, []*pod{m.cluster.pod("web-1")})); err != nil {
		return err
	}
	return m.setWeb(m.web)
}

// setWeb makes the pods the endpoints of the Service web.
func (m *manifests) setWeb(pods []*pod) error {
	m.web = pods
	var slices []any
	for _, vip := range webVIP.all() {
		slices = append(slices, endpoints("web", vip, pods))
	}
	return m.write("web-endpoints.yaml", slices...)
}

// removeFromWeb removes an endpoint of web.
func (m *manifests) removeFromWeb(name string) error {
	return m.setWeb(slices.DeleteFunc(slices.Clone(m.web), func(p *pod) bool { return p.Name == name }))
}

// write replaces a file by renaming, so that no reader sees a part of it.
func (m *manifests) write(name string, objects ...any) error {
	var b bytes.Buffer
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("write manifest: %w", err)
		}
		fmt.Fprintf(&b, "---\n%s", text)
	}
	// weft does not read files whose names begin with a dot.
	temporary := filepath.Join(m.dir, "."+name)
	if err := os.WriteFile(temporary, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := os.Rename(temporary, filepath.Join(m.dir, name)); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}

// service returns a Service with a ClusterIP of each family that the kernel has.
func service(name string, kind corev1.ServiceType, vip place, ports ...corev1.ServicePort) *corev1.Service {
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name},
		Spec:       corev1.ServiceSpec{Type: kind, ClusterIP: vip.V4.String(), Ports: ports},
	}
	for _, addr := range vip.all() {
		family := corev1.IPv4Protocol
		if addr.Is6() {
			family = corev1.IPv6Protocol
		}
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, addr.String())
		s.Spec.IPFamilies = append(s.Spec.IPFamilies, family)
	}
	return s
}

// endpoints returns the EndpointSlice of a Service in the family of its ClusterIP vip.
func endpoints(service string, vip netip.Addr, pods []*pod) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: service + "-v4", Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{
			{Name: new("web"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(serverTCP))},
			{Name: new("dns"), Protocol: new(corev1.ProtocolUDP), Port: new(int32(serverUDP))},
		},
	}
	if vip.Is6() {
		s.Name, s.AddressType = service+"-v6", discoveryv1.AddressTypeIPv6
	}
	for _, p := range pods {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{p.of(vip).String()}, NodeName: &p.node.Name,
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		})
	}
	return s
}
