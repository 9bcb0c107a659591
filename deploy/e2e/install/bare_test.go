package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// machine is a node outside of the cluster, with its own systemd.
type machine struct {
	node    *lab.Node
	process *lab.Process
	// the PID of its systemd
	init   int
	cgroup string
}

// cgroups has the machine's cgroups of version 2. It is not below runDir, which is removed recursively.
const cgroups = "/run/install-cgroups"

// bootMachine returns when systemd answers.
func (w *world) bootMachine(ctx context.Context, n *lab.Node) (*machine, error) {
	m := &machine{node: n, cgroup: filepath.Join(cgroups, "weft-install-"+strconv.Itoa(os.Getpid())+"-"+n.Name())}
	dir := filepath.Join(runDir, n.Name())
	for _, d := range []string{cgroups, dir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, fmt.Errorf("boot %s: %w", n.Name(), err)
		}
	}
	if err := unix.Mount("cgroup2", cgroups, "cgroup2", 0, ""); err != nil {
		return nil, fmt.Errorf("boot %s: mount cgroups: %w", n.Name(), err)
	}
	if err := os.Mkdir(m.cgroup, 0o755); err != nil {
		return nil, fmt.Errorf("boot %s: %w", n.Name(), err)
	}
	w.stops = append(w.stops, m.stop)
	const enter = `echo $$ > "$1/cgroup.procs"; shift; exec "$@"`
	var err error
	m.process, err = n.Start(n.Name()+"-systemd", filepath.Join(w.logs, n.Name()+"-systemd.log"), nil, "sh", "-c", enter, "sh", m.cgroup,
		"unshare", "--mount", "--pid", "--ipc", "--uts", "--cgroup", "--fork", "--kill-child", "bash", "testdata/boot.sh", dir, n.Name())
	if err != nil {
		return nil, err
	}
	return m, lab.Within(ctx, patience, func() error {
		if err := m.process.Err(); err != nil {
			return err
		}
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", m.process.PID()))
		if err != nil {
			return err
		}
		if m.init, err = strconv.Atoi(strings.TrimSpace(string(children))); err != nil {
			return fmt.Errorf("find systemd of %s: %w", n.Name(), err)
		}
		if state, err := m.types(ctx, "systemctl is-system-running || true"); err != nil || !slices.Contains([]string{"running", "degraded"}, strings.TrimSpace(state)) {
			return fmt.Errorf("systemd of %s is %q, %w", n.Name(), state, err)
		}
		return nil
	})
}

// types runs a script in root's shell and home directory.
func (m *machine) types(ctx context.Context, script string) (string, error) {
	return m.node.Run(ctx, "nsenter", "--target", strconv.Itoa(m.init), "--mount", "--pid", "--ipc", "--uts", "--cgroup",
		"env", "-i", "HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=dumb",
		"bash", "-euo", "pipefail", "-c", "exec 2>&1; cd /root; "+script)
}

// copy writes a file to root's home directory, as scp does.
func (m *machine) copy(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("copy to %s: %w", m.node.Name(), err)
	}
	if err := os.WriteFile(filepath.Join("/proc", strconv.Itoa(m.init), "root/root", filepath.Base(path)), b, 0o600); err != nil {
		return fmt.Errorf("copy to %s: %w", m.node.Name(), err)
	}
	return nil
}

// stop removes the innermost cgroups first.
func (m *machine) stop() error {
	var errs []error
	if m.process != nil {
		// The first process of a PID namespace ends all others.
		errs = append(errs, m.process.Kill())
	}
	var all []string
	errs = append(errs, filepath.WalkDir(m.cgroup, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return err
	}))
	slices.Reverse(all)
	for _, dir := range all {
		// Its processes end later.
		errs = append(errs, lab.Within(context.Background(), patience, func() error { return os.Remove(dir) }))
	}
	return errors.Join(append(errs, unix.Unmount(cgroups, 0))...)
}

// debianPackage makes this architecture's package, with the tests' weft.
func (w *world) debianPackage(ctx context.Context) (string, error) {
	dir := filepath.Join(runDir, "dist")
	if _, err := w.Lab.Control.Run(ctx, program("release"), "-C", repository, "-o", dir, "-debian", runtime.GOARCH, "-binary", program("weft")); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, "weft_*.deb"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("make Debian package: %d files, %w", len(files), err)
	}
	return files[0], nil
}

const bare = "bare"

// The cluster's own node has kube-proxy.
func installBare(t *testing.T) result {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	credentials, onNode, files := mustRead(t, systemdReadme, "credentials"), mustRead(t, systemdReadme, bare), mustRead(t, systemdReadme, "files")
	w := newWorld(t, ctx, kind{name: bare, members: 1, podCIDRs: lab.ClusterCIDRs(), prepare: likeKind})
	m, err := w.bootMachine(ctx, w.Lab.Nodes[1])
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			out, err := m.types(context.WithoutCancel(ctx), "systemctl status weft --no-pager || true; journalctl -u weft --no-pager | tail -40")
			t.Logf("what the machine says: %v\n%s", err, out)
		}
	}()
	deb, err := w.debianPackage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r := result{kind: bare, about: "a machine with systemd and no kubelet, in the network of a cluster; the Debian package; two files are copied to it between the commands", scripts: []script{credentials, onNode}}
	r.returned, r.answered = measure(t, ctx, w.checks(m.node, w.web), func(ctx context.Context) (string, error) {
		out, err := w.user.types(ctx, "trap 'mv weft.kubeconfig "+w.user.dir+" 2>/dev/null || true' EXIT; "+credentials.String())
		if err != nil {
			return out, err
		}
		if err := errors.Join(m.copy(deb), m.copy(filepath.Join(w.user.dir, "weft.kubeconfig"))); err != nil {
			return out, err
		}
		more, err := m.types(ctx, onNode.String())
		return out + more, err
	})
	m.protected(t, ctx)
	r.wrong = takeAll(t, ctx, m.types, wrongOnBare())
	m.followFiles(t, ctx, files)
	return r
}

// protected checks that weft runs as the unit says.
func (m *machine) protected(t *testing.T, ctx context.Context) {
	t.Helper()
	out, err := m.types(ctx, `pid=$(systemctl show -p MainPID --value weft); grep -E '^(CapBnd|CapEff|NoNewPrivs|Seccomp):' /proc/$pid/status; systemctl is-active weft; systemctl is-enabled weft`)
	if err != nil {
		t.Errorf("ask for weft's rights: %v", err)
	}
	// CAP_NET_ADMIN is capability 12.
	for _, want := range []string{"CapBnd:\t0000000000001000\n", "CapEff:\t0000000000001000\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n", "active\nenabled\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("weft's process lacks %q:\n%s", want, out)
		}
	}
}

// followFiles has weft follow manifests, as the document says.
func (m *machine) followFiles(t *testing.T, ctx context.Context, files script) {
	t.Helper()
	if _, err := m.types(ctx, "mkdir manifests"); err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob(filepath.Join(repository, "deploy/examples/manifests/*.yaml"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("find manifests: %v, %d files", err, len(examples))
	}
	for _, path := range examples {
		if err := m.copy(path); err != nil {
			t.Fatal(err)
		}
	}
	out, err := m.types(ctx, "mv *.yaml manifests; "+files.String())
	if err != nil || !strings.Contains(out, "default/web") {
		t.Errorf("weft does not follow files: %v\n%s", err, out)
	}
}

func mustRead(t *testing.T, document, name string) script {
	t.Helper()
	s, err := readScript(document, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
