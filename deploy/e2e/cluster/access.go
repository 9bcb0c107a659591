package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// kubeconfig is the text of one, for a bearer token.
func kubeconfig(url string, ca []byte, token string) ([]byte, error) {
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"e2e": {Server: url, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"token": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"e2e": {Cluster: "e2e", AuthInfo: "token"}},
		CurrentContext: "e2e",
	})
}

// Token asks the API server for a token of a service account, good for the
// life of a test run.
func (c *Cluster) Token(ctx context.Context, namespace, account string) (string, error) {
	seconds := int64(3600)
	t, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("make token of service account %s/%s: %w", namespace, account, err)
	}
	return t.Status.Token, nil
}

// Objects reads a stream of YAML documents. Duplicate keys are errors; unknown
// fields are kept, for the API server to refuse.
func Objects(r io.Reader) ([]*unstructured.Unstructured, error) {
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
			continue // comments alone
		}
		var o unstructured.Unstructured
		if err := o.UnmarshalJSON(b); err != nil {
			return nil, fmt.Errorf("read document %d: %w", n, err)
		}
		all = append(all, &o)
	}
}

// Apply sends objects in their order, as kubectl apply --server-side does;
// unknown fields are errors. With dryRun the API server does everything but store them.
func (c *Cluster) Apply(ctx context.Context, dryRun bool, objects ...*unstructured.Unstructured) error {
	d, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("apply objects: make client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
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
