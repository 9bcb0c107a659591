package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// laptop is a machine with Go and a clone of the repository.
const laptop = "laptop"

// tryOnLaptop types the first blocks of the README in a clone without a bin directory.
func tryOnLaptop(t *testing.T) []result {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	see := []script{mustRead(t, readme, "see it run")}
	first := []script{mustRead(t, readme, "a first rule"), mustRead(t, readme, "a first rule, published")}
	host, err := lab.NewNamespace(laptop)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	clone := filepath.Join(runDir, laptop)
	if err := os.RemoveAll(clone); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Run(ctx, "git", "clone", "--quiet", repository, clone); err != nil {
		t.Fatal(err)
	}
	return []result{
		typeOnLaptop(t, ctx, host, clone, "see it run: `weft demo`, with real traffic; the cache of Go's builds is warm", see),
		typeOnLaptop(t, ctx, host, clone, "a first rule, when the program is built: weft runs in a namespace, and a fragment is published and withdrawn", first),
	}
}

// typeOnLaptop types blocks in one shell, with its own /tmp, and ends their remaining processes.
func typeOnLaptop(t *testing.T, ctx context.Context, host *lab.Namespace, clone, about string, scripts []script) result {
	t.Helper()
	var text []string
	for _, s := range scripts {
		text = append(text, s.String())
	}
	log := filepath.Join(runDir, laptop+".log")
	const enter = `mount -t tmpfs tmpfs /tmp; trap 'set +e; ip netns pids weft-try 2>/dev/null | xargs -r kill; ip netns delete weft-try 2>/dev/null' EXIT; cd "$1"; exec >"$2" 2>&1; `
	start := time.Now()
	_, err := host.Run(ctx, "unshare", "--mount", "bash", "-euo", "pipefail", "-c", enter+strings.Join(text, "\n"), "bash", clone, log)
	r := result{kind: laptop, about: about, scripts: scripts, returned: time.Since(start)}
	out, readErr := os.ReadFile(log)
	if err != nil || readErr != nil {
		t.Fatalf("%s: %v\n%s", about, errors.Join(err, readErr), out)
	}
	t.Logf("%s: after %v:\n%s", about, r.returned.Round(time.Millisecond), out)
	return r
}
