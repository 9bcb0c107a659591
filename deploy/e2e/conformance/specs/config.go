package specs

import (
	"errors"
	"io"
	"strconv"
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
	// Focus is a regular expression of full names, in addition to [sig-network] and skip.txt.
	Focus string
	// Short selects the specs of short.txt.
	Short bool
	// NoPolicy leaves out specs for a NetworkPolicy engine.
	NoPolicy bool
	// Output gets a line for each ended spec.
	Output io.Writer
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
		"--procs=8", // specs that run at the same time
		"--timeout=4h",
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
