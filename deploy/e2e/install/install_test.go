package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

type result struct {
	// the document's text about the kind
	kind, about string
	scripts     []script
	// returned is the end of the last command; answered has the first answers on all nodes.
	returned time.Duration
	answered observed
	wrong    []told
}

// TestInstall installs weft on each kind as its document says.
func TestInstall(t *testing.T) {
	var results []result
	known := []string{bare}
	for _, k := range kinds() {
		known = append(known, k.name)
	}
	wanted := strings.Split(*kindsFlag, ",")
	if *kindsFlag == "all" {
		wanted = known
	}
	for _, name := range wanted {
		if !slices.Contains(known, name) {
			t.Fatalf("-install.kinds: %q is not one of %s", name, strings.Join(known, ", "))
		}
	}
	for _, k := range kinds() {
		if slices.Contains(wanted, k.name) {
			t.Run(strings.ReplaceAll(k.name, " ", "-"), func(t *testing.T) { results = append(results, installOn(t, k)) })
		}
	}
	if slices.Contains(wanted, bare) {
		t.Run(bare, func(t *testing.T) { results = append(results, installBare(t)) })
	}
	if t.Failed() {
		return
	}
	text := report(results)
	t.Log("\n" + text)
	if dir := os.Getenv("WEFT_PAGES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "install.md"), []byte(text), 0o644); err != nil { //nolint:gosec // a page for people
			t.Fatal(err)
		}
	}
}

func installOn(t *testing.T, k kind) result {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	s, err := readScript(k.document, k.name)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, ctx, k)
	defer w.explain(t)
	var checks []check
	for _, n := range w.Members {
		checks = append(checks, w.checks(n, w.web)...)
	}
	r := result{kind: k.name, about: k.about, scripts: []script{s}}
	r.returned, r.answered = measure(t, ctx, checks, func(ctx context.Context) (string, error) { return w.user.types(ctx, s.String()) })
	w.inCharge(t, ctx)
	r.wrong = takeAll(t, ctx, w.user.types, k.wrong)
	return r
}

// measure types the commands, and returns the end of the last command and the first answers.
func measure(t *testing.T, ctx context.Context, checks []check, types func(context.Context) (string, error)) (time.Duration, observed) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	start := time.Now()
	type answers struct {
		when observed
		err  error
	}
	done := make(chan answers, 1)
	go func() {
		when, err := observe(ctx, start, checks)
		done <- answers{when, err}
	}()
	out, err := types(ctx)
	returned := time.Since(start)
	t.Logf("after %v the commands had printed:\n%s", returned.Round(time.Millisecond), out)
	if err != nil {
		cancel()
		<-done
		t.Fatalf("a command of the document fails: %v", err)
	}
	a := <-done
	t.Logf("answered: %v", a.when)
	if a.err != nil {
		t.Fatal(a.err)
	}
	return returned, a.when
}

// inCharge requires a new Service to answer on every node, and no rules of kube-proxy.
func (w *world) inCharge(t *testing.T, ctx context.Context) {
	t.Helper()
	services := w.Cluster.Client().CoreV1().Services(metav1.NamespaceDefault)
	s, err := services.Get(ctx, webName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	later := s.DeepCopy()
	later.ObjectMeta = metav1.ObjectMeta{Name: webName + "-later", Namespace: s.Namespace}
	later.Spec.ClusterIP, later.Spec.ClusterIPs, later.Spec.Ports[0].NodePort = "", nil, 0
	if later, err = services.Create(ctx, later, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, n := range w.Members {
		if err := lab.Within(ctx, patience, func() error { return get(ctx, n.Namespace, later.Spec.ClusterIP+":80", "/hostname") }); err != nil {
			t.Errorf("%s: a Service that was created after the installation: %v", n.Name(), err)
		}
		err := lab.Within(ctx, time.Minute, func() error {
			out, err := n.Run(ctx, "nft", "list", "ruleset")
			if err == nil && strings.Contains(out, "KUBE-SERVICES") {
				err = fmt.Errorf("rules of kube-proxy are left:\n%s", out)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", n.Name(), err)
		}
	}
	if err := services.Delete(ctx, later.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// explain prints the administrator's diagnostics if the test has failed.
func (w *world) explain(t *testing.T) {
	if !t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	out, err := w.user.types(ctx, "kubectl get pods -A -o wide; kubectl -n kube-system describe pods -l app.kubernetes.io/name=weft | tail -40; kubectl -n kube-system logs -l app.kubernetes.io/name=weft --all-containers --prefix --tail 40")
	t.Logf("what the cluster says: %v\n%s", err, out)
}
