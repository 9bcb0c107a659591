package container

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// process is a container or a command in one.
type process struct {
	*exec.Cmd
	out *bytes.Buffer
}

// The test's goroutine stays on one thread, because the process ends with its starting thread.
func begin(t *testing.T, verb string, spec any, flags uintptr, namespaces ...*os.File) (*process, error) {
	t.Helper()
	runtime.LockOSThread()
	in, specs := pipe(t)
	report, out := pipe(t)
	p := &process{Cmd: exec.Command("/proc/self/exe", verb), out: &bytes.Buffer{}}
	p.Stdout, p.Stderr = p.out, p.out
	p.ExtraFiles = append([]*os.File{in, out}, namespaces...)
	p.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	out.Close()
	if err := errors.Join(json.NewEncoder(specs).Encode(spec), specs.Close()); err != nil {
		t.Fatal(err)
	}
	message, err := io.ReadAll(report)
	if err != nil {
		t.Fatal(err)
	}
	if len(message) > 0 {
		_ = p.Wait()
		return nil, errors.New(string(message))
	}
	return p, nil
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func newSpec(t *testing.T, script string) *Spec {
	t.Helper()
	return &Spec{Root: t.TempDir(), Scratch: t.TempDir(), Command: Command{Args: []string{"sh", "-ec", script}}}
}

func create(t *testing.T, s *Spec) *process {
	t.Helper()
	p, err := begin(t, "init", s, unix.CLONE_NEWNS|unix.CLONE_NEWPID)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func execute(t *testing.T, p *process, c Command) *process {
	t.Helper()
	var namespaces []*os.File
	for _, name := range []string{"pid", "mnt"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", p.Process.Pid, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		namespaces = append(namespaces, f)
	}
	c.Namespaces = len(namespaces)
	cmd, err := begin(t, "exec", &c, 0, namespaces...)
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

func (p *process) expect(t *testing.T, status int, want string) {
	t.Helper()
	_ = p.Wait()
	if got := p.out.String(); got != want || p.ProcessState.ExitCode() != status {
		t.Errorf("process wrote %q with status %d, want %q with %d", got, p.ProcessState.ExitCode(), want, status)
	}
}

func (p *process) end(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
}
