package differential

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// service is a Service of a check with its slices: ports 80 and 90, TCP and UDP, for 8080 and 9090 of
// the pods, in both families.
type service struct {
	name string
	// empty means ClusterIP
	kind corev1.ServiceType
	// endpoints are pods: "web-1" is ready, "web-1-" not ready, "web-1~" terminating but serving,
	// "web-1!" terminating and not serving.
	endpoints string
	// the numbers of externalIPs and load balancer addresses
	external, ingress int
	// sctp adds port 80 of SCTP.
	sctp bool
	// change, status and slice edit the objects last; they may be nil.
	change func(*corev1.Service)
	status func(*corev1.ServiceStatus)
	slice  func(*discoveryv1.EndpointSlice)
	// the endpoints of a second slice
	elsewhere string
}

// servicePorts are the ports of every Service and of its pods.
var servicePorts = []struct {
	name         string
	protocol     corev1.Protocol
	port, target int32
}{
	{"http", corev1.ProtocolTCP, 80, 8080},
	{"http-udp", corev1.ProtocolUDP, 80, 8080},
	{"admin", corev1.ProtocolTCP, 90, 9090},
	{"admin-udp", corev1.ProtocolUDP, 90, 9090},
	{"http-sctp", corev1.ProtocolSCTP, 80, 8080},
}

// vip is the n-th external or load balancer address; every service has its own block.
func (r *run) vip(svc, kind string, n int, v6 bool) netip.Addr {
	host := 10 + 4*r.block(svc) + n
	third := map[string]int{"external": 112, "lb": 113}[kind]
	if v6 {
		return netip.MustParseAddr(fmt.Sprintf("fd00:203::%x:%x", third, host))
	}
	return netip.AddrFrom4([4]byte{203, 0, byte(third), byte(host)})
}

// the name in the API
func (r *run) fullName(svc string) string { return r.slug + "-" + svc }

func (r *run) spec(s service) *corev1.Service {
	policy := corev1.IPFamilyPolicyRequireDualStack
	o := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: r.fullName(s.name), Namespace: namespace},
		Spec:       corev1.ServiceSpec{Type: s.kind, IPFamilyPolicy: &policy},
	}
	for _, p := range servicePorts {
		if p.protocol != corev1.ProtocolSCTP || s.sctp {
			o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{Name: p.name, Protocol: p.protocol, Port: p.port, TargetPort: intstr.FromInt32(p.target)})
		}
	}
	for n := range s.external {
		for _, v6 := range []bool{false, true} {
			o.Spec.ExternalIPs = append(o.Spec.ExternalIPs, r.vip(s.name, "external", n, v6).String())
		}
	}
	if s.change != nil {
		s.change(o)
	}
	return o
}

func (r *run) put(ctx context.Context, s service) error {
	if err := r.putService(ctx, s); err != nil {
		return err
	}
	for suffix, endpoints := range map[string]string{"a": s.endpoints, "b": s.elsewhere} {
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			if err := r.putSlice(ctx, s, family, suffix, endpoints); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) putService(ctx context.Context, s service) error {
	api := r.world.client().CoreV1().Services(namespace)
	o := r.spec(s)
	old, err := api.Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		o, err = api.Create(ctx, o, metav1.CreateOptions{})
	case err == nil:
		// As with kubectl apply, the API server's defaults stay.
		o.ResourceVersion, o.Spec.ClusterIP, o.Spec.ClusterIPs = old.ResourceVersion, old.Spec.ClusterIP, old.Spec.ClusterIPs
		if o.Spec.Type == corev1.ServiceTypeExternalName {
			o.Spec.ClusterIP, o.Spec.ClusterIPs, o.Spec.IPFamilyPolicy = "", nil, nil
		}
		o, err = api.Update(ctx, o, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write service %s: %w", s.name, err)
	}
	o.Status.LoadBalancer.Ingress = nil
	for n := range s.ingress {
		for _, v6 := range []bool{false, true} {
			o.Status.LoadBalancer.Ingress = append(o.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: r.vip(s.name, "lb", n, v6).String()})
		}
	}
	if s.status != nil {
		s.status(&o.Status)
	}
	if o.Spec.Type == corev1.ServiceTypeLoadBalancer {
		if o, err = api.UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("write status of service %s: %w", s.name, err)
		}
	}
	r.keep(s.name, o)
	return nil
}

// putSlice removes an empty slice.
func (r *run) putSlice(ctx context.Context, s service, family discoveryv1.AddressType, suffix, endpoints string) error {
	api := r.world.client().DiscoveryV1().EndpointSlices(namespace)
	o := r.sliceOf(s, family, suffix, endpoints)
	old, err := api.Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && suffix == "b" && endpoints == "":
		return nil
	case apierrors.IsNotFound(err):
		_, err = api.Create(ctx, o, metav1.CreateOptions{})
	case err == nil && suffix == "b" && endpoints == "":
		err = api.Delete(ctx, o.Name, metav1.DeleteOptions{})
	case err == nil:
		o.ResourceVersion = old.ResourceVersion
		_, err = api.Update(ctx, o, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write slice %s: %w", o.Name, err)
	}
	return nil
}

func (r *run) sliceOf(s service, family discoveryv1.AddressType, suffix, endpoints string) *discoveryv1.EndpointSlice {
	o := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%s-%s", r.fullName(s.name), suffix, strings.ToLower(string(family))), Namespace: namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: r.fullName(s.name), discoveryv1.LabelManagedBy: "differential"},
		},
		AddressType: family,
	}
	for _, p := range servicePorts {
		name, protocol, port := p.name, p.protocol, p.target
		o.Ports = append(o.Ports, discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: &port})
	}
	for _, word := range strings.Fields(endpoints) {
		o.Endpoints = append(o.Endpoints, r.endpoint(word, family))
	}
	if s.slice != nil && len(o.Endpoints) > 0 {
		s.slice(o)
	}
	return o
}

// The last letter of word is the state.
func (r *run) endpoint(word string, family discoveryv1.AddressType) discoveryv1.Endpoint {
	states := map[string][3]bool{ // ready, serving, terminating
		"": {true, true, false}, "-": {false, false, false}, "~": {false, true, true}, "!": {false, false, true},
	}
	name := strings.TrimRight(word, "-~!")
	state := states[word[len(name):]]
	a := r.world.weft.actors[name]
	address, on := a.addresses.V4, "node-1"
	for _, n := range r.world.weft.lab.Nodes {
		if n.PodCIDRs[0].Contains(address) || n.Addresses.V4 == address {
			on = n.Name()
		}
	}
	if family == discoveryv1.AddressTypeIPv6 {
		address = a.addresses.V6
	}
	return discoveryv1.Endpoint{
		Addresses: []string{address.String()}, NodeName: &on,
		Conditions: discoveryv1.EndpointConditions{Ready: &state[0], Serving: &state[1], Terminating: &state[2]},
	}
}

func (r *run) remove(ctx context.Context, svc string) error {
	err := r.world.client().CoreV1().Services(namespace).Delete(ctx, r.fullName(svc), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete service %s: %w", svc, err)
	}
	err = r.world.client().DiscoveryV1().EndpointSlices(namespace).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + r.fullName(svc)})
	if err != nil {
		return fmt.Errorf("delete slices of %s: %w", svc, err)
	}
	return nil
}
