package source

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// kubeconfig writes a kubeconfig for a server and returns its path.
func kubeconfig(t testing.TB, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + server + "\"}}]\n" +
		"users: [{name: u, user: {token: secret}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n"
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestKubeconfigErrors(t *testing.T) {
	if _, err := NewKube(KubeConfig{Kubeconfig: "/nonexistent/kubeconfig"}); err == nil || !strings.Contains(err.Error(), "/nonexistent/kubeconfig") {
		t.Errorf("missing kubeconfig: %v", err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := NewKube(KubeConfig{}); err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("outside of a cluster: %v", err)
	}
	if _, err := NewKube(KubeConfig{Server: "http://["}); err == nil {
		t.Error("no error for a server that is not a URL")
	}
}

// TestServerOverrides reaches the API by another address than the one that the
// kubeconfig has, with the kubeconfig's credentials.
//
// Behaviour: 150, 151.
func TestServerOverrides(t *testing.T) {
	api := apitest.New(t)
	api.Set(kubeService("a", "10.96.0.1"))
	r := follow(t, kubeOf(t, api, KubeConfig{Kubeconfig: kubeconfig(t, "http://192.0.2.1:1"), Server: api.URL()}))
	r.await(t, "Service default/a=10.96.0.1")
	// Credentials go over TLS alone, there too.
	rc, err := restConfig(KubeConfig{Kubeconfig: kubeconfig(t, "https://192.0.2.1:1"), Server: "https://192.0.2.2:2"}, "")
	if err != nil || rc.Host != "https://192.0.2.2:2" || rc.BearerToken != "secret" {
		t.Errorf("%s with token %q, error %v", rc.Host, rc.BearerToken, err)
	}
}

// account makes the directory of a service account that trusts a server.
func account(t *testing.T, srv *httptest.Server) string {
	t.Helper()
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	for name, content := range map[string]string{"token": "from-kubelet\n", "ca.crt": string(ca)} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

// TestServiceAccount uses a pod's credentials at the address that the kubelet
// gives, and at another one while that one leads nowhere yet.
//
// Behaviour: 151.
func TestServiceAccount(t *testing.T) {
	var authorization string
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		http.NotFound(w, r)
	}))
	t.Cleanup(srv.Close)
	dir := account(t, srv)
	host, port, _ := strings.Cut(strings.TrimPrefix(srv.URL, "https://"), ":")
	for _, tt := range []struct{ name, host, port, server string }{
		{"the kubelet's address", host, port, ""},
		{"another address", "192.0.2.1", "1", srv.URL},
		{"another address alone", "", "", srv.URL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", tt.host)
			t.Setenv("KUBERNETES_SERVICE_PORT", tt.port)
			authorization = ""
			rc, err := restConfig(KubeConfig{Server: tt.server}, dir)
			must(t, err)
			client, err := kubernetes.NewForConfig(rc)
			must(t, err)
			_, err = client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
			if err == nil || authorization != "Bearer from-kubelet" {
				t.Errorf("authorization %q, error %v", authorization, err)
			}
		})
	}
	t.Run("no account", func(t *testing.T) {
		t.Setenv("KUBERNETES_SERVICE_HOST", host)
		t.Setenv("KUBERNETES_SERVICE_PORT", port)
		if _, err := restConfig(KubeConfig{}, t.TempDir()); err == nil {
			t.Error("no error without a token")
		}
		if rc, err := restConfig(KubeConfig{Server: "http://192.0.2.1:8080"}, t.TempDir()); err != nil || rc.BearerToken != "" {
			t.Errorf("server that asks for no credentials: %v", err)
		}
	})
}

// TestClientLimits has the defaults of a kube-proxy, and what is asked for.
//
// Behaviour: 150.
func TestClientLimits(t *testing.T) {
	for _, tt := range []struct {
		qps  float32
		want float32
	}{{0, 5}, {50, 50}, {-1, 0}} {
		k, err := NewKube(KubeConfig{Server: "http://192.0.2.1", QPS: tt.qps, Burst: 7})
		must(t, err)
		limiter := k.Client().CoreV1().RESTClient().GetRateLimiter()
		var got float32
		if limiter != nil {
			got = limiter.QPS()
		}
		if got != tt.want {
			t.Errorf("QPS %v: client has %v, want %v", tt.qps, got, tt.want)
		}
	}
}
