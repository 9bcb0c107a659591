// Command clusterpolicy is the conformance suite of ClusterNetworkPolicy, compiled unmodified from
// sigs.k8s.io/network-policy-api at the version of go.mod.
//
//	go build -o bin/clusterpolicy ./cmd/clusterpolicy
//	KUBECONFIG=FILE bin/clusterpolicy -test.v -all-features
//
// It does the work of TestConformance in the suite's conformance_test.go, which cannot be imported. The flags
// are the suite's and a Go test's: -test.run selects tests. The cluster needs the CustomResourceDefinition of
// ClusterNetworkPolicy.
package main

import (
	"fmt"
	"regexp"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	api "sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/network-policy-api/conformance/tests"
	"sigs.k8s.io/network-policy-api/conformance/utils/flags"
	"sigs.k8s.io/network-policy-api/conformance/utils/suite"
)

func main() {
	testing.Main(regexp.MatchString, []testing.InternalTest{{Name: "TestConformance", F: conformance}}, nil, nil)
}

func conformance(t *testing.T) {
	options, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	s := suite.New(options)
	s.Setup(t)
	s.Run(t, tests.ConformanceTests)
}

func connect() (suite.Options, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return suite.Options{}, fmt.Errorf("read kubeconfig: %w", err)
	}
	objects, err := client.New(rest.CopyConfig(config), client.Options{})
	if err != nil {
		return suite.Options{}, fmt.Errorf("make client: %w", err)
	}
	if err := api.Install(objects.Scheme()); err != nil {
		return suite.Options{}, fmt.Errorf("register ClusterNetworkPolicy: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return suite.Options{}, fmt.Errorf("make client: %w", err)
	}
	return suite.Options{
		Client: objects, ClientSet: clients, KubeConfig: *config,
		Debug:                      *flags.ShowDebug,
		CleanupBaseResources:       *flags.CleanupBaseResources,
		SupportedFeatures:          suite.ParseSupportedFeatures(*flags.SupportedFeatures),
		ExemptFeatures:             suite.ParseSupportedFeatures(*flags.ExemptFeatures),
		EnableAllSupportedFeatures: *flags.EnableAllSupportedFeatures,
	}, nil
}
