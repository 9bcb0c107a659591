package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
)

// Duplicate keys are errors; unknown fields are kept for the API server to reject.
func decodeObjects(r io.Reader) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(r))
	for n := 1; ; n++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read document %d: %w", n, err)
		}
		b, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, fmt.Errorf("read document %d: %w", n, err)
		}
		if string(b) == "null" {
			continue // only comments
		}
		var o unstructured.Unstructured
		if err := o.UnmarshalJSON(b); err != nil {
			return nil, fmt.Errorf("read document %d: %w", n, err)
		}
		all = append(all, &o)
	}
}

// apply acts as kubectl apply --server-side; unknown fields are errors. With dryRun the API server does
// not store the objects.
func apply(ctx context.Context, c *cluster.Cluster, dryRun bool, objects ...*unstructured.Unstructured) error {
	d, err := dynamic.NewForConfig(c.Admin())
	if err != nil {
		return fmt.Errorf("apply objects: make client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Client().Discovery()))
	force := true
	opts := metav1.PatchOptions{FieldManager: "e2e", Force: &force, FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		m, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", gvk.Kind, o.GetName(), err)
		}
		b, err := o.MarshalJSON()
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", gvk.Kind, o.GetName(), err)
		}
		if _, err := d.Resource(m.Resource).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, b, opts); err != nil {
			return fmt.Errorf("apply %s %s: %w", gvk.Kind, o.GetName(), err)
		}
	}
	return nil
}
