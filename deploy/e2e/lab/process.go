package lab

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Process is a daemon in a namespace that writes to a log file.
type Process struct {
	Name string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Start runs a daemon, and appends its output to the file log. env extends this process's environment.
func (n *Namespace) Start(name, log string, env []string, argv ...string) (*Process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer f.Close()
	fmt.Fprintf(f, "--- %s: %s\n", time.Now().Format(time.StampMilli), strings.Join(argv, " "))
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.Env = append(os.Environ(), env...)
	if err := n.Do(cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s in %s: %w", name, n.name, err)
	}
	p := &Process{Name: name, log: log, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns an error after the end of the process, nil before.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %w; its last lines:\n%s", p.Name, cmp.Or(p.err, errors.New("exit status 0")), p.Tail(20))
	default:
		return nil
	}
}

// PID returns the process ID in the caller's PID namespace.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill sends SIGKILL and waits.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.Name, err)
	}
	<-p.done
	return nil
}

// Stop asks the process to end, and kills it after patience, which is an error.
func (p *Process) Stop(patience time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("stop %s: still there %s after SIGTERM", p.Name, patience), p.Kill())
	}
}

// Tail returns the end of the log.
func (p *Process) Tail(lines int) string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
