package cluster

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// ClusterDomain is the domain of Services.
const ClusterDomain = "cluster.local"

// DNSAddresses are the ClusterIPs of CoreDNS.
func DNSAddresses() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:10:96::a")}
}

//go:embed coredns.yaml
var coreDNS []byte

// CreateDNS creates the objects of CoreDNS, whose Pods need nodes.
func (c *Cluster) CreateDNS(ctx context.Context) error {
	groups, err := restmapper.GetAPIGroupResources(c.client.Discovery())
	if err != nil {
		return fmt.Errorf("create CoreDNS: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	client, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("create CoreDNS: %w", err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(coreDNS), 4096)
	for {
		var object unstructured.Unstructured
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read coredns.yaml: %w", err)
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("create %s %s: %w", kind.Kind, object.GetName(), err)
		}
		if _, err := client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(ctx, &object, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %s %s: %w", kind.Kind, object.GetName(), err)
		}
	}
}
