package specs

import (
	"errors"
	"io"
	"strconv"
	"time"
)

// Config configures a run.
type Config struct {
	// Ginkgo is ginkgo's program. Program is cmd/specs; its name ends in .test.
	Ginkgo, Program string
	// Kubeconfig has an administrator's credentials. Kubectl is the program.
	Kubeconfig, Kubectl string
	// Report is the directory for the results, made if missing.
	Report string
	// Nodes is the number of nodes. The suite counts them only in its first process.
	Nodes int
	// Procs is the number of parallel specs: by default 8.
	Procs int
	// Focus and Skip are regular expressions of full names, in addition to [sig-network] and skip.txt.
	Focus, Skip string
	// Short selects the specs of short.txt.
	Short bool
	// NoPolicy leaves out specs for a NetworkPolicy engine.
	NoPolicy bool
	// by default four hours
	Timeout time.Duration
	// Environment extends this process's environment, as KEY=VALUE.
	Environment []string
	// Output, if not nil, gets a line for each ended spec.
	Output io.Writer
}

func (c *Config) setDefaults() {
	if c.Procs == 0 {
		c.Procs = 8
	}
	if c.Timeout == 0 {
		c.Timeout = 4 * time.Hour
	}
	if c.Output == nil {
		c.Output = io.Discard
	}
}

func (c *Config) validate() error {
	var errs []error
	for _, field := range []struct{ name, value string }{
		{"Ginkgo", c.Ginkgo}, {"Program", c.Program}, {"Kubeconfig", c.Kubeconfig}, {"Kubectl", c.Kubectl}, {"Report", c.Report},
	} {
		if field.value == "" {
			errs = append(errs, errors.New("specs: "+field.name+" is empty"))
		}
	}
	if c.Nodes <= 0 {
		errs = append(errs, errors.New("specs: Nodes is not positive"))
	}
	return errors.Join(errs...)
}

func (c *Config) arguments(names []string) []string {
	args := []string{
		"run", "--no-color", "--silence-skips", "-v",
		"--procs=" + strconv.Itoa(c.Procs),
		"--timeout=" + c.Timeout.String(),
		"--grace-period=30s",
		// Shows the wait of a slow spec.
		"--poll-progress-after=180s", "--poll-progress-interval=120s",
	}
	return append(args, "--focus="+expression(names), c.Program, "--",
		"--kubeconfig="+c.Kubeconfig, "--kubectl-path="+c.Kubectl,
		"--provider=local", "--dns-domain=cluster.local",
		"--report-dir="+c.Report, "--report-complete-ginkgo",
		"--results="+c.lines(),
		// The parallel specs would print each other's namespaces.
		"--dump-logs-on-failure=false", "--disable-log-dump",
		"--num-nodes="+strconv.Itoa(c.Nodes),
	)
}
