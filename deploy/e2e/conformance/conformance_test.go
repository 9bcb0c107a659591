package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/conformance/report"
	"github.com/weft-proxy/weft/deploy/e2e/conformance/specs"
)

// TestConformance runs the specs with each proxy, each time in a new world.
func TestConformance(t *testing.T) {
	if *proxiesFlag == "" {
		t.Skip("-conformance.proxy is empty")
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *holdFlag {
		w := newWorld(t, ctx, proxies()[0], "hold")
		w.smoke(t, ctx)
		t.Log("the world is ready, until this test is interrupted")
		<-ctx.Done()
		return
	}
	// Not only at the end of a long run.
	if _, err := report.Read(results); err != nil {
		t.Fatal(err)
	}
	if err := clearResults(); err != nil {
		t.Fatal(err)
	}
	for _, proxy := range proxies() {
		for run := 1; run <= *runsFlag; run++ {
			t.Run(fmt.Sprintf("%s/%d", proxy, run), func(t *testing.T) { runSpecs(t, ctx, proxy, run) })
			if ctx.Err() != nil {
				t.Fatal("interrupted")
			}
		}
	}
	writeResults(t)
}

func runSpecs(t *testing.T, ctx context.Context, proxy string, run int) {
	start := time.Now()
	name := fmt.Sprintf("%s-%d", subject(proxy), run)
	w := newWorld(t, ctx, proxy, name)
	t.Logf("the world is ready after %s", time.Since(start).Round(time.Second))
	w.smoke(t, ctx)
	if t.Failed() {
		return
	}
	var faults *chaos
	if *chaosFlag {
		if proxy != weft {
			t.Fatalf("-conformance.chaos is for %s", weft)
		}
		faults = w.startChaos(ctx)
	}
	dir := report.Dir(reportDir, subject(proxy), run)
	if wantClusterPolicies(proxy) {
		// They mostly wait, and select only their own namespaces: they run beside the specs.
		var policies sync.WaitGroup
		policies.Go(func() { w.runClusterPolicies(t, ctx, dir) })
		defer policies.Wait()
		if *focusFlag == clusterPolicies {
			return
		}
	}
	start = time.Now()
	err := specs.Run(ctx, specs.Config{
		Ginkgo: program("ginkgo"), Program: program("specs.test"),
		Kubeconfig: w.Kubeconfig, Kubectl: w.KubectlPath,
		Report: dir,
		Nodes:  len(w.Lab.Nodes),
		Focus:  *focusFlag, Short: *shortFlag,
		// kube-proxy does not implement NetworkPolicies.
		NoPolicy: proxy == kubeProxy,
		Output:   os.Stdout,
	})
	t.Logf("the specs took %s", time.Since(start).Round(time.Second))
	if faults != nil {
		if err := faults.stop(); err != nil {
			t.Error(err)
		}
		t.Logf("%s was killed %d times, and rulesets were flushed %d times", weft, faults.kills.Load(), faults.flushes.Load())
	}
	switch {
	case errors.Is(err, specs.ErrFailed):
		// A failure with kube-proxy is a result for the comparison.
		if proxy == weft {
			t.Error(err)
		} else {
			t.Log(err)
		}
	case err != nil:
		t.Error(err)
	}
}
