package demo

import (
	"bufio"
	"cmp"
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

	"github.com/weft-proxy/weft/nft/testing/nfttest/netns"
)

const stopTimeout = 5 * time.Second

// process is a child of the demo. Its standard error goes to the file log.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   string
	in    io.WriteCloser
	out   *os.File
	lines *bufio.Reader
	// closed after err is set
	done chan struct{}
	err  error
}

func start(ns *netns.Namespace, dir, name string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	if err := p.start(ns, args); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) start(ns *netns.Namespace, args []string) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	out, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = write.Close() }()
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Stdout, p.cmd.Stderr, p.out, p.lines = write, log, out, bufio.NewReader(out)
	// An interrupt at the terminal must reach only the demo.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = ns.Do(p.cmd.Start)
	}
	return err
}

func (p *process) expect(ctx context.Context, word string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = p.out.SetReadDeadline(time.Now()) })()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		return fmt.Errorf("%s: wait for %q: %w%s", p.name, word, cmp.Or(ctx.Err(), err), p.tail())
	}
	if !strings.Contains(line, word) {
		return fmt.Errorf("%s printed %q in place of %q%s", p.name, line, word, p.tail())
	}
	return nil
}

func (p *process) running() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s has ended: %w", p.name, cmp.Or(p.err, errors.New("exit status 0")))
	default:
		return nil
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) stop() {
	_ = p.in.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.kill()
	}
}

func (p *process) tail() string {
	const most = 15
	b, err := os.ReadFile(p.log)
	if err != nil || len(b) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return "\n    log of " + p.name + ":\n      " + strings.Join(lines[max(0, len(lines)-most):], "\n      ")
}
