package container

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/sys/capability"
	"golang.org/x/sys/unix"
)

// The file is executable.
func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestProgramIsFirstProcess(t *testing.T) {
	create(t, newSpec(t, "echo $$; echo /proc/[0-9]*; exit 3")).expect(t, 3, "1\n/proc/1\n")
}

func TestFilesOfContainer(t *testing.T) {
	s := newSpec(t, "cat /etc/hostname; ls /run; echo x >/tmp/x; echo y >/dev/null; /program; test -w /dev/shm; pwd; echo z >/usr/z")
	s.Files = map[string]string{"/etc/hostname": "web\n"}
	s.Mounts = []Mount{{Source: file(t, "#!/bin/sh\necho program\n"), Target: "/program", ReadOnly: true}}
	s.Dir = "/made/for/it"
	create(t, s).expect(t, 0, "web\nprogram\n/made/for/it\n")
	if _, err := os.Stat("/usr/z"); !os.IsNotExist(err) {
		t.Errorf("the container wrote to the machine: %v", err)
	}
	for _, dir := range []string{s.Root, s.Scratch} {
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
			t.Errorf("the container left %v, %v", list, err)
		}
	}
}

func TestMounts(t *testing.T) {
	data, sub := t.TempDir(), t.TempDir()
	missing := filepath.Join(t.TempDir(), "made", "on", "demand")
	s := newSpec(t, "cat /var/run/secrets/token; echo 1 >/data/a; touch /data/sub/b 2>/dev/null && exit 9; touch /missing/c; echo end >>/dev/termination-log")
	log := file(t, "log\n")
	s.Mounts = []Mount{
		{Source: log, Target: "/dev/termination-log"},
		{Source: missing, Target: "/missing"},
		// The child comes first.
		{Source: sub, Target: "/data/sub", ReadOnly: true},
		{Source: data, Target: "/data"},
		// Debian has a link at /var/run.
		{Source: file(t, "secret\n"), Target: "/var/run/secrets/token", ReadOnly: true},
	}
	create(t, s).expect(t, 0, "secret\n")
	for name, want := range map[string]string{filepath.Join(data, "a"): "1\n", log: "log\nend\n", filepath.Join(missing, "c"): ""} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestUser(t *testing.T) {
	s := newSpec(t, "id -u; id -g; id -G; echo by path >/dev/stderr; test ! -w /usr; echo $A")
	s.UID, s.GID, s.Groups, s.Env = 1000, 2000, []int{3000}, []string{"A=1"}
	create(t, s).expect(t, 0, "1000\n2000\n2000 3000\nby path\n1\n")
}

// A container ends with the thread that started it, even after a change of its user.
func TestUserKeepsDeathSignal(t *testing.T) {
	for name, user := range map[string]int{"root": 0, "user": 1000} {
		t.Run(name, func(t *testing.T) {
			s := newSpec(t, "exec sleep 1000")
			s.UID = user
			started := make(chan *process, 1)
			go startAndEnd(t, s, started)
			p := <-started
			_ = p.Wait()
			if status := p.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
				t.Errorf("the container ends with %v, want the death signal", status)
			}
		})
	}
}

// startAndEnd starts a container on a thread that ends, so never on the main thread.
func startAndEnd(t *testing.T, s *Spec, started chan<- *process) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		started <- create(t, s)
		return
	}
	done := make(chan *process)
	go startAndEnd(t, s, done)
	started <- <-done
	runtime.UnlockOSThread()
}

func TestRestrictedRights(t *testing.T) {
	s := newSpec(t, "touch /tmp/a; chown 1 /tmp/a 2>/dev/null || echo refused; sed -n 's/^NoNewPrivs:.//p' /proc/self/status")
	s.Drop, s.NoNewPrivileges = []capability.Cap{capability.CAP_CHOWN}, true
	create(t, s).expect(t, 0, "refused\n1\n")
}

func TestReadOnlyRoot(t *testing.T) {
	s := newSpec(t, "touch /usr/a 2>/dev/null || echo refused; touch /tmp/a")
	s.ReadOnly = true
	create(t, s).expect(t, 0, "refused\n")
}

func TestErrorsOfStart(t *testing.T) {
	for name, test := range map[string]struct {
		program, want string
	}{
		"path": {"/foo", "/foo"},
		"name": {"foo", `"foo": executable file not found in $PATH`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSpec(t, "")
			// More than a pipe holds.
			s.Args, s.Env = []string{test.program}, []string{strings.Repeat("a", 1<<17)}
			if _, err := begin(t, "init", s, syscall.CLONE_NEWNS|syscall.CLONE_NEWPID); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("start of %s: %v, want %q", test.program, err, test.want)
			}
		})
	}
}

func TestExec(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSpec(t, "echo inside >/tmp/file; echo >/ready; exec sleep 1000")
	s.Mounts = []Mount{{Source: ready, Target: "/ready"}}
	p := create(t, s)
	if _, err := os.ReadFile(ready); err != nil {
		t.Fatal(err)
	}
	execute(t, p, Command{Args: []string{"sh", "-c", "cat /tmp/file /proc/1/comm; id -u; exit 3"}, UID: 1000}).
		expect(t, 3, "inside\nsleep\n1000\n")
	execute(t, p, Command{Args: []string{"sh", "-c", "kill -9 $$"}}).expect(t, 128+9, "")
	// A killed command ends with its children.
	given := execute(t, p, Command{Args: []string{"sh", "-c", "sleep 1001; echo not reached"}})
	if err := given.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	given.expect(t, 128+9, "")
	execute(t, p, Command{Args: []string{"sh", "-c", `for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$f; done | grep -c 'sleep 100[1]'`}}).expect(t, 1, "0\n")
	left := execute(t, p, Command{Args: []string{"sleep", "1000"}})
	p.end(t)
	left.expect(t, 128+9, "")
}
