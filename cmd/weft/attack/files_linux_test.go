package attack

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// Attacks on the files of the daemon, and on who its callers are.

// callEnv makes the test binary a caller of the socket that it names.
const callEnv = "WEFT_ATTACK_CALL"

// call returns the code of one call.
func call(socket string) codes.Code {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return codes.Internal
	}
	defer func() { _ = conn.Close() }()
	_, err = weftv1.NewInspectClient(conn).GetInfo(ctx, &weftv1.GetInfoRequest{})
	return status.Code(err)
}

// copyFile copies a program so that every user can run it.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, text, 0o755)) //nolint:gosec // other users run it
}

// agentConfiguration has a publisher that is known by its executable.
const agentConfiguration = configuration + `- name: agent
  match: {uid: 1400, executable: %s}
`

// TestForgedExecutable connects as the user of an agent, but with another program, which a
// user and mount namespace shows at the path of the agent's executable.
func TestForgedExecutable(t *testing.T) {
	dir := publicDir(t)
	self, err := os.Executable()
	must(t, err)
	agent, forged := filepath.Join(dir, "agent"), filepath.Join(dir, "forged")
	copyFile(t, self, agent)
	copyFile(t, self, forged)
	attack(t, options{config: fmt.Sprintf(agentConfiguration, agent)}, func(h *host) {
		run := func(name string, args ...string) string {
			cmd := exec.Command(name, args...)
			cmd.Env, cmd.SysProcAttr = append(os.Environ(), callEnv+"="+h.socket), user(1400)
			out, err := cmd.CombinedOutput()
			if err != nil {
				h.Errorf("%s %s: %v %s", name, args, err, out)
			}
			return strings.TrimSpace(string(out))
		}
		if got := run(agent); got != codes.OK.String() {
			h.Errorf("the agent gets %s: want %v", got, codes.OK)
		}
		mount := fmt.Sprintf("mount --bind %s %s && ", forged, agent)
		inside := run("unshare", "-Urm", "sh", "-c", mount+"exec "+agent)
		// A process in the daemon's mount namespace can run the file through another that is
		// not: /proc shows the same path.
		holder, end := h.hold(user(1400), "unshare", "-Urm", "sh", "-c", mount+"echo ready && exec cat")
		outside := run(fmt.Sprintf("/proc/%d/root%s", holder.Process.Pid, agent))
		end()
		h.observe("a forged executable in a mount namespace: %s, and run from outside: %s", inside, outside)
		if denied := codes.PermissionDenied.String(); inside != denied || outside != denied {
			h.Errorf("a forged executable gets %s, and from outside %s: want %s", inside, outside, denied)
		}
	})
}

// startWith runs a daemon with the given files until it has ended, or for a while, and returns
// what it says.
func (h *host) startWith(socket, state string) string {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := daemonCommand(ctx, h.T, "--socket", socket, "--state-dir", state, "--metrics-bind-address", "", "--healthz-bind-address", "")
	var said logs
	cmd.Stderr = &said
	_, err := cmd.StdinPipe()
	must(h.T, err)
	// The tables of the other daemon are not there.
	must(h.T, nfttest.New(h.T).Do(cmd.Start))
	err = cmd.Wait()
	if ctx.Err() != nil || err == nil {
		h.Errorf("a daemon with socket %s and state %s runs: want that it refuses the files", socket, state)
	}
	return said.String()
}

// TestUnsafeFiles starts daemons in directories that an attacker can write to.
func TestUnsafeFiles(t *testing.T) {
	attack(t, options{}, func(h *host) {
		dir := h.TempDir()
		safe := filepath.Join(dir, "safe")
		prepare := func(name string, mode os.FileMode, uid int) string {
			path := filepath.Join(dir, name)
			must(h.T, os.Mkdir(path, 0o700))
			must(h.T, os.Chmod(path, mode))
			must(h.T, os.Chown(path, uid, -1))
			return path
		}
		all, theirs := prepare("all", 0o777, 0), prepare("theirs", 0o755, uidCNI)
		sticky := prepare("sticky", 0o777|os.ModeSticky, 0)
		// A lock that is a link.
		target := filepath.Join(dir, "target")
		must(h.T, os.Symlink(target, filepath.Join(theirs, "weft.sock.lock")))
		must(h.T, os.Symlink(theirs, filepath.Join(dir, "link")))
		for _, tt := range []struct{ socket, state string }{
			{safe + "/weft.sock", all},
			{safe + "/weft.sock", dir + "/link"},
			{all + "/weft.sock", safe},
			{theirs + "/weft.sock", safe},
			{sticky + "/weft.sock", safe},
			{dir + "/link/weft.sock", safe},
		} {
			said := h.startWith(tt.socket, tt.state)
			if !strings.Contains(said, "other users can change it") && !strings.Contains(said, "is a symbolic link") {
				h.Errorf("with socket %s and state %s the daemon says %s", tt.socket, tt.state, said)
			}
		}
		if _, err := os.Lstat(target); err == nil {
			h.Error("a file was created through a link")
		}
		h.observe("unsafe directories for state and socket: all are refused")
	})
}

// hold has a user run lines of the shell that say "ready", and then wait until the function that it returns is called.
func (h *host) hold(user *syscall.SysProcAttr, name string, args ...string) (cmd *exec.Cmd, end func()) {
	h.Helper()
	cmd = exec.Command(name, args...)
	cmd.SysProcAttr = user
	in, err := cmd.StdinPipe()
	must(h.T, err)
	out, err := cmd.StdoutPipe()
	must(h.T, err)
	must(h.T, cmd.Start())
	if _, err := io.ReadFull(out, make([]byte, len("ready"))); err != nil {
		h.Errorf("%s: %v", args, err)
	}
	return cmd, func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
}

// user is one for a process.
func user(uid uint32) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: group}, Pdeathsig: syscall.SIGKILL}
}

// TestHeldLock has an attacker hold the lock of the socket: in a directory of its own, and in
// the daemon's, if others can read the lock there. The daemon does not wait for it and does
// not report that another server has the socket: it names the file or directory to change.
func TestHeldLock(t *testing.T) {
	attack(t, options{}, func(h *host) {
		dir := publicDir(h.T)
		for _, tt := range []struct {
			name string
			uid  int
			want string
		}{
			{"theirs", uidCNI, "other users can change it: chown it, or use another path"},
			{"ours", 0, "other users can change it, because they can lock it: chmod 600"},
		} {
			socket := filepath.Join(dir, tt.name, "weft.sock")
			must(h.T, os.Mkdir(filepath.Dir(socket), 0o755)) //nolint:gosec // others read it
			file := socket + ".lock"
			must(h.T, os.WriteFile(file, nil, 0o644)) //nolint:gosec // others read it
			for _, path := range []string{filepath.Dir(socket), file} {
				must(h.T, os.Chown(path, tt.uid, -1))
			}
			_, end := h.hold(user(uidCNI), "sh", "-c", `exec 9<"$0" && flock -n 9 && echo ready && exec cat`, file)
			h.Cleanup(end)
			if said := h.startWith(socket, filepath.Join(dir, "state")); !strings.Contains(said, tt.want) {
				h.Errorf("the lock in the directory %s is held: the daemon says %s", tt.name, said)
			}
		}
		h.observe("a lock that an attacker holds: the daemon names the file or directory")
	})
}

// TestRemovedPublisher leaves a durable fragment, and comes back after a reboot with a
// configuration that does not have its publisher any more.
func TestRemovedPublisher(t *testing.T) {
	dir := publicDir(t)
	t.Run("before", func(t *testing.T) {
		attack(t, options{dir: dir}, func(h *host) {
			must(h.T, h.apply(uidCNI, &weftv1.Fragment{
				Name: "stays", Lifetime: weftv1.Lifetime_LIFETIME_DURABLE, Nft: "table inet cni {\n\tchain c {\n\t\taccept\n\t}\n}\n",
			}))
			h.observe("a durable fragment is published")
		})
	})
	t.Run("after", func(t *testing.T) {
		attack(t, options{dir: dir, config: strings.Replace(configuration, "- name: cni\n", "- name: another\n", 1)}, func(h *host) {
			stream, err := weftv1.NewInspectClient(h.as(0)).GetFragment(aggregatortest.Context(h.T), &weftv1.GetFragmentRequest{Fragment: &weftv1.FragmentName{Publisher: "cni", Name: "stays"}})
			must(h.T, err)
			got, err := stream.Recv()
			must(h.T, err)
			state, ruleset := got.GetStatus().GetState(), h.ns.ListRuleset(h.T)
			h.observe("after a reboot the fragment of a removed publisher is %v", state)
			if state != weftv1.FragmentStatus_STATE_ORPHANED || strings.Contains(ruleset, "table inet cni") {
				h.Errorf("the fragment is %v: want that it is orphaned and not in force:\n%s", state, ruleset)
			}
		})
	})
}
