package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is how long a process may take to end before it is killed.
const stopTimeout = 5 * time.Second

// process is a program in a namespace. Its standard error goes to a file.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	// in and out are its standard input and output.
	in  io.WriteCloser
	out *bufio.Reader
	// done is closed when the process has ended, err is set then.
	done chan struct{}
	err  error
}

// start runs this program with args in a namespace, its log in dir.
func start(ns *namespace, dir, name string, args ...string) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: find own executable: %w", name, err)
	}
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = log.Close() }()
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.cmd = exec.Command(exe, args...)
	p.cmd.Stdout, p.cmd.Stderr, p.out = outWrite, log, bufio.NewReader(outRead)
	// In its own group, so that an interrupt at the terminal reaches the demo
	// alone.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = ns.do(p.cmd.Start)
	}
	_ = outWrite.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), outRead.Close())
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// expect reads a line of the process's output that contains word. The process
// must write one before ctx ends.
func (p *process) expect(ctx context.Context, word string) error {
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		line, err := p.out.ReadString('\n')
		read <- result{line, err}
	}()
	select {
	case r := <-read:
		if r.err != nil {
			return fmt.Errorf("%s: wait for %q: %w%s", p.name, word, r.err, p.tail())
		}
		if !strings.Contains(r.line, word) {
			return fmt.Errorf("%s printed %q in place of %q%s", p.name, r.line, word, p.tail())
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: wait for %q: %w%s", p.name, word, ctx.Err(), p.tail())
	}
}

// running returns an error if the process has ended.
func (p *process) running() error {
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("%s has ended: %w", p.name, p.err)
		}
		return fmt.Errorf("%s has ended", p.name)
	default:
		return nil
	}
}

// kill ends the process without asking.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop asks the process to end, and kills it when it takes too long.
func (p *process) stop() {
	_ = p.in.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.kill()
	}
}

// tail returns the end of the process's log, indented, on lines of its own.
func (p *process) tail() string {
	const most = 15
	b, err := os.ReadFile(p.log)
	if err != nil || len(b) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return "\n    log of " + p.name + ":\n      " + strings.Join(lines, "\n      ")
}
