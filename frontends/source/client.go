package source

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	protobufContent = "application/vnd.kubernetes.protobuf"
	jsonContent     = "application/json"

	// kube-proxy's default limits. Watches do not count.
	defaultQPS   = 5
	defaultBurst = 10

	serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
)

type client struct {
	config *rest.Config
	http   *http.Client
	typed  kubernetes.Interface
	server string
	reach  *reach
	// receives after a new connection
	connected chan struct{}
	groups    map[groupKey]rest.Interface
	messages  messages
}

type groupKey struct {
	version schema.GroupVersion
	scheme  *runtime.Scheme
}

func newClient(cfg KubeConfig) (*client, error) {
	rc, err := restConfig(cfg, serviceAccountDir)
	if err != nil {
		return nil, err
	}
	rc.UserAgent = cmp.Or(cfg.UserAgent, "weft")
	rc.QPS, rc.Burst = cmp.Or(cfg.QPS, defaultQPS), cmp.Or(cfg.Burst, defaultBurst)
	if rc.QPS > 0 {
		rc.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(rc.QPS, rc.Burst)
	}
	rc.ContentType = cmp.Or(cfg.ContentType, protobufContent)
	rc.AcceptContentTypes = cfg.AcceptContentTypes
	if rc.AcceptContentTypes == "" {
		rc.AcceptContentTypes = rc.ContentType
		if rc.ContentType != jsonContent {
			rc.AcceptContentTypes += "," + jsonContent
		}
	}
	rc.Dial = cfg.Dial
	c := &client{
		config: rc, server: rc.Host, reach: newReach(rc.Host, cfg.Logger), connected: make(chan struct{}, 1),
		groups: make(map[groupKey]rest.Interface), messages: make(messages),
	}
	rc.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{next, c.reach, c.connected} })
	if c.http, err = rest.HTTPClientFor(rc); err != nil {
		return nil, fmt.Errorf("configure kubernetes client: %w", err)
	}
	if c.typed, err = kubernetes.NewForConfigAndClient(rc, c.http); err != nil {
		return nil, fmt.Errorf("configure kubernetes client: %w", err)
	}
	return c, nil
}

func (c *client) listWatch(k *kind) (*cache.ListWatch, error) {
	group, err := c.group(groupKey{k.resource.GroupVersion(), k.scheme})
	if err != nil {
		return nil, fmt.Errorf("configure kubernetes client: %w", err)
	}
	return cache.NewFilteredListWatchFromClient(group, k.resource.Resource, metav1.NamespaceAll, func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = k.labels.String(), k.fields.String()
	}), nil
}

func (c *client) group(key groupKey) (rest.Interface, error) {
	if g := c.groups[key]; g != nil {
		return g, nil
	}
	rc := rest.CopyConfig(c.config)
	rc.GroupVersion, rc.APIPath = &key.version, "/apis"
	if key.version.Group == corev1.GroupName {
		rc.APIPath = "/api"
	}
	rc.NegotiatedSerializer = messageSerializer{scheme.Codecs.WithoutConversion(), c.messages}
	if key.scheme != scheme.Scheme {
		rc.NegotiatedSerializer = serializer.NewCodecFactory(key.scheme).WithoutConversion()
		rc.ContentType, rc.AcceptContentTypes = jsonContent, jsonContent
	}
	g, err := rest.RESTClientForConfigAndClient(rc, c.http)
	if err != nil {
		return nil, err
	}
	c.groups[key] = g
	return g, nil
}

func restConfig(cfg KubeConfig, accountDir string) (*rest.Config, error) {
	if cfg.Kubeconfig != "" {
		rc, err := clientcmd.BuildConfigFromFlags(cfg.Server, cfg.Kubeconfig)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("read kubeconfig %s: %w: write a file with the server and the credentials there, or use --manifests", cfg.Kubeconfig, err)
		}
		if err != nil {
			return nil, fmt.Errorf("read kubeconfig %s: %w", cfg.Kubeconfig, err)
		}
		return rc, nil
	}
	rc, err := serviceAccount(accountDir, cfg.Server)
	if err != nil {
		return nil, fmt.Errorf("read service account: %w: outside a pod use --kubeconfig or --manifests", err)
	}
	return rc, nil
}

var errNoCluster = errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")

// serviceAccount is rest.InClusterConfig with an overriding server. The environment's address is a ClusterIP,
// unreachable before a proxy runs (rule 151 of package services). With a server the account may be missing.
func serviceAccount(dir, server string) (*rest.Config, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	rc := &rest.Config{Host: server}
	if server == "" {
		if host == "" || port == "" {
			return nil, errNoCluster
		}
		rc.Host = "https://" + net.JoinHostPort(host, port)
	}
	path := filepath.Join(dir, "token")
	token, err := os.ReadFile(path) //nolint:gosec // the kubelet's file
	switch {
	case err == nil:
		// The kubelet renews the file and client-go rereads it.
		rc.BearerToken, rc.BearerTokenFile = strings.TrimSpace(string(token)), path
	case server == "" || !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	ca := filepath.Join(dir, "ca.crt")
	if _, err := os.Stat(ca); err == nil {
		rc.CAFile = ca
	}
	return rc, nil
}
