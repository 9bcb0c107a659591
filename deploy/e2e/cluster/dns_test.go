package cluster

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/netip"
	"path"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/weft-proxy/weft/deploy/e2e/node/image"
)

type dnsObjects struct {
	account    *corev1.ServiceAccount
	role       *rbacv1.ClusterRole
	binding    *rbacv1.ClusterRoleBinding
	config     *corev1.ConfigMap
	service    *corev1.Service
	deployment *appsv1.Deployment
}

// Unknown fields are errors.
func readDNS(t *testing.T) dnsObjects {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(coreDNS)))
	var d dnsObjects
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("decode %s: %v", text, err)
		}
		switch o := object.(type) {
		case *corev1.ServiceAccount:
			d.account = o
		case *rbacv1.ClusterRole:
			d.role = o
		case *rbacv1.ClusterRoleBinding:
			d.binding = o
		case *corev1.ConfigMap:
			d.config = o
		case *corev1.Service:
			d.service = o
		case *appsv1.Deployment:
			d.deployment = o
		default:
			t.Fatalf("%T is not expected", o)
		}
	}
	if d.account == nil || d.role == nil || d.binding == nil || d.config == nil || d.service == nil || d.deployment == nil {
		t.Fatalf("coredns.yaml lacks an object: %+v", d)
	}
	return d
}

func TestDNSService(t *testing.T) {
	d := readDNS(t)
	var want []string
	for i, addr := range DNSAddresses() {
		want = append(want, addr.String())
		if cidr := ServiceCIDRs()[i]; !cidr.Contains(addr) {
			t.Errorf("address %s is not in %s", addr, cidr)
		}
	}
	if got := d.service.Spec.ClusterIPs; !slices.Equal(got, want) || d.service.Spec.ClusterIP != want[0] {
		t.Errorf("addresses of the Service are %q and %q, want %q", d.service.Spec.ClusterIP, got, want)
	}
	pod := d.deployment.Spec.Template
	if !labels.SelectorFromSet(d.service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
		t.Errorf("the Service selects %v, but pods have %v", d.service.Spec.Selector, pod.Labels)
	}
	for _, port := range d.service.Spec.Ports {
		if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
			return p.ContainerPort == port.Port && p.Protocol == port.Protocol
		}) {
			t.Errorf("pods do not listen on port %d of %s", port.Port, port.Protocol)
		}
	}
}

func TestDNSPods(t *testing.T) {
	d := readDNS(t)
	spec := d.deployment.Spec.Template.Spec
	c := spec.Containers[0]
	i, err := image.Find(c.Image)
	if err != nil {
		t.Fatal(err)
	}
	args := i.Arguments(c.Command, c.Args)
	if i.Programs[args[0]] != "coredns" {
		t.Errorf("pods run %q, which is not the program coredns of %v", args, i.Programs)
	}
	// The configuration is where the program reads it.
	file := args[slices.Index(args, "-conf")+1]
	if len(spec.Volumes) != 1 || spec.Volumes[0].ConfigMap.Name != d.config.Name || path.Dir(file) != c.VolumeMounts[0].MountPath {
		t.Errorf("pods read %s, but mount %v and %v", file, spec.Volumes, c.VolumeMounts)
	}
	corefile := d.config.Data[path.Base(file)]
	if !strings.Contains(corefile, "kubernetes "+ClusterDomain+" ") {
		t.Errorf("CoreDNS does not answer for %s:\n%s", ClusterDomain, corefile)
	}
	subject := rbacv1.Subject{Kind: "ServiceAccount", Name: spec.ServiceAccountName, Namespace: d.deployment.Namespace}
	if spec.ServiceAccountName != d.account.Name || !slices.Contains(d.binding.Subjects, subject) || d.binding.RoleRef.Name != d.role.Name {
		t.Errorf("pods are %v, role %s is bound to %v", subject, d.binding.RoleRef.Name, d.binding.Subjects)
	}
}

func TestServiceCIDRs(t *testing.T) {
	for i, cidr := range ServiceCIDRs() {
		if cidr != cidr.Masked() || cidr.Addr().Is4() != (i == 0) {
			t.Errorf("prefix %d is %s, want the IPv4 one first and no bits of hosts", i, cidr)
		}
		for _, other := range []string{"192.168.200.0/24", "10.244.0.0/16", "fd00:200::/64", "fd00:10:244::/48"} {
			if cidr.Overlaps(netip.MustParsePrefix(other)) {
				t.Errorf("%s is also for nodes or pods: %s", cidr, other)
			}
		}
	}
}
