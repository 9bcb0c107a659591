package main

import (
	"context"
	"flag"
	"fmt"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
)

// The default settings of the EndpointSlice controller, in
// kube-controller-manager 1.36.
const (
	maxEndpointsPerSlice = 100
	concurrentSyncs      = 5
	apiQPS, apiBurst     = 20, 30
)

// runController is kube-controller-manager with the one controller that weft
// depends on. What the others do (garbage collection, ReplicaSets, node
// life cycle) the tests do themselves.
func runController(args []string) error {
	flags := flag.NewFlagSet("endpointslice-controller", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "path of a kubeconfig file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	cfg.QPS, cfg.Burst = apiQPS, apiBurst
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// No resync: what the controller does it does because of an event.
	factory := informers.NewSharedInformerFactory(client, 0)
	c := endpointslice.NewController(ctx,
		factory.Core().V1().Pods(), factory.Core().V1().Services(), factory.Core().V1().Nodes(), factory.Discovery().V1().EndpointSlices(),
		maxEndpointsPerSlice, client, 0)
	factory.Start(ctx.Done())
	c.Run(ctx, concurrentSyncs)
	return nil
}
