package specs

import (
	"errors"
	"io"
	"strconv"
	"time"
)

// Config is a run.
type Config struct {
	// Ginkgo is ginkgo's program, and Program that of cmd/specs, whose name ends in .test.
	Ginkgo, Program string
	// Kubeconfig is a file with the cluster's address and an administrator's credentials, and Kubectl
	// the program.
	Kubeconfig, Kubectl string
	// Report is the directory for the results. It is made if it does not exist.
	Report string
	// Nodes is the number of nodes. The suite itself counts them in its first process only.
	Nodes int
	// Procs is how many specs run at the same time: by default 8.
	Procs int
	// Focus and Skip are regular expressions of full names, in addition to [sig-network] and
	// skip.txt. Empty means no restriction.
	Focus, Skip string
	// Short selects the specs of short.txt.
	Short bool
	// NoPolicy leaves out the specs that need a NetworkPolicy engine.
	NoPolicy bool
	// Timeout ends the run: by default after four hours.
	Timeout time.Duration
	// Environment is added to that of this process, as KEY=VALUE.
	Environment []string
	// Output gets a line for each spec that ended: by default nothing does.
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

// arguments returns those of ginkgo for the specs with these names.
func (c *Config) arguments(names []string) []string {
	args := []string{
		"run", "--no-color", "--silence-skips", "-v",
		"--procs=" + strconv.Itoa(c.Procs),
		"--timeout=" + c.Timeout.String(),
		"--grace-period=30s",
		// What a spec that takes long waits for.
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
