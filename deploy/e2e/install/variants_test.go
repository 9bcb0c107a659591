package install

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// otherwise are the variants of deploy/kubernetes for special clusters, with reasons. The tests' API
// server listens on IPv4.
func otherwise() []string {
	return []string{"kind", "kubeadm", "k3s", "migration", "ipv6-only"}
}

// TestVariants installs each general variant over the one before.
func TestVariants(t *testing.T) {
	if !*slowFlag {
		t.Log("only with -install.slow: TestInstall has one of them")
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	s := mustRead(t, clusterReadme, "any without helm")
	i := slices.IndexFunc(kinds(), func(k kind) bool { return k.name == s.name })
	entries, err := os.ReadDir(filepath.Join(repository, "deploy/kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, ctx, kinds()[i])
	defer w.explain(t)
	var checks []check
	for _, n := range w.Members {
		checks = append(checks, w.checks(n, w.web)...)
	}
	installed := 0
	for _, e := range entries {
		if !e.IsDir() || slices.Contains(otherwise(), e.Name()) {
			continue
		}
		script := strings.ReplaceAll(s.String(), "deploy/kubernetes/split", "deploy/kubernetes/"+e.Name())
		if out, err := w.user.types(ctx, script); err != nil {
			t.Fatalf("%s: %v\n%s", e.Name(), err, out)
		}
		bounded, cancel := context.WithTimeout(ctx, patience)
		when, err := observe(bounded, time.Now(), checks)
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		installed++
		t.Logf("%s: all answers %v after its rollout", e.Name(), when.last().Round(time.Millisecond))
	}
	if installed == 0 {
		t.Fatal("deploy/kubernetes has no variant for any cluster")
	}
}
