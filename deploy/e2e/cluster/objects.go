package cluster

import (
	"bufio"
	"bytes"
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
)

// Decode reads YAML documents. Duplicate keys are errors; unknown fields are kept for the API server to
// reject.
func Decode(text []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var b []byte
		if err == nil {
			b, err = yaml.YAMLToJSONStrict(document)
		}
		if err == nil && string(b) != "null" { // not only comments
			var o unstructured.Unstructured
			err = o.UnmarshalJSON(b)
			all = append(all, &o)
		}
		if err != nil {
			return nil, fmt.Errorf("read objects: %w", err)
		}
	}
}

// CreateObjects applies the objects of YAML documents, in order.
func (c *Cluster) CreateObjects(ctx context.Context, text []byte) error {
	objects, err := Decode(text)
	if err != nil {
		return err
	}
	return c.Apply(ctx, false, objects...)
}

// Apply acts as kubectl apply --server-side; unknown fields are errors. With dryRun the API server does
// not store the objects.
func (c *Cluster) Apply(ctx context.Context, dryRun bool, objects ...*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("apply objects: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
	opts := metav1.PatchOptions{FieldManager: "e2e", Force: new(true), FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	for _, o := range objects {
		kind := o.GroupVersionKind()
		b, err := o.MarshalJSON()
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", kind.Kind, o.GetName(), err)
		}
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil {
			_, err = client.Resource(mapping.Resource).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, b, opts)
		}
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", kind.Kind, o.GetName(), err)
		}
	}
	return nil
}
