package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// CreateObjects creates the objects of YAML documents, in order.
func (c *Cluster) CreateObjects(ctx context.Context, text []byte) error {
	groups, err := restmapper.GetAPIGroupResources(c.client.Discovery())
	if err != nil {
		return fmt.Errorf("create objects: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	client, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("create objects: %w", err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var object unstructured.Unstructured
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read objects: %w", err)
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
