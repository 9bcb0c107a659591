package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const smokeObjects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: netexec
          image: registry.k8s.io/e2e-test-images/agnhost:2.56
          args: [netexec, --http-port=8080]
          readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec:
  ipFamilyPolicy: RequireDualStack
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - {name: client, image: "registry.k8s.io/e2e-test-images/agnhost:2.56", args: [pause]}
`

// smoke asks a Service by its name from a pod until all endpoints have answered.
func (w *world) smoke(t *testing.T, ctx context.Context) {
	path := filepath.Join(runDir, "smoke.yaml")
	if err := os.WriteFile(path, []byte(smokeObjects), 0o600); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := w.kubectl(ctx, "apply", "-f", path); err != nil {
		t.Fatal(err)
	}
	err := w.until(ctx, "Deployment web", func(ctx context.Context) error {
		d, err := w.Cluster.Client().AppsV1().Deployments(metav1.NamespaceDefault).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return complete(d)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("three pods are available after %s", time.Since(start).Round(100*time.Millisecond))
	answers := map[string]bool{}
	err = w.until(ctx, "answers", func(ctx context.Context) error {
		out, err := w.Kubectl(ctx, "exec", "client", "--",
			"curl", "-sS", "--max-time", "2", "http://web.default.svc.cluster.local/hostname")
		if err != nil {
			return err
		}
		if answers[strings.TrimSpace(out)] = true; len(answers) < 3 {
			return fmt.Errorf("answers of %d pods", len(answers))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := w.kubectl(ctx, "delete", "--wait=true", "--timeout=60s", "-f", path); err != nil {
		t.Error(err)
	}
}
