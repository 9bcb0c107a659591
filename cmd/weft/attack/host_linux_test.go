package attack

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/cmd/weft/daemon"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// The users of the configuration.
const (
	group     = 1200
	uidCNI    = 1234
	uidBig    = 1235
	uidVictim = 1300
	// uidStranger is in the socket's group, and no publisher.
	uidStranger = 4321
)

// configuration is what every daemon starts with. The limits of cni are those of a small
// agent.
const configuration = `apiVersion: weft.dev/v1alpha1
kind: Configuration
socketGroup: 1200
publishers:
- name: victim
  match: {uid: 1300}
- name: cni
  match: {uid: 1234}
  allow:
    tables: [{name: "cni*"}, {name: shared}]
    hooks: [input, forward, output]
    nat: false
  limits: {fragments: 5, rules: 50, elements: 100, bytes: 64Ki, updatesPerSecond: 10}
- name: big
  match: {uid: 1235}
  allow:
    tables: [{name: "big*"}, {name: shared}]
    hooks: [input, forward, output]
  limits: {rules: 10000, elements: 100000, bytes: 64Mi}
`

const (
	// maxGrowth is how much the memory of the daemon may grow.
	maxGrowth = 64 << 20
	// maxLatency is how long 99 in 100 updates of the victim may take. It is checked
	// if strictEnv is set, because the machine may be busy with other tests.
	maxLatency = 150 * time.Millisecond
	strictEnv  = "WEFT_ATTACK_STRICT"
	daemonEnv  = "WEFT_ATTACK_DAEMON"
	nofileEnv  = "WEFT_ATTACK_NOFILE"
	// between is the time between two updates of the victim.
	between = 10 * time.Millisecond
)

// TestMain lets the test binary be the daemon.
func TestMain(m *testing.M) {
	if socket := os.Getenv(callEnv); socket != "" {
		fmt.Println(call(socket))
		return
	}
	if os.Getenv(daemonEnv) == "" {
		os.Exit(m.Run())
	}
	if err := runDaemon(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runDaemon is "weft aggregator".
func runDaemon(args []string) error {
	if n, err := strconv.ParseUint(os.Getenv(nofileEnv), 10, 64); err == nil {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	set := pflag.NewFlagSet("weft", pflag.ContinueOnError)
	flags := daemon.AddFlags(set, daemon.VerbAggregator)
	if err := set.Parse(args); err != nil {
		return err
	}
	return flags.Run(ctx, os.Stderr, "test")
}

// host is a daemon under attack.
type host struct {
	*testing.T
	ns     *nfttest.NS
	socket string
	pid    int
	log    logs
	// observed is what the attack saw, for the summary.
	observed string

	base   int
	before string
	victim *victim
}

// logs collects the daemon's log.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// options of a host.
type options struct {
	// config replaces configuration.
	config string
	// dir has the files of the daemon, for another one after it; empty means a new one.
	dir string
	// nofile limits the descriptors of the daemon.
	nofile int
}

// daemonCommand returns the command of "weft aggregator", which is killed when ctx ends.
func daemonCommand(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), daemonEnv+"=1")
	return cmd
}

// newHost starts a daemon and a victim.
func newHost(t *testing.T, o options) *host {
	t.Helper()
	if raceDetector {
		t.Skip("the race detector multiplies the memory of the daemon: run make attack")
	}
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT, nfttest.Users)
	dir := o.dir
	if dir == "" {
		dir = publicDir(t)
	}
	config := filepath.Join(dir, "weft.yaml")
	must(t, os.WriteFile(config, []byte(cmp.Or(o.config, configuration)), 0o600))
	h := &host{T: t, ns: nfttest.New(t), socket: filepath.Join(dir, "run", "weft.sock")}
	cmd := daemonCommand(context.Background(), t, "--socket", h.socket, "--state-dir", filepath.Join(dir, "state"), "--config", config,
		"--metrics-bind-address", "127.0.0.1:10249", "--healthz-bind-address", "127.0.0.1:10256")
	if o.nofile > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", nofileEnv, o.nofile))
	}
	cmd.Stderr = &h.log
	// The daemon ends with this process, which has the other end.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	must(t, h.ns.Do(cmd.Start))
	h.pid = cmd.Process.Pid
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the daemon ends with %v", err)
		}
		if t.Failed() {
			t.Logf("the daemon's log:\n%.4000s", h.log.String())
		}
	})
	aggregatortest.Eventually(t, "the daemon listens", func() bool {
		c, err := aggregatortest.ConnectAs(h.socket, aggregatortest.User{UID: uidVictim, GID: group})
		return err == nil && c.Close() == nil
	})
	h.victim = newVictim(h)
	h.before = h.objects()
	h.base = h.memory()
	return h
}

// publicDir makes a directory that every user can enter.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weft-attack")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // other users must reach what is in it
		t.Fatal(err)
	}
	return dir
}

// attack runs an attack beside the victim, and checks that it is contained.
func (h *host) attack(run func(*host)) {
	h.Helper()
	h.victim.start(h)
	run(h)
	h.victim.end()
	growth, p99 := h.victim.most-h.base, h.victim.percentile(99)
	h.Logf("%s: memory +%d MiB; %d updates of the victim, p99 %v", h.observed, growth>>20, len(h.victim.took), p99.Round(time.Millisecond/10))
	if growth > maxGrowth {
		h.Errorf("the daemon's memory grew by %d bytes: at most %d are wanted", growth, maxGrowth)
	}
	if len(h.victim.took) == 0 || h.victim.lost != nil {
		h.Errorf("%d updates of the victim, and then: %v", len(h.victim.took), h.victim.lost)
	}
	if p99 > maxLatency && strict() {
		h.Errorf("99 in 100 updates of the victim took up to %v: at most %v are wanted", p99, maxLatency)
	}
	if after := h.objects(); after != h.before {
		h.Errorf("the victim's table is now\n%s\nand was\n%s", after, h.before)
	}
	loaded := nfttest.New(h.T)
	if out, err := loaded.Output(h.ns.ListRuleset(h.T), "nft", "-f", "-"); err != nil {
		h.Errorf("the ruleset cannot be loaded: %v %s", err, out)
	}
}

// attack starts a daemon, and runs an attack on it.
func attack(t *testing.T, o options, run func(*host)) {
	t.Helper()
	newHost(t, o).attack(run)
}

// must ends the test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// apply applies a fragment as a user, and returns how that ended.
func (h *host) apply(uid uint32, f *weftv1.Fragment) error {
	h.Helper()
	_, err := weftv1.NewPublisherClient(h.as(uid)).Apply(aggregatortest.Context(h.T), &weftv1.ApplyRequest{Fragment: f})
	return err
}

// loops calls what f returns again and again in n goroutines, for a time.
func loops(n int, d time.Duration, f func(ctx context.Context, i int) func()) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var wg sync.WaitGroup
	for i := range n {
		call := f(ctx, i)
		wg.Go(func() {
			for ctx.Err() == nil {
				call()
			}
		})
	}
	wg.Wait()
}

// as connects as a user.
func (h *host) as(uid uint32) *grpc.ClientConn {
	h.Helper()
	return aggregatortest.DialAs(h.T, h.socket, aggregatortest.User{UID: uid, GID: group})
}

// raw connects as a user, by hand.
func (h *host) raw(uid uint32, settings ...http2.Setting) *aggregatortest.Raw {
	h.Helper()
	c, err := aggregatortest.ConnectAs(h.socket, aggregatortest.User{UID: uid, GID: group})
	must(h.T, err)
	return aggregatortest.NewRaw(h.T, c, settings...)
}

// observe says for the summary what the attack saw.
func (h *host) observe(format string, args ...any) { h.observed = fmt.Sprintf(format, args...) }

var resident = regexp.MustCompile(`VmRSS:\s*(\d+) kB`)

// memory returns the resident memory of the daemon in bytes.
func (h *host) memory() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.pid))
	m := resident.FindSubmatch(status)
	if err != nil || m == nil {
		h.Errorf("memory of the daemon: %q, %v", m, err)
		return 0
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		h.Error(err)
	}
	return n << 10
}

// moved matches the element that the victim changes.
var moved = regexp.MustCompile(`10\.9\.1\.\d+`)

// objects returns what the kernel has of the victim, without the element that it changes.
func (h *host) objects() string {
	h.Helper()
	return moved.ReplaceAllString(h.ns.Run(h.T, "nft", "-s", "list", "table", "inet", "victim"), "10.9.1.N")
}

// strict reports whether an attack fails because something took long.
func strict() bool { return os.Getenv(strictEnv) != "" }
