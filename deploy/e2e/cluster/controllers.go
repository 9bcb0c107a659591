package cluster

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
)

const endpointSlices = "endpointslice-controller"

// allControllers leaves out controllers for storage, certificates and clouds.
func allControllers() []string {
	return []string{
		endpointSlices, "endpoints-controller", "endpointslice-mirroring-controller", "service-cidr-controller",
		"deployment-controller", "replicaset-controller", "replicationcontroller-controller", "statefulset-controller", "daemonset-controller", "job-controller",
		"disruption-controller", "pod-garbage-collector-controller", "garbage-collector-controller", "resourcequota-controller",
		"namespace-controller", "serviceaccount-controller", "serviceaccount-token-controller", "root-ca-certificate-publisher-controller",
		"clusterrole-aggregation-controller", "node-lifecycle-controller", "taint-eviction-controller",
	}
}

const (
	// With the default limits kube-controller-manager would need minutes for the objects of a test.
	fullQPS, fullBurst = "500", "1000"
	controllerManager  = "kube-controller-manager"
	scheduler          = "kube-scheduler"
)

func (c *Cluster) startControllers(context.Context) error {
	controllers := []string{endpointSlices}
	var flags []string
	if c.cfg.Full {
		controllers = allControllers()
		flags = []string{
			"--kube-api-qps", fullQPS, "--kube-api-burst", fullBurst,
			"--root-ca-file", c.creds.serving, "--service-account-private-key-file", c.creds.accounts,
		}
	}
	flags = append(flags, "--kubeconfig", c.kubeconfig(controllerManager), "--controllers", strings.Join(controllers, ","),
		"--use-service-account-credentials", "--leader-elect=false", "--secure-port=0", "--profiling=false")
	if err := c.run(&c.controllers, controllerManager, flags...); err != nil || !c.cfg.Full {
		return err
	}
	return c.run(&c.scheduler, scheduler, "--kubeconfig", c.kubeconfig(scheduler),
		"--kube-api-qps", fullQPS, "--kube-api-burst", fullBurst, "--leader-elect=false", "--secure-port=0", "--profiling=false")
}

func (c *Cluster) killControllers() error {
	return errors.Join(kill(c.controllers), kill(c.scheduler))
}

func (c *Cluster) admitControllers(context.Context) error {
	for name, token := range map[string]string{controllerManager: c.creds.controllers, scheduler: c.creds.scheduler} {
		if err := c.WriteKubeconfig(c.kubeconfig(name), token); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) kubeconfig(name string) string { return filepath.Join(c.cfg.Dir, name+".kubeconfig") }
