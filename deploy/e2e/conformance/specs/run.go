package specs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// ErrFailed means that the run is complete, but specs failed.
var ErrFailed = errors.New("specs failed")

// Results returns the file of ginkgo's report.
func Results(report string) string { return filepath.Join(report, "ginkgo", "report.json") }

func (c *Config) lines() string { return filepath.Join(c.Report, "specs.jsonl") }

// Run returns when all specs have ended. The end of ctx interrupts running specs, and makes the report
// partial.
//
// Possible errors: [ErrFailed]; an invalid list or configuration; ginkgo cannot be started, or wrote no
// report.
func Run(ctx context.Context, c Config) error {
	if err := c.validate(); err != nil {
		return err
	}
	for _, path := range []*string{&c.Ginkgo, &c.Program, &c.Kubeconfig, &c.Kubectl, &c.Report} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("run specs: %w", err)
		}
		*path = absolute
	}
	skips, err := Skips()
	if err != nil {
		return err
	}
	all, err := List(ctx, c.Program)
	if err != nil {
		return err
	}
	if err := check(all, skips, Short()); err != nil {
		return err
	}
	names, err := c.choose(all, skips)
	if err != nil {
		return err
	}
	// Otherwise an earlier report could be mistaken for this run's.
	for _, old := range []string{Results(c.Report), filepath.Join(c.Report, "junit_01.xml"), c.lines()} {
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("remove old results: %w", err)
		}
	}
	if err := os.MkdirAll(c.Report, 0o755); err != nil {
		return fmt.Errorf("make directory for results: %w", err)
	}
	return c.run(ctx, names)
}

func (c *Config) run(ctx context.Context, names []string) error {
	log, err := os.Create(filepath.Join(c.Report, "ginkgo.log"))
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, c.Ginkgo, c.arguments(names)...)
	cmd.Dir = c.Report
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 2 * time.Minute

	ended, stop := context.WithCancel(context.Background())
	printed := make(chan int)
	go func() { printed <- c.follow(ended, len(names)) }()
	err = cmd.Run()
	stop()
	count := <-printed
	exit := new(exec.ExitError)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("run specs: %w", context.Cause(ctx))
	case count > 0 && errors.As(err, &exit) && exit.ExitCode() == 1:
		if _, missing := os.Stat(Results(c.Report)); missing == nil {
			return ErrFailed
		}
	}
	return fmt.Errorf("run ginkgo: %w after %d of %d specs: see %s", err, count, len(names), log.Name())
}

func (c *Config) follow(ctx context.Context, total int) int {
	p := progress{out: c.Output, start: time.Now(), total: total}
	var file *os.File
	buffer := make([]byte, 1<<16)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for last := false; ; {
		if file == nil {
			file, _ = os.Open(c.lines())
		}
		for file != nil {
			n, err := file.Read(buffer)
			p.write(buffer[:n])
			if n == 0 || err != nil && !errors.Is(err, io.EOF) {
				break
			}
		}
		if last {
			break
		}
		select {
		case <-ctx.Done():
			last = true
		case <-tick.C:
		}
	}
	if file != nil {
		_ = file.Close()
	}
	return p.ended
}
