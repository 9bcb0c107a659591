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

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	protobufContent = "application/vnd.kubernetes.protobuf"
	jsonContent     = "application/json"

	// What a kube-proxy may ask by default; watches are not counted.
	defaultQPS   = 5
	defaultBurst = 10

	// serviceAccountDir is where the kubelet puts a pod's credentials.
	serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// newClient returns a client for the API, and the transport's client below it.
func newClient(cfg KubeConfig, dial dial) (kubernetes.Interface, *http.Client, error) {
	rc, err := restConfig(cfg, serviceAccountDir)
	if err != nil {
		return nil, nil, err
	}
	rc.UserAgent = cmp.Or(cfg.UserAgent, "weft")
	rc.QPS, rc.Burst = cmp.Or(cfg.QPS, defaultQPS), cmp.Or(cfg.Burst, defaultBurst)
	rc.ContentType = cmp.Or(cfg.ContentType, protobufContent)
	rc.AcceptContentTypes = cfg.AcceptContentTypes
	if rc.AcceptContentTypes == "" {
		rc.AcceptContentTypes = rc.ContentType
		if rc.ContentType != jsonContent {
			rc.AcceptContentTypes += "," + jsonContent
		}
	}
	rc.Dial = dial
	rc.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &reach{next: next, server: rc.Host, log: cfg.Logger}
	})
	transport, err := rest.HTTPClientFor(rc)
	if err != nil {
		return nil, nil, fmt.Errorf("configure kubernetes client: %w", err)
	}
	client, err := kubernetes.NewForConfigAndClient(rc, transport)
	if err != nil {
		return nil, nil, fmt.Errorf("configure kubernetes client: %w", err)
	}
	return client, transport, nil
}

// restConfig says where the API is and who asks: a kubeconfig, or else the
// service account of the pod that this runs in. Server goes before both.
func restConfig(cfg KubeConfig, accountDir string) (*rest.Config, error) {
	if cfg.Kubeconfig != "" {
		rc, err := clientcmd.BuildConfigFromFlags(cfg.Server, cfg.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("read kubeconfig %s: %w", cfg.Kubeconfig, err)
		}
		return rc, nil
	}
	rc, err := serviceAccount(accountDir, cfg.Server)
	if err != nil {
		return nil, fmt.Errorf("read service account: %w: outside of a pod give --kubeconfig or --manifests", err)
	}
	return rc, nil
}

var errNoCluster = errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")

// serviceAccount is rest.InClusterConfig, but for the server: the address that
// the kubelet gives to pods is a ClusterIP, which leads nowhere before a
// kube-proxy runs (rule 151). With a server of its own a missing account is no
// error: it may be one that asks for none.
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
		// The kubelet renews the file; client-go reads it again.
		rc.BearerToken, rc.BearerTokenFile = strings.TrimSpace(string(token)), path
	case server == "" || !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	if ca := filepath.Join(dir, "ca.crt"); exists(ca) {
		rc.CAFile = ca
	}
	return rc, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
