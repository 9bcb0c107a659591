package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// startOn runs a frontend on a directory, with the changes of its configuration, until the
// function that it returns is called.
func startOn(t *testing.T, agg *publishtest.Aggregator, dir string, changes ...func(*lab, *Config)) (l *lab, stop func()) {
	t.Helper()
	l = &lab{dir: dir, agg: agg, events: &recorder{}}
	cfg := Config{Socket: agg.Socket}
	for _, change := range changes {
		change(l, &cfg)
	}
	l.Frontend, stop = runFrontend(t, dir, cfg)
	return l, stop
}

// TestInvalidManifestAtRestart keeps the rules of the process before until all manifests are
// valid: what is in one that is not is not known.
//
// Policy behaviour: 51.
func TestInvalidManifestAtRestart(t *testing.T) {
	agg, dir := publishtest.New(t), t.TempDir()
	l, stop := startOn(t, agg, dir)
	l.write(t, "pod.yaml", dbPod)
	l.write(t, "policy.yaml", shop)
	await(t, "isolation", func() bool { return l.has("ingress", "10.244.1.5") })
	stop()

	l.write(t, "policy.yaml", "kind: [")
	l, _ = startOn(t, agg, dir)
	await(t, "the start", func() bool { return l.publisher.Status().Restored && l.isSynced() })
	await(t, "the reason", func() bool { return l.Ready() != nil && strings.Contains(l.Ready().Error(), "policy.yaml") })
	if !l.has("ingress", "10.244.1.5") || l.publisher.Status().Published {
		t.Error("the isolation of a policy in an invalid manifest ended at a restart")
	}
	if err := l.Healthy(); err != nil {
		t.Errorf("not healthy with the rules of the process before: %v", err)
	}
	l.cfg.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if err := l.Healthy(); err == nil || !strings.Contains(err.Error(), "policy.yaml") {
		t.Errorf("healthy although changes wait for a manifest: %v", err)
	}
	l.write(t, "policy.yaml", strings.ReplaceAll(shop, "db", "web"))
	await(t, "the valid manifest", func() bool { return l.Ready() == nil && !l.has("ingress", "10.244.1.5") })
}

// TestInvalidManifestAtFirstStart starts with one valid and one invalid manifest and without
// rules of an earlier process: the valid manifest is enforced, and weft is not ready.
func TestInvalidManifestAtFirstStart(t *testing.T) {
	agg, l := publishtest.New(t), &lab{dir: t.TempDir()}
	l.write(t, "pod.yaml", dbPod)
	l.write(t, "policy.yaml", shop)
	l.write(t, "other.yaml", "kind: [")
	l, _ = startOn(t, agg, l.dir)
	await(t, "isolation", func() bool { return l.has("ingress", "10.244.1.5") })
	if err := l.Ready(); err == nil || !strings.Contains(err.Error(), "other.yaml") {
		t.Errorf("ready: %v", err)
	}
	l.write(t, "other.yaml", "")
	await(t, "readiness", func() bool { return l.Ready() == nil })
	// One that appears later, or becomes invalid, is only logged.
	l.write(t, "later.yaml", "kind: [")
	l.write(t, "policy.yaml", "kind: [")
	l.write(t, "pod2.yaml", podLike("db2", "10.244.1.6"))
	await(t, "isolation of another pod", func() bool { return l.has("ingress", "10.244.1.6") })
	if err := l.Ready(); err != nil {
		t.Errorf("not ready after an error in a manifest at run time: %v", err)
	}
}
