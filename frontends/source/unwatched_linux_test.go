package source

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// maxInstances is the user namespace's fs.inotify.max_user_instances.
const maxInstances = "/proc/sys/user/max_inotify_instances"

// TestUnwatched follows a directory on a node whose inotify instances are used up: its changes are
// found all the same, the log names the sysctl, and the directory is watched once there are some.
func TestUnwatched(t *testing.T) {
	const inside = "WEFT_TEST_UNWATCHED"
	if os.Getenv(inside) == "" {
		nfttest.Require(t, nfttest.Namespaces)
		cmd := exec.Command(os.Args[0], "-test.run=^TestUnwatched$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Fatal(err)
		}
		return
	}
	limit := func(n string) {
		must(t, os.WriteFile(maxInstances, []byte(n), 0))
	}
	limit("0")
	dir := t.TempDir()
	write(t, dir, "a.yaml", manifest("a", "10.96.0.1"))
	r, log := followFiles(t, dir)
	r.await(t, "Service default/a=10.96.0.1")
	log.await(t, "reading them every second")
	log.await(t, "raise the sysctl fs.inotify.max_user_instances")
	write(t, dir, "a.yaml", manifest("a", "10.96.0.2"))
	r.await(t, "Service default/a=10.96.0.2")
	limit("8")
	log.await(t, "the manifests are watched now")
	write(t, dir, "a.yaml", manifest("a", "10.96.0.3"))
	r.await(t, "Service default/a=10.96.0.3")
}
