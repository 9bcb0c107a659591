package ipvs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan error
}

// start runs a binary with its log in the file of its name.
func (s *story) start(variable string, args ...string) *process {
	s.t.Helper()
	name := filepath.Base(os.Getenv(variable))
	log, err := os.OpenFile(filepath.Join(s.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	if args[0] == "kube-proxy" {
		args = args[1:]
	}
	args = append(args, "--kubeconfig", filepath.Join(s.dir, "kubeconfig"), "--hostname-override=node-a", "--cluster-cidr=10.244.0.0/16", "--healthz-bind-address=127.0.0.1:10256", "--conntrack-max-per-core=0")
	p := &process{t: s.t, cmd: exec.Command(os.Getenv(variable), args...), done: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		if b, err := os.ReadFile(log.Name()); err == nil && s.t.Failed() {
			s.t.Logf("the log of %s ends with:\n%s", name, b[max(0, len(b)-6000):])
		}
	})
	return p
}

func (p *process) signal() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

func (p *process) ended() error {
	select {
	case err := <-p.done:
		p.done <- err
		return nil
	default:
		return errors.New("it runs")
	}
}

func (p *process) end() {
	p.t.Helper()
	p.signal()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatal("the process does not end")
	}
}
