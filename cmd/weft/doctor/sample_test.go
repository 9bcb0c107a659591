package doctor

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// modelOf returns the state of Services named s0, s1 and so on, of which every second one has a
// NodePort and every third one an endpoint on this node.
func modelOf(services int) *model.Snapshot {
	m := model.New(model.Config{NodeName: "here"})
	for i := range services {
		name, ip := fmt.Sprintf("s%d", i), fmt.Sprintf("10.96.%d.%d", i/250, i%250+1)
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}}
		port := corev1.ServicePort{Port: 80, Protocol: corev1.ProtocolTCP}
		if i%2 == 1 && i < 2000 {
			s.Spec.Type, port.NodePort = corev1.ServiceTypeNodePort, int32(30000+i)
		}
		s.Spec.Ports = []corev1.ServicePort{port}
		m.SetService(s)
		node, number, protocol, unnamed := "there", int32(8080), corev1.ProtocolTCP, ""
		if i%3 == 0 {
			node = "here"
		}
		m.SetSlice(&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: &unnamed, Port: &number, Protocol: &protocol}},
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{fmt.Sprintf("10.244.%d.%d", i/250, i%250+1)}, NodeName: &node}},
		})
	}
	m.Refresh()
	state := m.Snapshot()
	return &state
}

// TestSample: the number of packets that are followed does not grow with that of the Services,
// and all kinds are among them.
func TestSample(t *testing.T) {
	few, many := sampleTrips(modelOf(100)), sampleTrips(modelOf(5000))
	if len(few) == 0 || len(few) != len(many) {
		t.Errorf("%d packets to 100 Services, %d to 5000", len(few), len(many))
	}
	from := make(map[string]int)
	for _, trip := range many {
		from[trip.from]++
	}
	// Two of the four kinds have NodePorts, but the address of the node is not known.
	if from[fromNode] != 4*maxAlike || from["10.244.0.1"] != 4*maxAlike || len(from) != 1+maxPods {
		t.Errorf("packets: %v", from)
	}
	if none := sampleTrips(&model.Snapshot{}); len(none) != 0 {
		t.Errorf("without Services: %v", none)
	}
}
