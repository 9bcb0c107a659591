package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// patience bounds every wait of these tests.
const patience = 3 * time.Minute

// inOwnNamespace runs the calling test again, in a process in a fresh network
// namespace and with further flags; true means that this is that process.
func inOwnNamespace(t *testing.T, flags ...string) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		return true
	}
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	flags = append(flags, "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1", "-test.timeout=0")
	cmd := exec.CommandContext(t.Context(), os.Args[0], flags...) //nolint:gosec // itself
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("in a namespace of its own: %v", err)
	}
	return false
}

// logged collects a process's log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// weft is a daemon in a process of its own.
type weft struct {
	cmd  *exec.Cmd
	log  logged
	done chan error
}

func startWeft(t *testing.T, args ...string) *weft {
	t.Helper()
	w := &weft{done: make(chan error, 1)}
	w.cmd = exec.CommandContext(t.Context(), os.Args[0])
	// TestMain goes by the name.
	w.cmd.Args = append([]string{"weft"}, args...)
	w.cmd.Stderr = &w.log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, w.cmd.Start())
	go func() { w.done <- w.cmd.Wait() }()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("log of process %d:\n%s", w.cmd.Process.Pid, w.log.String())
		}
	})
	return w
}

// says waits for a line of the log.
func (w *weft) says(t *testing.T, what string) {
	t.Helper()
	eventually(t, fmt.Sprintf("process %d says %q", w.cmd.Process.Pid, what), func() bool { return strings.Contains(w.log.String(), what) })
}

// end sends a signal, and waits for the end of the process.
func (w *weft) end(t *testing.T, s syscall.Signal) error {
	t.Helper()
	must(t, w.cmd.Process.Signal(s))
	select {
	case err := <-w.done:
		return err
	case <-time.After(patience):
		t.Fatalf("process %d does not end after %v", w.cmd.Process.Pid, s)
		return nil
	}
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("still not so after %v: %s", patience, what)
		}
	}
}

// serviceManifest is a Service shop/web with an endpoint of this node.
func serviceManifest(port int, protocol string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], ports: [{port: %[1]d, protocol: %[2]s}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080, protocol: %[2]s}]
endpoints: [{addresses: [10.244.1.5], conditions: {ready: true}, nodeName: node-a}]
`, port, protocol)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o750))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
