package pods

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

type scenario struct {
	name string
	run  func(*testing.T, *env)
}

var scenarios = []scenario{
	{"start/packets-between-nodes", packetsBetweenNodes},
	{"start/init-and-sidecar", initAndSidecar},
	{"start/unknown-image", unknownImage},
	{"probe/readiness-of-each-kind", readinessOfEachKind},
	{"probe/liveness-restarts", livenessRestarts},
	{"probe/readiness-gate", readinessGate},
	{"end/hook-and-grace-period", hookAndGracePeriod},
	{"end/killed-after-grace-period", killedAfterGracePeriod},
	{"end/exit-codes", exitCodes},
	{"content/environment", environment},
	{"content/volumes", volumes},
	{"content/capabilities", capabilities},
	{"network/host", hostNetwork},
	{"network/host-port", hostPort},
	{"api/exec", execute},
	{"api/attach", attach},
	{"api/attach-terminal", attachTerminal},
	{"api/logs", followLogs},
	{"api/port-forward", forwardPort},
	{"api/proxy", proxies},
}

func TestPods(t *testing.T) {
	w := newWorld(t, t.Context())
	t.Run("scenario", func(t *testing.T) {
		for _, s := range scenarios {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.run(t, newEnv(t, w, s.name))
			})
		}
	})
	// These are for nodes without other load. The last ends them.
	t.Run("cost/start", func(t *testing.T) { startTime(t, newEnv(t, w, "cost/start")) })
	t.Run("cost/idle", func(t *testing.T) { idleCost(t, w) })
	t.Run("end/node", func(t *testing.T) { nodeEnds(t, newEnv(t, w, "end/node")) })
}

type env struct {
	*world
	namespace string
	client    kubernetes.Interface
}

func newEnv(t *testing.T, w *world, name string) *env {
	t.Helper()
	e := &env{world: w, namespace: strings.ReplaceAll(name, "/", "-"), client: w.cluster.Client()}
	if err := e.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The context of the test has ended.
		if err := e.clear(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// clear deletes the pods, to save CPU.
func (e *env) clear(ctx context.Context) error {
	if err := e.client.CoreV1().Pods(e.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	return nil
}

// prepare makes the namespace and its pods' prerequisites.
func (e *env) prepare(ctx context.Context) error {
	c := e.client.CoreV1()
	if _, err := c.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := c.ServiceAccounts(e.namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create service account: %w", err)
	}
	authority := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": string(e.cluster.CA())}}
	if _, err := c.ConfigMaps(e.namespace).Create(ctx, authority, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create config map: %w", err)
	}
	return nil
}
