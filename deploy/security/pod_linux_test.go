package security

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/pkg/oci"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/weft-proxy/weft/deploy/helm"
	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

const (
	nodeName = "node-1"
	apiHost  = "127.0.0.1"
	apiPort  = "6443"
)

const patience = 3 * time.Minute

// pod is weft's pod on a node, in the network namespace of the test.
type pod struct {
	containers map[string]*container
	volumes    map[string]string
	api        *apitest.Server
	// the aggregator's file in the chart
	configuration string
}

// newPod renders the chart, and makes its containers. confine limits a container by its name.
func newPod(t *testing.T, program, trace string, values map[string]any, confine func(name string) oci.SpecOpts) *pod {
	t.Helper()
	spec, configuration := rendered(t, values)
	dir := t.TempDir()
	p := &pod{containers: make(map[string]*container), volumes: make(map[string]string), configuration: configuration}
	for _, v := range spec.Volumes {
		p.volumes[v.Name] = filepath.Join(dir, "volumes", v.Name)
		mode := os.FileMode(0o755)
		if v.EmptyDir != nil {
			mode = 0o777
		}
		if err := errors.Join(os.MkdirAll(p.volumes[v.Name], mode), os.Chmod(p.volumes[v.Name], mode)); err != nil { // as the kubelet does
			t.Fatal(err)
		}
	}
	put(t, p.volumes["publishers"], "config.yaml", configuration)
	p.api = startAPI(t, p.volumes["api-access"])
	for _, c := range spec.Containers {
		made := newContainer(t, dir, program, spec, c, p.volumes, confine(c.Name))
		made.trace = trace
		p.containers[c.Name] = made
		t.Cleanup(func() {
			made.remove()
			if t.Failed() {
				t.Logf("container %s:\n%s", made.spec.Name, made.log())
			}
		})
	}
	return p
}

func rendered(t *testing.T, values map[string]any) (spec *corev1.PodSpec, configuration string) {
	t.Helper()
	files, err := helm.Render(values, engine.Engine{Strict: true})
	must(t, err)
	var set appsv1.DaemonSet
	for _, doc := range strings.Split(string(files[helm.WeftFile]), "\n---\n") {
		var m corev1.ConfigMap
		var err error
		switch {
		case strings.Contains(doc, "kind: DaemonSet"):
			err = yaml.UnmarshalStrict([]byte(doc), &set)
		case strings.Contains(doc, "name: weft-publishers"):
			err = yaml.UnmarshalStrict([]byte(doc), &m)
			configuration = m.Data["config.yaml"]
		}
		must(t, err)
	}
	return &set.Spec.Template.Spec, configuration
}

// startAPI starts an API server with TLS, and writes a pod's credentials to dir.
func startAPI(t *testing.T, dir string) *apitest.Server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(apiHost)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	put(t, dir, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	put(t, dir, "token", "secret")
	put(t, dir, "namespace", "kube-system")
	cfg := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	api, err := apitest.Start(func(network, address string) (net.Listener, error) { return tls.Listen(network, address, cfg) }, net.JoinHostPort(apiHost, apiPort))
	must(t, err)
	t.Cleanup(api.Stop)
	return api
}

// put replaces a file, as the kubelet does.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	next := filepath.Join(dir, "."+name)
	// The kubelet's default: the containers have separate users.
	must(t, os.WriteFile(next, []byte(text), 0o644)) //nolint:gosec // see above
	must(t, os.Rename(next, filepath.Join(dir, name)))
}

// start waits until the containers are ready.
func (p *pod) start(t *testing.T) {
	t.Helper()
	for _, c := range p.containers {
		c.start(t)
	}
	p.ready(t)
}

// ready waits for the readiness probes of all containers.
func (p *pod) ready(t *testing.T) {
	t.Helper()
	for name, c := range p.containers {
		get := c.spec.ReadinessProbe.HTTPGet
		url := fmt.Sprintf("http://%s%s", net.JoinHostPort(get.Host, get.Port.String()), get.Path)
		within(t, "container "+name+" is ready", func() error {
			select {
			case <-c.done:
				t.Fatalf("container %s has ended:\n%s", name, c.log())
			default:
			}
			_, err := ask(url)
			return err
		})
	}
}

// publisher returns the container that may program the kernel.
func (p *pod) publisher() *container {
	for _, c := range p.containers {
		if len(capabilities(c.spec)) > 0 {
			return c
		}
	}
	return nil
}
