package statuspage

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
	"github.com/weft-proxy/weft/deploy/e2e/suite"
)

var programs = suite.Suite{
	Name: "statuspage", Bin: "../bin",
	Tools: []string{"nft", "ip", "chromium"}, Packages: "nftables, iproute2 and chromium",
	Programs: []suite.Program{suite.Weft("../../..")},
}

func TestMain(m *testing.M) { programs.Main(m) }

var screenshots = flag.String("screenshots", "", "directory for status.png and explain.png")

// patience bounds the test; a browser may start slowly.
const patience = 2 * time.Minute

// firewall drops packets that web accepts.
const (
	firewall = `table inet host {
	chain input {
		type filter hook input priority filter; policy drop;
		ct state established,related accept
		iif lo tcp dport { 22, 10249, 10250 } accept
		iif lo tcp sport 10249 accept
		iif lo tcp dport 32768-60999 accept
	}
}
`
	web = `table inet web {
	chain in {
		type filter hook input priority -10;
		tcp dport 443 accept
	}
}
`
)

type node struct{ dir string }

// root is the page's address.
const root = "http://127.0.0.1:10249/status/"

func start(t *testing.T) *node {
	t.Helper()
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	n := &node{dir: t.TempDir()}
	cmd := exec.Command(programs.Path("weft"), "aggregator", "--socket", n.socket(), "--state-dir", filepath.Join(n.dir, "state"), "--healthz-bind-address=")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("weft ends with %v", err)
		}
	})
	return n
}

func (n *node) socket() string { return filepath.Join(n.dir, "run", "weft.sock") }

// weft apply waits for the daemon.
func (n *node) apply(t *testing.T, publisher, name, rules string) {
	t.Helper()
	cmd := exec.Command(programs.Path("weft"), "apply", "-f", "-", "--name", name, "--publisher", publisher, "--socket", n.socket())
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("weft apply: %v: %s", err, out)
	}
}

// browser starts Chromium, and returns its context and the requested addresses.
func browser(t *testing.T) (ctx context.Context, asked func() []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	options := append([]chromedp.ExecAllocatorOption{
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile(t)), chromedp.WindowSize(1280, 900), chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true),
	}, chromedp.DefaultExecAllocatorOptions[:]...)
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	var mu sync.Mutex
	var all []string
	chromedp.ListenTarget(ctx, func(ev any) {
		if e, ok := ev.(*network.EventRequestWillBeSent); ok {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, e.Request.URL)
		}
	})
	if err := chromedp.Run(ctx, network.Enable()); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), all...)
	}
}

// profile makes a directory for Chromium. It is removed after the end of Chromium's processes, which
// write until then.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weft-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Within(context.Background(), patience, func() error { return os.RemoveAll(dir) }); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestPage(t *testing.T) {
	n := start(t)
	n.apply(t, "firewall", "host", firewall)
	ctx, asked := browser(t)
	run := func(what string, actions ...chromedp.Action) {
		t.Helper()
		if err := chromedp.Run(ctx, actions...); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	has := func(words string) chromedp.Action {
		return chromedp.Poll(`document.body.innerText.includes(`+"`"+words+"`"+`)`, nil, chromedp.WithPollingTimeout(patience))
	}

	run("the page", chromedp.Navigate(root), has("This node is ready"), has("firewall/host"), chromedp.Evaluate(`window.here = 1`, nil))
	n.apply(t, "web", "rules", web)
	var same bool
	run("the update", has("web/rules"), has("accept-overridden"), chromedp.Evaluate(`window.here === 1`, &same))
	if !same {
		t.Error("the page was loaded anew, and not updated")
	}
	picture(t, ctx, "status.png")

	run("the form", chromedp.Click(`//a[text()="Explain"]`), chromedp.WaitVisible(`input[name=from]`),
		chromedp.SendKeys(`input[name=from]`, "node"), chromedp.SendKeys(`input[name=to]`, "127.0.0.1:80"),
		chromedp.Click(`//button[text()="Explain"]`), chromedp.WaitVisible(`.answer`), has("Dropped: "))
	picture(t, ctx, "explain.png")

	run("without scripts", emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(root), chromedp.WaitReady("noscript p"), chromedp.WaitReady("table"))
	var text string
	run("its text", chromedp.OuterHTML("html", &text))
	for _, want := range []string{"This node is ready", "web/rules", "accept-overridden", "reload it"} {
		if !strings.Contains(text, want) {
			t.Errorf("without scripts the page lacks %q:\n%s", want, text)
		}
	}
	for _, url := range asked() {
		if !strings.HasPrefix(url, root) {
			t.Errorf("the page asks for %s", url)
		}
	}
	if len(asked()) < 4 {
		t.Errorf("requests %q: the page, its style and its script at least", asked())
	}
}

func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	var png []byte
	if err := chromedp.Run(ctx, chromedp.FullScreenshot(&png, 100)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name), png, 0o600); err != nil {
		t.Fatal(err)
	}
}
