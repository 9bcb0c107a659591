package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"syscall"
)

var errEnded = errors.New("the container does not run")

type launch struct {
	program string
	verb    string
	spec    any
	// The process enters namespaces in this order.
	namespaces     []*os.File
	flags          uintptr
	stdin          io.Reader
	stdout, stderr io.Writer
}

func (s *starter) start(l launch) (*exec.Cmd, error) {
	specRead, specWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errorRead, errorWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, specRead.Close(), specWrite.Close())
	}
	defer errorRead.Close()
	cmd := exec.Command(l.program, l.verb)
	cmd.Env = []string{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.stdin, l.stdout, l.stderr
	cmd.ExtraFiles = append([]*os.File{specRead, errorWrite}, l.namespaces...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: l.flags, Setsid: true, Pdeathsig: syscall.SIGKILL}
	err = s.do(cmd.Start)
	specRead.Close()
	errorWrite.Close()
	if err != nil {
		return nil, errors.Join(err, specWrite.Close())
	}
	err = errors.Join(json.NewEncoder(specWrite).Encode(l.spec), specWrite.Close())
	message, readErr := io.ReadAll(errorRead)
	if err = errors.Join(err, readErr); err == nil && len(message) > 0 {
		err = errors.New(string(message))
	}
	if err != nil {
		_ = cmd.Process.Kill() // it ends by itself in most cases
		_ = cmd.Wait()
		return nil, err
	}
	return cmd, nil
}

// starter is the thread that starts all processes: the kernel sends a death signal when the starting
// thread ends, and Go ends idle or locked threads.
type starter struct{ work chan func() }

func newStarter() *starter {
	s := &starter{work: make(chan func())}
	go func() {
		goruntime.LockOSThread()
		for f := range s.work {
			f()
		}
	}()
	return s
}

func (s *starter) do(f func() error) error {
	done := make(chan error, 1)
	s.work <- func() { done <- f() }
	return <-done
}

func (r *Runtime) program(name string) string { return filepath.Join(r.cfg.Programs, name) }

func openNamespaces(pid int, names ...string) ([]*os.File, error) {
	var all []*os.File
	for _, name := range names {
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, name))
		if err != nil {
			closeAll(all)
			return nil, fmt.Errorf("open namespaces: %w", err)
		}
		all = append(all, f)
	}
	return all, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
