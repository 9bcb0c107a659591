package kubeproxy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestFollow: weft ends when its file means something else, and only then.
//
// Behaviour: 143.
func TestFollow(t *testing.T) {
	synctest.Test(t, testFollow)
}

func testFollow(t *testing.T) {
	o, flags := command(t)
	file := write(t, "clusterCIDR: 10.0.0.0/16\n")
	s, err := o.Complete(flags, file)
	must(t, err)
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- o.Follow(ctx, flags, s, (*Settings).Same, slog.New(slog.NewTextHandler(&log, nil)))
	}()
	see := func(text string) {
		if text == "" {
			must(t, os.Remove(file))
		} else {
			replace(t, file, text)
		}
		select {
		case <-time.After(2 * recheck):
		case err := <-done:
			t.Fatalf("%q ends weft: %v", text, err)
		}
		synctest.Wait()
	}
	see(header + "clusterCIDR: 10.0.0.0/16\n")
	see("# A comment.\n" + header + "clusterCIDR: '10.0.0.0/16'\nmetricsBindAddress: 127.0.0.1\n")
	see(header + "clusterCIDR: [\n")
	see("")
	if got := strings.Count(log.String(), "level=ERROR"); got != 2 || !strings.Contains(log.String(), "has an error") || !strings.Contains(log.String(), "cannot read") {
		t.Errorf("the log has %d errors: want one of each kind:\n%s", got, &log)
	}
	replace(t, file, header+"clusterCIDR: 10.1.0.0/16\n")
	if err := <-done; !errors.Is(err, ErrChanged) {
		t.Errorf("a changed file gives %v", err)
	}
}

// replace changes a file at once, as the kubelet does: a reader sees the old file or the new one.
func replace(t *testing.T, file, text string) {
	t.Helper()
	must(t, errors.Join(os.WriteFile(file+".new", []byte(text), 0o600), os.Rename(file+".new", file)))
}

// TestFollowHost: who goes by the machine's settings alone does not end for others.
//
// Behaviour: 143.
func TestFollowHost(t *testing.T) {
	was := fromText(t, "conntrack: {min: 1}\n")
	for text, same := range map[string]bool{
		"conntrack: {min: 1}\nclusterCIDR: 10.0.0.0/16\n": true, "conntrack: {min: 9999999}\n": false, "conntrack: {min: 1}\noomScoreAdj: 1\n": false,
	} {
		if got := was.SameHost(fromText(t, text)); got != same {
			t.Errorf("%q means the same for the machine: %v", text, got)
		}
	}
	o, flags := command(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.Follow(ctx, flags, was, (*Settings).Same, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("the end of the context gives %v", err)
	}
}

// TestCheckKernel refuses what is too old for weft's rules.
//
// Behaviour: 142.
func TestCheckKernel(t *testing.T) {
	none := func(string) string { return "" }
	for release, ok := range map[string]bool{
		"5.12.19-amd64": false, "4.19.0": false, "5.13.0": true, "5.13-rc1": true, "6.1.0-9-amd64": true, "10.0": true, "nonsense": false,
	} {
		if err := checkKernel(release, none); (err == nil) != ok {
			t.Errorf("kernel %s: %v", release, err)
		}
	}
	for _, name := range []string{"KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK", "WEFT_SKIP_KERNEL_VERSION_CHECK"} {
		if err := checkKernel("4.4", func(n string) string {
			if n == name {
				return "1"
			}
			return ""
		}); err != nil {
			t.Errorf("%s does not turn the check off: %v", name, err)
		}
	}
	if err := CheckKernel(); err != nil {
		t.Errorf("this kernel: %v", err)
	}
}

// TestParseAnything: no file makes weft panic, and one without its kind is an error.
func TestParseAnything(t *testing.T) {
	kubeadm, err := os.ReadFile("../../../deploy/examples/kube-proxy/kubeadm.conf")
	must(t, err)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	pieces := strings.SplitAfter(string(kubeadm)+"&x [*x]\n? [a] : b\n<<: {}\n- 1\n\"\n\x00\nnull: null\n{{{\n", "\n")
	for range 3000 {
		var b strings.Builder
		for _, line := range pieces {
			switch rng.IntN(8) {
			case 0:
			case 1:
				b.WriteString(pieces[rng.IntN(len(pieces))])
			case 2:
				b.WriteString(line[:rng.IntN(len(line)+1)])
			default:
				b.WriteString(line)
			}
		}
		if doc, err := parse("f", []byte(b.String())); err == nil && doc.config.Kind != Kind {
			t.Fatalf("%q passes for a configuration", b.String())
		}
	}
}
